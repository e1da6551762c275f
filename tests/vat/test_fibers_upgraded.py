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
    world.give()
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
