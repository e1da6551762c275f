"""Saying something: a turn and its answer, at once or as it comes; an input that only waits; one that joins a turn.

Each has a request id, the client's Idempotency-Key or one of ours, by which what the session states of it is found. A
client that is gone changes nothing: its turn goes on, and with the same key it gets the same answer.

The one rule: what is streamed besides facts is not the answer. The facts are, and each carries the cursor behind it.
"""

from __future__ import annotations

import secrets
from typing import Any

import attrs
from starlette.responses import Response

from dataspace.catalog.recent import SessionRow
from dataspace.observe.events import Event
from dataspace.values import freeze
from keeve.looking import Input, StatesNoTurns, end_turn, outcome, taken_face
from keeve.server.api.following import Following
from keeve.server.api.places import cursor_of, head_of
from keeve.server.api.sessions import asked_for, values
from keeve.server.api.table import Asked, Document
from keeve.server.streams import EventStream
from keeve.server.tracing import Tracing
from keeve.wire.verbs import READ, verb_of
from vat.crank.vat import request_digest, request_key
from vat.heap.messages import Asker
from vat.host.host import Host
from vat.host.outside import HostRef


@attrs.frozen(kw_only=True)
class Saying(Input):
    """An input that a request brings."""

    host: Host
    ref: HostRef[Any]
    row: SessionRow
    input: Any
    tracing: Tracing

    @classmethod
    async def of(cls, asked: Asked, method: str = "turn") -> Saying:
        """What a request says by that method. Raises a `Refusal`, `NoSuchSession`."""
        host, ref, row = await asked_for(asked, method)
        return cls(
            observe=host.observe,
            session=row.uid,
            id=row.id,
            request=asked.key or f"http-{secrets.token_hex(12)}",
            by=asked.serving.principal(asked.request).name,
            head=head_of(host).position,
            again=asked.key is not None,
            host=host,
            ref=ref,
            row=row,
            input=values(asked.body.input, "input"),
            tracing=asked.serving.tracing,
        )

    async def repeated(self) -> Event | None:
        """Its `turn`, where the request was made at an earlier time. For a new one it costs what a restore reads."""
        key = request_key(Asker(self.by, "http", self.request))
        known = self.host.look(self.row.id, lambda now: now.heap.find("requests", key))
        if known is None or known[0] != request_digest("turn", [freeze(self.input)], {}):
            return None  # with other content it is refused, and hears nothing of the first one
        return await self.stated("turn")

    async def answer(self) -> dict[str, Any]:
        """Have it take its turn; what that came to, in JSON. Raises what the turn does."""
        with self.tracing.turn(self.row.id, self.row.type):
            output = await outcome(self.ref.turn(self.input, request=self.request))
        return await self.told(output)


async def take_turn(asked: Asked) -> Document:
    """The answer when it is there, or with text/event-stream as it comes."""
    return await (await Saying.of(asked)).answer()


async def stream_turn(asked: Asked) -> Response:
    """As it comes."""
    saying = await Saying.of(asked)
    accepted = await saying.repeated() if asked.key else None
    beginning = saying.head if accepted is None else accepted.position - 1
    following = Following(saying, cursor_of(asked, beginning), saying.answer, accepted)
    return EventStream(asked.serving, following.run)


async def queue_turn(asked: Asked) -> Document:
    """The input is accepted, durably; its turn comes when those before it are over."""
    return await _accepted(asked, "turn")


async def steer_turn(asked: Asked) -> Document:
    """The input joins the turn that runs at its next step; if none runs, it is a turn of its own."""
    return await _accepted(asked, "steer")


async def _accepted(asked: Asked, method: str) -> Document:
    saying = await Saying.of(asked, method)
    if verb_of(saying.host, saying.ref, "status") != READ:
        raise StatesNoTurns(saying.id)
    return taken_face(saying.row.id, await saying.accepted(saying.ref, method, saying.input))


async def interrupt_turn(asked: Asked) -> Document:
    """It ends, and no other."""
    _, ref, row = await asked_for(asked, "interrupt")
    return await end_turn(ref, row.id, asked.body.turn, asked.key)
