"""Older classes that finish what they began, on fields that have another shape in the newer version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from vatmaker import ROOT, World
from waits import Fiberworld, value_of

from vat.errors import OtherShape
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List, Map, Set
from vat.objects.parts import Part
from vat.objects.types import Shape, Types


@actor("shapes.pocket", version=1)
class PocketActor(Actor):
    things: int = 0

    def put(self) -> None:
        self.things += 1


class Pocket(Part):
    __keeve_part__ = PocketActor


KINDS: dict[Shape, tuple[Any, dict[str, Any]]] = {
    Shape.VALUE: (int, {"x": 0}),
    Shape.LIST: (List[int], {}),
    Shape.MAP: (Map[str, int], {}),
    Shape.SET: (Set[int], {}),
    Shape.DEVICE: (Device, {"x": "tool"}),
    Shape.PART: (Pocket, {}),
}
"""What a field of each shape is annotated with, and its default."""


def assign(me: Any, value: Any) -> None:
    me.x = value


READS: dict[Shape, Callable[[Any], Any]] = {
    Shape.VALUE: lambda me: me.x,
    Shape.LIST: lambda me: me.x.view(),
    Shape.MAP: lambda me: dict(me.x),
    Shape.SET: lambda me: 1 in me.x,
    Shape.DEVICE: lambda me: me.x,
    Shape.PART: lambda me: me.x,
}
WRITES: dict[Shape, Callable[[Any], Any]] = {
    Shape.VALUE: lambda me: assign(me, 5),
    Shape.LIST: lambda me: me.x.append(5),
    Shape.MAP: lambda me: me.x.__setitem__("a", 5),
    Shape.SET: lambda me: me.x.add(5),
    Shape.DEVICE: lambda me: assign(me, "other"),
    Shape.PART: lambda me: me.x.put(),
}


def version(number: int, shape: Shape | None, use: Callable[[Any], Any] | None = None) -> type[Actor]:
    """A version of a class with a field `x` of that shape, or without it."""

    async def work(self: Any) -> str:
        await self.device("tool").use(1)
        assert use is not None
        use(self)
        return "done"

    def upgrade(cls: type, state: Any, from_version: int) -> None:
        state.pop("x", None)

    annotation, own = (None, {}) if shape is None else KINDS[shape]
    annotations = {} if shape is None else {"x": annotation}
    own = {**own, "work": work, "upgrade": classmethod(upgrade), "__annotations__": annotations, "__module__": __name__}
    return actor("shapes.worker", version=number)(type(f"V{number}", (Actor,), own))


def finished(old: type, *newer: type) -> tuple[Fiberworld, list[Any], Any, Any]:
    """A fiber that the older class finishes after the upgrade; also what `x` held before that and after it."""
    world = Fiberworld(old)
    world.tell(world.agent, "work")
    waiters, got = world.agent.vat.waiters, world.agent.answers
    for cls in newer:
        world.types = Types([old, cls])
        world.restart()
        world.agent.keep(world.agent.vat.upgrade())
    world.agent.vat.waiters.update(waiters)
    before = world.agent.heap.state(ROOT).fields.get("x")
    world.give()
    world.sound()
    return world, got, before, world.agent.heap.state(ROOT).fields.get("x")


@pytest.mark.parametrize("uses", [READS, WRITES], ids=["read", "written"])
@pytest.mark.parametrize("there", Shape, ids=lambda shape: f"is-{shape.name.lower()}")
@pytest.mark.parametrize("declared", Shape, ids=lambda shape: f"was-{shape.name.lower()}")
def test_a_field_of_another_shape_is_left_alone_by_the_older_class(declared, there, uses):
    _, got, before, after = finished(version(1, declared, uses[declared]), version(2, there))
    if declared is there:
        assert value_of(got) == "done"
        return
    with pytest.raises(OtherShape) as caught:
        value_of(got)
    assert str(caught.value).startswith(
        f"shapes.worker.x: version 1 of the class declares a {declared.name.lower()}, "
        f"and the session is at version 2, which has a {there.name.lower()} there"
    )
    assert after is before


@pytest.mark.parametrize("uses", [READS, WRITES], ids=["read", "written"])
@pytest.mark.parametrize("declared", Shape, ids=lambda shape: f"was-{shape.name.lower()}")
def test_a_field_that_is_gone_is_the_older_classs_own(declared, uses):
    _, got, _, _ = finished(version(1, declared, uses[declared]), version(2, None))
    assert value_of(got) == "done"


@pytest.mark.parametrize("uses", [READS, WRITES], ids=["read", "written"])
@pytest.mark.parametrize("left", [Shape.VALUE, Shape.LIST, Shape.MAP, Shape.SET], ids=lambda shape: shape.name.lower())
@pytest.mark.parametrize("declared", [Shape.VALUE, Shape.LIST], ids=lambda shape: f"was-{shape.name.lower()}")
def test_what_another_older_class_left_in_a_field_that_is_gone_is_left_alone(declared, left, uses):
    one, other = version(1, declared, uses[declared]), version(2, left, WRITES[left])
    newest = version(3, None)
    world = Fiberworld(one)
    world.tell(world.agent, "work")
    waiters, got = world.agent.vat.waiters, world.agent.answers
    for cls in (other, newest):
        world.types = Types([one, other, cls] if cls is newest else [one, cls])
        world.restart()
        world.agent.keep(world.agent.vat.upgrade())
        if cls is other:
            world.tell(world.agent, "work")
    world.agent.vat.waiters.update(waiters)
    first, second = (number for number, _ in world.agent.heap.entries("effects"))
    world.give(effect=second)
    world.give(effect=first)
    if declared is left:
        assert value_of(got) == "done"
    else:
        with pytest.raises(OtherShape):
            value_of(got)
    world.sound()


@actor("shapes.named", version=1)
class Named(Actor):
    title: str

    async def work(self) -> str:
        await self.device("tool").use(1)
        return self.title

    async def write(self) -> str:
        await self.device("tool").use(1)
        self.title = "mine"
        return self.title


@actor("shapes.named", version=2)
class Renamed(Actor):
    name: str

    @classmethod
    def upgrade(cls, state: Any, from_version: int) -> None:
        state["name"] = state.pop("title")


def renamed(method: str) -> list[Any]:
    """What a method of the older class comes to, whose required field has another name now."""
    world = Fiberworld.__new__(Fiberworld)
    World.__init__(world, Named)
    world.agent = world.spawn(Named, "a", title="first")
    world.tell(world.agent, method)
    waiters, got = world.agent.vat.waiters, world.agent.answers
    world.types = Types([Named, Renamed])
    world.restart()
    world.agent.keep(world.agent.vat.upgrade())
    world.agent.vat.waiters.update(waiters)
    world.give()
    return got


def test_a_required_field_that_is_gone_is_not_read_as_none():
    with pytest.raises(OtherShape) as caught:
        value_of(renamed("work"))
    assert str(caught.value).startswith(
        "shapes.named.title: version 1 of the class declares a value, and the session is at version 2, which has no "
        "such field, and the older one has no default for it"
    )


def test_a_required_field_that_is_gone_can_be_written_and_read_then():
    assert value_of(renamed("write")) == "mine"
