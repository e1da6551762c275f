"""A session of another type, named in a chat completion: what the client says is an input of it, and nothing else is.

Such a session was made elsewhere (on the page, by the API, in a program) and has its model, instructions and tools; a
request that brings others would have to change it, and is refused by the name of what it brings.

The one rule: it takes its turn as from anybody else (`turn`), and answers with what that gives.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import trio
from starlette.responses import JSONResponse, Response

from keeve.server.openai.asking import CHAT_PASSED, flag
from keeve.server.openai.chunks import Chunks
from keeve.server.openai.events import Events
from keeve.server.openai.items import Json, refused
from keeve.server.openai.objects import completion_of
from keeve.server.openai.talking import Talk, Talking, header
from keeve.server.serving import Serving
from keeve.server.streams import Put
from vat.host.watching import Piece

OWN: Final = (*CHAT_PASSED, "tools", "tool_choice", "parallel_tool_calls")
"""What such a session has itself."""


async def answered(
    serving: Serving, talking: Talking, talk: Talk, body: Json, system: str, messages: list[Json]
) -> Response:
    """The completion. Raises a `Refusal`, and what the turn breaks with."""
    for name in OWN:
        if body.get(name) not in (None, []):
            raise refused(f"the session {talk.row.id!r} has its own {name}", name, "leave it out")
    if system or any(message["role"] != "user" for message in messages):
        raise refused(
            f"the session {talk.row.id!r} takes messages of the role user alone", "messages", "leave out the others"
        )
    said = input_of(messages)
    headers = {"x-keeve-session": header(talk.row.id)}
    if flag(body, "stream"):

        async def produce(put: Put) -> None:
            await _streamed(talking, talk, said, Chunks(put, talk.uid, await _number(talk) + 1, False))

        return Events(serving, produce, headers)
    output = await talk.ref.turn(said, request=talking.key)
    return JSONResponse(completion_of(_turn(await _number(talk), output), talk.uid), headers=headers)


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


async def _number(talk: Talk) -> int:
    return int((await talk.ref.status())["over"])


def _turn(n: int, output: Any) -> Json:
    message = {"role": "assistant", "content": output}
    return {
        "turn": n,
        "status": "completed",
        "asked": {"about": {"model": "model"}},
        "span": {},
        "output": [{"number": 0, "message": message, "own": 0}],
    }


async def _streamed(talking: Talking, talk: Talk, said: Any, chunks: Chunks) -> None:
    """The same in chunks: pieces of all answers of the turn as they come."""
    into, out = trio.open_memory_channel[Piece](10_000)

    def hear(piece: Piece) -> None:
        if piece.session == talk.row.id and piece.text:
            with suppress(trio.WouldBlock, trio.BrokenResourceError):  # it is a preview: the answer comes whole
                into.send_nowait(piece)

    outputs: list[Any] = []

    async def take_turn() -> None:
        try:
            outputs.append(await talk.ref.turn(said, request=talking.key))
        finally:
            await into.aclose()

    end = talk.host.on_progress(hear)
    try:
        await chunks.began({"asked": {"about": {"model": "model"}}})
        async with trio.open_nursery() as nursery, out:
            nursery.start_soon(take_turn)
            last = ("", 0)
            async for piece in out:
                if (piece.effect, piece.attempt) != last:
                    chunks.next_answer() if piece.effect != last[0] else await chunks.again()
                    last = piece.effect, piece.attempt
                await chunks.text(0, piece.text)
    finally:
        end()
    turn = _turn(0, outputs[0])
    await chunks.answered(0, turn["output"][0]["message"], 0)
    await chunks.ended(turn)
