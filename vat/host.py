"""The host: owns a store and is what everything outside goes through: sessions, their refs, the dataspace.

`Host` is the trio face of an `Engine`. What it gives out are `HostRef`s; what it is asked for is carried out by jobs
in mailboxes, so that a fork or a deletion has its place among a session's messages like any other.

The one rule: an id that was ever used is never used again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, TypeVar

import attrs

from dataspace.errors import KeeveError
from dataspace.log.store import StoreReadOnly
from dataspace.observe import NoSuchSession, Reader
from dataspace.patterns import Pattern
from dataspace.recent import Session as Row
from dataspace.records import ZERO_HASH
from dataspace.values import Value, digest_of, freeze
from vat.actor import Actor
from vat.carrying import child_ref, fork_arguments
from vat.effects import Wanted
from vat.engine import Engine, NotRunning
from vat.errors import Deleted, exception_of, failure_of
from vat.heap import ROOT_ACTOR, Heap
from vat.memory import VatMemory
from vat.messages import Asker, Call, Outcome
from vat.outside import HostRef, Snapshot, bound, unbound
from vat.pending import open_effects
from vat.refs import DIRECTORY, Ref
from vat.residents import Resident
from vat.restore import NoSuchPoint, Offspring
from vat.types import ActorType
from vat.vat import RequestConflict, Step, Vat, request_digest

A = TypeVar("A", bound=Actor)

SESSION_ID: Final = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
"""What a session may be called: 1 to 200 characters, no control characters."""

NOW: Final = "python"


class BadSessionId(KeeveError, ValueError):
    """An id that no session can have."""

    usage = True

    def __init__(self, id: object) -> None:
        super().__init__(f"{id!r} cannot be the id of a session: use 1 to 200 characters, none of them control ones")


class IdInUse(KeeveError):
    """A session has that id already."""

    usage = True

    def __init__(self, id: str) -> None:
        super().__init__(f"there is a session {id!r} already: get it with host.get({id!r}), or choose another id")
        self.id = id


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


class NoSuchEffect(KeeveError, LookupError):
    """No effect of that id is open."""

    usage = True

    def __init__(self, id: str) -> None:
        super().__init__(f"no effect {id!r} is open: look at the list of effects; it may be settled already")


@attrs.frozen
class EffectStatus:
    """An effect that has no outcome yet. `state` is `wanted`, `running` or `unknown`."""

    id: str
    session: str
    device: str
    method: str
    args: Sequence[Any]
    state: Literal["wanted", "running", "unknown"]


class Host:
    """A store and its sessions. Made by `keeve.open_host`; all of it is for the trio thread that opened it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._births: dict[str, bytes] = {}
        """Ids of sessions whose first record is on its way."""
        engine.forks = self._fork
        self._asker = Asker()

    # Sessions.

    @property
    def directory(self) -> HostRef[Any]:
        """The ref to the directory, as an actor would use it."""
        return HostRef(self, DIRECTORY, 0, self._asker)

    async def spawn(
        self,
        cls: type[A],
        id: str | None = None,
        /,
        *,
        request: str | None = None,
        by: str = "local",
        via: str = NOW,
        **fields: Any,
    ) -> HostRef[A]:
        """A new session whose first actor is a `cls` with these fields; `id` is chosen if it is None.

        With `request` (an id of the caller's) a repetition gives the session that the first one made. Raises `IdInUse`,
        `Deleted`, `BadSessionId`, `RequestConflict`, `TypeError` or `NotAValue`. Durable when it returns.
        """
        asker = Asker(by, via, request)
        described = self._engine.types.add(cls)
        given = {name: freeze(unbound(value), None, name) for name, value in fields.items()}
        uid = self._engine.entropy(16)
        key: tuple[str, bytes] | None = None
        if request is not None:
            digest = digest_of([described.name, id, given])
            key = (f"{by}\0{request}", digest)
            uid = sha256(b"keeve request 1\n" + self._engine.store.log_id + key[0].encode()).digest()[:16]
        await self._spawn(cls, id, uid, given, asker, key)
        return HostRef(self, uid, ROOT_ACTOR, self._asker)

    async def spawn_named(
        self, type_name: str, id: str | None, fields: Mapping[str, Value], *, uid: bytes, asker: Asker
    ) -> Ref:
        """For the directory: a session of a registered type, under a uid that follows from who asked."""
        cls = self._engine.types[type_name].cls
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
        known = engine.dataspace.catalog.by_uid(uid)
        resident = engine.residents.get(uid)
        if known is None and resident is None:
            name = f"s-{uid.hex()[:12]}" if id is None else id
            self._claim(name, uid)
            try:
                heap = Heap(VatMemory(engine.lineage(uid), engine.cache))
                vat, step = Vat.spawn(uid, name, heap, engine.types, engine.powers, cls, fields, asker, key)
                resident = Resident(vat, 0, 0, step.record)
                resident.durable = 0
                engine.residents.add(resident)
                await engine.done(uid, lambda vat: [step])
            finally:
                self._births.pop(name, None)
        elif known is not None and known.deleted:
            raise Deleted(f"session {known.id!r} has been deleted; its id never comes back")
        else:
            await self._same_birth(uid, key, asker)

    async def _same_birth(self, uid: bytes, key: tuple[str, bytes] | None, asker: Asker) -> None:
        """Check that who asks again asks for the same, and wait until that is durable."""
        engine = self._engine
        await engine.done(uid, lambda vat: [Step(None)])
        said = engine.first_message(uid)
        if key is None or said.get("request") != key[0] or said.get("digest") != key[1]:
            raise RequestConflict(asker.request or uid.hex(), said.get("id", uid.hex()))

    def _claim(self, id: str, uid: bytes) -> None:
        """Take an id for a session that is being made. Raises `BadSessionId`, `Deleted` or `IdInUse`."""
        if not isinstance(id, str) or not SESSION_ID.fullmatch(id) or not id.isprintable():
            raise BadSessionId(id)
        known = self._engine.dataspace.catalog.session(id)
        if known is not None and known.deleted:
            raise Deleted(f"session {id!r} has been deleted; its id never comes back")
        if known is not None or id in self._births:
            raise IdInUse(id)
        self._births[id] = uid

    def _unclaim(self, id: str) -> None:
        """The catalog knows the session now."""
        self._births.pop(id, None)

    async def get(self, id: str) -> HostRef[Any]:
        """The session of that id. Raises `NoSuchSession` or `Deleted`. Loads nothing yet."""
        return HostRef(self, self._row(id).uid, ROOT_ACTOR, self._asker)

    async def find(self, id: str) -> Ref:
        """For the directory: the ref to a session. Raises `NoSuchSession` or `Deleted`."""
        return child_ref(self._row(id).uid)

    def _row(self, id: str) -> Row:
        row = self._engine.dataspace.catalog.session(id) if isinstance(id, str) else None
        if row is None:
            raise NoSuchSession(str(id))
        if row.deleted:
            raise Deleted(f"session {id!r} has been deleted; its id never comes back")
        return row

    def sessions(self, prefix: str = "", *, after: str = "", limit: int = 100, deleted: bool = False) -> list[Row]:
        """At most `limit` sessions in the order of their ids, from after `after` on: a page of the list."""
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
        if not isinstance(snapshot, Snapshot):
            snapshot = Snapshot(*(snapshot[field.name] for field in attrs.fields(Snapshot)))
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
            engine.residents.drop(row.uid)
        loaded = engine.resident(row.uid)
        if not engine.store.readonly and loaded.damage is None:
            await engine.done(row.uid, lambda vat: [vat.asked_to_restore(loaded.snapshot, self._asker)])
        return HostRef(self, row.uid, ROOT_ACTOR, self._asker)

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
            return [vat.delete(asker or self._asker)]

        await self._engine.done(row.uid, work)

    # Calls.

    async def call(
        self, uid: bytes, actor: int, method: str, args: tuple[Any, ...], keywords: dict[str, Any], asker: Asker
    ) -> Any:
        """What a `HostRef` does: call a method, or read a field, and wait for the answer."""
        if uid == DIRECTORY:
            return await self._directory_call(method, args, keywords, asker)
        if method == "snapshot":
            return await self._snapshot(uid, *args, **keywords)
        if method == "fork":
            at, into = fork_arguments(args, keywords)
            return await self._forked(uid, at, into, asker)
        kept = [freeze(unbound(arg), None, f"{method}(): argument {n + 1}") for n, arg in enumerate(args)]
        named = {name: freeze(unbound(arg), None, f"{method}(): {name}") for name, arg in keywords.items()}
        digest = None if asker.request is None else request_digest(method, kept, named)
        outcome = await self._engine.ask(uid, Call(actor, method, kept, named, asker, digest))
        if not outcome.succeeded:
            raise exception_of(outcome.payload, f"in session {self._name(uid)!r}")
        return bound(outcome.payload, self, self._asker)

    def _name(self, uid: bytes) -> str:
        resident = self._engine.residents.get(uid)
        return uid.hex() if resident is None else resident.vat.id

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

    async def _snapshot(self, uid: bytes) -> Snapshot:
        self._must_write()
        named: dict[str, Any] = {}

        def work(vat: Vat) -> Sequence[Step]:
            step, said = vat.snapshot()
            named.update(said)
            return [step]

        await self._engine.done(uid, work)
        return Snapshot(**named)

    def described(self, uid: bytes, actor: int) -> ActorType | None:
        """The type of an actor, for those who present it; None for the directory."""
        if uid == DIRECTORY:
            return None
        heap = self._engine.resident(uid).vat.heap
        facet = heap.find("facets", actor)
        return self._engine.types[heap.state(actor if facet is None else facet[0]).type]

    # Forks.

    async def _forked(self, uid: bytes, at: int | None, into: str | None, asker: Asker) -> HostRef[Any]:
        self._must_write()
        child = self._engine.entropy(16)
        key: tuple[str, bytes] | None = None
        if asker.request is not None:
            key = (f"{asker.by}\0{asker.request}", digest_of(["fork", at, into]))
            child = sha256(b"keeve fork request 1\n" + uid + key[0].encode()).digest()[:16]

        def work(vat: Vat) -> Sequence[Step]:
            steps, _ = self._fork(vat, at, into, child, asker, key)
            return steps or [Step(None)]

        await self._engine.done(uid, work)
        return HostRef(self, child, ROOT_ACTOR, self._asker)

    def _fork(
        self,
        parent: Vat,
        at: int | None,
        into: str | None,
        uid: bytes,
        asker: Asker,
        key: tuple[str, bytes] | None = None,
    ) -> tuple[list[Step], Ref]:
        """Fork a vat: the parent's record and the child's first one, to be committed together."""
        engine = self._engine
        known = engine.dataspace.catalog.by_uid(uid)
        if known is not None or engine.residents.get(uid) is not None:
            said = engine.first_message(uid)
            if key is not None and (said.get("request"), said.get("digest")) != key:
                raise RequestConflict(asker.request or "", parent.id)
            return [], child_ref(uid)
        here = parent.seq if at is None else at
        name = f"{parent.id}-{uid.hex()[:8]}" if into is None else into
        if not 1 <= here <= parent.seq:
            raise NoSuchPoint(parent.id, here, 1, parent.seq)
        self._claim(name, uid)
        try:
            now = here == parent.seq
            restored = None if now else engine.restored(parent.uid, here)
            heap = parent.heap if restored is None else restored.heap
            hash = parent.hash if restored is None else restored.hash
            past = Offspring(uid, here, engine.lineage(parent.uid), lambda: engine.lineage(uid))
            heap = heap.clone(VatMemory(past, engine.cache))
            child = Vat(uid, name, heap, here, ZERO_HASH, engine.types, engine.powers)
            asked = {} if key is None else {"request": key[0], "digest": key[1]}
            step = parent.forked(uid, name, here, hash, asker, asked)
            born = child.born(parent, here, hash, engine.type_name(parent), asker, asked)
        except BaseException:
            self._births.pop(name, None)
            raise
        resident = Resident(child, 0, 0, born.record)
        resident.durable = here
        born.settle = lambda: self._unclaim(name)
        step.also = (resident, born)
        return [step], child_ref(uid)

    # The dataspace.

    def observe(self, pattern: Pattern | str, handler: Any = None, **how: Any) -> Any:
        """The events that match, past and live (see `dataspace.observe.Reader.observe`).

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

    # Effects.

    def effects(self) -> list[EffectStatus]:
        """The effects without an outcome, of the sessions in memory: running ones, and those of unknown outcome."""
        engine = self._engine
        open_ = [(wanted, "running") for wanted in engine.runner.running()]
        open_ += [(wanted, "unknown") for wanted in engine.held.values()]
        return [
            EffectStatus(wanted.id, wanted.session, wanted.device, wanted.method, wanted.args, state)  # type: ignore[arg-type]  # one of the two above
            for wanted, state in open_
        ]

    async def resolve(
        self, id: str, *, value: Any = None, error: BaseException | None = None, again: bool = False
    ) -> None:
        """Settle an effect of unknown outcome: with a value, with an error, or by running it `again` (if it is held).

        Raises `NoSuchEffect` or `NotAValue`. Durable when it returns.
        """
        engine = self._engine
        self._must_write()
        held = next((wanted for wanted in engine.held.values() if wanted.id == id), None)
        key = self._dormant(id) if held is None and not again else None if held is None else held.key
        if key is None:
            raise NoSuchEffect(id)
        if again:
            assert held is not None
            del engine.held[key]
            engine.runner.want(attrs.evolve(held, state="wanted"))
            return
        if error is not None:
            outcome = Outcome(False, freeze(failure_of(error)))
        else:
            outcome = Outcome(True, freeze(unbound(value), None, "value"))
        await engine.settled(key, outcome)
        engine.held.pop(key, None)

    def _dormant(self, id: str) -> tuple[bytes, int] | None:
        """An effect that nobody carries out here: its session is not in memory, or was told to leave it."""
        engine = self._engine
        running = {wanted.id for wanted in engine.runner.running()}
        every = open_effects(engine.dataspace.catalog, engine.store.read, engine.cache)
        found = next((each for each in every if each.id == id), None)
        return None if found is None or id in running else (found.uid, found.number)

    def on_progress(self, hear: Callable[[str, str, Value], None]) -> Callable[[], None]:
        """Have `hear(session, effect, value)` told what running effects tell (`"s1"`, `"model.complete"`, ...), until
        the function that this gives is called. It is called in the trio thread and must not raise."""

        def told(wanted: Wanted, value: Value) -> None:
            hear(wanted.session, f"{wanted.device}.{wanted.method}", value)

        self._engine.progress.append(told)
        return lambda: self._engine.progress.remove(told)

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
