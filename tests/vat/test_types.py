"""What a class declares: fields, methods, what is kept as content; and what is refused, by name."""

from __future__ import annotations

import typing
from typing import Annotated, Any, ClassVar

import pytest

from dataspace.values import Text
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List, Map, Set
from vat.objects.types import BadActorType, Keep, Shape, Types, UnknownActorType, read, type_of


def marked(value: Any) -> Any:
    return {"text": Text(value["text"])} if isinstance(value, dict) else value


Message = Annotated[Any, Keep(marked)]
Lines = List[Text]


@actor("types.sample", version=3)
class Sample(Actor):
    LIMIT: ClassVar[int] = 5
    count: int = 0
    name: str
    note: Text = Text("")
    said: List[Text]
    lines: Lines
    seen: List[str]
    by_key: Map[str, Text]
    tags: Set[str]
    model: Device
    log: List[Message]
    _hidden: int = 1

    def add(self, text: Text, other: str, message: Message, *rest: str, by: Text | None = None) -> Text:
        return text

    @read
    def look(self) -> int:
        return self.count

    def _later(self, value: Any) -> None: ...


SAMPLE = type_of(Sample)


def test_a_type_has_the_name_and_version_that_it_was_given():
    assert (SAMPLE.name, SAMPLE.version, SAMPLE.cls) == ("types.sample", 3, Sample)


def test_the_annotation_decides_what_a_field_is():
    shapes = {name: field.shape for name, field in SAMPLE.fields.items()}
    assert shapes["count"] is Shape.VALUE
    assert shapes["lines"] is Shape.LIST, "through a name for the annotation too"
    assert (shapes["seen"], shapes["by_key"], shapes["tags"]) == (Shape.LIST, Shape.MAP, Shape.SET)
    assert shapes["model"] is Shape.DEVICE
    assert "LIMIT" not in shapes


def test_a_field_without_a_default_must_be_given_unless_it_is_a_collection():
    assert {name for name, field in SAMPLE.fields.items() if field.required} == {"name", "model"}


def test_a_field_with_an_underscore_is_not_public():
    assert not SAMPLE.fields["_hidden"].public
    assert SAMPLE.fields["count"].public


@pytest.mark.parametrize("name", ["note", "said", "lines", "by_key"])
def test_what_is_annotated_text_is_kept_as_content(name):
    mark = SAMPLE.fields[name].mark
    assert mark is not None
    assert type(mark("short")) is Text
    assert mark(5) == 5


def test_a_mark_of_ones_own_says_where_the_content_is():
    assert SAMPLE.fields["log"].mark is marked
    assert SAMPLE.methods["add"].marks[2] is marked


def test_parameters_are_marked_by_place_and_by_name():
    marks = SAMPLE.methods["add"].marks
    assert set(marks) == {0, "text", 2, "message", "by"}
    assert SAMPLE.methods["add"].mark_result is not None
    assert SAMPLE.methods["look"].mark_result is None


def test_private_methods_are_for_reactions_only():
    assert set(SAMPLE.methods) == {"add", "look"}
    assert set(SAMPLE.inner) == {"_later"}
    assert SAMPLE.methods["look"].read
    assert not SAMPLE.methods["add"].read


def test_a_derived_type_has_what_its_base_has_and_more():
    @actor("types.derived")
    class Derived(Sample):
        more: int = 2
        count: int = 7

        def twice(self) -> int:
            return 2

    derived = type_of(Derived)
    assert derived.fields["name"].required
    assert (derived.fields["more"].default, derived.fields["count"].default) == (2, 7)
    assert {"add", "look", "twice"} == set(derived.methods)
    assert SAMPLE.fields["count"].default == 0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"__annotations__": {"spawn": "int"}, "spawn": 1}, "the field spawn has the name of something"),
        ({"observe": lambda self: None}, "the method observe has the name of something"),
        ({"fork": lambda self: None}, "the method fork has the name of something"),
        ({"__init__": lambda self: None}, "an actor has no __init__"),
        ({"__annotations__": {"a": "int"}, "a": lambda self: None}, "not a value"),
        ({"__annotations__": {"a": List}, "a": []}, "the collection a begins empty"),
    ],
)
def test_what_cannot_be_a_type_is_refused_by_name(body, why):
    with pytest.raises(TypeError, match=why):
        actor("types.bad")(type("Bad", (Actor,), {"__module__": __name__, **body}))


async def _each(self):
    yield 1


def test_a_public_async_generator_is_refused_with_what_to_do():
    with pytest.raises(BadActorType, match="give a list"):
        actor("types.bad")(type("Bad", (Actor,), {"__module__": __name__, "go": _each}))


@pytest.mark.parametrize("name", ["Counter", "counter", "chat.", "chat.Counter", "1.a", "a b.c"])
def test_a_type_is_named_by_words_with_dots(name):
    with pytest.raises(BadActorType, match="is no name for an actor type"):
        actor(name)(type("Named", (Actor,), {"__module__": __name__}))


@pytest.mark.parametrize("version", [0, -1, "1", True])
def test_a_version_is_a_whole_number_from_one_on(version):
    with pytest.raises(BadActorType, match="is not a whole number"):
        actor("types.bad", version=version)(type("Bad", (Actor,), {"__module__": __name__}))


def test_a_host_runs_the_types_that_it_was_given_and_names_them():
    types = Types([Sample])
    assert types["types.sample"] is SAMPLE
    with pytest.raises(UnknownActorType, match=r"unknown actor type 'types\.other': this host runs types\.sample"):
        types["types.other"]


def test_two_classes_cannot_have_one_name_in_one_version():
    @actor("types.sample", version=3)
    class Other(Actor): ...

    with pytest.raises(BadActorType, match="belongs to Sample"):
        Types([Sample, Other])


def test_of_several_versions_the_newest_is_the_type():
    @actor("types.sample", version=2)
    class Older(Actor): ...

    types = Types([Sample, Older])
    assert types["types.sample"].cls is Sample
    assert types.fit("types.sample", 2).cls is Older
    assert (types.has("types.sample", 2), types.has("types.sample", 1)) == (True, False)


def test_a_class_that_is_not_decorated_is_no_type():
    class Plain(Sample): ...

    with pytest.raises(BadActorType, match="decorate it with @actor"):
        Types([Plain])


@pytest.mark.parametrize("name", ["_crank", "_actor", "__keeve_type__", "__class__", "__own", "ref", "fork", "request"])
def test_a_field_with_a_name_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(BadActorType, match="name"):
        actor("types.taken", version=1)(type("Taken", (Actor,), {"__annotations__": {name: int}}))


@pytest.mark.parametrize("name", ["_crank", "_actor", "ref", "fork"])
def test_a_method_with_a_name_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(BadActorType, match="name"):
        actor("types.taken", version=1)(type("Taken", (Actor,), {name: lambda self: None}))


@pytest.mark.parametrize("name", ["upgrade", "given"])
def test_a_method_of_the_class_is_refused_without_classmethod_with_what_to_write(name: str) -> None:
    with pytest.raises(BadActorType, match=rf"{name} is called on the class: write @classmethod above it"):
        actor("types.taken", version=1)(type("Taken", (Actor,), {name: lambda self, state: None}))


@pytest.mark.parametrize("value", [classmethod(lambda cls: None), property(lambda self: None), 5])
def test_a_name_that_every_actor_has_is_refused_whatever_it_is_given_to(value: Any) -> None:
    with pytest.raises(BadActorType, match="the attribute now has the name of something that every actor has"):
        actor("types.taken", version=1)(type("Taken", (Actor,), {"now": value}))


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (typing.List[str], "that is the List of typing"),  # noqa: UP006  # it is what is refused
        (typing.Set, "that is the Set of typing"),  # noqa: UP006  # it is what is refused
        ("typing.List[str]", "that is the List of typing"),
        ("typing.Text", "that is the Text of typing"),
        ("Missing.Set[str]", "Set cannot be found in test_types when it is imported"),
        ("keeve.List[str]", "List cannot be found"),
    ],
)
def test_an_annotation_that_reads_like_a_collection_and_is_none_is_refused(annotation: Any, why: str) -> None:
    body = {"__annotations__": {"xs": annotation}, "__module__": __name__}
    with pytest.raises(BadActorType, match=f"xs: .*{why}.*write `from keeve import"):
        actor("types.lost", version=1)(type("Lost", (Actor,), body))


def test_a_class_that_is_not_derived_from_actor_is_refused_with_what_to_write():
    with pytest.raises(BadActorType, match=r"Lonely: .*write class Lonely\(Actor\)"):

        @actor("types.lonely", version=1)  # type: ignore[type-var]  # that is what is refused
        class Lonely: ...


def test_a_bare_decorator_is_refused_with_what_to_write():
    with pytest.raises(BadActorType, match=r"write @actor\('some\.name', version=1\)"):

        @actor  # type: ignore[arg-type]  # that is what is refused
        class Nameless(Actor): ...


def test_a_function_is_no_actor_type_and_told_so():
    with pytest.raises(BadActorType, match=r"lonely: @actor is for classes"):

        @actor("types.lonely", version=1)  # type: ignore[type-var]  # that is what is refused
        def lonely() -> None: ...


@pytest.mark.parametrize("value", [5, "x", 1.5, None, True, [], {}])
def test_what_looks_like_a_field_and_has_no_type_is_refused_with_what_to_write(value):
    kind = "<type>" if value is None else type(value).__name__
    with pytest.raises(BadActorType, match=rf"write `step: {kind} = \.\.\.`"):
        actor("types.lost")(type("Lost", (Actor,), {"__module__": __name__, "step": value}))


def test_constants_of_a_class_and_class_variables_are_no_fields():
    @actor("types.constant", version=1)
    class Constant(Actor):
        LIMIT = 5
        kinds: ClassVar[list[str]] = ["a"]

    assert type_of(Constant).fields == {}


def test_a_default_of_a_base_is_not_changed_in_vain():
    with pytest.raises(BadActorType, match="write `count: int"):
        actor("types.heir")(type("Heir", (Sample,), {"__module__": __name__, "count": 7}))


def test_new_actors_are_of_the_class_that_the_host_runs_under_their_name():
    @actor("types.sample", version=2)
    class Older(Actor): ...

    types = Types([Sample, Older])
    assert types.of(Sample) is SAMPLE
    with pytest.raises(BadActorType, match=r"this host runs Sample, version \d+, as 'types\.sample'"):
        types.of(Older)
