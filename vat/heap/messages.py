"""Messages: what a vat takes from its mailbox, one at a time; and where the answer to each goes.

A message's values are in *transport form*: read form, except that content which its sender kept as a cell is a
`Text` (or bytes), and that refs name their vats. Freezing them gives the receiver cells and refs of its own.

The one rule: a message is data. Whoever waits for an answer outside of all vats is a callback beside it, and is
gone after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import attrs

from dataspace.errors import KeeveError
from dataspace.values import CELLED, Blob, CelledBlob, CellRef, FrozenDict, FrozenList, Text, Value, freeze
from vat.heap.entries import Effect
from vat.heap.heap import Heap, Memory

LONGEST_REQUEST: Final = 1000
"""Characters of a request id."""


UNIVERSAL: Final = frozenset({"snapshot", "fork"})
"""The calls that every vat understands and the host carries out, between cranks."""


class BadRequestId(KeeveError, ValueError):
    """A request id that none can be."""

    usage: ClassVar[bool] = True

    def __init__(self, request: object) -> None:
        shown = f"{request!r:.60}"
        super().__init__(f"{shown} cannot be a request id: use 1 to {LONGEST_REQUEST} characters of valid Unicode")


@attrs.frozen
class Sent:
    """A request id, and the digest of what a client sent with it, where the host has put something to that."""

    id: str
    digest: bytes


class Asker(NamedTuple):
    """Who sent a message: the principal, the way (`python`, `cli`, `vat:…`), and the request id, if any.

    `sent`: the digest by which a repetition of the request is known, where that is not the one of the message. `other`:
    what the same person is called at another door; a request that was made there is theirs.
    """

    by: str = "local"
    via: str = "python"
    request: str | None = None
    sent: bytes | None = None
    other: str | None = None

    def requesting(self, request: str | Sent | None) -> Asker:
        """The same principal, with a request id. Raises `BadRequestId`."""
        if isinstance(request, Sent):
            return self.requesting(request.id)._replace(sent=request.digest)
        if request is None:
            return self._replace(request=None, sent=None)
        if not isinstance(request, str) or not 0 < len(request) <= LONGEST_REQUEST or freeze(request) != request:
            raise BadRequestId(request)
        return self._replace(request=request, sent=None)


class Outcome(NamedTuple):
    """How something ended: a value, or a failure (see `vat.failures`)."""

    succeeded: bool
    payload: Value


RUNTIME: Final[Mapping[str, Asker]] = {
    "detach": Asker("runtime", "fork"),
    "upgrade": Asker("runtime", "upgrade"),
    "collect": Asker("runtime", "collect"),
}
"""Who sends what the runtime itself has a vat do, by what such a message says."""


def asker_of(message: Mapping[str, Any], heap: Heap) -> Asker:
    """Who sent the message of a record, from what that says; `heap` is the one before it."""
    if "effect" in message:
        effect = heap.find("effects", message["effect"])
        return Asker("device", f"device:{'' if effect is None else effect[Effect.DEVICE]}")
    asker = asker_in(message)
    if asker is None:
        raise KeyError("by")
    return asker


def asker_in(message: Mapping[str, Any]) -> Asker | None:
    """The same without the heap: of what came of an effect who settled it by hand, and None where its device did. None
    also where the runtime wrote the record without anybody's asking."""
    if "subscription" in message:
        return Asker("dataspace", "observe")
    for name, asker in RUNTIME.items():
        if name in message:
            return asker
    if isinstance(message.get("from"), bytes):
        return Asker("vat", message.get("via", f"vat:{message['from'].hex()}"))
    return Asker(message["by"], message["via"], message.get("request")) if "by" in message else None


def said_by(asker: Asker | None) -> dict[str, Value]:
    """Who asked, as the message of a record says it, and `asker_in` reads it."""
    if asker is None:
        return {}
    request = {} if asker.request is None else {"request": asker.request}
    return {"by": asker.by, "via": asker.via, **request}


NOBODY: Final = Asker()
"""Who asks when nobody said so."""


Reply: TypeAlias = Callable[[Outcome], None]
"""Told how a call from outside ended, once that is durable."""


@attrs.define(eq=False)
class Call:
    """A method is to be called. `sender` is (uid, number, promise) when another vat sent it."""

    to: int
    method: str
    args: Sequence[Value] = ()
    keywords: Mapping[str, Value] = attrs.field(factory=FrozenDict)
    asker: Asker = NOBODY
    digest: bytes | None = None
    """Of what the client sent, where the message has a request id."""
    plain: bytes | None = None
    """Of what is called, where that is more than the client sent: by this one older records know the request."""
    sender: tuple[bytes, int, int] | None = None
    reply: Reply | None = None
    waits: int | None = None
    """The promise that its caller waits for, once it has been taken and does."""


@attrs.define(eq=False)
class Settled:
    """Another vat answers: promise `promise` of this one has an outcome."""

    uid: bytes
    number: int | None
    """None when the runtime answers for a vat that is not there."""
    promise: int
    outcome: Outcome


@attrs.define(eq=False)
class Ended:
    """An effect has its outcome. `by`: who settled it by hand, and their request, which this answers; None where its
    device did."""

    effect: int
    outcome: Outcome
    by: Asker | None = None


@attrs.define(eq=False)
class Observed:
    """A subscription has an event; `cursor` is where it reads on."""

    subscription: int
    event: Value
    cursor: str


@attrs.define(eq=False)
class Detach:
    """The first message of a fork: what waited for the outside breaks."""


Message: TypeAlias = Call | Settled | Ended | Observed | Detach


def transport(stored: Value, memory: Memory, uid: bytes, ref: type) -> Value:
    """A stored value of vat `uid` in transport form, for another vat or a device."""
    kind = type(stored)
    if kind is CellRef:
        content = memory.cell(stored) if stored.content is None else stored.content
        return Text(content) if isinstance(content, str) else content
    if isinstance(stored, dict):
        return FrozenDict({key: transport(item, memory, uid, ref) for key, item in stored.items()})
    if isinstance(stored, list):
        return FrozenList([transport(item, memory, uid, ref) for item in stored])
    if kind is CelledBlob:
        content = transport(stored.content, memory, uid, ref)
        return Blob(stored.media_type, content) if isinstance(content, bytes) else content
    if kind is ref and stored.session is None:
        return ref(uid, stored.actor)
    assert kind not in CELLED
    return stored
