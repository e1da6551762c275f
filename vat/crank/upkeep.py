"""Upkeep: the cranks that a vat runs of its own, without a message: its birth, collecting, upgrading.

The one rule: they are recorded like any other, and undone whole when they fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from dataspace.errors import KeeveError
from dataspace.records import ZERO_HASH, Kind
from dataspace.values import FrozenDict, FrozenList
from vat.crank.chain import Chain, Step
from vat.crank.collecting import Locals, owed_by, unreached, worthwhile
from vat.crank.crank import Crank
from vat.crank.powers import Powers
from vat.crank.progress import CrankDraft
from vat.crank.upgrading import NotUpgraded, break_fibers, outdated, upgrade_all
from vat.errors import Reentered, Unpaid, gone
from vat.heap.heap import Heap
from vat.heap.messages import RUNTIME, Asker, Outcome, Reply
from vat.heap.opcodes import Op
from vat.heap.past import NotYet, Past
from vat.objects.types import Types, type_of


class Upkeep(Chain):
    """A chain whose heap is changed by cranks. Without its `past` no fiber can be run again."""

    __slots__ = ("_looked", "_ready", "_refusal", "crank", "types")

    def __init__(
        self,
        uid: bytes,
        id: str,
        heap: Heap,
        seq: int,
        hash: bytes,
        types: Types,
        powers: Powers,
        past: Past | None = None,
    ) -> None:
        super().__init__(uid, id, heap, seq, hash, powers)
        self.types = types
        self.crank = Crank(heap, types, uid, id, powers, past)
        self._looked = 0
        self._ready = False
        self._refusal: KeeveError | None = None

    @property
    def busy(self) -> bool:
        """Whether a crank is running now."""
        return self.crank.progress.draft is not None

    def close(self) -> None:
        """It leaves memory: the coroutines of its fibers end without effect."""
        self.crank.fibers.close()

    @classmethod
    def spawn(
        cls,
        uid: bytes,
        id: str,
        heap: Heap,
        types: Types,
        powers: Powers,
        actor: type,
        fields: Mapping[str, Any],
        asker: Asker,
        request: tuple[str, bytes] | None = None,
        past: Past | None = None,
    ) -> tuple[Self, Step]:
        """A new session, with its first record. Raises `TypeError` or `NotAValue` for fields that do not fit."""
        vat = cls(uid, id, heap, 0, ZERO_HASH, types, powers, past)
        described = type_of(actor)
        draft = vat._begin(asker)
        draft.kind = Kind.SPAWN
        said: dict[str, Any] = {"id": id, "type": described.name, "by": asker.by, "via": asker.via}
        draft.message = FrozenDict(said if request is None else {**said, "request": request[0], "digest": request[1]})
        vat.crank.make_actor(described, fields)
        vat.crank.state_fact(0, "spawn", [id], {"type": described.name, "by": asker.by, "via": asker.via})
        return vat, vat._seal()

    @property
    def worth_collecting(self) -> bool:
        """Whether it is time to `collect`."""
        heap = self.heap
        return worthwhile(self._made, max(heap.swept, self._looked), heap.size + int(heap.system["promises"].count))

    @property
    def _made(self) -> int:
        return self.heap.counters["actor"] + self.heap.counters["promise"]

    def collect(self) -> Step | None:
        """Let go of the actors and promises that nothing reaches, in a crank of its own; None when there are none.

        Fibers that wait are run again to see what they hold, unless they are in memory; None while that cannot be done.
        """
        self._fit()
        looked, self._looked = self._looked, self._made  # whatever comes of it, it is not tried again at once
        try:
            inside = Locals(*self.crank.fibers.in_locals())
        except NotYet:
            self._looked = looked
            return None
        actors, promises = unreached(self.heap, inside)
        if not (actors or promises):
            return None
        crank = self.crank
        try:
            self._begin(RUNTIME["collect"]).message = FrozenDict({"collect": True})
            crank.note(Op.COLLECTED, FrozenList(actors), FrozenList(promises))
            owed = owed_by(self.heap, actors)
            if owed:
                unpaid = crank.failed(
                    Unpaid("who was to settle this is gone: nothing referred to it any more; ask again")
                )
                crank.settle_and_run(dict.fromkeys(owed, unpaid))
            return self._seal()
        except BaseException:
            crank.abandon()
            raise

    def upgrade(self) -> Step | None:
        """Bring all actors to the code's version of their types, in a crank of its own; None when they are.

        Raises `UnknownActorType`, `NewerVersion` or `UpgradeFailed`; the session is untouched then, and takes no
        messages.
        """
        self._free()
        crank = self.crank
        try:
            old = outdated(self.heap, self.types)
            if not old:
                return None
            draft = self._begin(RUNTIME["upgrade"])
            steps = {name: FrozenList([version, self.types[name].version]) for name, version in old.items()}
            draft.message = FrozenDict({"upgrade": FrozenDict(steps)})
            upgrade_all(crank, old)
            break_fibers(crank, old)
            return self._seal()
        except KeeveError as error:
            crank.abandon()
            self._refusal = error
            raise
        except BaseException:
            crank.abandon()
            raise

    def _free(self) -> None:
        if self.deleted:
            raise gone(self.id)
        if self.busy:
            raise Reentered(f"{self.id!r} is in the middle of a crank, and takes its next message after it")

    def _fit(self) -> None:
        self._free()
        if not self._ready:
            if self._refusal is not None:
                raise self._refusal
            old = outdated(self.heap, self.types)
            if old:
                raise NotUpgraded(self.id, list(old))
            self._ready = True

    # Sealing.

    def _begin(self, asker: Asker, *, silent: bool = False) -> CrankDraft:
        return self.crank.begin(self.seq + 1, self.hash, asker, silent=silent, watched=self.waiters)

    def _seal(self, acknowledged: tuple[bytes, int] | None = None, ended: int | None = None) -> Step:
        """The record of the crank that runs, which is over then, with all that it lets go."""
        crank, acked = self.crank, self.acked
        progress = crank.progress
        if acked:
            crank.note(Op.ACKED, FrozenList(sorted(acked)))
        replies: list[tuple[Reply, Outcome]] = []
        if self.waiters:
            for promise, outcome in progress.settled:
                for reply in self.waiters.get(promise, ()):
                    replies.append((reply, self._outside(crank.leaving(outcome))))
        record = self._append(crank.record)
        acked.clear()
        if replies:
            for promise, _ in progress.settled:
                self.waiters.pop(promise, None)
        crank.end()
        return Step(
            record,
            progress.sent,
            progress.wanted,
            progress.cancelled,
            ended,
            replies,
            acknowledged,
            progress.subscriptions,
            failure=progress.failure,
            unheard=progress.unheard,
        )

    def _outside(self, outcome: Outcome) -> Outcome:
        """An outcome as a caller outside sees it."""
        return Outcome(outcome.succeeded, self.heap.read(outcome.payload))
