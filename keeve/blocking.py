"""The same names without `await`, for scripts, notebooks and threads.

    with open_host("./data") as host:
        s = host.spawn(Session, "s1")
        print(s.turn("hello"))
        print(s.history)                      # a public field reads as an attribute

A host runs in a thread of its own, and every call waits for its answer there; calls may come from any thread. An
asyncio program uses it through `asyncio.to_thread`.

The one rule: nothing is done here. Each call is carried to the trio host and its outcome back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.facts import Fact
from dataspace.log.backup import Backup
from dataspace.observe.events import Event, Held
from dataspace.observe.observation import Item
from dataspace.observe.places import Heard, Holding, Queried
from dataspace.patterns import Pattern
from dataspace.proofs.proofs import Receipt
from dataspace.records import Header
from keeve.blocking_readers import Observer, Reader, Watch, elsewhere, observed, queried
from keeve.host_thread import HostThread, OwnThread
from vat.errors import NotAssignable, no_such_method
from vat.heap.restore import Restored
from vat.host.host import EVERY_REF, ArchivedContent, Receipted, Reclaimed
from vat.host.host import Host as AsyncHost
from vat.host.outside import HostRef, Snapshot, replaced
from vat.host.pieces import Piece
from vat.host.reports import Report
from vat.host.resolving import ABSENT, EffectStatus
from vat.host.verifying import Expected, Progress, silent
from vat.objects.actor import Actor
from vat.objects.types import ActorType

__all__ = ["BlockingRef", "Host", "Observer", "OwnThread", "Reader", "open_host"]

A = TypeVar("A", bound=Actor)
Seen = TypeVar("Seen")


class BlockingRef(Generic[A]):
    """A ref whose methods return their results, and whose public fields are attributes."""

    __slots__ = ("_found", "_host", "_ref")
    _host: Host
    _ref: HostRef[A]
    _found: tuple[ActorType | None] | None

    def __init__(self, host: Host, ref: HostRef[A]) -> None:
        put = object.__setattr__
        put(self, "_host", host)
        put(self, "_ref", ref)
        put(self, "_found", None)

    def _type(self) -> ActorType | None:
        """What is known of the actor. It is asked for when it is needed, since a ref may lead to what is not there."""
        found = self._found
        if found is None:
            found = (self._host.described(self),)
            object.__setattr__(self, "_found", found)
        return found[0]

    def _known(self) -> ActorType | None:
        try:
            return self._type()
        except KeeveError:  # nothing can be said of what is gone
            return None

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._ref, name)
        described = self._type()
        if described is not None:
            if name in described.fields:
                return self._host._do(member)
            if name not in described.methods and name not in EVERY_REF:
                raise no_such_method(described.name, name, described.public)

        def method(*args: Any, **keywords: Any) -> Any:
            plain = [_plain(arg) for arg in args]
            return self._host._do(member, *plain, **{key: _plain(value) for key, value in keywords.items()})

        return method

    def __setattr__(self, name: str, value: Any) -> None:
        known = self._known()
        raise NotAssignable(name, () if known is None else known.methods)

    def __dir__(self) -> list[str]:
        known = self._known()
        return sorted({*super().__dir__(), *EVERY_REF, *(() if known is None else known.public)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockingRef) and other._ref == self._ref

    def __hash__(self) -> int:
        return hash(self._ref)

    def __repr__(self) -> str:
        return repr(self._ref)


class Host:
    """A host in a thread of its own. Made by `open_host`; see `vat.host.host.Host` for what its methods do."""

    def __init__(self, thread: HostThread, host: AsyncHost) -> None:
        self._thread = thread
        self._host = host

    def _do(self, what: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """Have something done in the host's thread, and wait for what it gives, its refs bound to this host."""

        async def do() -> Any:
            given = await what(*args, **keywords)
            if isinstance(given, Receipted):
                return Receipted(replaced(given.value, self._bound), given.receipt)
            return replaced(given, self._bound)

        return self._thread.do(do)

    def _bound(self, item: Any) -> Any:
        return BlockingRef(self, item) if isinstance(item, HostRef) else item

    def asking(self, by: str, via: str = "python") -> Host:
        """The same host, asked by another principal. Closing either closes both."""
        return Host(self._thread, self._host.asking(by, via))

    # Sessions.

    @property
    def directory(self) -> BlockingRef[Any]:
        """The directory."""
        return BlockingRef(self, self._host.directory)

    def spawn(
        self, cls: type[A], id: str | None = None, /, *, request: str | None = None, **fields: Any
    ) -> BlockingRef[A]:
        """A new session."""
        plain = {name: _plain(value) for name, value in fields.items()}
        spawned: BlockingRef[A] = self._do(self._host.spawn, cls, id, request=request, **plain)
        return spawned

    def get(self, id: str) -> BlockingRef[Any]:
        """The session of that id."""
        found: BlockingRef[Any] = self._do(self._host.get, id)
        return found

    def restore(
        self, snapshot: Snapshot | Mapping[str, Any], *, expect: str | bytes | Receipt | None = None
    ) -> BlockingRef[Any]:
        """The session of a snapshot, brought to its head."""
        restored: BlockingRef[Any] = self._do(self._host.restore, snapshot, expect=expect)
        return restored

    def restore_latest(self, id: str, *, expect: str | bytes | Receipt | None = None) -> BlockingRef[Any]:
        """The session of that id, loaded again from what is stored."""
        restored: BlockingRef[Any] = self._do(self._host.restore_latest, id, expect=expect)
        return restored

    def delete(self, id: str, *, force: bool = False) -> None:
        """Delete a session."""
        self._thread.do(self._host.delete, id, force=force)

    def erase(self, id: str, *, seq: int | None = None, turn: int | None = None, force: bool = False) -> int:
        """Take what a record brought, or what was said in a turn, out of a session and its forks."""
        erased: int = self._thread.do(self._host.erase, id, seq=seq, turn=turn, force=force)
        return erased

    def reclaim(self) -> Reclaimed:
        """Have what was deleted go from the files."""
        reclaimed: Reclaimed = self._thread.do(self._host.reclaim)
        return reclaimed

    def backup(self, into: str | os.PathLike[str]) -> Backup:
        """A checked copy of the store as it is now."""
        made: Backup = self._thread.do(self._host.backup, into)
        return made

    def archive(
        self,
        into: str | os.PathLike[str],
        *,
        before: int | None = None,
        keep: int = 0,
        idle: bool = False,
        records: bool = False,
    ) -> ArchivedContent:
        """Have content that no session needs any more go from old segments to a folder."""
        done: ArchivedContent = self._thread.do(
            self._host.archive, into, before=before, keep=keep, idle=idle, records=records
        )
        return done

    def bring_back(self, folder: str | os.PathLike[str] | None = None) -> ArchivedContent:
        """Have all that was archived come back."""
        back: ArchivedContent = self._thread.do(self._host.bring_back, folder)
        return back

    def sessions(
        self, prefix: str = "", *, after: str = "", limit: int = 100, deleted: bool = False
    ) -> list[SessionRow]:
        """A page of the list of sessions."""
        return self._thread.now(self._host.sessions, prefix, after=after, limit=limit, deleted=deleted)

    def row(self, id: str | bytes) -> SessionRow:
        """What is known of one session."""
        return self._thread.now(self._host.row, id)

    def made_by(self, id: str) -> tuple[str, str]:
        """Who had a session spawned or forked, and in which way."""
        return self._thread.now(self._host.made_by, id)

    def look(self, id: str, read: Callable[[Restored], Seen], at: int | None = None) -> Seen:
        """What `read` makes of a session as it was after the record at `at`; it is called in the host's thread."""
        seen: Seen = self._thread.now(self._host.look, id, read, at)
        return seen

    def described(self, ref: BlockingRef[Any]) -> ActorType | None:
        """The type of the actor behind a ref."""
        return self._thread.now(self._host.described, ref._ref)

    def loaded(self, id: str) -> tuple[int, int] | None:
        """How a session came into memory: the seq of its snapshot, and how many records were read after it."""
        return self._thread.now(self._host.loaded, id)

    # What can be proven.

    def headers(self, id: str, *, after: int = 0, limit: int = 100) -> list[Header]:
        """The headers of a session's records behind a seq, at most `limit`, its ancestors' among them: its chain."""
        return self._thread.now(self._host.headers, id, after=after, limit=limit)

    def checkpoint(self, *, since: int | None = None) -> str:
        """The newest signed checkpoint of the log."""
        return self._thread.now(self._host.checkpoint, since=since)

    def receipt(self, session: str, seq: int, *, checkpoint: str | None = None) -> Receipt:
        """What proves that a record is in the log."""
        return self._thread.now(self._host.receipt, session, seq, checkpoint=checkpoint)

    def cosigned(self, checkpoint: str, witnesses: Sequence[str]) -> list[str]:
        """Take a checkpoint that witnesses have signed, to be kept in the log."""
        return self._thread.now(self._host.cosigned, checkpoint, witnesses)

    def log_keys(self) -> list[str]:
        """The verifier keys with which the log was signed."""
        return self._thread.now(self._host.log_keys)

    def expect(self, seen: str | bytes | Receipt) -> None:
        """Raise unless the log has all that was seen of it."""
        self._thread.now(self._host.expect, seen)

    # The dataspace.

    @overload
    def observe(
        self, pattern: Pattern | str, handler: None = None, *, marks: Literal[False] = False, **how: Unpack[Heard]
    ) -> Iterator[Event]: ...
    @overload
    def observe(
        self, pattern: Pattern | str, handler: None = None, *, marks: bool, **how: Unpack[Heard]
    ) -> Iterator[Item]: ...
    @overload
    def observe(self, pattern: Pattern | str, handler: Callable[[Event], object], **how: Unpack[Heard]) -> Observer: ...

    def observe(
        self,
        pattern: Pattern | str,
        handler: Callable[[Event], object] | None = None,
        *,
        marks: bool = False,
        **how: Unpack[Heard],
    ) -> Iterator[Item] | Observer:
        """The events that match: those there are, or, with `until=None`, those to come as well.

        With a handler those to come as well, unless it is told where to end; it is called in a thread that is not the
        host's, one event after another.
        """
        if handler is not None:
            called = elsewhere(handler)
            return Observer(self._thread, self._thread.now(lambda: self._host.observe(pattern, called, **how)))
        how.setdefault("until", "head")
        observation = self._thread.now(self._host.observe, pattern, marks=marks, **how)
        return observed(self._thread, observation, live=how["until"] is None)

    def query(self, pattern: Pattern | str, **how: Unpack[Queried]) -> Iterator[Event]:
        """The events that match up to now."""
        return queried(self._thread, self._thread.now(self._host.query, pattern, **how))

    def facts(self, pattern: Pattern | str, **how: Unpack[Holding]) -> list[Held]:
        """What matches and holds."""
        return self._thread.now(self._host.facts, pattern, **how)

    def reader(self) -> Reader:
        """All of the dataspace, as something to narrow and hand on."""
        return Reader(self._thread, self._host.reader())

    def verify(self, progress: Progress = silent, *, keys: Sequence[str] = (), expect: Expected = None) -> Report:
        """Look at all that the store holds. `progress` is called in the host's thread."""
        return self._thread.do(self._host.verify, progress, keys=keys, expect=expect)

    # Effects.

    def effects(self, session: str | None = None) -> list[EffectStatus]:
        """The effects of a session, or of all, that have no outcome yet."""
        return self._thread.now(self._host.effects, session)

    def resolve(self, id: str, *, value: Any = ABSENT, error: Any = ABSENT, again: bool = False) -> None:
        """Settle an effect of unknown outcome."""
        self._thread.do(self._host.resolve, id, value=_plain(value), error=error, again=again)

    def watch(self, session: Any = None) -> Watch:
        """What the running effects of a session (a ref to it, or its id; None: of all) tell from now on."""
        watch = self._host.watch
        return Watch(self._thread, self._thread.now(watch, _plain(session)))

    def on_progress(self, hear: Callable[[Piece], None], session: Any = None) -> Callable[[], None]:
        """Have what running effects of a session (None: of any) tell told to `hear`, in the host's thread, until what
        this gives is called."""
        stop = self._thread.now(self._host.on_progress, hear, _plain(session))
        return lambda: self._thread.now(stop)

    def on_fact(self, labels: Iterable[str], hear: Callable[[Fact], None]) -> Callable[[], None]:
        """Have each fact of these labels told to `hear` when it is durable, in the host's thread, until what this gives
        is called."""
        stop = self._thread.now(self._host.on_fact, labels, hear)
        return lambda: self._thread.now(stop)

    def on_session(self, hear: Callable[[SessionRow, str], None]) -> Callable[[], None]:
        """Have each session that is made or deleted told to `hear`, with who made it, as `on_fact` does facts."""
        stop = self._thread.now(self._host.on_session, hear)
        return lambda: self._thread.now(stop)

    # Ending.

    def close(self) -> None:
        """Stop in order: everything accepted is durable when this returns. Does nothing the second time."""
        self._thread.close()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_host(path: Any, **options: Any) -> Host:
    """Open the store at `path`, as `keeve.open_host` does, in a thread of its own: a context manager."""
    thread = HostThread(path, options)
    return Host(thread, thread.host)


def _plain(value: Any) -> Any:
    """An argument as the trio host takes it."""
    return replaced(value, lambda item: item._ref if isinstance(item, BlockingRef) else item)
