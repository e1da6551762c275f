"""An actor whose async methods do what a test says, by its name; and the small worlds that they live in."""

from __future__ import annotations

from typing import Any

from vatmaker import ROOT, World, assert_restores

from vat.failures import exception_of
from vat.heap.refs import Ref, cancel, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map
from vat.objects.owing import owe
from vat.objects.types import read
from vat.objects.waiting import gather, within

SCRIPTS: dict[str, Any] = {}
"""What `go` runs, by name."""


def script(function: Any) -> Any:
    """Let `go` run an async function of the actor and of what it was given. Each file has names of its own."""
    before = SCRIPTS.setdefault(function.__name__, function)
    assert before.__module__ == function.__module__, f"{before.__module__} has a script {function.__name__} already"
    SCRIPTS[function.__name__] = function
    return function


@actor("waits.agent", version=1)
class Agent(Actor):
    count: int = 0
    value: Any = None
    log: List[Any]
    named: Map[str, Any]

    async def go(self, name: str, *args: Any, **keywords: Any) -> Any:
        return await SCRIPTS[name](self, *args, **keywords)

    async def other(self, name: str, *args: Any) -> Any:
        return await SCRIPTS[name](self, *args)

    async def ask(self, value: Any = 1) -> Any:
        return await self.want(value)

    def want(self, value: Any = 1) -> Any:
        return self.device("tool").use(value)

    def owing(self) -> Any:
        self.value = owed = owe(self)
        return owed

    def plain(self, value: Any = None) -> Any:
        self.log.append(value)
        return value

    def held(self) -> Any:
        return self.value

    def fail(self, what: str = "no") -> None:
        self.count += 100
        raise ValueError(what)

    @read
    def seen(self) -> Any:
        return list(self.log)

    def made(self) -> Ref:
        return self.spawn(Agent)


class Fiberworld(World):
    """A world with one agent; what it answers is collected, with the seq at which it came."""

    def __init__(self, *types: type) -> None:
        super().__init__(*(types or (Agent,)))
        self.agent = self.spawn((types or (Agent,))[0], "a")
        self.got: list[Any] = []

    def go(self, name: str, *args: Any, **keywords: Any) -> list[Any]:
        """Begin a script; gives the list in which its outcome comes to stand."""
        self.tell(self.agent, "go", name, *args, **keywords)
        answers: list[Any] = self.agent.answers
        return answers

    def give(self, value: Any = None, error: str | None = None, effect: int | None = None) -> None:
        failure = None if error is None else {"error": "ValueError", "message": error}
        self.settle(self.agent, value, failure, effect)

    def restart(self) -> None:
        """The agent again from what is stored; callers are forgotten with the process."""
        self.agent = self.reload(self.agent)

    @property
    def agent_ref(self) -> Ref:
        """The agent, for other vats."""
        return Ref(self.agent.vat.uid, ROOT)

    def spawn_garbage(self) -> int:
        """An actor that nothing refers to when the crank is over."""
        SCRIPTS["_garbage"] = _garbage
        made: int = value_of(self.go("_garbage"))
        return made

    @property
    def wanted_now(self) -> list[Any]:
        """The effects that are open: device, method and arguments."""
        return [(entry[1], entry[2], list(entry[3])) for _, entry in self.agent.heap.entries("effects")]

    @property
    def waiting(self) -> int:
        return int(self.agent.heap.system["fibers"].count)

    def seen(self) -> Any:
        return self.ask(self.agent, "seen")

    def sound(self) -> None:
        """The heap that is rebuilt is the live one, and nothing is left of fibers that are over."""
        assert_restores(self, self.agent)
        if not self.waiting:
            assert not self.agent.heap.system["owned"].count
            assert not self.agent.vat.crank.fibers.live


async def _garbage(me: Agent) -> int:
    return me.made().actor


def value_of(got: list[Any]) -> Any:
    """What came of a script; raises what broke it."""
    (outcome,) = got
    if not outcome.succeeded:
        raise exception_of(outcome.payload)
    return outcome.payload


__all__ = ["Agent", "Fiberworld", "cancel", "gather", "near", "script", "value_of", "within"]
