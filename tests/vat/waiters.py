"""An actor that makes promises, keeps them and reacts to them as a test tells it to."""

from __future__ import annotations

from typing import Any

from vat.objects.actor import Actor, actor
from vat.objects.collections import List

script: dict[str, Any] = {}


@actor("promises.waiter", version=1)
class Waiter(Actor):
    kept: Any = None
    log: List[Any]

    def run(self, name: str = "go", *args: Any) -> Any:
        return script[name](self, *args)

    def note(self, value: Any, *more: Any, key: Any = None) -> Any:
        self.log.append([value, *more] if key is None else [value, *more, key])
        return value

    def again(self, value: Any) -> Any:
        return self.device("d").call(value)

    def _broken(self, error: Exception, *more: Any) -> str:
        self.log.append([type(error).__name__, str(error), *more])
        return "mended"

    def down(self, n: int) -> Any:
        return "bottom" if n == 0 else self.ref.down(n - 1)

    def fail(self, text: str = "no") -> None:
        raise ValueError(text)


def run(world, session, **functions):
    script.clear()
    script.update(functions)
    return world.tell(session, "run", next(iter(functions)))


def done(world, session, **functions):
    outcome = run(world, session, **functions)
    assert outcome is not None
    assert outcome.succeeded, outcome
    return outcome.payload
