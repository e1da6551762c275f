"""Saying something: a turn and its answer, at once or as it comes; an input that only waits; one that joins a turn.

Each has a request id, the client's Idempotency-Key or one of ours, by which what the session states of it is found. A
client that is gone changes nothing: its turn goes on, and with the same key it gets the same answer.

The one rule: what is streamed besides facts is not the answer. The facts are, and each carries the cursor behind it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable
from typing import Any, Final

import attrs
import trio
from starlette.responses import Response

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.observe.events import Event
from dataspace.patterns import ANY, Pattern, capture, pattern
from dataspace.values import freeze
from keeve.faces import face
from keeve.looking import StatesNoTurns, must_state_turns
from keeve.server.api.following import Following
from keeve.server.api.places import cursor_of, head_of
from keeve.server.api.sessions import reached, values
from keeve.server.api.table import Asked, Document
from keeve.server.errors import Refusal
from keeve.server.streams import EventStream
from keeve.server.tracing import Tracing
from vat.crank.vat import RequestConflict, request_digest, request_key
from vat.errors import Failed
from vat.heap.messages import Asker
from vat.host.host import Host
from vat.host.outside import HostRef

EARLIER: Final = 0.5
"""Seconds after which it is looked whether an input was accepted at an earlier time."""


@attrs.frozen
class Saying:
    """An input on its way: to which session, by whom, under which request id; `head` is the log's when it came."""

    host: Host
    ref: HostRef[Any]
    row: SessionRow
    input: Any
    request: str
    by: str
    head: int
    tracing: Tracing

    @classmethod
    async def of(cls, asked: Asked) -> Saying:
        """What a request says. Raises a `Refusal`, `NoSuchSession`."""
        host, ref, row = await reached(asked, "turn")
        key = asked.key
        by = asked.serving.principal(asked.request).name
        said = values(asked.body.input, "input")
        return cls(
            host,
            ref,
            row,
            said,
            key or f"http-{secrets.token_hex(12)}",
            by,
            head_of(host).position,
            asked.serving.tracing,
        )

    def facts(self, label: str) -> Pattern:
        """What the session states of this input: its number is captured as `n`."""
        return pattern(label, capture("n"), ANY, ..., request=self.request, by=self.by)

    async def first(self, wanted: Pattern, after: int) -> Event | None:
        """The first event of the session that matches. Others have their turns while a long past is read."""
        async for event in self.host.observe(wanted, after=after, until="head", session=self.row.uid):
            return event
        return None

    async def stated(self, *labels: str) -> Event | None:
        """What it has stated of this input; for a request of an earlier time all that it ever stated is looked at."""
        for after in (self.head, 0):
            for label in labels:
                if (found := await self.first(self.facts(label), after)) is not None:
                    return found
        return None

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
        return await self.done(output)

    async def done(self, output: Any) -> dict[str, Any]:
        """What a turn came to, in JSON."""
        accepted = await self.stated("turn")
        said: Any = {}
        if accepted is not None:
            ended = pattern("turn-done", accepted.captures["n"], ANY, ...)
            done = await self.first(ended, accepted.position - 1)
            said = {} if done is None else done.value.keywords
        return {
            "session": self.row.id,
            "turn": None if accepted is None else accepted.captures["n"],
            "output": face(output),
            "usage": face(said.get("usage")),
            "limit": said.get("limit"),
        }


async def outcome(awaited: Awaitable[Any]) -> Any:
    """What comes of a call; an error of the session's own, of whatever class, as `Failed`."""
    try:
        return await awaited
    except (KeeveError, Refusal):
        raise
    except Exception as error:
        raise Failed(type(error).__name__, str(error)) from error


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
    saying = await Saying.of(asked)
    await must_state_turns(saying.ref, saying.row.id)
    labels = ("turn",) if method == "turn" else ("steer", "turn")
    async with trio.open_nursery() as nursery:

        async def say() -> None:
            # Whoever stops waiting changes nothing: this is cancelled as soon as the input is accepted.
            try:
                await outcome(getattr(saying.ref, method)(saying.input, request=saying.request))
            except (KeeveError, Refusal) as error:
                # It was refused; or else it was accepted, and its turn has failed later.
                if isinstance(error, RequestConflict) or await saying.stated(*labels) is None:
                    raise
            nursery.cancel_scope.cancel()

        async def hear(label: str) -> None:
            try:
                await anext(saying.host.observe(saying.facts(label), after=saying.head, session=saying.row.uid))
            except KeeveError:
                return  # nothing more can come: what became of the input says why
            nursery.cancel_scope.cancel()

        async def recall() -> None:
            # A request that was made before, and has other content, is refused by then.
            await trio.sleep(EARLIER)
            if await saying.stated(*labels) is not None:
                nursery.cancel_scope.cancel()

        nursery.start_soon(say)
        nursery.start_soon(recall)
        for label in labels:
            nursery.start_soon(hear, label)
    accepted = await saying.stated(*labels)
    if accepted is None:  # of a type that tells a status as conversations have it, and states nothing
        raise StatesNoTurns(saying.row.id)
    return {
        "session": saying.row.id,
        "turn": accepted.captures["n"],
        "joins": accepted.value.label == "steer",
        "seq": accepted.seq,
        "cursor": str(accepted.cursor),
    }


async def interrupt_turn(asked: Asked) -> Document:
    """It ends, and no other."""
    _, ref, row = await reached(asked, "turn")
    return {"session": row.id, "turn": await ref.interrupt(turn=asked.body.turn)}
