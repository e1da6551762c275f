"""Effects as a host shows them: those without an outcome, what running ones tell, and settling one by hand.

The one rule: what is settled by hand takes the same way into the log as what a device gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs

from dataspace.errors import KeeveError
from dataspace.values import Value, freeze
from vat.effects import Key, Wanted
from vat.engine import Engine
from vat.errors import failure_of
from vat.messages import Ended, Outcome
from vat.outside import unbound
from vat.pending import open_effects


class NoSuchEffect(KeeveError, LookupError):
    """No effect of that id is open."""

    usage = True

    def __init__(self, id: str) -> None:
        super().__init__(f"no effect {id!r} is open: look at the list of effects; it may be settled already")


@attrs.frozen
class EffectStatus:
    """An effect that has no outcome yet. `state` is `running` (or about to) or `unknown`."""

    id: str
    session: str
    device: str
    method: str
    args: Sequence[Any]
    state: Literal["running", "unknown"]


class Resolving:
    """The open effects of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def effects(self) -> list[EffectStatus]:
        """See `Host.effects`."""
        errands = self._engine.errands
        return [
            *(_status(wanted, "running") for wanted in errands.running()),
            *(_status(wanted, "unknown") for wanted in errands.held.values()),
        ]

    async def resolve(self, id: str, *, value: Any, error: BaseException | None, again: bool) -> None:
        """See `Host.resolve`."""
        errands = self._engine.errands
        held = next((wanted.key for wanted in errands.held.values() if wanted.id == id), None)
        if again and held is not None:
            errands.again(held)
            return
        key = self._dormant(id) if held is None and not again else held
        if key is None:
            raise NoSuchEffect(id)
        if error is not None:
            outcome = Outcome(False, freeze(failure_of(error)))
        else:
            outcome = Outcome(True, freeze(unbound(value), None, "value"))
        ended = Ended(key[1], outcome)
        await self._engine.done(key[0], lambda vat: (vat.take(ended),))
        errands.held.pop(key, None)

    def _dormant(self, id: str) -> Key | None:
        """An effect that nobody carries out here: its session is not in memory, or was told to leave it."""
        engine = self._engine
        if any(wanted.id == id for wanted in engine.errands.running()):
            return None
        every = open_effects(engine.dataspace.catalog, engine.store.read, engine.loader.cache)
        return next(((each.uid, each.number) for each in every if each.id == id), None)

    def on_progress(self, hear: Callable[[str, str, Value], None]) -> Callable[[], None]:
        """See `Host.on_progress`."""

        def told(wanted: Wanted, value: Value) -> None:
            hear(wanted.session, f"{wanted.device}.{wanted.method}", value)

        hearing = self._engine.errands.hearing
        hearing.append(told)
        return lambda: hearing.remove(told)


def _status(wanted: Wanted, state: Literal["running", "unknown"]) -> EffectStatus:
    return EffectStatus(wanted.id, wanted.session, wanted.device, wanted.method, wanted.args, state)
