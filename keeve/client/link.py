"""A link: one connection, from the client's side: what is sent and not answered yet, and which refs it has.

What is to be sent is put in order at once (`post`) and carried by a task of the link's own. When the connection is over
every attempt is told, and whoever waits for it goes on with the next link.

The one rule: nothing here outlives the connection but what others hold: promises, streams, and the sturdy form of refs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

import anyio
import attrs
from anyio.abc import TaskGroup

from dataspace.values import Promise, Ref, Value
from keeve.client.refs import DESK, Desk, RemoteCall, RemotePromise, RemoteRef
from keeve.client.words import error_of
from keeve.wire import messages
from keeve.wire.channels import Channel, ChannelClosed
from keeve.wire.client_errors import ClientTooLarge
from keeve.wire.frames import BadFrame, decoded, message
from keeve.wire.messages import FROM_SERVER, fields_of, numbers_in
from vat.failures import exception_of
from vat.host.outside import replaced

SOON: Final = 0.25
"""Seconds after which what is not needed any more is told, unless something else is sent before."""


class LinkStream(Protocol):
    """What hears of a stream of a link."""

    def items(self, items: list[Value], caught_up: str | None) -> None: ...
    def end(self, error: Exception | None) -> None: ...


@attrs.define(eq=False)
class Attempt:
    """A call on its way. `over` when its promise is settled, or the link is over."""

    id: int
    promise: RemotePromise
    waiting: int = 0
    over: anyio.Event = attrs.field(factory=anyio.Event)


@attrs.define
class Had:
    """A ref that this connection has: its number, and how often it has come."""

    number: int
    count: int


class Link:
    """A connection that has let this client in. `welcome` is what the server said then."""

    def __init__(
        self,
        channel: Channel,
        welcome: Mapping[str, Any],
        ids: Callable[[], int],
        ref: Callable[[str, str], RemoteRef],
        lost: Callable[[], None],
    ) -> None:
        self.by: str = welcome["by"]
        self.over = anyio.Event()
        self.ended: Exception | None = None
        limits = welcome["limits"]
        self._calls, self._frame, self._idle = int(limits["calls"]), int(limits["frame"]), float(limits["idle"])
        channel.limit = int(limits["answer"])
        self._channel = channel
        self._ids = ids
        self._ref = ref
        self._lost = lost
        self._out: deque[bytes] = deque()
        self._came = anyio.Event()
        self._room = anyio.Event()
        self._attempts: dict[int, Attempt] = {}
        self._by_promise: dict[RemotePromise, Attempt] = {}
        self._had: dict[str, Had] = {}
        self._coming: dict[str, Promise] = {}
        self._streams: WeakValueDictionary[int, LinkStream] = WeakValueDictionary()  # who is heard by nobody is dropped
        self._forgotten: list[int] = []
        self._stopped: list[int] = []
        self._released: list[list[int]] = []

    # Running.

    async def run(self) -> None:
        """Carry messages until the connection is over. `ended` says why then, if the server has."""
        try:
            async with anyio.create_task_group() as tasks:
                for each in (self._write, self._read, self._tell_soon, self._look_whether_there):
                    tasks.start_soon(self._until_over, each, tasks)
        finally:
            self._lost()
            self.over.set()
            self._room.set()
            for attempt in self._attempts.values():
                attempt.over.set()
            with anyio.move_on_after(1, shield=True):
                await self._channel.close()

    async def _until_over(self, part: Callable[[], Any], tasks: TaskGroup) -> None:
        try:
            await part()
        except (ChannelClosed, BadFrame) as error:
            self.ended = self.ended or error
        tasks.cancel_scope.cancel()

    async def _write(self) -> None:
        while True:
            while not self._out:
                self._came = anyio.Event()
                await self._came.wait()
            await self._channel.send(self._out.popleft())

    async def _read(self) -> None:
        while True:
            said = decoded(await self._channel.receive(), None)
            fields = fields_of(said, FROM_SERVER)
            kind = said[0]
            if kind == "value":
                self._value(*fields)
            elif kind == "error":
                self._error(fields[0], error_of(fields[1]))
            elif kind == "items":
                self._items(*fields)
            elif kind == "end":
                self._end(fields[0], None)
            elif kind == "ping":
                self.post(message("pong"))
            elif kind == "bye":
                self.ended = exception_of(fields[0])
                return

    async def _tell_soon(self) -> None:
        while True:
            await anyio.sleep(SOON)
            self._tidy()

    async def _look_whether_there(self) -> None:
        while True:
            before = self._channel.carried
            await anyio.sleep(self._idle)
            if self._channel.carried == before:
                self.post(message("ping"))
                await anyio.sleep(self._idle)
                if self._channel.carried < before + 2:  # the ping at the most
                    return

    # Sending.

    def post(self, body: bytes) -> None:
        """Have a message sent, after those before it."""
        self._out.append(body)
        self._came.set()

    def _tidy(self) -> None:
        """Tell what is not needed any more."""
        if self._forgotten:
            self.post(message("forget", self._forgotten))
            self._forgotten = []
        for id in self._stopped:
            self.post(message("stop", id))
        self._stopped = []
        if self._released:
            self.post(message("release", self._released))
            self._released = []

    async def attempt(self, promise: RemotePromise) -> Attempt | None:
        """The attempt at a promise, which is begun if it was not, after those that it takes.

        None when the promise is settled meanwhile, or the link over. Raises what a promise that it takes was broken
        with, and `ClientTooLarge`.
        """
        asking = promise._state
        while not self.over.is_set() and not asking.settled:
            found = self._by_promise.get(promise)
            if found is not None:
                return found
            before = next((each for each in asking.promises() if self._is_new(each)), None)
            if before is not None:
                await self.attempt(before)
            elif len(self._attempts) + min(self._needed(asking), self._calls) <= self._calls:
                return self._begin(promise, asking)
            else:
                if self._room.is_set():
                    self._room = anyio.Event()
                await self._room.wait()
        return None

    def _is_new(self, promise: RemotePromise) -> bool:
        return not promise._state.settled and promise not in self._by_promise

    def _needed(self, asking: RemoteCall) -> int:
        """How many calls it takes: itself, and one for each ref that was given on another connection."""
        return 1 + sum(isinstance(part, RemoteRef) and part._sturdy not in self._had for part in asking.takes())

    def _begin(self, promise: RemotePromise, asking: RemoteCall) -> Attempt:
        for each in asking.promises():
            if not each._state.settled:
                self._by_promise[each].waiting += 1  # for good: what waits for it is with the server
        args, keywords = asking.written(self._part)
        target = messages.DESK if isinstance(asking.target, Desk) else self._part(asking.target)
        if not isinstance(target, Ref | Promise):
            raise TypeError(f"{target!r:.60} was to be called, and is no ref")
        id = self._ids()
        body = message("call", id, target, asking.method, args, keywords, asking.request, asking.receipt)
        if len(body) > self._frame:
            raise ClientTooLarge(asking.method, len(body), self._frame)
        self._tidy()
        self.post(body)
        asking.tries += 1
        attempt = self._attempts[id] = self._by_promise[promise] = Attempt(id, promise)
        return attempt

    def _part(self, part: Any) -> Any:
        """What stands for a ref or a promise on this connection."""
        if isinstance(part, RemotePromise):
            state = part._state
            if not state.settled:
                return Promise(self._by_promise[part].id)
            if state.error is not None:
                raise state.error
            return replaced(state.value, self._part)
        return self.number(part) if isinstance(part, RemoteRef) else part

    def number(self, ref: RemoteRef) -> Ref | Promise:
        """What a ref is on this connection: its number, or, if it was given on another one, the promise of that."""
        sturdy = ref._sturdy
        had = self._had.get(sturdy)
        if had is not None:
            return Ref(None, had.number)
        if sturdy not in self._coming:
            promise = RemotePromise(ref._client, DESK, "live", (sturdy,), {}, None, False)
            id = self._ids()
            self.post(message("call", id, messages.DESK, "live", [sturdy], {}, None, False))
            self._attempts[id] = Attempt(id, promise)
            self._coming[sturdy] = Promise(id)
        return self._coming[sturdy]

    def abandon(self, attempt: Attempt) -> None:
        """Nobody waits for an answer any more."""
        if self._attempts.pop(attempt.id, None) is not None:
            self._by_promise.pop(attempt.promise, None)
            self._stopped.append(attempt.id)
            self._room.set()

    def release(self, sturdy: str) -> None:
        """Nobody has this ref any more. Called from wherever Python finds that out."""
        had = self._had.pop(sturdy, None)
        if had is not None:
            self._released.append([had.number, had.count])

    # Streams.

    def open(self, stream: LinkStream, kind: str, *fields: Any) -> int:
        """Begin a stream; gives its id."""
        id = self._ids()
        self._streams[id] = stream
        self.post(message(kind, id, *fields))
        return id

    def more(self, id: int, credit: int) -> None:
        """Take more of it."""
        self.post(message("more", id, credit))

    def close(self, id: int) -> None:
        """Want no more of it."""
        if self._streams.pop(id, None) is not None:
            self.post(message("stop", id))

    def drop(self, id: int) -> None:
        """Nobody has this stream any more. Called from wherever Python finds that out."""
        self._stopped.append(id)

    # Hearing.

    def _value(self, id: int, value: Value, told: list[Any]) -> None:
        known: dict[int, RemoteRef] = {}
        for number, sturdy, shown in told:
            had = self._had.get(sturdy)
            if had is None:
                self._had[sturdy] = Had(number, 0)
            known[number] = self._ref(sturdy, shown)
        for number in numbers_in(value):
            if number not in known:
                raise BadFrame(f"it names the ref {number}, and does not say which that is")
            self._had[known[number]._sturdy].count += 1
        attempt = self._attempts.get(id)
        if attempt is None:
            return
        self._forgotten.append(id)

        def mine(item: Any) -> Any:
            return known[item.actor] if isinstance(item, Ref) and item.session is None else item

        self._settle(attempt, replaced(value, mine), None)

    def _error(self, id: int, error: Exception) -> None:
        attempt = self._attempts.get(id)
        if attempt is None:
            return self._end(id, error)
        self._forgotten.append(id)
        return self._settle(attempt, None, error)

    def _settle(self, attempt: Attempt, value: Any, error: Exception | None) -> None:
        del self._attempts[attempt.id]
        self._by_promise.pop(attempt.promise, None)
        state = attempt.promise._state
        state.settled, state.value, state.error = True, value, error
        if isinstance(state.target, Desk) and state.method == "live":
            self._coming.pop(state.args[0], None)
        attempt.over.set()
        self._room.set()

    def _items(self, id: int, items: list[Value], caught_up: str | None) -> None:
        stream = self._streams.get(id)
        if stream is not None:
            stream.items(items, caught_up)

    def _end(self, id: int, error: Exception | None) -> None:
        stream = self._streams.pop(id, None)
        if stream is not None:
            stream.end(error)
