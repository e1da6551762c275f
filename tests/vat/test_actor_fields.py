"""An actor's state is its declared fields, and nothing of it is there outside of a crank."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import World, assert_restores, dump, everything, operations, said

from dataspace.values import Blob, CellRef, FrozenValue, NotAValue, Symbol, Text
from vat.errors import OutsideCrank, ReadOnly
from vat.heap.opcodes import Op
from vat.objects.actor import Actor, Device, NotDeclared, actor
from vat.objects.collections import List, Map, Set
from vat.objects.types import UnknownActorType, read

kept: list[Any] = []


@actor("fields.box", version=1)
class Box(Actor):
    count: int = 0
    value: Any = None
    text: Text = Text("")
    items: List[Any]
    named: Map[Any, Any]
    tags: Set[Any]
    model: Device = "model"
    _secret: int = 1

    def put(self, value: Any) -> Any:
        self.value = value
        return self.value

    def write(self, text: Text) -> Text:
        self.text = text
        return self.text

    def assign(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def remove(self, name: str) -> None:
        delattr(self, name)

    def mutate(self) -> None:
        self.value["a"] = 2

    def spoil(self) -> None:
        self.count = 9
        self.value = {"deep": [1, object()]}

    def add(self) -> int:
        self.items += ["more"]
        return len(self.items)

    def point(self, name: str) -> str:
        self.model = name
        return str(self.model)

    def leak(self) -> None:
        kept[:] = [self, self.items, self.items.view(), self.named, self.tags, self.random]

    def make(self, **fields: Any) -> Any:
        return self.spawn(Box, **fields)

    def stranger(self) -> Any:
        return self.spawn(Stranger)

    def collections(self) -> Any:
        self.items.extend([1, {"inner": self.items.view()}])
        self.named["me"] = self
        return [self.items, self.named, {"deep": self.items}]

    @read
    def look(self) -> Any:
        self.count = 5
        return None

    @read
    def made(self) -> Any:
        return self.spawn(Box)


@actor("fields.stranger", version=1)
class Stranger(Actor): ...


@actor("fields.needy", version=1)
class Needy(Actor):
    name: str
    seen: List[Text]
    by_key: Map[str, Text]
    tags: Set[str]

    def say(self, *, text: Text) -> None:
        self.seen.append(text)
        self.seen.insert(0, text)
        self.seen.extend([text])
        self.by_key["k"] = text


@pytest.fixture
def world():
    return World(Box, Needy)


@pytest.fixture
def box(world):
    return world.spawn(Box)


@pytest.mark.parametrize(
    "value",
    [None, True, 5, 2**80, -1.5, "x", "y" * 1000, b"z" * 500, [1, {"a": [None]}], Symbol("go"), Blob("a/b", b"c")],
)
def test_a_field_keeps_a_value_as_it_is(world, box, value):
    assert world.ask(box, "put", value) == value
    assert world.ask(box, "value") == value
    assert_restores(world, box)


def test_what_is_assigned_is_frozen(world, box):
    world.ask(box, "put", {"a": 1})
    with pytest.raises(FrozenValue, match="make a changed copy"):
        world.ask(box, "mutate")


def test_what_is_no_value_raises_at_the_line_that_tried_and_names_the_place(world, box):
    before = dump(box.heap)["actors"]
    with pytest.raises(NotAValue, match=r"value\.deep\[1\]: object is not a value"):
        world.ask(box, "spoil")
    assert dump(box.heap)["actors"] == before


@pytest.mark.parametrize("name", ["other", "_private", "spawn", "put"])
def test_an_undeclared_name_cannot_be_assigned(world, box, name):
    with pytest.raises(NotDeclared, match="is not a declared field"):
        world.ask(box, "assign", name, 1)


def test_a_field_cannot_be_deleted(world, box):
    with pytest.raises(NotDeclared, match=r"cannot be deleted(?!.*<type>)"):
        world.ask(box, "remove", "count")


def test_a_collection_cannot_be_assigned_but_added_to(world, box):
    with pytest.raises(NotDeclared, match=r"use clear(?!.*<type>)"):
        world.ask(box, "assign", "items", [1])
    assert world.ask(box, "add") == 1
    assert world.ask(box, "items") == ["more"]


def test_text_is_kept_beside_the_record_however_short(world, box):
    assert world.ask(box, "write", "tiny") == "tiny"
    record = box.records[-1]
    assert type(said(record)["args"][0]) is CellRef
    assert [type(op[3]) for op in operations(record) if op[0] == Op.SET] == [CellRef]
    assert len(record.cells) == 1, "said three times, stored once"
    assert b"tiny" not in record.deeds
    assert world.ask(box, "text") == "tiny"
    assert_restores(world, box)


def test_text_is_content_by_name_and_in_collections_too(world):
    needy = world.spawn(Needy, name="n")
    world.ask(needy, "say", text="by name")
    record = needy.records[-1]
    assert [cell[17:] for cell in record.cells] == [b"by name"]
    for part in (record.deeds, record.facts):
        assert b"by name" not in part
    assert world.ask(needy, "seen") == ["by name"] * 3
    assert_restores(world, needy)


def test_a_long_string_is_stored_once_however_often_it_is_said(world, box):
    long = "long " * 100
    world.ask(box, "put", [long, {"again": long}])
    record = box.records[-1]
    assert len(record.cells) == 1
    assert everything(record).count(long.encode()) == 1


def test_a_device_field_holds_its_name(world, box):
    assert world.ask(box, "point", "other") == "other"
    assert world.ask(box, "model") == "other"
    with pytest.raises(TypeError, match="names a device: give its name, a str, not a "):
        world.ask(box, "assign", "model", 5)


def test_collections_and_actors_in_a_value_are_copied(world, box):
    items, named, deep = world.ask(box, "collections")
    assert items == [1, {"inner": []}]
    assert set(named) == {"me"}
    assert deep == {"deep": [1, {"inner": []}]}
    assert_restores(world, box)


def test_a_public_field_is_read_without_a_record(world, box):
    head = box.vat.seq
    assert world.ask(box, "count") == 0
    assert world.ask(box, "items") == []
    assert box.vat.seq == head
    with pytest.raises(AttributeError, match="no method or public field '_secret'"):
        world.ask(box, "_secret")
    with pytest.raises(TypeError, match="takes no arguments"):
        world.ask(box, "count", 1)


def test_a_read_method_changes_nothing(world, box):
    before, head = dump(box.heap), box.vat.seq
    with pytest.raises(ReadOnly):
        world.ask(box, "look")
    with pytest.raises(ReadOnly):
        world.ask(box, "made")
    assert dump(box.heap) == before
    assert box.vat.seq == head


def test_nothing_of_an_actor_works_when_its_crank_is_over(world, box):
    world.ask(box, "leak")
    before = dump(box.heap)
    me, items, view, named, tags, random = kept
    for change in (
        lambda: setattr(me, "count", 1),
        lambda: items.append(1),
        lambda: items.clear(),
        lambda: named.update(a=1),
        lambda: tags.add(1),
        lambda: me.spawn(Box),
        lambda: me.new_id(),
        lambda: me.random,
        lambda: me.assert_fact("my.fact"),
        lambda: me.device("x").call(),
        lambda: me.narrow("put"),
        lambda: items.view(),
        lambda: me.count,
        lambda: len(items),
        lambda: me.ref.put(1),
    ):
        chance = repr(world.chance)
        with pytest.raises(OutsideCrank):
            change()
        assert repr(world.chance) == chance, "what takes no effect asks chance for nothing"
    assert list(view) == [], "a view is what it was"
    assert random.bytes(3)
    assert random.bytes(0) == b""
    with pytest.raises(ValueError, match="give a count from 0 on"):
        random.bytes(-1)
    assert dump(box.heap) == before
    world.ask(box, "put", 1)
    assert_restores(world, box)


def test_an_actor_is_not_made_by_calling_its_class():
    with pytest.raises(OutsideCrank, match=r"made by self\.spawn"):
        Box()


def test_an_actor_is_spawned_with_fields_and_filled_collections(world):
    made = world.spawn(Needy, name="n", seen=["a", "b"], by_key={"k": "v"}, tags={"y", "x"})
    assert world.ask(made, "seen") == ["a", "b"]
    assert world.ask(made, "by_key") == {"k": "v"}
    assert world.ask(made, "tags") == ["x", "y"]
    assert sorted(cell[17:] for cell in made.records[0].cells) == [b"a", b"b", b"v"]
    assert_restores(world, made)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, r"needs a value for its field 'name': give it one, as in spawn\(\.\.\., name=\.\.\.\)"),
        ({"name": "n", "other": 1}, "has no field 'other'"),
        ({"name": "n", "seen": "text"}, "begins with a list, not with a str"),
        ({"name": "n", "by_key": [1]}, "begins with a dict, not with a list"),
        ({"name": object()}, "name: object is not a value"),
    ],
)
def test_fields_that_do_not_fit_are_refused(world, fields, why):
    with pytest.raises(TypeError, match=why):
        world.spawn(Needy, **fields)


def test_a_spawn_that_is_refused_leaves_no_trace(world, box):
    before = dump(box.heap)["actors"]
    with pytest.raises(TypeError, match="has no field 'nope'"):
        world.ask(box, "make", nope=1)
    assert dump(box.heap)["actors"].keys() == before.keys()
    assert_restores(world, box)


def test_a_type_that_the_host_does_not_know_is_not_spawned(world, box):
    with pytest.raises(UnknownActorType, match=r"fields\.stranger.*Pass its class to open_host"):
        world.ask(box, "stranger")
