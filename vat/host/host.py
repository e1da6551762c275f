"""The host: owns a store and is what everything outside goes through: sessions, their refs, the dataspace.

`Host` is the trio face of an `Engine`. What it gives out are `HostRef`s; what it is asked for is carried out by the
engine's rooms, by `Sessions`, `Calling` and `Resolving`.

The one rule: nothing is kept here but who asks. What is public here is for users, and `keeve.blocking` has it all too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from os import PathLike
from typing import Any, Literal, TypeVar, Unpack, overload

from attrs import evolve

from dataspace.catalog.recent import SessionRow
from dataspace.facts import Fact
from dataspace.observe.dataspace import Reader
from dataspace.observe.events import Event, Held
from dataspace.observe.observation import Item, Observation
from dataspace.observe.places import Heard, Holding, Queried
from dataspace.patterns import Pattern
from dataspace.proofs.proofs import Receipt
from dataspace.records import Header
from vat.crank.vat import EVERY_REF
from vat.heap.heap import ROOT_ACTOR
from vat.heap.messages import Asker, Sent
from vat.heap.refs import DIRECTORY
from vat.heap.restore import Restored
from vat.host.archiving import ArchivedContent, Archiving, NothingToArchive, absolute
from vat.host.backing_up import Backup, backed_up
from vat.host.births import BadSessionId, IdInUse, may_be_called
from vat.host.calling import Answers, Calling
from vat.host.engine import Engine
from vat.host.erasing import Erasing, NothingToErase
from vat.host.observers import Handler, Observer
from vat.host.outside import HostRef, Snapshot, place
from vat.host.pieces import Piece
from vat.host.proving import Proving, Receipted
from vat.host.reclaiming import ErasureUnfinished, Reclaimed
from vat.host.reports import Report
from vat.host.resolving import ABSENT, EffectStatus, Resolving
from vat.host.sessions import Seen, Sessions
from vat.host.verifying import Expected, Progress, silent, verify
from vat.host.watching import Watch, hear_all, hearing_of
from vat.objects.actor import Actor
from vat.objects.types import ActorType

__all__ = [
    "EVERY_REF",
    "ArchivedContent",
    "BadSessionId",
    "ErasureUnfinished",
    "Host",
    "IdInUse",
    "NothingToArchive",
    "NothingToErase",
    "Receipted",
    "Reclaimed",
    "may_be_called",
]

A = TypeVar("A", bound=Actor)


class Host:
    """A store and its sessions. Made by `keeve.open_host`; all of it is for the trio thread that opened it."""

    def __init__(self, engine: Engine, sessions: Sessions, directory: Answers) -> None:
        self._engine = engine
        self._asker = Asker()
        self._calling = Calling(engine, directory)
        self._sessions = sessions
        self._erasing = Erasing(engine, sessions)
        self._archiving = Archiving(engine)
        self._resolving = Resolving(engine)
        self._proving = Proving(engine)

    def asking(self, by: str, via: str = "python") -> Host:
        """The same host, asked by another principal: its refs, sessions and requests name it.

        Raises `ValueError` for a name that cannot be kept apart from others: it is printable text.
        """
        for name in (by, via):
            if not (isinstance(name, str) and name.isprintable()):
                raise ValueError(f"{name!r} cannot be the name of who asks: use printable text")
        same = copy(self)
        same._asker = Asker(by, via)
        return same

    # Sessions.

    @property
    def directory(self) -> HostRef[Any]:
        """The ref to the directory, as an actor would use it."""
        return HostRef(self._calling, DIRECTORY, 0, self._asker)

    async def spawn(
        self, cls: type[A], id: str | None = None, /, *, request: str | Sent | None = None, **fields: Any
    ) -> HostRef[A]:
        """A new session whose first actor is a `cls` with these fields; `id` is chosen if it is None.

        With `request` (an id of the caller's) a repetition gives the session that the first one made. Raises `IdInUse`,
        `Deleted`, `BadSessionId`, `RequestConflict`, `BadCall` or `NotAValue`. Durable when it returns.
        """
        return self._ref(await self._sessions.spawn(cls, id, fields, self._asker.requesting(request)))

    async def get(self, id: str) -> HostRef[Any]:
        """The session of that id. Raises `NoSuchSession` or `Deleted`. Loads nothing yet."""
        return self._ref(self._sessions.row(id).uid)

    def _ref(self, uid: bytes) -> HostRef[Any]:
        return HostRef(self._calling, uid, ROOT_ACTOR, self._asker)

    def sessions(
        self, prefix: str = "", *, after: str = "", limit: int = 100, deleted: bool = False
    ) -> list[SessionRow]:
        """At most `limit` sessions in the order of their ids, from after `after` on: a page of the list."""
        return self._sessions.page(prefix, after, limit, deleted)

    def row(self, id: str | bytes) -> SessionRow:
        """What is known of one session, by id or uid: its row in that list. Raises `NoSuchSession` or `Deleted`."""
        return self._sessions.row(id)

    def made_by(self, id: str) -> tuple[str, str]:
        """Who had a session spawned or forked, and in which way: what its first record says of `by` and `via`.

        Raises `NoSuchSession`, `Deleted`, or what tells that the record cannot be read. Costs the reading of one.
        """
        return self._sessions.made_by(id)

    def look(self, id: str, read: Callable[[Restored], Seen], at: int | None = None) -> Seen:
        """What `read` makes of a session as it was after the record at `at` (a seq; default: now).

        It is given what was restored from the log for it alone: its `heap`, `seq` and `hash`. Nothing is loaded, run or
        recorded, and what `read` does to it changes no session; where it comes to a page of a snapshot that cannot be
        read, it is called again with an older one. Raises `NoSuchSession`, `Deleted`, `NoSuchPoint`, or
        what tells that something cannot be read. Costs a snapshot's root and the records after it.
        """
        return self._sessions.look(id, read, at)

    async def restore(
        self, snapshot: Snapshot | Mapping[str, Any], *, expect: str | bytes | Receipt | None = None
    ) -> HostRef[Any]:
        """The session of a snapshot, loaded again from what is stored and brought to its head.

        Raises `SnapshotMismatch` when the snapshot's record is not in the chain as it says, `NoSuchSession`, `Deleted`;
        with `expect`, what `Host.expect` does. To go back to a point in time is `fork(at=...)`.
        """
        if expect is not None:
            self.expect(expect)
        return self._ref(await self._sessions.restore(Snapshot.of(snapshot), self._asker))

    async def restore_latest(self, id: str, *, expect: str | bytes | Receipt | None = None) -> HostRef[Any]:
        """The session of that id, loaded again from what is stored. Raises `NoSuchSession` or `Deleted`.

        With `expect`, it raises what `Host.expect` does.
        """
        if expect is not None:
            self.expect(expect)
        return self._ref(await self._sessions.restore_latest(id, self._asker))

    async def delete(self, id: str, *, force: bool = False) -> None:
        """Delete a session: its id and uid never come back, refs to it break with `Deleted`; forks of it stay whole.

        Raises `Busy` while it has work under way, unless `force`d: then that is abandoned; `NoSuchSession`, `Deleted`,
        `StoreReadOnly`. Durable when it returns; its bytes go later. Costs a record, and a restore if it is not in
        memory.
        """
        await self._sessions.delete(id, self._asker, force=force)

    async def erase(self, id: str, *, seq: int | None = None, turn: int | None = None, force: bool = False) -> int:
        """Take what the record at `seq` of a session brought, or what was said in a `turn`, out of it and its forks.

        Gone is what is kept as content: every text of a conversation, whatever is declared `Text`, and strings and
        bytes over 256 bytes; there, and wherever these sessions said the very same later. It reads as `Erased` then.
        Gives how many pieces are gone from the files, durably. Raises `ErasureUnfinished` where the disk refuses that
        for now (it reads as `Erased` all the same, and what is left goes later); `NothingToErase`, `NoSuchSession`,
        `Deleted`; and `Busy` while a model or a tool runs for one of these sessions, unless `force`d: what that says
        later is not looked at. Holds them up meanwhile: about 100 µs for each of their records, and a copy of each file
        concerned.
        """
        return await self._erasing.erase(id, self._asker, seq=seq, turn=turn, force=force)

    async def reclaim(self) -> Reclaimed:
        """Have what was deleted go from the files, durably, as far as no living fork needs it; then heap pages that
        only old snapshots have, and what was erased since it was archived from archives that are in their places.

        Costs a walk through the heaps, and a copy of each file concerned; others go on. What was done when it fails or
        is interrupted stays done.
        """
        self._sessions.must_write()
        gone = await self._engine.reclaiming.reclaim()
        return evolve(gone, archived=await self._archiving.weed())

    async def backup(self, into: str | PathLike[str]) -> Backup:
        """A checked copy of the store as it is now at `into`; see `dataspace.log.backup`. Others go on meanwhile."""
        return await backed_up(self._engine.store, absolute(into))

    async def archive(
        self,
        into: str | PathLike[str],
        *,
        before: int | None = None,
        keep: int = 0,
        idle: bool = False,
        records: bool = False,
    ) -> ArchivedContent:
        """Have content that no session needs any more go from old segments of the log to a folder, durably.

        Old are those whose records all come before the position `before` (None: all), but for the newest `keep`. What
        a session's heap leads to stays; with `idle` not that of sessions that have done nothing since, and wait for
        nothing. Records stay; but with `records` what they did goes too (messages and operations, not facts), and each
        session writes its whole heap for that. Whoever reads what went is given it from where it went for as long as it
        is there, and then `Archived` is raised. Costs a walk through all heaps and two copies of each file concerned;
        others go on. What was done when it is interrupted stays done. Raises `NothingToArchive`, `NotAnArchive`, or
        what the disk refuses.
        """
        self._sessions.must_write()
        return await self._archiving.archive(absolute(into), before=before, keep=keep, idle=idle, records=records)

    async def bring_back(self, folder: str | PathLike[str] | None = None) -> ArchivedContent:
        """Have all that was archived come back, durably: from where it went, or from `folder`, where it is now.

        Raises `NothingToArchive`, `Archived`, `NotAnArchive`, or what the disk refuses.
        """
        self._sessions.must_write()
        return await self._archiving.bring_back(None if folder is None else absolute(folder))

    def described(self, ref: HostRef[Any]) -> ActorType | None:
        """The type of the actor behind a ref: its methods and fields, for those who present it; None for the directory.

        Raises `NoSuchSession` or `Deleted`. In a session that is not in memory, all but the first cost a restore.
        """
        return self._calling.described(*place(ref))

    def loaded(self, id: str) -> tuple[int, int] | None:
        """How a session came into memory: the seq of its snapshot (0: none), and how many records were read after."""
        return self._sessions.loaded(id)

    # What can be proven.

    def headers(self, id: str, *, after: int = 0, limit: int = 100) -> list[Header]:
        """The headers of a session's records behind a seq, at most `limit`, its ancestors' among them: its chain.

        Each has the hash of the one before it. Raises `NoSuchSession`, `Deleted`, or what tells that one cannot be
        read. Costs about 30 µs for each.
        """
        return self._sessions.headers(id, after, limit)

    def checkpoint(self, *, since: int | None = None) -> str:
        """The newest signed checkpoint of the log: a note, as text, over all that is durable now.

        With `since` it is what a witness takes that has seen a checkpoint of so many records: with the proof that this
        one extends it. A host without a signer gives the newest one that is in the store. Raises `NotSigning`,
        `LogTampered` when the log does not extend what was signed before, `NotCovered`. Costs some 200 µs.
        """
        return self._proving.checkpoint(since)

    def receipt(self, session: str, seq: int, *, checkpoint: str | None = None) -> Receipt:
        """What proves that the record of a session at `seq` is in the log; by the newest checkpoint, or by that one.

        Raises `NotSigning`, `NoSuchSession`, `NoSuchPoint`, `NotCovered`. Costs below a millisecond.
        """
        return self._proving.receipt(self._sessions.row(session).uid, seq, checkpoint)

    def cosigned(self, checkpoint: str, witnesses: Sequence[str]) -> list[str]:
        """Take a checkpoint of this log that witnesses have signed; gives the names of those who have.

        It is given out from now on, and kept in the log when that falls idle, or at the end of the host.
        `witnesses` are the verifier keys of those who are known. Raises `BadKey`, `BadNote`, `BadSignature`, or
        `NotSigned`.
        """
        return self._proving.cosigned(checkpoint, witnesses)

    def log_keys(self) -> list[str]:
        """The verifier keys with which the log was signed, the one that signs now last: for those who check."""
        return self._proving.keys()

    def expect(self, seen: str | bytes | Receipt) -> None:
        """Raise unless the log has all that a receipt, or a checkpoint, has seen of it.

        `LogTruncated` when it ends before, `LogTampered` when it is another log or has another history, or a signature
        is wrong; `BadReceipt` or `BadNote` for what proves nothing. Costs below a millisecond.
        """
        self._proving.expect(seen)

    # The dataspace.

    @overload
    def observe(
        self, pattern: Pattern | str, handler: None = None, *, marks: Literal[False] = False, **how: Unpack[Heard]
    ) -> Observation[Event]: ...
    @overload
    def observe(
        self, pattern: Pattern | str, handler: None = None, *, marks: bool, **how: Unpack[Heard]
    ) -> Observation[Item]: ...
    @overload
    def observe(self, pattern: Pattern | str, handler: Handler, **how: Unpack[Heard]) -> Observer: ...

    def observe(
        self, pattern: Pattern | str, handler: Handler | None = None, *, marks: bool = False, **how: Unpack[Heard]
    ) -> Observation[Item] | Observer:
        """The events that match, past and live (see `dataspace.observe.dataspace.Reader.observe`).

        Without a handler an async iterator; with one, a task of its own that calls it with each event.
        """
        if handler is None:
            return self._engine.dataspace.observe(pattern, marks=marks, **how)
        return self._engine.observe_with(pattern, handler, **how)

    def query(self, pattern: Pattern | str, **how: Unpack[Queried]) -> Iterator[Event]:
        """The events that match up to now, as a plain iterator.

        Raises `BadPattern`, `WrongCursor` and `NoSuchSession` at once; `SessionDamaged` when it comes to a damaged
        record. Costs the records of the `session`, or else those that state something with the pattern's label.
        """
        return self._engine.dataspace.query(pattern, **how)

    def facts(self, pattern: Pattern | str, **how: Unpack[Holding]) -> list[Held]:
        """What matches and holds (now, or `at` a position).

        Raises what `query` does, all of it at once. Costs the records of the `session`, or else those with a fact of
        the pattern's label that stands.
        """
        return self._engine.dataspace.facts(pattern, **how)

    def reader(self) -> Reader:
        """All of the dataspace, as something to narrow and hand on. Reads nothing, so it costs and raises nothing."""
        return self._engine.dataspace.narrow()

    async def verify(self, progress: Progress = silent, *, keys: Sequence[str] = (), expect: Expected = None) -> Report:
        """Look at all that the store holds: the log, its checkpoints; snapshots and catalog against the log.

        `keys` are verifier keys that the log has to have signed with, and those of witnesses; `expect` is a receipt or
        a checkpoint of it, or several. The host goes on serving. `progress(look, done, total)` is told how far it is:
        bytes of the `"log"`, sessions for the `"snapshots"`, questions for the `"catalog"` (whose total, 0, nobody
        knows). Costs about 100 µs for each record, in another thread.
        """
        await self._engine.commits.writer.drain()
        engine = self._engine
        return await verify(engine.store, engine.dataspace.catalog, progress, keys=keys, expect=expect)

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
        self._sessions.must_write()
        await self._resolving.resolve(id, self._asker, value=value, error=error, again=again)

    def watch(self, session: HostRef[Any] | str | None = None) -> Watch:
        """What the running effects of a session (a ref to it, or its id; None: of all) tell from now on.

        An async iterator of `Piece`s, and a context manager that ends it: a model's answer as it comes. Nothing of it
        is in the log. A session that is not there yet may be watched by its id. When the session is deleted, or found
        to be damaged, whoever listens is told by that error. Raises `HeardElsewhere` for a host that is opened to read.
        """
        which = place(session)[0] if isinstance(session, HostRef) else session
        engine = self._engine
        return Watch(hearing_of(engine), engine.dataspace, lambda: engine.running, which)

    def on_progress(
        self, hear: Callable[[Piece], None], session: HostRef[Any] | str | None = None
    ) -> Callable[[], None]:
        """Have `hear(piece)` called with each thing that a running effect of a session (None: of any) tells, at that
        moment.

        Gives the function that ends it. `hear` is called in the trio thread and must not raise. Raises as `watch` does.
        """
        which = place(session)[0] if isinstance(session, HostRef) else session
        return hear_all(hearing_of(self._engine), which, hear)

    def on_session(self, hear: Callable[[SessionRow, str], None]) -> Callable[[], None]:
        """Have `hear(row, by)` called with each session that is made or deleted from now on, once that is durable.

        `by` is who had it made ("": that cannot be read); `row.deleted` says which it is. As for `on_fact`; a deletion
        costs the reading of one record.
        """
        return self._sessions.on_session(hear)

    def on_fact(self, labels: Iterable[str], hear: Callable[[Fact], None]) -> Callable[[], None]:
        """Have `hear(fact)` called with each fact of these labels that is asserted from now on, once it is durable.

        For who counts: nothing is read for it. Gives the function that ends it. `hear` is called in the trio thread and
        must be quick.
        """
        return self._engine.dataspace.on_fact(labels, hear)
