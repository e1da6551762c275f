"""The sessions of a store: spawned, found, listed, restored, deleted; for a host, and for its directory.

The one rule: nothing is kept here. Which sessions there are the catalog says, their vats are the engine's, and a
restore or a deletion is a job in a mailbox, with its place among the session's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar, Final, TypeVar

from dataspace.catalog.recent import SessionRow, made_by
from dataspace.errors import KeeveError
from dataspace.observe.dataspace import NoSuchSession, living
from dataspace.records import Header, Kind
from dataspace.remedies import Remedy
from dataspace.values import NotAValue, Value, digest_of, freeze
from vat.crank.vat import Step, Vat
from vat.errors import BadCall
from vat.heap.messages import Asker
from vat.heap.refs import Ref
from vat.heap.restore import NoSuchPoint, Restored
from vat.host.asking import NotRunning
from vat.host.burying import UNREADABLE, Burying, born
from vat.host.carrying import child_ref
from vat.host.commits import refusal
from vat.host.engine import Engine
from vat.host.outside import Snapshot, sent_digest, unbound
from vat.objects.fields import given as begins_with

Seen = TypeVar("Seen")


WAIT_OR_FORCE: Final = Remedy("wait-or-force", "wait for it, or use force")


class Busy(KeeveError):
    """A session has work under way, and is not deleted, nor anything of it erased."""

    usage: ClassVar[bool] = True

    def __init__(self, id: str, what: str) -> None:
        super().__init__(f"session {id!r} is busy ({what}): {WAIT_OR_FORCE()}")
        self.id = id


def some(count: int, one: str, more: str) -> str:
    """A number of what there is, and what that does.

    >>> some(1, "effect has", "effects have"), some(2, "effect has", "effects have")
    ('1 effect has', '2 effects have')
    """
    return f"{count} {one if count == 1 else more}"


def on_their_way(count: int) -> str:
    """That a session is busy with so many messages to others."""
    return some(count, "message is on its way", "messages are on their way")


class SnapshotMismatch(KeeveError, quotes=False):
    """A snapshot names a record that this store does not have as it says."""

    def __init__(self, snapshot: Snapshot, what: str) -> None:
        super().__init__(
            f"snapshot of {snapshot.session!r} at seq {snapshot.seq}: {what}; restore_latest finds the newest"
        )


def _as_sent(type: str, id: str | None, fields: Mapping[str, Any]) -> bytes:
    """The digest of a request for a session, if a client has sent it; none for fields that no client can send, such as
    tools in one's own program."""
    try:
        return sent_digest("spawn", type, id, fields)
    except NotAValue:
        return b""


class Sessions:
    """The sessions of an engine's store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._burying = Burying(engine)

    async def spawn(
        self, cls: type, id: str | None, fields: Mapping[str, Any], asker: Asker, *, uid: bytes | None = None
    ) -> bytes:
        """A new session whose first actor is a `cls` with these fields; gives its uid.

        A repetition gives the session that the first one made: with the same `uid` (of an effect), or else with the
        request id of the `asker`, if there is one. Durable when it returns.
        """
        engine = self._engine
        described = engine.types.of(cls)
        given = {name: freeze(unbound(value), None, name) for name, value in begins_with(cls, fields).items()}
        asked = asker.request if uid is None else uid.hex()
        # Older records have that, whoever gave the fields.
        plain = b"" if asked is None else digest_of([described.name, id, given])
        self.must_write()
        if isinstance(id, str):
            await engine.births.settled(id)
        while True:
            made, request = self._request_of(asker) if uid is None else (uid, f"{asker.by}\0{asked}")
            key = None if request is None else (request, asker.sent or plain)
            if await engine.born(made, partial(engine.births.spawn, made, id, cls, given, asker, key)):
                return made
            if engine.dataspace.catalog.by_uid(made) is not None:
                assert key is not None
                engine.births.same(made, key[0], (key[1], plain, _as_sent(described.name, id, fields)), asked or "")
                return made
            with suppress(NoSuchSession):  # the first one's record is on its way, and may not arrive
                await engine.done(made, lambda vat: ())

    def _request_of(self, asker: Asker) -> tuple[bytes, str | None]:
        """The uid of the session that is made for what somebody asks, and the request (who asks, and the id).

        What the same person has asked with this id at another door counts, unless a session was made for it here.
        """
        if asker.request is None:
            return self._engine.entropy(16), None
        begun = self._engine.births.begun
        request = f"{asker.by}\0{asker.request}"
        uid = self._uid_of(request)
        if asker.other is not None and not begun(uid):
            theirs = f"{asker.other}\0{asker.request}"
            if begun(found := self._uid_of(theirs)):
                return found, theirs
        return uid, request

    def _uid_of(self, request: str) -> bytes:
        """The uid of the session that is made for a request (who asks, and the id)."""
        # Uids stand in the clear: of an encrypted store nobody is to find out a request id by trying.
        by = self._engine.store.log_id + (self._engine.store.secret or b"")
        return sha256(b"keeve request 1\n" + by + request.encode()).digest()[:16]

    def spawned(self, asker: Asker) -> tuple[bytes, bool] | None:
        """The uid of the session that was made for a request, and whether the same was sent then; None: none is there.

        Raises `Deleted`. Costs the reading of a record.
        """
        uid, request = self._request_of(asker)
        if self._engine.dataspace.catalog.by_uid(uid) is None:
            return None
        return uid, self._engine.births.asked_with(uid) == (request, asker.sent)

    async def spawn_named(
        self,
        type_name: str,
        id: str | None,
        fields: Mapping[str, Value],
        asker: Asker,
        *,
        uid: bytes | None = None,
    ) -> Ref:
        """The same, of a type by its registered name; gives the ref."""
        return child_ref(await self.spawn(self._engine.types[type_name].cls, id, fields, asker, uid=uid))

    def row(self, id: str | bytes) -> SessionRow:
        """What the catalog knows of a session, by its id or its uid. Raises `NoSuchSession` or `Deleted`."""
        if self._engine.store.readonly:
            self._engine.following.refresh()
        catalog = self._engine.dataspace.catalog
        row = catalog.session(id) if isinstance(id, str) else catalog.by_uid(id) if isinstance(id, bytes) else None
        return living(row, id.hex() if isinstance(id, bytes) else str(id), self._engine.store)

    def made_by(self, id: str) -> tuple[str, str]:
        """Who had a session spawned or forked, and in which way. Costs the reading of one record."""
        said = self._engine.loader.first_message(self.row(id))
        return made_by(said), str(said.get("via", ""))

    def on_session(self, hear: Callable[[SessionRow, str], None]) -> Callable[[], None]:
        """See `Host.on_session`."""
        space, loader = self._engine.dataspace, self._engine.loader

        def noted(record: Any) -> None:
            row = space.catalog.by_uid(record.uid)
            if row is None:
                return
            try:
                said = loader.first_message(row) if record.kind == Kind.DELETE else record.message
            except KeeveError:
                said = {}
            hear(row, made_by(said))

        return space.on_record((Kind.SPAWN, Kind.FORKED, Kind.DELETE), noted)

    def look(self, id: str, read: Callable[[Restored], Seen], at: int | None) -> Seen:
        """See `Host.look`."""
        row = self.row(id)
        seq = row.seq if at is None else at
        if not 1 <= seq <= row.seq:
            raise NoSuchPoint(row.id, seq, 1, row.seq)
        return self._engine.loader.read(row.uid, seq, read)

    def headers(self, id: str, after: int, limit: int) -> list[Header]:
        """See `Host.headers`."""
        row = self.row(id)
        lineage = self._engine.loader.lineage(row.uid)
        return [lineage.at(seq).header for seq in range(max(after, 0) + 1, min(after + limit, row.seq) + 1)]

    def find(self, id: str) -> Ref:
        """The ref to a session. Raises `NoSuchSession` or `Deleted`."""
        return child_ref(self.row(id).uid)

    def page(self, prefix: str, after: str, limit: int, deleted: bool = False) -> list[SessionRow]:
        """At most `limit` sessions in the order of their ids, from after `after` on."""
        if not (isinstance(prefix, str) and isinstance(after, str) and isinstance(limit, int)):
            raise BadCall("a page of the list: give prefix and after, two texts, and limit, a number")
        return self._engine.dataspace.catalog.sessions(prefix, after=after, limit=limit, deleted=deleted)

    def listed(self, prefix: str, after: str, limit: int) -> list[dict[str, Any]]:
        """A page of the list, as values."""
        return [
            {"id": row.id, "type": row.type, "seq": row.seq, "pending": row.pending, "ref": child_ref(row.uid)}
            for row in self.page(prefix, after, limit)
        ]

    def loaded(self, id: str) -> tuple[int, int] | None:
        """How a session came into memory: the seq of its snapshot (0: none), and how many records were read after."""
        resident = self._engine.residents.get(self.row(id).uid)
        return None if resident is None else (resident.snapshot, resident.records)

    async def restore(self, snapshot: Snapshot, asker: Asker) -> bytes:
        """Load a snapshot's session again; gives its uid. Raises `SnapshotMismatch`, `NoSuchSession`, `Deleted`."""
        row = self.row(snapshot.session)
        address = self._engine.dataspace.catalog.locate(row.uid, snapshot.seq)
        if address is None:
            raise SnapshotMismatch(snapshot, "there is no such record")
        if self._engine.store.read(address).header.hash.hex() != snapshot.hash:
            raise SnapshotMismatch(snapshot, "the record there is another one")
        return await self._restore(row, asker)

    async def restore_latest(self, id: str, asker: Asker) -> bytes:
        """Load a session again from what is stored; gives its uid. Raises `NoSuchSession` or `Deleted`."""
        return await self._restore(self.row(id), asker)

    async def _restore(self, row: SessionRow, asker: Asker) -> bytes:
        engine = self._engine
        resident = engine.residents.get(row.uid)
        if resident is not None and resident.idle:
            engine.residents.drop(resident)

        def work(vat: Vat) -> Sequence[Step]:
            resident = engine.residents.get(row.uid)
            if resident is None or resident.damage is not None or engine.store.readonly:
                return ()
            return (vat.asked_to_restore(resident.snapshot, asker),)

        await engine.done(row.uid, work)
        return row.uid

    async def delete(self, id: str, asker: Asker, *, force: bool = False) -> None:
        """Delete a session, one that is damaged too. Raises `Busy` while it has work under way, unless `force`d: then
        that is abandoned."""
        self.must_write()
        row = self.row(id)

        def work(vat: Vat) -> Sequence[Step]:
            resident = self._engine.residents.get(row.uid)
            if resident is not None and resident.damage is not None:
                raise resident.damage
            busy = _busy(vat)
            if busy and not force:
                raise Busy(id, busy)
            return (vat.delete(asker, born(row)),)

        try:
            await self._engine.done(row.uid, work)
        except UNREADABLE as why:
            await self._burying.bury(row.uid, asker, why)
        await self._engine.reclaiming.shredding.shred(row.uid)

    def must_write(self) -> None:
        """Raise `StoreReadOnly` or `NotRunning` where nothing can be written."""
        if self._engine.store.readonly:
            raise refusal(self._engine.store)
        if not self._engine.running:
            raise NotRunning


def _busy(vat: Vat) -> str:
    system = vat.heap.system
    if system["effects"].count:
        return f"{some(system['effects'].count, 'effect has', 'effects have')} no outcome yet"
    if system["outbox"].count - len(vat.acked) > 0:
        return on_their_way(system["outbox"].count - len(vat.acked))
    if vat.waiters:
        return "callers wait for its promises"
    return ""
