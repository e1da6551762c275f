"""Burying: a session is deleted that cannot be loaded, since its records are damaged.

Its tombstone is made from what the catalog knows: it follows the newest record of the chain, whatever is wrong with the
content of those before it. What others wait for from it breaks, as if it had been deleted by a message. What nobody can
find out any more is left out: it is not busy, since nothing of it goes on, and of its presence only that is retracted
which can be read.

The one rule: nothing of the session has to be readable.
"""

from __future__ import annotations

from collections.abc import Iterator

import trio

from dataspace.catalog.recent import SessionRow
from dataspace.drafts import Draft, Handle
from dataspace.errors import KeeveError, gone
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import Kind
from dataspace.values import FrozenDict
from vat.heap.messages import Asker
from vat.heap.opcodes import Op
from vat.heap.operations import fact_handle
from vat.heap.restore import BrokenChain
from vat.host.engine import Engine

UNREADABLE = (SessionDamaged, BrokenChain)
"""What tells that a session's own records keep it from being loaded."""


class Burying:
    """Deletes the sessions of an engine's store that cannot be loaded."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._one = trio.Lock()

    async def bury(self, uid: bytes, asker: Asker, why: KeeveError) -> None:
        """Delete a session; durable when it returns. Raises `Deleted`, or what has kept it from becoming durable."""
        engine = self._engine
        async with self._one:
            await engine.commits.writer.drain()  # from here on nothing of it is on its way
            row = engine.loader.row(uid)
            draft = Draft(uid, row.seq + 1, Kind.DELETE, max(engine.powers.clock(), row.updated))
            draft.message = FrozenDict({"id": row.id, "by": asker.by, "via": asker.via, **born(row)})
            for handle in self._presence(row, why):
                draft.retracted(draft.operation(Op.RETRACTED, *handle), handle)
            draft.stated(draft.operation(Op.STATED, 0), "deleted", [row.id], FrozenDict({}))
            await engine.commits.put(draft.seal(row.hash, engine.entropy))
        error = gone(row.id)
        resident = engine.residents.get(uid)
        if resident is not None:
            engine.commits.drop(resident, error)
        engine.errands.bury(uid)
        engine.subscriptions.bury(uid)
        engine.mail.bury_unread(uid, error)
        engine.reclaiming.soon()

    def _presence(self, row: SessionRow, why: KeeveError) -> Iterator[Handle]:
        """The presence that the session has stated, as far as it can be read, and that nobody has taken back."""
        catalog = self._engine.dataspace.catalog
        upto = why.seq - 1 if isinstance(why, UNREADABLE) else 0
        try:
            load = self._engine.loader.read
            some = load(row.uid, upto, lambda found: found.heap.entries("facts")) if upto > row.parent_seq else []
            for key, presence in some:
                handle = fact_handle(key)
                place = catalog.position(row.uid, handle.seq) if presence and handle.seq > row.parent_seq else None
                if place is not None and not any(
                    taken.operation == handle.operation for taken in catalog.taken(place, place, row.position)
                ):
                    yield handle
        except KeeveError:
            return  # facts of a deleted session hold no more in any case


def born(row: SessionRow) -> dict[str, object]:
    """What a tombstone tells of a session when nothing else of it is left."""
    return {"type": row.type, "parent": row.parent, "at": row.parent_seq, "created": row.created}
