"""The host: owns a store and is what everything outside goes through: sessions, their refs, the dataspace.

`Host` is the trio face of an `Engine`. What it gives out are `HostRef`s; what it is asked for is carried out by jobs
in mailboxes, so that a fork or a deletion has its place among a session's messages like any other.

The one rule: nothing is kept here. Sessions are the catalog's, their vats the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar

from dataspace.catalog.recent import SessionRow as Row
from dataspace.errors import KeeveError
from dataspace.log.store import StoreReadOnly
from dataspace.observe.dataspace import NoSuchSession, Reader
from dataspace.patterns import Pattern
from dataspace.values import Value, digest_of, freeze
from vat.crank.crank import EVERY_REF
from vat.crank.sending import UNIVERSAL
from vat.crank.vat import Step, Vat, request_digest
from vat.errors import exception_of, gone
from vat.heap.heap import ROOT_ACTOR
from vat.heap.messages import Asker, Call
from vat.heap.refs import DIRECTORY, Ref
from vat.host.births import SESSION_ID, BadSessionId, IdInUse
from vat.host.carrying import child_ref
from vat.host.engine import Engine, NotRunning
from vat.host.outside import HostRef, Snapshot, bound, unbound
from vat.host.resolving import ABSENT, BadOutcome, EffectStatus, NoSuchEffect, Resolving
from vat.host.verifying import Progress, Report, silent, verify
from vat.objects.actor import Actor
from vat.objects.fields import given as begins_with
from vat.objects.types import ActorType

__all__ = [
    "EVERY_REF",
    "SESSION_ID",
    "BadOutcome",
    "BadSessionId",
    "Busy",
    "EffectStatus",
    "Host",
    "IdInUse",
    "NoSuchEffect",
    "SnapshotMismatch",
]

A = TypeVar("A", bound=Actor)


class Busy(KeeveError):
    """A session has work under way and is not deleted."""

    usage = True

    def __init__(self, id: str, what: str) -> None:
        super().__init__(f"session {id!r} is busy ({what}): wait for it, or delete it with force")
        self.id = id


class SnapshotMismatch(KeeveError):
    """A snapshot names a record that this store does not have as it says."""

    def __init__(self, snapshot: Snapshot, what: str) -> None:
        super().__init__(
            f"snapshot of {snapshot.session!r} at seq {snapshot.seq}: {what}; restore_latest finds the newest"
        )


class Host:
    """A store and its sessions. Made by `keeve.open_host`; all of it is for the trio thread that opened it."""

    def __init__(self, engine: Engine, asker: Asker | None = None) -> None:
        self._engine = engine
        self._asker = asker or Asker()
        self._resolving = Resolving(engine)

    def asking(self, by: str, via: str = "python") -> Host:
        """The same host, asked by another principal: its refs, sessions and requests name it.

        Raises `ValueError` for a name that cannot be kept apart from others: it is printable text.
        """
        for name in (by, via):
            if not (isinstance(name, str) and name.isprintable()):
                raise ValueError(f"{name!r} cannot be the name of who asks: use printable text")
        return Host(self._engine, Asker(by, via))

    # Sessions.

    @property
    def directory(self) -> HostRef[Any]:
        """The ref to the directory, as an actor would use it."""
        return HostRef(self, DIRECTORY, 0, self._asker)

    async def spawn(
        self, cls: type[A], id: str | None = None, /, *, request: str | None = None, **fields: Any
    ) -> HostRef[A]:
        """A new session whose first actor is a `cls` with these fields; `id` is chosen if it is None.

        With `request` (an id of the caller's) a repetition gives the session that the first one made. Raises `IdInUse`,
        `Deleted`, `BadSessionId`, `RequestConflict`, `TypeError` or `NotAValue`. Durable when it returns.
        """
        engine = self._engine
        described = engine.types.add(cls)
        given = {name: freeze(unbound(value), None, name) for name, value in begins_with(cls, fields).items()}
        asker = self._asker.requesting(request)
        uid = engine.entropy(16)
        key: tuple[str, bytes] | None = None
        if request is not None:
            key = (f"{self._asker.by}\0{request}", digest_of([described.name, id, given]))
            uid = sha256(b"keeve request 1\n" + engine.store.log_id + key[0].encode()).digest()[:16]
        await self._spawn(cls, id, uid, given, asker, key)
        return self._ref(uid)

    async def spawn_named(
        self, type_name: str, id: str | None, fields: Mapping[str, Value], *, uid: bytes, asker: Asker
    ) -> Ref:
        """For the directory: a session of a registered type, under a uid that follows from who asked."""
        cls = self._engine.types[type_name].cls
        fields = begins_with(cls, fields)
        key = (f"{asker.by}\0{uid.hex()}", digest_of([type_name, id, dict(fields)]))
        await self._spawn(cls, id, uid, fields, asker, key)
        return child_ref(uid)

    async def _spawn(
        self,
        cls: type,
        id: str | None,
        uid: bytes,
        fields: Mapping[str, Value],
        asker: Asker,
        key: tuple[str, bytes] | None,
    ) -> None:
        engine = self._engine
        self._must_write()
        while not await engine.born(uid, lambda: engine.births.spawn(uid, id, cls, fields, asker, key)):
            if engine.dataspace.catalog.by_uid(uid) is not None:
                assert key is not None
                engine.births.same(uid, key, asker.request or uid.hex())
                return
            with suppress(NoSuchSession):  # the first one's record is on its way, and may not arrive
                await engine.done(uid, lambda vat: ())

    async def get(self, id: str) -> HostRef[Any]:
        """The session of that id. Raises `NoSuchSession` or `Deleted`. Loads nothing yet."""
        return self._ref(self._row(id).uid)

    async def find(self, id: str) -> Ref:
        """For the directory: the ref to a session. Raises `NoSuchSession` or `Deleted`."""
        return child_ref(self._row(id).uid)

    def _ref(self, uid: bytes) -> HostRef[Any]:
        return HostRef(self, uid, ROOT_ACTOR, self._asker)

    def _row(self, id: str) -> Row:
        if self._engine.store.readonly:
            self._engine.following.refresh()
        row = self._engine.dataspace.catalog.session(id) if isinstance(id, str) else None
        if row is None:
            raise NoSuchSession(str(id))
        if row.deleted:
            raise gone(id)
        return row

    def sessions(self, prefix: str = "", *, after: str = "", limit: int = 100, deleted: bool = False) -> list[Row]:
        """At most `limit` sessions in the order of their ids, from after `after` on: a page of the list."""
        if not (isinstance(prefix, str) and isinstance(after, str) and isinstance(limit, int)):
            raise TypeError("a page of the list is asked for by prefix and after, two texts, and limit, a number")
        return self._engine.dataspace.catalog.sessions(prefix, after=after, limit=limit, deleted=deleted)

    def listed(self, prefix: str, after: str, limit: int) -> list[dict[str, Any]]:
        """For the directory: a page of the list, as values."""
        return [
            {"id": row.id, "type": row.type, "seq": row.seq, "pending": row.pending, "ref": child_ref(row.uid)}
            for row in self.sessions(prefix, after=after, limit=limit)
        ]

    async def restore(self, snapshot: Snapshot | Mapping[str, Any]) -> HostRef[Any]:
        """The session of a snapshot, loaded again from what is stored and brought to its head.

        Raises `SnapshotMismatch` when the snapshot's record is not in the chain as it says, `NoSuchSession`, `Deleted`.
        To go back to a point in time is `fork(at=...)`.
        """
        snapshot = Snapshot.of(snapshot)
        row = self._row(snapshot.session)
        address = self._engine.dataspace.catalog.locate(row.uid, snapshot.seq)
        if address is None:
            raise SnapshotMismatch(snapshot, "there is no such record")
        if self._engine.store.read(address).header.hash.hex() != snapshot.hash:
            raise SnapshotMismatch(snapshot, "the record there is another one")
        return await self._restore(row)

    async def restore_latest(self, id: str) -> HostRef[Any]:
        """The session of that id, loaded again from what is stored. Raises `NoSuchSession` or `Deleted`."""
        return await self._restore(self._row(id))

    async def _restore(self, row: Row) -> HostRef[Any]:
        engine = self._engine
        resident = engine.residents.get(row.uid)
        if resident is not None and resident.idle:
            engine.residents.drop(resident)

        def work(vat: Vat) -> Sequence[Step]:
            resident = engine.residents.get(row.uid)
            if resident is None or resident.damage is not None or engine.store.readonly:
                return ()
            return (vat.asked_to_restore(resident.snapshot, self._asker),)

        await engine.done(row.uid, work)
        return self._ref(row.uid)

    async def delete(self, id: str, *, force: bool = False, asker: Asker | None = None) -> None:
        """Delete a session: its id and uid never come back, refs to it break with `Deleted`; forks of it stay whole.

        Raises `Busy` while it has work under way, unless `force`d: then that is abandoned.
        """
        row = self._row(id)
        self._must_write()

        def work(vat: Vat) -> Sequence[Step]:
            busy = _busy(vat)
            if busy and not force:
                raise Busy(id, busy)
            return (vat.delete(asker or self._asker),)

        await self._engine.done(row.uid, work)

    # Calls.

    async def call(
        self, uid: bytes, actor: int, method: str, args: tuple[Any, ...], keywords: dict[str, Any], asker: Asker
    ) -> Any:
        """What a `HostRef` does: call a method, or read a field, and wait for the answer."""
        if uid == DIRECTORY:
            return await self._directory_call(method, args, keywords, asker)
        kept = [freeze(unbound(arg), None, f"{method}(): argument {n + 1}") for n, arg in enumerate(args)]
        named = {name: freeze(unbound(arg), None, f"{method}(): {name}") for name, arg in keywords.items()}
        digest = None if asker.request is None else request_digest(method, kept, named)
        call = Call(actor, method, kept, named, asker, digest)
        try:
            if method in UNIVERSAL:
                outcome = await self._engine.ask_vat(uid, call)
            else:
                outcome = await self._engine.ask(uid, call)
        except KeeveError as error:
            if not hasattr(error, "__notes__"):
                error.add_note(f"in session {self._name(uid)!r}")
            raise
        if not outcome.succeeded:
            raise exception_of(outcome.payload, f"in session {self._name(uid)!r}")
        if method == "snapshot" and "root" in outcome.payload:
            return Snapshot(**outcome.payload)
        return bound(outcome.payload, self, asker._replace(request=None))

    def _name(self, uid: bytes) -> str:
        row = self._engine.dataspace.catalog.by_uid(uid)
        return uid.hex() if row is None else row.id

    async def _directory_call(self, method: str, args: Any, keywords: Any, asker: Asker) -> Any:
        if method == "spawn":
            return bound(await self._directory_spawn(*args, asker=asker, **keywords), self, self._asker)
        if method == "get":
            return await self.get(*args, **keywords)
        if method == "list":
            return bound(freeze(self._directory_list(*args, **keywords)), self, self._asker)
        if method == "delete":
            return await self.delete(*args, asker=asker, **keywords)
        raise AttributeError(f"the directory has no method {method!r}; it has spawn, get, list and delete")

    async def _directory_spawn(
        self, type_name: str, id: str | None = None, fields: Mapping[str, Any] | None = None, *, asker: Asker
    ) -> Ref:
        uid = self._engine.entropy(16)
        return await self.spawn_named(type_name, id, freeze(unbound(dict(fields or {}))), uid=uid, asker=asker)

    def _directory_list(self, prefix: str = "", after: str = "", limit: int = 100) -> list[dict[str, Any]]:
        return self.listed(prefix, after, limit)

    def described(self, uid: bytes, actor: int) -> ActorType | None:
        """The type of an actor, for those who present it; None for the directory."""
        if uid == DIRECTORY:
            return None
        resident = self._engine.residents.get(uid)
        if resident is not None and resident.vat is not None:
            heap = resident.vat.heap
        else:
            row = self._engine.loader.row(uid)
            heap = self._engine.loader.restored(uid, row.seq).heap
        facet = heap.find("facets", actor)
        return self._engine.types[heap.state(actor if facet is None else facet[0]).type]

    def loaded(self, id: str) -> tuple[int, int] | None:
        """How a session came into memory: the seq of its snapshot (0: none), and how many records were read after."""
        resident = self._engine.residents.get(self._row(id).uid)
        return None if resident is None else (resident.snapshot, resident.records)

    # The dataspace.

    def observe(self, pattern: Pattern | str, handler: Any = None, **how: Any) -> Any:
        """The events that match, past and live (see `dataspace.observe.dataspace.Reader.observe`).

        Without a handler an async iterator; with one, a task of its own that calls it with each event.
        """
        if handler is None:
            return self._engine.dataspace.observe(pattern, **how)
        return self._engine.observe_with(pattern, handler, **how)

    def query(self, pattern: Pattern | str, **how: Any) -> Any:
        """The events that match up to now, as a plain iterator."""
        return self._engine.dataspace.query(pattern, **how)

    def facts(self, pattern: Pattern | str, **how: Any) -> Any:
        """What matches and holds (now, or `at` a position)."""
        return self._engine.dataspace.facts(pattern, **how)

    def reader(self) -> Reader:
        """All of the dataspace, as something to narrow and hand on."""
        return self._engine.dataspace

    async def verify(self, progress: Progress = silent) -> Report:
        """Look at all that the store holds: frames, chains and cells; snapshots and catalog against the log.

        The host goes on serving. `progress(look, done)` is told how far it is: records of the `"log"`, sessions for
        the `"snapshots"`, questions for the `"catalog"`. Costs about 100 µs for each record, in another thread.
        """
        await self._engine.commits.writer.drain()
        return await verify(self._engine.store, self._engine.dataspace.catalog, progress)

    # Effects.

    def effects(self, session: str | None = None) -> list[EffectStatus]:
        """The effects of a session, or of all, that have no outcome yet: first those of this host, then what it leaves.

        Costs a restore for each session with pending work that is not in memory.
        """
        return self._resolving.effects(session)

    async def resolve(self, id: str, *, value: Any = ABSENT, error: Any = ABSENT, again: bool = False) -> None:
        """Settle an effect of unknown outcome: with a value, with an error, or by running it `again` (if it is held).

        The error is an exception, or words, which come as `Failed`. Raises `NoSuchEffect`, `BadOutcome` unless exactly
        one of the three is given, or `NotAValue`. Durable when it returns.
        """
        self._must_write()
        await self._resolving.resolve(id, value=value, error=error, again=again)

    def on_progress(self, hear: Callable[[str, str, Value], None]) -> Callable[[], None]:
        """Have `hear(session, effect, value)` told what running effects tell (`"s1"`, `"model.complete"`, ...).

        Gives the function that ends it. `hear` is called in the trio thread and must not raise.
        """
        return self._resolving.on_progress(hear)

    def _must_write(self) -> None:
        if self._engine.store.readonly:
            raise StoreReadOnly("this host", "it was opened with readonly=True")
        if not self._engine.running:
            raise NotRunning


def _busy(vat: Vat) -> str:
    system = vat.heap.system
    if system["effects"].count:
        return f"{system['effects'].count} effects have no outcome yet"
    if system["outbox"].count - len(vat.acked) > 0:
        return f"{system['outbox'].count} messages are on their way"
    if vat.waiters:
        return "callers wait for its promises"
    return ""
