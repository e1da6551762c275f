"""Fibers of actors that are brought to a newer version: they break, unless the older class is still there."""

from __future__ import annotations

from typing import Any

import pytest
from waits import Fiberworld, value_of

from dataspace.errors import KeeveError
from vat.errors import FiberDiverged
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.types import Types
from vat.objects.waiting import gather


@actor("waits.worker", version=1)
class Old(Actor):
    count: int = 0
    dropped: str = "old"
    log: List[Any]

    async def work(self, name: str) -> str:
        local = [name]
        self.count += 1
        await self.device("tool").use(1)
        self.log.append([*local, self.dropped, self.version()])
        await self.device("tool").use(2)
        self.log.append([*local, self.version()])
        return f"{name}'s work"

    def version(self) -> int:
        return 1

    def begin(self) -> None:
        self.ref.work("sent").then(None, broken=self.broke)

    def broke(self, error: Exception) -> None:
        self.log.append(type(error).__name__)


@actor("waits.worker", version=2)
class New(Actor):
    count: int = 0
    added: str = "new"
    log: List[Any]

    async def work(self, name: str) -> str:
        return name

    def broke(self, error: Exception) -> None:
        self.log.append(f"new {type(error).__name__}")


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld(Old)


def upgraded(world: Fiberworld, *types: type) -> list[Any]:
    """The session with newer code; gives the list for who waited."""
    waiters = world.agent.vat.waiters
    got = world.agent.answers
    world.types = Types(types)
    world.restart()
    world.agent.vat.waiters.update(waiters)
    step = world.agent.keep(world.agent.vat.upgrade())
    for reply, outcome in () if step is None else step.replies:
        reply(outcome)
    return got


def test_one_whose_code_is_gone_breaks_in_the_crank_of_the_upgrade(world):
    """Invariant 16."""
    world.tell(world.agent, "work", "a")
    got = upgraded(world, New)
    with pytest.raises(FiberDiverged) as caught:
        value_of(got)
    assert "was begun by version 1 of waits.worker; the code now is version 2" in str(caught.value)
    assert "The next time, keep the old class in actors=[...]" in str(caught.value)
    assert (world.waiting, world.ask(world.agent, "count")) == (0, 1)
    assert world.wanted_now == [], "what it waited for is given up with it"
    world.sound()


def test_what_reacts_to_it_runs_in_the_same_crank_with_the_new_code(world):
    world.tell(world.agent, "begin")
    upgraded(world, New)
    assert world.ask(world.agent, "log") == ["new FiberDiverged"]
    world.sound()


def test_one_whose_class_is_registered_as_well_goes_on_with_it(world):
    """Invariant 16."""
    world.tell(world.agent, "work", "a")
    world.give()
    got = upgraded(world, Old, New)
    assert (world.waiting, world.ask(world.agent, "added")) == (1, "new")
    world.give()
    assert value_of(got) == "a's work"
    assert world.ask(world.agent, "log") == [["a", "old", 1], ["a", 1]]
    world.sound()


def test_the_old_code_sees_the_new_state_and_its_own_defaults(world):
    world.tell(world.agent, "work", "a")
    upgraded(world, New, Old)
    world.give()
    assert world.ask(world.agent, "log") == [["a", "old", 1]], "the field is dropped, and reads as its default"
    world.restart()
    world.give()
    assert world.ask(world.agent, "log")[-1] == ["a", 1]
    world.sound()


def test_when_the_old_class_goes_later_it_breaks_when_it_would_go_on(world):
    world.tell(world.agent, "work", "a")
    upgraded(world, Old, New)
    world.types = Types([New])
    world.restart()
    assert world.agent.vat.upgrade() is None
    world.give()
    assert world.agent.steps[-1].failure.did == "has no such version any more"
    assert world.waiting == 0
    world.sound()


def test_an_upgrade_that_fails_breaks_no_fiber(world):
    @actor("waits.worker", version=2)
    class Failing(Actor):
        @classmethod
        def upgrade(cls, state: Any, from_version: int) -> None:
            raise RuntimeError("no")

    world.tell(world.agent, "work", "a")
    with pytest.raises(KeeveError, match="cannot be brought"):
        upgraded(world, Failing)
    assert world.waiting == 1
    world.types = Types([Old])
    world.restart()
    world.give()
    assert world.ask(world.agent, "log") == [["a", "old", 1]]


def test_what_is_called_from_now_on_is_the_newest_version(world):
    world.tell(world.agent, "work", "a")
    upgraded(world, New, Old)
    assert world.ask(world.agent, "work", "b") == "b"


@actor("waits.giver", version=1)
class Giver(Actor):
    """Waits in many ways, and is not there in the next version."""

    kept: Any = None
    log: List[Any]

    async def go(self, how: str) -> Any:
        wanted = self.device("tool").use(how)
        if how == "for a fiber":
            return await self.ref.inner()
        if how == "that a field has":
            self.kept = wanted
        elif how == "that is reacted to":
            wanted.then(self.heard, broken=self.heard)
        elif how == "that comes of another":
            return await wanted.then(self.heard).then(self.heard)
        elif how == "of which something else comes":
            wanted.then(self.heard)
            return await wanted.then(self.heard).then(self.heard)
        return await wanted

    async def inner(self) -> None:
        await gather(self.device("tool").use("inner"), self.device("tool").use("beside"))

    def heard(self, outcome: Any) -> None:
        self.log.append(type(outcome).__name__)


@actor("waits.giver", version=2)
class Gone(Actor):
    kept: Any = None
    log: List[Any]

    def heard(self, outcome: Any) -> None:
        self.log.append(type(outcome).__name__)


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ("alone", []),
        ("for a fiber", []),
        ("that comes of another", []),
        ("that a field has", ["that a field has"]),
        ("that is reacted to", ["that is reacted to"]),
        ("of which something else comes", ["of which something else comes"]),
    ],
)
def test_one_that_breaks_gives_up_what_it_waited_for_and_nobody_else_does(how, left):
    world = Fiberworld(Giver)
    world.tell(world.agent, "go", how)
    upgraded(world, Gone)
    open_now = [args for _, _, (args,) in world.wanted_now if how != "for a fiber" or args != how]
    assert (world.waiting, open_now) == (0, left)
    world.sound()


def test_what_has_begun_goes_on_to_its_end():
    """Nobody may believe that it has not happened."""
    world = Fiberworld(Giver)
    world.tell(world.agent, "go", "alone")
    ((number, _),) = world.agent.heap.entries("effects")
    world.agent.keep(world.agent.vat.started(number))
    upgraded(world, Gone)
    assert len(world.wanted_now) == 1
    world.give()
    world.sound()
