"""The client: sessions of another process, by refs that outlive the connection.

It keeps one link to the server, and makes another when that is over; calls that have no answer are made again with the
request ids that they had, observations go on at their cursors, refs are found again by their sturdy form.

The one rule: what cannot go on says so. A refused token ends it all; a server that stays away for `patience` seconds
fails who waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Final
from weakref import WeakSet, WeakValueDictionary, finalize

import anyio

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Held
from dataspace.patterns import Pattern, parse
from dataspace.proofs.proofs import Receipt
from keeve.client.link import Link
from keeve.client.refs import DESK, RemoteCall, RemotePromise, RemoteRef
from keeve.client.streams import RemoteObservation, RemoteStream, RemoteWatch
from keeve.wire.channels import Channel, ChannelClosed
from keeve.wire.client_errors import ClientClosed, Unreachable, unreachable
from keeve.wire.frames import BadFrame, decoded, message
from keeve.wire.messages import FROM_SERVER, VERSION, WrongVersion, fields_of
from keeve.wire.sturdy import PREFIX, BadRef
from keeve.wire.telling import held_of, row_of, told
from keeve.wire.tokens import BadToken, TokenRefused
from vat.errors import Deleted
from vat.failures import exception_of
from vat.host.host import Receipted
from vat.host.outside import Snapshot
from vat.objects.types import type_of

PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two attempts to connect; the last goes on."""

FATAL: Final = (TokenRefused, BadToken, WrongVersion, PermissionError)
"""What does not get better by trying again."""

Dial = Callable[[], Awaitable[Channel]]


class Client:
    """A server's sessions, as `token` lets them be reached. Made by `keeve.client.connect`."""

    def __init__(self, dial: Dial, token: str, url: str, patience: float) -> None:
        self._dial = dial
        self._token = token
        self._url = url
        self._patience = patience
        self._ids = count(1)
        self._link: Link | None = None
        self._linked = anyio.Event()
        self._failure: Exception | None = None
        self._why: object = "not yet"
        self._refs: WeakValueDictionary[str, RemoteRef] = WeakValueDictionary()
        self._streams: WeakSet[RemoteStream[Any]] = WeakSet()

    # Sessions.

    def get(self, id: str) -> RemotePromise:
        """The session of that id: a promise of a ref, which can be called at once. Breaks with `NoSuchSession`."""
        return RemotePromise(self, DESK, "get", (id,), {}, None, False)

    def spawn(
        self, type: type | str, id: str | None = None, /, *, request: str | None = None, **fields: Any
    ) -> RemotePromise:
        """A new session of that actor type (a class, or a registered name): a promise of a ref to it.

        A field that is given a `Tools` has its schemas, as at a host; they are run by the server, which has tools of
        these names.
        """
        name = type if isinstance(type, str) else type_of(type).name
        given = {field: _as_given(value) for field, value in fields.items()}
        return RemotePromise(self, DESK, "spawn", (name, id, given), {}, request, False)

    async def delete(self, id: str, *, force: bool = False) -> None:
        """Delete a session. Raises `Busy` unless `force`d, `NoSuchSession`, `Deleted`."""
        promise = RemotePromise(self, DESK, "delete", (id, force), {}, None, False)
        try:
            await promise
        except Deleted:
            if promise._state.tries < 2:  # else an attempt before this one has done it
                raise

    async def sessions(
        self, prefix: str = "", *, after: str = "", limit: int = 100, deleted: bool = False
    ) -> list[SessionRow]:
        """At most `limit` sessions in the order of their ids (1,000 at once), from after `after` on."""
        rows = await RemotePromise(self, DESK, "sessions", (prefix, after, limit, deleted), {}, None, False)
        return [told(row_of, row) for row in rows]

    def live(self, sturdy: str) -> RemoteRef:
        """The ref of a sturdy form that `sturdy` gave, to the same principal. Whether the server takes it, a call
        says."""
        if not isinstance(sturdy, str) or not sturdy.startswith(PREFIX):
            raise BadRef(f"a sturdy ref is the text {PREFIX}… that client.sturdy(ref) gave")
        return self._ref(sturdy, f"<ref {sturdy[:24]}…>")

    def sturdy(self, ref: RemoteRef) -> str:
        """A ref as text, to be kept past this process: `live` gives it back. It is as secret as what it reaches."""
        if not isinstance(ref, RemoteRef):
            raise TypeError(f"{ref!r:.60} is no ref of a client: await a promise first")
        return ref._sturdy

    # The dataspace.

    def observe(
        self,
        pattern: Pattern | str,
        *,
        after: Any = "start",
        until: Any = None,
        session: str | None = None,
        lineage: bool = False,
        marks: bool = False,
    ) -> RemoteObservation:
        """The events that match, past and live, as of a host. It goes on by itself when the server has been away."""
        return RemoteObservation(self, pattern, after=after, until=until, session=session, lineage=lineage, marks=marks)

    async def facts(
        self,
        pattern: Pattern | str,
        *,
        at: int | Cursor | None = None,
        session: str | None = None,
        lineage: bool = False,
    ) -> list[Held]:
        """What matches and holds (now, or `at` a position)."""
        asked = str(parse(pattern) if isinstance(pattern, str) else pattern)
        place: Any = str(at) if isinstance(at, Cursor) else at
        found: list[Held] = []
        after: str | None = "0"
        while after is not None:
            part = RemotePromise(self, DESK, "facts", (asked, place, session, lineage, after), {}, None, False)
            rows, place, after = await part  # what holds at one place, in parts
            found += [told(held_of, row) for row in rows]
        return found

    def watch(self, session: RemoteRef | str | None = None) -> RemoteWatch:
        """What the running effects of a session (a ref, or its id; None: of all) tell from now on."""
        return RemoteWatch(self, session)

    def desk(self, method: str, *args: Any, **keywords: Any) -> RemotePromise:
        """A call of the server's desk by its name, for what has no method here: `docs/wire.md` has all of them."""
        return RemotePromise(self, DESK, method, args, keywords, None, False)

    @property
    def by(self) -> str | None:
        """The principal in whose name this client asks; None while it is not connected."""
        return None if self._link is None else self._link.by

    # What refs, promises and streams need.

    async def perform(self, promise: RemotePromise) -> Any:
        """Have a call made, if it was not, and wait for its answer, over as many links as it takes."""
        state = promise._state
        while not state.settled:
            link = await self._a_link(state.tries > 0)
            attempt = await link.attempt(promise)
            if attempt is None:
                continue
            attempt.waiting += 1
            try:
                await attempt.over.wait()
            finally:
                attempt.waiting -= 1
                if not attempt.waiting and not attempt.over.is_set():
                    link.abandon(attempt)
        if state.error is not None:
            raise state.error
        return _presented(state)

    def begin(self, stream: RemoteStream[Any]) -> None:
        """A stream is there, and goes on over all links."""
        if self._failure is not None:
            raise self._failure
        self._streams.add(stream)
        if self._link is not None:
            stream.open(self._link)

    def leave(self, stream: RemoteStream[Any]) -> None:
        """A stream has ended."""
        self._streams.discard(stream)

    def _ref(self, sturdy: str, shown: str) -> RemoteRef:
        ref = self._refs.get(sturdy)
        if ref is None:
            ref = self._refs[sturdy] = RemoteRef(self, sturdy, shown)
            finalize(ref, self._released, sturdy).atexit = False
        return ref

    def _released(self, sturdy: str) -> None:
        if self._link is not None:
            self._link.release(sturdy)

    # Links.

    async def _a_link(self, asked: bool) -> Link:
        """The link, when there is one. Raises `Unreachable` when there is none for too long, or why there is none.

        asked: whether what it is for was asked for already.
        """
        with anyio.move_on_after(self._patience):
            while self._link is None and self._failure is None:
                await self._linked.wait()
        if self._failure is not None:
            raise self._failure
        if self._link is None:
            why = self._why.why if isinstance(self._why, Unreachable) else self._why
            raise Unreachable(self._url, why, asked=asked)
        return self._link

    async def connected(self) -> Link:
        """Make a link, once. Raises `Unreachable`, or that the server refuses."""
        try:
            channel = await self._dial()
        except TokenRefused:
            raise
        except (OSError, ChannelClosed) as error:
            raise unreachable(self._url, error) from error
        try:
            await channel.send(message("hello", VERSION, self._token))
            said = decoded(await channel.receive(), None)
            fields = fields_of(said, FROM_SERVER)
            if said[0] == "bye":
                raise exception_of(fields[0])
            if said[0] != "welcome":
                raise BadFrame(f"it says {said[0]!r} where it is to say welcome")
            return Link(channel, fields[0], lambda: next(self._ids), self._ref, self._lost)
        except (ChannelClosed, BadFrame, KeyError) as error:
            await channel.close()
            raise Unreachable(self._url, error) from error
        except BaseException:
            with anyio.CancelScope(shield=True):
                await channel.close()
            raise

    async def run(self, link: Link) -> None:
        """Keep a link, from that one on, until cancelled."""
        tries = 0
        while True:
            began = anyio.current_time()
            await link.run()
            self._why = link.ended or "the connection is over"
            if isinstance(link.ended, FATAL):
                return self.fail(link.ended)
            if anyio.current_time() - began > PAUSES[-1]:
                tries = 0
            while True:
                await anyio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1
                try:
                    link = await self.connected()
                    self.use(link)
                    break
                except FATAL as error:
                    return self.fail(error)
                except KeeveError as error:
                    self._why = error

    def use(self, link: Link) -> None:
        """From here on by that link."""
        self._link = link
        for stream in list(self._streams):
            stream.open(link)
        self._linked.set()

    def _lost(self) -> None:
        self._link = None
        if self._failure is None:
            self._linked = anyio.Event()

    def fail(self, error: Exception) -> None:
        """It is over, for that reason: whoever waits is told."""
        if self._failure is None:
            self._failure = error
            for stream in list(self._streams):
                stream.end(error)
            self._linked.set()

    def close(self) -> None:
        """It is over."""
        self.fail(ClientClosed())


def _as_given(value: Any) -> Any:
    # `type`, since an attribute of a ref is one of its actor's.
    return value.schemas if isinstance(getattr(type(value), "schemas", None), property) else value


def _presented(state: RemoteCall) -> Any:
    """What a call gave, as a host of one's own gives it."""
    value = state.value
    receipt = None
    if state.receipt:
        value, text = value
        receipt = Receipt.parse(text)
    if state.target is not DESK and state.method == "snapshot":
        value = Snapshot.of(value)
    return value if receipt is None else Receipted(value, receipt)
