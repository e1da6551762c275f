"""A connection, from the server's side: lets a client in, takes its messages, and frees all that it held when it ends.

    hello ──> guard ──> welcome, and then
    call, stop, forget ──> calls ──┐
    observe, watch, more ──> streams ──> outbox ──> the client
    release ──> handles

The one rule: a client can hurt its own connection and nothing else. What is no message ends it, with a word of why;
what it wants and cannot have is an answer; what it does not take holds it back. A token that is over is told nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import trio

from dataspace.errors import KeeveError
from keeve.principals import LOCAL
from keeve.wire.calls import Calls, failure_said
from keeve.wire.channels import Channel, ChannelClosed
from keeve.wire.desk import Desk
from keeve.wire.frames import BadFrame, decoded, message
from keeve.wire.guarding import Guard, Limits
from keeve.wire.handles import Handles
from keeve.wire.messages import FROM_CLIENT, VERSION, WrongVersion, fields_of, numbers
from keeve.wire.outbox import Outbox
from keeve.wire.streams import Streams
from keeve.wire.sturdy import SturdyRefs
from vat.host.host import Host
from vat.host.repetitions import also_as

FAREWELL = 1.0
"""Seconds for a last word."""
OFTEN = 1.0
"""Seconds between two looks at the token of a client that is told nothing; else it is looked at with each message."""

PACED = frozenset({"call", "observe", "watch"})
"""What is asked for, and not only taken or given back: how often is for the guard to say."""


class Stopping(KeeveError):
    """The server stops. Calls that have no answer may be made again, with the same request ids, when it is back."""

    def __init__(self) -> None:
        super().__init__("the server stops: ask again when it is back; with the same request id a retry is safe")


class Silent(KeeveError):
    """A client said nothing for too long."""

    def __init__(self) -> None:
        super().__init__("nothing was heard from here for too long: open another connection")


async def serve_connection(
    channel: Channel,
    host: Host,
    admit: Callable[[str], Guard],
    refs: SturdyRefs,
    limits: Limits | None = None,
    stopping: trio.Event | None = None,
    ending: trio.Event | None = None,
) -> None:
    """Serve one client until it has gone, or the server stops. Returns in any case; the channel is closed then.

    stopping: when it is set, calls that are under way may end until `ending` is; what comes then is left to the next
    connection, as if it had not come. Without `ending` nobody waits for them.

    admit: gives the guard of a token, or raises a `KeeveError`.
    """
    given = limits or Limits()
    try:
        guard = await _let_in(channel, admit, given)
        if guard is not None:
            await Connection(channel, host, guard, refs, given).run(
                trio.Event() if stopping is None else stopping, ending
            )
    except ChannelClosed:
        pass
    except KeeveError as error:
        await _bye(channel, error)
    finally:
        with trio.move_on_after(FAREWELL, shield=True):
            await channel.close()


async def _let_in(channel: Channel, admit: Callable[[str], Guard], limits: Limits) -> Guard | None:
    """Who a client is; None if it does not say so in time."""
    channel.limit = limits.hello
    with trio.move_on_after(limits.greeting):
        guard = await _greeted(channel, admit)
        channel.limit = limits.frame
        said = {"version": VERSION, "by": guard.name, "limits": attrs.asdict(limits)}
        await channel.send(message("welcome", said))
        return guard
    return None


async def _greeted(channel: Channel, admit: Callable[[str], Guard]) -> Guard:
    said = decoded(await channel.receive())
    fields = fields_of(said, FROM_CLIENT)
    if said[0] != "hello":
        raise BadFrame("the first message is hello")
    version, token = fields
    if version != VERSION:
        raise WrongVersion(version)
    return admit(token)


async def _bye(channel: Channel, error: KeeveError) -> None:
    """A last word, if it is taken soon."""
    with trio.move_on_after(FAREWELL):
        try:
            await channel.send(message("bye", failure_said(error)))
        except ChannelClosed:
            return


async def _cancel_at(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


class Connection:
    """A client that was let in."""

    def __init__(self, channel: Channel, host: Host, guard: Guard, refs: SturdyRefs, limits: Limits) -> None:
        self._channel = channel
        asked = host.asking(guard.name, "wire")
        self._host = also_as(asked, LOCAL) if guard.owns else asked
        self._guard = guard
        self._refs = refs
        self._limits = limits
        self._scope = trio.CancelScope()
        self._ended: KeeveError | None = None
        self._stopping = False

    async def run(self, stopping: trio.Event, ending: trio.Event | None = None) -> None:
        """Serve it. Raises the `KeeveError` that ends it, or `ChannelClosed`."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._put_together(nursery)
                nursery.start_soon(self._stop_at, stopping, ending)
                nursery.start_soon(self.outbox.run)
                nursery.start_soon(self._look_whether_there)
                nursery.start_soon(self._look_whether_allowed)
                await self._listen()
        if self._ended is not None:
            raise self._ended

    def _put_together(self, nursery: trio.Nursery) -> None:
        host, guard, limits, begin = self._host, self._guard, self._limits, nursery.start_soon
        self.outbox = outbox = Outbox(self._channel, limits.unsent, limits.answer, self._scope.cancel, self._is_allowed)
        self.handles = handles = Handles(lambda uid, actor: self._refs.sturdy(guard.name, uid, actor), limits.refs)
        desk = Desk(host, guard, self._refs)
        self.calls = Calls(host, guard, desk, handles, outbox, limits, begin)
        self.streams = Streams(host, guard, handles, self.calls, outbox, limits, begin)

    def _end(self, error: KeeveError) -> None:
        if self._ended is None:
            self._ended = error
        self._scope.cancel()

    async def _stop_at(self, stopping: trio.Event, ending: trio.Event | None) -> None:
        await stopping.wait()
        if ending is not None:
            self._stopping = True
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_at, ending, nursery.cancel_scope)
                await self.calls.answered()
                nursery.cancel_scope.cancel()
        self._end(Stopping())

    async def _look_whether_there(self) -> None:
        while True:
            before = self._channel.carried
            await trio.sleep(self._limits.idle)
            if self._channel.carried == before:
                with trio.move_on_after(self._limits.idle):
                    await self.outbox.send(message("ping"))
                    await trio.sleep_forever()
                if self._channel.carried < before + 2:  # the ping at the most
                    return self._end(Silent())

    async def _look_whether_allowed(self) -> None:
        while True:
            await trio.sleep(OFTEN)
            self._is_allowed()

    def _is_allowed(self) -> bool:
        """Whether the client's token is taken yet. If not, the connection ends, and the client is told why."""
        try:
            _ = self._guard.name
        except KeeveError as error:
            self._end(error)
            return False
        return True

    async def _listen(self) -> None:
        takes = {
            "call": self.calls.call,
            "observe": self.streams.observe,
            "watch": self.streams.watch,
            "more": self._more,
            "stop": self._stop,
            "forget": self._forget,
            "release": self._release,
            "ping": self._pong,
            "pong": self._nothing,
        }
        try:
            while True:
                await trio.lowlevel.checkpoint()  # what was begun comes to its vat before the next one does
                await self.outbox.eased()
                body = await self._channel.receive()
                self.calls.came = len(body)
                said = decoded(body)
                fields = fields_of(said, FROM_CLIENT)
                take: Any = takes.get(said[0])
                if take is None:
                    raise BadFrame(f"{said[0]!r} comes first, and once")
                if said[0] in PACED:
                    if self._stopping:
                        continue
                    await self._guard.paced()
                await take(*fields)
        except KeeveError as error:  # no message, the other end has gone, or the token is over
            self._end(error)

    async def _more(self, id: int, credit: int) -> None:
        self.streams.more(id, credit)

    async def _stop(self, id: int) -> None:
        await trio.lowlevel.checkpoint()  # a call just before has come to its vat then
        self.calls.stop(id)
        self.streams.stop(id)

    async def _forget(self, ids: list[Any]) -> None:
        for id in numbers(ids, 1):
            self.calls.forget(id)

    async def _release(self, rows: list[Any]) -> None:
        for number, count in numbers(rows, 2):
            self.handles.release(number, count)

    async def _pong(self) -> None:
        await self.outbox.send(message("pong"))

    async def _nothing(self) -> None:
        pass
