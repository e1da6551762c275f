"""Upgrading: actors of an older version become the code's, all of them or none."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import ROOT, World, assert_restores, dump, operations, said

from dataspace.values import FrozenDict, Text
from vat.crank.upgrading import NotUpgraded, UpgradeFailed
from vat.heap.opcodes import Op
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set
from vat.objects.types import NewerVersion, Types, UnknownActorType


@actor("upgrading.note", version=1)
class Note1(Actor):
    title: Text = Text("")
    seen: List[str]
    old: int = 7
    tags: str = "a b"
    other: Any = None

    def add(self, line: str) -> None:
        self.title = Text("a title")
        self.seen.append(line)

    def make(self) -> Any:
        made = self.spawn(Note1)
        self.other = made
        return made


calls: list[Any] = []


class Note3(Actor):
    title: Text = Text("")
    lines: List[str]
    count: int = 0
    tags: Set[str]
    by_line: Map[str, int]
    added: Any = FrozenDict({"new": True})
    other: Any = None

    def look(self) -> Any:
        return {"title": self.title, "lines": list(self.lines), "count": self.count, "tags": list(self.tags)}

    @classmethod
    def upgrade(cls, state, from_version):
        calls.append((from_version, sorted(state)))
        if from_version == 1:
            state["lines"] = state.pop("seen")
            state["count"] = len(state["lines"])
        if from_version == 2:
            state["by_line"] = {line: n for n, line in enumerate(state["lines"])}
            state["tags"] = set(state["tags"].split())


Note3 = actor("upgrading.note", version=3)(Note3)


def with_code(world, session, *classes):
    """The session loaded by a host with other code."""
    world.types = Types(classes)
    return world.reload(session)


@pytest.fixture
def world():
    calls.clear()
    return World(Note1)


@pytest.fixture
def old(world):
    session = world.spawn(Note1)
    for n in range(40):
        world.ask(session, "add", f"line {n}")
    world.ask(session, "make")
    return session


def test_the_steps_run_in_order_in_one_crank_of_its_own(world, old):
    new = with_code(world, old, Note3)
    step = new.keep(new.vat.upgrade())
    assert said(step.record) == {"upgrade": {"upgrading.note": [1, 3]}}
    assert [version for version, _ in calls] == [1, 2, 1, 2], "for each of the two actors"
    looked = world.ask(new, "look")
    assert looked == {"title": "a title", "lines": [f"line {n}" for n in range(40)], "count": 40, "tags": ["a", "b"]}
    assert world.ask(new, "added") == {"new": True}
    assert world.ask(new, "by_line")["line 3"] == 3
    assert world.ask(new, "look", to=2)["count"] == 0
    assert new.heap.types == {"upgrading.note": (3, 2)}
    assert new.vat.upgrade() is None
    assert_restores(world, new)


def test_what_was_not_touched_is_kept_at_no_cost(world, old):
    new = with_code(world, old, Note3)
    record = new.keep(new.vat.upgrade()).record
    upgraded = [op for op in operations(record) if op[0] == Op.UPGRADED]
    assert upgraded[0][3] == {"title": "title", "lines": "seen", "other": "other"}
    assert record.cells == [], "no content is said again"


def test_a_session_is_not_used_before_it_is_upgraded(world, old):
    new = with_code(world, old, Note3)
    with pytest.raises(NotUpgraded, match=r"older versions of upgrading\.note"):
        world.ask(new, "look")
    new.keep(new.vat.upgrade())
    assert world.ask(new, "look")["count"] == 40


def test_an_upgrade_that_fails_is_undone_whole_and_the_session_refuses_messages(world, old):
    class Failing(Actor):
        title: Text = Text("")

        @classmethod
        def upgrade(cls, state, from_version):
            if not state["seen"]:  # the second actor's
                raise ValueError("what is this?")
            state["title"] = "canary"

    failing = actor("upgrading.note", version=2)(Failing)
    new = with_code(world, old, failing)
    before = dump(new.heap)
    with pytest.raises(
        UpgradeFailed, match=r"from version 1 of upgrading\.note .* ValueError: what is this\?.*untouched"
    ):
        new.vat.upgrade()
    assert dump(new.heap) == before
    with pytest.raises(UpgradeFailed):
        world.ask(new, "title")
    with pytest.raises(UpgradeFailed):
        new.vat.collect()
    mended = with_code(world, new, Note3)
    mended.keep(mended.vat.upgrade())
    assert world.ask(mended, "look")["count"] == 40


def test_a_field_that_has_no_value_after_the_steps_fails_the_upgrade(world, old):
    class Needy(Actor):
        needed: int

    new = with_code(world, old, actor("upgrading.note", version=2)(Needy))
    with pytest.raises(UpgradeFailed, match=r"needs a value for its field 'needed'\. The session"):
        new.vat.upgrade()


def test_without_steps_new_fields_have_their_defaults_and_others_go(world, old):
    class Plain(Actor):
        title: Text = Text("")
        seen: List[str]
        fresh: List[int]
        number: int = 5

        def add(self, n: int) -> int:
            self.fresh.append(n)
            return len(self.fresh)

    new = with_code(world, old, actor("upgrading.note", version=2)(Plain))
    new.keep(new.vat.upgrade())
    assert world.ask(new, "number") == 5
    assert len(world.ask(new, "seen")) == 40
    assert world.ask(new, "add", 1) == 1
    assert "old" not in new.heap.state(ROOT).fields
    assert_restores(world, new)


def test_a_newer_version_than_the_codes_is_refused_and_untouched(world, old):
    new = with_code(world, old, Note3)
    new.keep(new.vat.upgrade())
    back = with_code(world, new, Note1)
    before = dump(back.heap)
    for attempt in (back.vat.upgrade, lambda: world.ask(back, "old")):
        with pytest.raises(NewerVersion, match=r"upgrading\.note is at version 3 in this session and the code has 1"):
            attempt()
    assert dump(back.heap) == before


def test_a_type_that_the_host_was_not_given_is_refused_by_name(world, old):
    other = with_code(world, old)
    for attempt in (other.vat.upgrade, lambda: world.ask(other, "old")):
        with pytest.raises(UnknownActorType, match=r"upgrading\.note"):
            attempt()


def test_a_type_that_no_actor_has_any_more_is_not_asked_for(world):
    @actor("upgrading.helper")
    class Helper(Actor): ...

    @actor("upgrading.user")
    class User(Actor):
        def use(self) -> None:
            self.spawn(Helper)

    world = World(User, Helper)
    session = world.spawn(User)
    world.ask(session, "use")
    session.keep(session.vat.collect())
    again = with_code(world, session, User)
    assert again.vat.upgrade() is None
    assert world.ask(again, "describe")["actors"] == 1


def test_a_collection_that_is_new_without_a_new_version_begins_empty(world):
    @actor("upgrading.grown")
    class Before(Actor):
        count: int = 0

    @actor("upgrading.grown")
    class After(Actor):
        count: int = 0
        more: int = 9
        items: List[int]
        named: Map[str, int]
        tags: Set[str]

        def use(self) -> Any:
            seen = [len(self.items), len(self.named), len(self.tags), list(self.items.view()), self.more]
            self.items.append(1)
            self.named["a"] = 1
            self.tags.add("x")
            return seen

    world = World(Before)
    session = world.spawn(Before)
    session.snapshot()
    again = with_code(world, session, After)
    assert again.vat.upgrade() is None
    assert world.ask(again, "use") == [0, 0, 0, [], 9]
    assert world.ask(again, "items") == [1]
    assert_restores(world, again)


def test_state_moved_to_another_kind_of_collection_is_filled_anew(world, old):
    class Turned(Actor):
        seen: Set[str]

    new = with_code(world, old, actor("upgrading.note", version=2)(Turned))
    new.keep(new.vat.upgrade())
    assert len(world.ask(new, "seen")) == 40
    assert_restores(world, new)
