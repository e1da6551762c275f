"""Calls: what a client has asked for, each in a task of its own, and the answers that it may still name by a promise.

A call may be made of the answer of one that has none yet, as its target or in its arguments: it waits here, not at the
client. Calls on refs begin in the order in which they came.

The one rule: an answer is kept until the client forgets it, and so counts against its limit. Stopping a call abandons
the wait, never what its vat was asked for; one that waits for another's answer is not made then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

import attrs
import trio

from dataspace.errors import KeeveError
from dataspace.values import Promise, Ref, Value
from dataspace.values.encoding import encode
from keeve.wire.desk import Desk
from keeve.wire.frames import BadFrame, listed
from keeve.wire.guarding import Guard, Limits, TooLarge, TooMany, Untaken
from keeve.wire.handles import Handles, inward
from keeve.wire.messages import DESK, numbers_in
from keeve.wire.outbox import Outbox
from keeve.wire.verbs import EVERY_REF, verb_of
from vat.errors import Refused
from vat.failures import exception_of, failure_of
from vat.heap.refs import DIRECTORY
from vat.host.host import Host, Receipted
from vat.host.outside import HostRef, Snapshot, place
from vat.host.repetitions import is_known

Target: TypeAlias = "Ref | Promise"

_HEADS: Final = {kind: encode(kind) for kind in ("value", "error")}


class NoSuchPromise(KeeveError, LookupError):
    """A call names the answer of another one that this connection does not have."""

    usage = True

    def __init__(self, id: int) -> None:
        super().__init__(f"this connection has no call {id} whose answer could be meant: make it again")


class Stopped(KeeveError):
    """A call was made of the answer of one that its client has stopped waiting for."""

    def __init__(self, id: int) -> None:
        super().__init__(f"the call {id}, whose answer this one needed, was stopped: make both again")


class NotARef(KeeveError, TypeError):
    """The answer that a call was made of is no ref."""

    usage = True

    def __init__(self, value: Any) -> None:
        super().__init__(
            f"the answer that was to be called is a {type(value).__name__}, not a ref: call what gives one"
        )


@attrs.define(eq=False)
class PendingCall:
    """A call. `done` when it has its answer: a value, or a failure."""

    id: int
    target: Any
    method: str
    args: list[Any]
    keywords: dict[str, Any]
    request: str | None
    receipt: bool
    waits: list[PendingCall]
    """Those whose answers are among its arguments."""
    size: int = 0
    """Bytes of the message that it came in."""
    stopped: bool = False
    begun: bool = False
    """Whether its session has been asked."""
    sent: bool = False
    """Whether its answer was sent."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    done: trio.Event = attrs.field(factory=trio.Event)
    value: Any = None
    failure: dict[str, Any] | None = None

    async def answer(self) -> Any:
        """Its answer, when it is there. Raises what broke it."""
        await self.done.wait()
        if self.failure is not None:
            raise exception_of(self.failure)
        if isinstance(self.value, TooLarge):
            raise self.value
        return self.value


class Calls:
    """The calls of a connection."""

    def __init__(
        self,
        host: Host,
        guard: Guard,
        desk: Desk,
        handles: Handles,
        outbox: Outbox,
        limits: Limits,
        begin: Callable[..., None],
    ) -> None:
        self._host = host
        self._guard = guard
        self._desk = desk
        self._handles = handles
        self._outbox = outbox
        self._limits = limits
        self._begin = begin
        self._asked: dict[int, PendingCall] = {}
        self._abandoned = 0
        self._bytes = 0
        self._ended: trio.Event | None = None
        """Set when a call ends, where somebody waits for that."""
        self.came = 0
        """Bytes of the message that is being taken."""

    def __len__(self) -> int:
        return len(self._asked)

    async def call(
        self,
        id: int,
        target: Target,
        method: str,
        args: list[Value],
        keywords: dict[str, Value],
        request: str | None,
        receipt: bool,
    ) -> None:
        """Take a call. Raises `BadFrame` for an id that is in use."""
        if id in self._asked:
            raise BadFrame(f"there is a call {id} already")
        limits = self._limits
        if len(self._asked) + self._abandoned >= limits.calls:
            return await self.fail(id, TooMany("calls", limits.calls, "take answers first, and forget them"))
        if self._bytes and self._bytes + self.came > limits.answer:
            return await self.fail(id, TooMany("bytes of calls without an answer", self._bytes, "take answers first"))
        try:
            asked = self._taken(id, target, method, args, keywords, request, receipt)
        except KeeveError as error:
            return await self.fail(id, error)
        self._asked[id] = asked
        asked.size = self.came
        self._bytes += asked.size
        self._begin(self._run, asked)
        return None

    def _taken(
        self,
        id: int,
        target: Target,
        method: str,
        args: list[Value],
        keywords: dict[str, Value],
        request: str | None,
        receipt: bool,
    ) -> PendingCall:
        waits: list[PendingCall] = []

        def promised(promise: Promise) -> PendingCall:
            found = self.promised(promise)
            waits.append(found)
            return found

        given = [inward(arg, self._handles.find, promised) for arg in args]
        named = {name: inward(arg, self._handles.find, promised) for name, arg in keywords.items()}
        if isinstance(target, Promise):
            return PendingCall(id, self.promised(target), method, given, named, request, receipt, waits)
        return PendingCall(
            id, DESK if target == DESK else self._handles.find(target), method, given, named, request, receipt, waits
        )

    async def answered(self) -> None:
        """Wait until no call is under way that its client waits for."""
        while any(not each.sent for each in self._asked.values()):
            self._ended = trio.Event()
            await self._ended.wait()

    def stop(self, id: int) -> None:
        """Nobody waits for an answer any more."""
        asked = self._asked.pop(id, None)
        if self._ended is not None:
            self._ended.set()
        if asked is not None and not asked.done.is_set():
            asked.failure = failure_said(Stopped(id))
            asked.done.set()
            if asked.begun:  # it lies in its session's mailbox, and counts until that has answered
                self._abandoned += 1
                asked.stopped = True
            else:
                asked.scope.cancel()

    def forget(self, id: int) -> None:
        """Nobody will name this answer any more."""
        asked = self._asked.get(id)
        if asked is not None and asked.done.is_set():
            del self._asked[id]

    def promised(self, promise: Promise) -> PendingCall:
        """The call whose answer that is. Raises `NoSuchPromise`."""
        asked = self._asked.get(promise.id)
        if asked is None:
            raise NoSuchPromise(promise.id)
        return asked

    async def fail(self, id: int, error: Exception) -> None:
        """Answer with an error."""
        await self._outbox.send(listed([_HEADS["error"], encode(id), encode(failure_said(error))]))

    async def _run(self, asked: PendingCall) -> None:
        try:
            with asked.scope:
                await self._answer(asked)
        finally:
            self._bytes -= asked.size
            self._abandoned -= asked.stopped
            asked.args, asked.keywords, asked.waits = [], {}, []
            asked.sent = True
            if self._ended is not None:
                self._ended.set()

    async def _answer(self, asked: PendingCall) -> None:
        try:
            given = _said(await self._value(asked))
            if asked.stopped:
                return
            sent, new = self._handles.outward(given)
        except Exception as error:  # noqa: BLE001  # it is the answer
            await self._broken(asked, error)
            return
        body = listed([_HEADS["value"], encode(asked.id), encode(sent), encode(new)])
        refused: KeeveError | None = None
        if len(body) > self._limits.answer:
            refused = TooLarge(len(body), self._limits.answer)
        elif waits := self._outbox.waits(len(body)):
            refused = Untaken(len(body), waits)
        if refused is not None:
            self._handles.take_back(numbers_in(sent))
            await self._broken(asked, refused)
            return
        large = len(body) > self._limits.kept
        asked.value = TooLarge(len(body), self._limits.kept) if large else given
        asked.done.set()
        await self._outbox.send(body)

    async def _broken(self, asked: PendingCall, error: Exception) -> None:
        if asked.stopped:
            return
        asked.failure = failure_said(error)
        asked.done.set()
        await self.fail(asked.id, error)

    async def _value(self, asked: PendingCall) -> Any:
        target, args, keywords = asked.target, asked.args, asked.keywords
        if isinstance(target, PendingCall):
            target = await target.answer()
        if asked.waits:
            for each in asked.waits:
                await each.answer()
            args, keywords = _settled(args), _settled(keywords)
        if target is DESK:
            return await self._desk.call(asked.method, args, keywords, asked.request)
        if not isinstance(target, HostRef):
            raise NotARef(target)
        self._may(target, asked.method)
        member = HostRef.__getattr__(target, asked.method)  # `getattr` would find what the ref itself has
        asked.begun = True
        called = partial(member, *args, request=asked.request, receipt=asked.receipt, **keywords)
        if asked.method != "fork" or self._guard.unlimited:
            return await called()
        into = keywords.get("into", args[1] if len(args) > 1 else None)
        self._guard.must(EVERY_REF["fork"], "fork", into if isinstance(into, str) else "")
        async with self._guard.room(made=await is_known(self._host, target, asked.request)):
            return await called()

    def _may(self, ref: HostRef[Any], method: str) -> None:
        if self._guard.unlimited:
            return
        uid, _ = place(ref)
        if uid == DIRECTORY:
            raise Refused("the directory is for who may reach every session: call the desk")
        row = self._host.row(uid)
        self._guard.must(verb_of(self._host, ref, method), method, row.id)


def _settled(value: Any) -> Any:
    """A value with answers in the place of the calls that they were waited for."""
    if isinstance(value, PendingCall):
        return value.value
    if isinstance(value, dict):
        return {name: _settled(item) for name, item in value.items()}
    return [_settled(item) for item in value] if isinstance(value, list) else value


def _said(given: Any) -> Any:
    """What a call gave, as a value: what says more is written out."""
    if isinstance(given, Receipted):
        return [_said(given.value), str(given.receipt)]
    return attrs.asdict(given) if isinstance(given, Snapshot) else given


def failure_said(error: Exception) -> dict[str, Any]:
    """An error as it is sent: class and message, and the notes that say where. No place in the server's code."""
    failure = failure_of(error)
    failure.pop("at", None)
    failure["message"] = str.__str__(failure["message"])
    notes: list[str] = []
    with suppress(AttributeError):
        notes = [note for note in error.__notes__ if isinstance(note, str)]
    if notes:
        failure["in"] = "; ".join(notes)
    return failure
