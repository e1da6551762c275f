"""A session of another type, named in a chat completion: what the client says is an input of it, and nothing else is.

Such a session was made elsewhere (on the page, by the API, in a program) and has its model, instructions and tools; a
request that brings others would have to change it, and is refused by the name of what it brings.

The one rule: it takes its turn as from anybody else (`turn`), and answers with what that gives. The completion is named
by the turn, so whoever asks again with the same key gets the same one.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable
from math import inf
from typing import Any, Final

import attrs
import trio
from starlette.responses import JSONResponse, Response

from dataspace.observe.events import Event
from dataspace.patterns import ANY, Pattern, pattern
from keeve import errors as known
from keeve.faces import ENDS
from keeve.looking import Input, outcome
from keeve.server.errors import refusal_of
from keeve.server.openai.asking import CHAT_PASSED, flag
from keeve.server.openai.chunks import Chunks
from keeve.server.openai.events import Events
from keeve.server.openai.items import Json, refused
from keeve.server.openai.objects import completion_of
from keeve.server.openai.talking import Talk, Talking, header
from keeve.server.pieces import TurnPieces, turns_over
from keeve.server.serving import Serving
from keeve.server.streams import Put

OWN: Final = (*CHAT_PASSED, "tools", "tool_choice", "parallel_tool_calls")
"""What such a session has itself."""

FAILED: Final = (known.ModelError, known.EffectError, known.BadAnswer, known.Failed, known.TurnInterrupted)
"""What a turn breaks with: asking again with the same key gives the same, and without it is another turn."""


async def answered(
    serving: Serving, talking: Talking, talk: Talk, body: Json, system: str, messages: list[Json]
) -> Response:
    """The completion. Raises a `Refusal`, and what the turn breaks with."""
    for name in OWN:
        if body.get(name) not in (None, []):
            raise refused(f"the session {talk.row.id!r} has its own {name}", name, "leave it out")
    if system or any(message["role"] != "user" for message in messages):
        what = f"the session {talk.row.id!r} takes messages of the role user alone"
        raise refused(what, "messages", "leave out the others")
    asking = CompletionInput.of(talking, talk, input_of(messages))
    headers = {"x-keeve-session": header(talk.row.id)}
    if flag(body, "stream"):
        options = body.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True

        async def produce(put: Put) -> None:
            await _streamed(asking, put, usage)

        return Events(serving, produce, headers)
    output = await asking.output()
    return JSONResponse(completion_of(await asking.turn(output), talk.uid), headers=headers)


def input_of(messages: list[Json]) -> Any:
    """What users have said, as the input of one turn.

    >>> input_of([{"role": "user", "content": "a"}])
    'a'
    >>> input_of([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]
    """
    if len(messages) == 1:
        return messages[0]["content"]
    parts: list[Json] = []
    for message in messages:
        content = message["content"]
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return parts


@attrs.frozen(kw_only=True)
class CompletionInput(Input):
    """An input that a request brings to a session."""

    talk: Talk
    said: Any

    @classmethod
    def of(cls, talking: Talking, talk: Talk, said: Any) -> CompletionInput:
        """The input that a request brings."""
        return cls(
            observe=talk.host.observe,
            session=talk.uid,
            id=talk.row.id,
            request=talking.key or f"openai-{secrets.token_hex(12)}",
            by=talking.by,
            head=talk.host.observe("(_ . _)", after="head").cursor.position,
            again=talking.key is not None,
            talk=talk,
            said=said,
        )

    async def output(self) -> Any:
        """What its turn comes to."""
        return await _not_again(outcome(self.talk.ref.turn(self.said, request=self.request)))

    async def turn(self, output: Any) -> Json:
        """The turn that is over, as `completion_of` takes it."""
        began, said = await self.ended()
        return {
            "turn": 0 if began is None else began.captures["n"],
            "status": "completed",
            "asked": {"about": {"model": "model"}, "at": 0 if began is None else began.time / 1_000_000},
            "span": {"usage": said.get("usage"), "limit": said.get("limit")},
            "output": [{"number": 0, "message": {"role": "assistant", "content": output}, "own": 0}],
        }

    def events(self, wanted: Pattern) -> Any:
        """What the session has stated since this was asked."""
        return self.observe(wanted, after=self.head, until="head", session=self.session)


async def _not_again(turn: Awaitable[Any]) -> Any:
    try:
        return await turn
    except FAILED as error:
        refusal = refusal_of(error)
        assert refusal is not None
        raise attrs.evolve(refusal, headers={"x-should-retry": "false"}) from error


class CompletionPreviews:
    """The pieces of answers that are of one turn. `over`: how many turns were over before it was asked for.

    What is not heard from its first piece on is not told: it comes with the whole answer.
    """

    def __init__(self, asking: CompletionInput, over: int) -> None:
        self._asking = asking
        self._pieces = TurnPieces(over)
        self.hear = self._pieces.hear
        self._over = False
        self._waiting = trio.CancelScope()
        self.told = -1
        """The position of the log at the last piece that was told."""

    def end(self) -> None:
        """The turn is over."""
        self._over = True
        self._pieces.came.set()
        self._waiting.cancel()

    async def begun(self) -> Event | None:
        """The fact that it was accepted, once it runs; None if it ends before that is known, as a repetition does."""
        asking, pieces, wanted = self._asking, self._pieces, self._asking.states("turn")
        accepted: Event | None = None
        with self._waiting:
            async for event in asking.talk.host.observe("(_ . _)", after=asking.head, session=asking.talk.uid):
                if event.value.label in ENDS:
                    pieces.ended(event.value.fields[0], event.position)
                elif accepted is None and wanted.match(event.value) is not None:
                    accepted = event
                    pieces.accepted(event.value.fields[0], event.position)
                if pieces.began < inf:
                    return accepted
        return None

    async def tell(self, chunks: Chunks) -> None:
        """Tell them as they come, until the turn is over."""
        last, lost = ("", 0), ""
        while True:
            for piece in self._pieces.before():
                lost = piece.effect if piece.missed else lost
                if not piece.text or piece.effect == lost:
                    continue
                if (piece.effect, piece.attempt) != last:
                    chunks.next_answer() if piece.effect != last[0] else await chunks.again()
                    last = piece.effect, piece.attempt
                self.told = piece.after
                await chunks.text(0, piece.text)
            if self._over:
                return
            await self._pieces.came.wait()
            self._pieces.came = trio.Event()


async def _streamed(asking: CompletionInput, put: Put, usage: bool) -> None:
    """The same in chunks: pieces of all answers of the turn as they come."""
    talk, outputs = asking.talk, []

    async def take_turn() -> None:
        outputs.append(await asking.output())
        previews.end()

    async def began(n: int, at: float) -> Chunks:
        chunks = Chunks(put, talk.uid, n, usage)
        await chunks.began({"asked": {"about": {"model": "model"}, "at": at}})
        return chunks

    chunks: Chunks | None = None
    previews = CompletionPreviews(asking, await turns_over(talk.host, talk.ref))
    unheard = talk.host.on_progress(previews.hear, talk.ref)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_turn)
            if (accepted := await previews.begun()) is not None:
                chunks = await began(accepted.value.fields[0], accepted.time / 1_000_000)
                await previews.tell(chunks)
    finally:
        unheard()
    turn = await asking.turn(outputs[0])
    if chunks is None:
        chunks = await began(turn["turn"], turn["asked"]["at"])
    answers = [each.position async for each in asking.events(pattern("model-output", turn["turn"], ANY, ...))]
    if sum(position <= previews.told for position in answers) != len(answers) - 1:
        chunks.next_answer()  # what was told last was of an answer before the last one
    await chunks.answered(0, turn["output"][0]["message"], 0)
    await chunks.ended(turn)
