"""Proving: the checkpoints and receipts of a host, by the names that its users have for things.

The one rule: what is proven is durable. A receipt is made when the answer that it belongs to has been let go, and of
the record that the answer depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dataspace.checkpoints.checkpoints import NotSigning
from dataspace.proofs.notes import Note
from dataspace.proofs.proofs import Receipt
from dataspace.proofs.verifiers import Verifier
from dataspace.records import Record
from vat.heap.messages import Outcome
from vat.heap.restore import NoSuchPoint
from vat.host.asking import Waiter
from vat.host.engine import Engine


class Receipted(NamedTuple):
    """What a call gave, and what proves that the record it depends on is in the log."""

    value: Any
    receipt: Receipt


class Answered(Waiter):
    """Waits for an answer, and sees which record it depends on: the newest durable one of its session when it comes."""

    __slots__ = ("_engine", "_record", "_seq", "_uid")

    def __init__(self, engine: Engine, uid: bytes) -> None:
        if not engine.checkpoints.signs:
            raise NotSigning
        super().__init__()
        self._engine = engine
        self._uid = uid
        self._seq = 0
        self._record: Record | None = None

    def reply(self, outcome: Outcome) -> None:
        """The answer."""
        resident = self._engine.residents.get(self._uid)
        if resident is not None:
            self._seq = resident.durable
            self._record = resident.newest
        super().reply(outcome)

    def receipt(self) -> Receipt:
        """What proves it."""
        if self._record is not None:
            return self._engine.checkpoints.receipt(self._record.position, header=self._record.header)
        return _receipt(self._engine, self._uid, self._seq, None)


class Proving:
    """What a host can prove."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def checkpoint(self, since: int | None) -> str:
        """The newest signed checkpoint, as text; with `since`, as a witness takes it that has seen so many records."""
        self._fresh()
        checkpoints = self._engine.checkpoints
        text = str(checkpoints.newest()) if since is None else checkpoints.extension(since)
        if checkpoints.signs:
            self._engine.commits.writer.settle_soon()
        return text

    def receipt(self, uid: bytes, seq: int, checkpoint: str | None) -> Receipt:
        """What proves the record of a session at `seq`. Raises `NoSuchPoint`."""
        self._fresh()
        return _receipt(self._engine, uid, seq, checkpoint)

    def cosigned(self, checkpoint: str, witnesses: Sequence[str]) -> list[str]:
        """Take a checkpoint that witnesses have signed, and keep it soon; gives the names of those who have."""
        found = self._engine.checkpoints.cosigned(checkpoint, [Verifier.parse(each) for each in witnesses])
        self._engine.commits.writer.settle_soon()
        return [each.name for each in found]

    def expect(self, kept: str | bytes | Receipt) -> None:
        """Raise unless the log has all that somebody has seen of it."""
        self._fresh()
        self._engine.checkpoints.expect(kept)

    def keys(self) -> list[str]:
        """The verifier keys of the log, the one that signs now last."""
        self._fresh()
        return [str(each) for each in self._engine.checkpoints.verifiers]

    def _fresh(self) -> None:
        if self._engine.store.readonly:
            self._engine.following.refresh()


def _receipt(engine: Engine, uid: bytes, seq: int, checkpoint: str | None) -> Receipt:
    position = engine.dataspace.catalog.position(uid, seq) if seq > 0 else None
    if position is None:
        row = engine.dataspace.catalog.by_uid(uid)
        name, last = (uid.hex(), 0) if row is None else (row.id, row.seq)
        raise NoSuchPoint(name, seq, 1, last)
    return engine.checkpoints.receipt(position, None if checkpoint is None else Note.parse(checkpoint))
