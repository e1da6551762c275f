"""A class that was changed and has its version still: what is stored is neither misread nor written over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from vatmaker import ROOT, World, assert_restores

from vat.errors import ChangedType
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List, Map, Set
from vat.objects.types import Shape, Types

KINDS: dict[Shape, tuple[Any, dict[str, Any]]] = {
    Shape.VALUE: (int, {"x": 0}),
    Shape.LIST: (List[int], {}),
    Shape.MAP: (Map[str, int], {}),
    Shape.SET: (Set[int], {}),
    Shape.DEVICE: (Device, {"x": "tool"}),
}


def assign(me: Any, value: Any) -> None:
    me.x = value


READS: dict[Shape, Callable[[Any], Any]] = {
    Shape.VALUE: lambda me: me.x,
    Shape.LIST: lambda me: len(me.x),
    Shape.MAP: lambda me: dict(me.x),
    Shape.SET: lambda me: 1 in me.x,
    Shape.DEVICE: lambda me: str(me.x),
}
WRITES: dict[Shape, Callable[[Any], Any]] = {
    Shape.VALUE: lambda me: assign(me, 5),
    Shape.LIST: lambda me: me.x.append(5),
    Shape.MAP: lambda me: me.x.__setitem__("a", 5),
    Shape.SET: lambda me: me.x.add(5),
    Shape.DEVICE: lambda me: assign(me, "other"),
}


def declaring(annotation: Any = None, default: dict[str, Any] | None = None, use: Any = None) -> type[Actor]:
    def work(self: Any) -> Any:
        assert use is not None
        return use(self)

    annotations = {} if annotation is None else {"x": annotation}
    own = {**(default or {}), "work": work, "__annotations__": annotations, "__module__": __name__}
    return actor("unraised.holder", version=3)(type("Holder", (Actor,), own))


def changed(old: type, new: type) -> tuple[World, Any]:
    """A session that one class began, in a host that has another one by the same name and version."""
    world = World(old)
    session = world.spawn(old)
    world.types = Types([new])
    return world, world.reload(session)


@pytest.mark.parametrize("uses", [READS, WRITES, None], ids=["read", "written", "read-by-a-ref"])
@pytest.mark.parametrize("stored", KINDS, ids=lambda shape: f"was-{shape.name.lower()}")
@pytest.mark.parametrize("declared", KINDS, ids=lambda shape: f"is-{shape.name.lower()}")
def test_a_field_of_another_shape_in_the_same_version_is_refused_and_left_alone(declared, stored, uses):
    use = None if uses is None else uses[declared]
    world, session = changed(declaring(*KINDS[stored]), declaring(*KINDS[declared], use))
    before = session.heap.state(ROOT).fields["x"]
    ask = lambda: world.ask(session, "x" if uses is None else "work")  # noqa: E731  # the same in both cases
    # The name of a device is a value like any other.
    if declared is stored or (declared, stored) == (Shape.VALUE, Shape.DEVICE):
        ask()
        return
    with pytest.raises(ChangedType) as caught:
        ask()
    assert str(caught.value).startswith(
        f"unraised.holder.x: version 3 of the class declares a {declared.name.lower()}, and the session, which is at "
        f"version 3 as well, has a {stored.name.lower() if stored is not Shape.DEVICE else 'value'} there"
    )
    assert "version=4" in str(caught.value)
    assert session.heap.state(ROOT).fields["x"] is before
    assert_restores(world, session)


@pytest.mark.parametrize("name", ["work", "x"])
@pytest.mark.parametrize("annotation", [str, Device])
def test_a_new_field_without_a_default_is_refused_where_it_is_read(annotation, name):
    world, session = changed(declaring(), declaring(annotation, {}, lambda me: str(me.x)))
    with pytest.raises(
        ChangedType, match=r"has no such field, and the class no default .* or give the field a default"
    ):
        world.ask(session, name)


@pytest.mark.parametrize("shape", KINDS)
def test_a_new_field_with_a_default_is_there(shape):
    world, session = changed(declaring(), declaring(*KINDS[shape], WRITES[shape]))
    first = {Shape.VALUE: 0, Shape.DEVICE: "tool", Shape.MAP: {}}
    assert world.ask(session, "x") == first.get(shape, [])
    world.ask(session, "work")
    written = {Shape.VALUE: 5, Shape.DEVICE: "other", Shape.MAP: {"a": 5}}
    assert world.ask(session, "x") == written.get(shape, [5])
    assert_restores(world, session)
