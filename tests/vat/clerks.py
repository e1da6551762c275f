"""An actor that does what a test tells it to, by name."""

from __future__ import annotations

from typing import Any

from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.types import read

script: dict[str, Any] = {}


@actor("cranks.clerk", version=1)
class Clerk(Actor):
    count: int = 0
    log: List[Any]

    def run(self, name: str = "go") -> Any:
        return script[name](self)

    def add(self, n: int = 1) -> int:
        self.count += n
        self.log.append(f"added {n}")
        return self.count

    def fail(self, text: str = "no") -> None:
        self.count += 100
        self.log.append("canary " * 100)
        self.ref.add(7)
        self.spawn(Clerk)
        self.assert_fact("cranks.canary", text="canary " * 99)
        self.device("canary").call("canary")
        raise ValueError(text)

    def _handle(self, error: Exception, name: str) -> Any:
        return script[name](self)

    def again(self) -> None:
        self.count += 1
        self.ref.again()

    @read
    def look(self) -> int:
        return self.count

    @read
    def peek(self, name: str) -> Any:
        return script[name](self)


def run(world, session, **functions):
    """Have the first of the functions run in a message to the session's first actor; it may call the others."""
    script.clear()
    script.update(functions)
    return world.ask(session, "run", next(iter(functions)))
