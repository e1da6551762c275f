"""Effects as a host shows them: those without an outcome, and settling one by hand.

The one rule: what is settled by hand takes the same way into the log as what a device gives.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal

import attrs
import trio

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.remedies import Remedy
from dataspace.values import freeze
from vat.crank.vat import Step, Vat
from vat.devices.attempts import Key, Wanted
from vat.errors import Failed
from vat.failures import failure_of
from vat.heap.heap import Heap
from vat.heap.messages import Asker, Ended, Outcome
from vat.heap.pending import OpenEffect, effects_in, read_stored, state_of
from vat.heap.restore import Lineage
from vat.heap.settled import of_log, of_session, settled_in
from vat.host.engine import Engine
from vat.host.outside import unbound
from vat.host.residents import Work

log = logging.getLogger("keeve")

ABSENT: Final[Any] = object()
"""For what was not given, where None is a value."""


RUNS: Final = "it is running, and what comes of it settles it"
LOOK_AT_EFFECTS: Final = Remedy("look-at-effects", "look at the list of effects")
HOLD_IT: Final = Remedy("hold-it", 'open it with its device and unknown="hold"')
ONE_OUTCOME: Final = Remedy("one-outcome", "resolve() takes exactly one of value=..., error=... and again=True")


class NoSuchEffect(KeeveError, LookupError):
    """No effect of that id waits for an outcome."""

    usage: ClassVar[bool] = True

    def __init__(self, id: str, became: str = "") -> None:
        why = f"{became}; " if became else "it may be settled already, or be running; "
        super().__init__(f"no effect {id!r} waits for somebody to settle it: {why}{LOOK_AT_EFFECTS()}")


class BadOutcome(KeeveError, TypeError):
    """What was given to settle an effect is no outcome; says why."""

    usage: ClassVar[bool] = True

    def __init__(self, problem: str) -> None:
        super().__init__(f"{ONE_OUTCOME()}: {problem}")


@attrs.frozen
class EffectStatus:
    """An effect that has no outcome yet. An argument that is a view may be given as its length in words.

    `state` is `wanted` (nobody carries it out here, and it is not on record that it began), `running` (here, or about
    to), `started` (it has begun; this host only reads, and cannot tell whether the store's owner runs it) or `unknown`
    (it had begun when its host ended: see `Host.resolve`).
    """

    id: str
    session: str
    device: str
    method: str
    args: Sequence[Any]
    keywords: Mapping[str, Any]
    state: Literal["wanted", "running", "started", "unknown"]


class Resolving:
    """The open effects of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def effects(self, session: str | None) -> list[EffectStatus]:
        """See `Host.effects`."""
        here = [effect for effect in self.in_hand() if session in (None, effect.session)]
        known = {effect.id for effect in here}
        dormant = (each for effects in self._dormant(session) for each in effects)
        return here + [self._left(each) for each in dormant if each.id not in known]

    def in_hand(self) -> list[EffectStatus]:
        """Those that this host has to do with. Reads nothing."""
        errands = self._engine.errands
        return [
            *(_status(wanted, "running") for wanted in errands.running()),
            *(_status(wanted, "unknown") for wanted in errands.held.values()),
            *(_status(each, "wanted" if each.state == "wanted" else "unknown") for each in errands.absent.values()),
        ]

    def _left(self, effect: OpenEffect) -> EffectStatus:
        owned = self._engine.store.readonly  # or not, which a host that only reads cannot tell
        said = effect.id, effect.session, effect.device, effect.method, effect.args, effect.keywords
        return EffectStatus(*said, state_of(effect, owned=owned))

    async def _dormant_one(self, id: str) -> OpenEffect:
        """The one of that id. Others have their turns between one session and the next. Raises `NoSuchEffect`."""
        for effects in self._dormant():
            for each in effects:
                if each.id == id:
                    return each
            await trio.lowlevel.checkpoint()
        raise await self.none_waits(id)

    async def none_waits(self, id: str, session: SessionRow | None = None) -> NoSuchEffect:
        """That no effect of that id waits, and what became of it; it is looked for in the session, or else the log.

        Costs the reading of at most `settled.MOST` records. Others have their turns meanwhile.
        """
        engine = self._engine
        catalog, read = engine.dataspace.catalog, engine.store.read
        if _key(engine.errands.running(), id) is not None:
            return NoSuchEffect(id, RUNS)
        if session is None:
            records = of_log(catalog.head.position, catalog.at, read)
        else:
            records = of_session(session, catalog, read)
        for each in settled_in(records, id):
            if each is not None:
                return NoSuchEffect(id, each.words)
            await trio.lowlevel.checkpoint()
        return NoSuchEffect(id)

    async def resolve(
        self, id: str, by: Asker, *, value: Any = ABSENT, error: Any = ABSENT, again: bool = False
    ) -> None:
        """See `Host.resolve`; `ABSENT` is what was not given. `by` may have a request, which the outcome answers."""
        outcome = _outcome(value, error, again)
        engine = self._engine
        key = await self._key_of(id)
        done = await (self._again(key, by) if outcome is None else self._settle(key, outcome, by))
        if not done:
            raise await self.none_waits(id, engine.dataspace.catalog.by_uid(key[0]))

    async def _key_of(self, id: str) -> Key:
        """Raises `NoSuchEffect` for one that does not wait to be settled."""
        errands = self._engine.errands
        key = _key([*errands.held.values(), *errands.absent.values()], id)
        if key is None and _key(errands.running(), id) is None:
            left = await self._dormant_one(id)
            key = left.uid, left.number
        if key is None:
            raise NoSuchEffect(id, RUNS)
        return key

    async def _again(self, key: Key, by: Asker) -> bool:
        """Have it run again; False when it has an outcome, or gets one at this moment. Raises `BadOutcome` for one that
        is not held.

        That it starts, and the answer to the request, are one record: either both are there after a crash, and nobody
        knows what came of it, or neither, and the request does it. Without a request the runner records the start.
        """
        engine, errands, number = self._engine, self._engine.errands, key[1]
        there, starts = True, False

        def look(vat: Vat) -> Sequence[Step]:
            nonlocal there
            there = vat.heap.find("effects", number) is not None
            return ()

        # In memory it is held, if this host takes anything up; or somebody settles it just then, and is through by the
        # second time.
        for _ in range(2 if engine.settings.hold_unknown else 0):
            if there and key not in errands.held:
                await engine.done(key[0], look)
        held = errands.held.get(key)
        if held is None and (errands.settling(key) or not there):
            return False
        if held is None:
            raise BadOutcome(f"only what a host holds can run again: {HOLD_IT()}")
        if by.request is None:
            errands.again(held)
            return True

        def work(vat: Vat) -> Sequence[Step]:
            nonlocal starts
            step = vat.started(number, by)
            if step is None:
                return ()
            starts = True
            step.replies.append((started, Outcome(True, None)))
            return (step,)

        def started(outcome: Outcome) -> None:
            if outcome.succeeded:  # durable: from here on it is given up, or deleted with its session, as one that runs
                errands.again(held, recorded=True)

        await self._by_hand(key, work)
        return starts

    async def _settle(self, key: Key, outcome: Outcome, by: Asker) -> bool:
        """Settle it, by hand; False when it has an outcome, or gets one at this moment."""
        number, settled = key[1], False

        def work(vat: Vat) -> Sequence[Step]:
            nonlocal settled
            if vat.heap.find("effects", number) is None:
                return ()
            settled = True
            return (vat.take(Ended(number, outcome, by)),)

        await self._by_hand(key, work)
        return settled

    async def _by_hand(self, key: Key, work: Work) -> None:
        """Do what settles it, durably, unless somebody settles it already."""
        with self._engine.errands.by_hand(key) as alone:
            if alone:
                with trio.CancelScope(shield=True):  # that the wait ends must not look like that nothing was settled
                    await self._engine.done(key[0], work)

    def _dormant(self, session: str | None = None) -> Iterator[list[OpenEffect]]:
        """The effects that nobody carries out here, as the log has them: of one session after another.

        Costs a restore for each session with pending work that is not in memory, and none for the others.
        """
        engine = self._engine
        catalog, read, cache = engine.dataspace.catalog, engine.store.read, engine.loader.cache
        if engine.store.readonly:
            engine.following.refresh()
        for uid in catalog.with_pending():
            row = catalog.by_uid(uid)
            if row is None or session not in (None, row.id) or engine.tended(uid):
                continue
            try:
                yield read_stored(row, catalog, read, cache, partial(_effects, row))
            except KeeveError as error:
                log.warning("session %s: its effects cannot be listed: %s", row.id, in_log(error))


def _effects(row: SessionRow, heap: Heap, _: Lineage) -> list[OpenEffect]:
    return list(effects_in(heap, row))


def _status(wanted: Wanted, state: Literal["wanted", "running", "unknown"]) -> EffectStatus:
    return EffectStatus(
        wanted.id, wanted.session, wanted.device, wanted.method, wanted.args, dict(wanted.keywords), state
    )


def _key(effects: Iterable[Wanted], id: str) -> Key | None:
    return next((wanted.key for wanted in effects if wanted.id == id), None)


def _outcome(value: Any, error: Any, again: bool) -> Outcome | None:
    """What an effect is settled with; None when it is to run again. Raises `BadOutcome` or `NotAValue`."""
    given = [
        name
        for name, there in (("value", value is not ABSENT), ("error", error is not ABSENT), ("again", again))
        if there
    ]
    if len(given) != 1:
        raise BadOutcome(f"it was given {' and '.join(given) or 'none of them'}")
    if again:
        return None
    if value is not ABSENT:
        return Outcome(True, freeze(unbound(value), None, "value"))
    if isinstance(error, str):
        error = Failed("Resolved", error)
    if not isinstance(error, Exception):
        raise BadOutcome(f"error is an exception, or says in words what went wrong; not a {type(error).__name__}")
    return Outcome(False, freeze(failure_of(error)))
