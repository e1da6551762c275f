"""A small chat completions service on 127.0.0.1, which fails on purpose.

    async with model_server(failing(500), streamed("hel", "lo")) as server:
        ChatModel(server.url, "small")
        ...
        server.requests[0].body

It gives its answers in order, the last one again and again, and keeps what it was asked. One rule: an `Answer` is bytes
and nothing more, so whatever a service could send can be sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs
import h11
import trio


@attrs.frozen
class Answer:
    """What is sent. `cut` ends the connection in the middle, `silent` never says any more; what comes after the first
    `held` pieces is sent when the server's `go_on` is set."""

    status: int = 200
    headers: dict[str, str] = attrs.field(factory=dict)
    pieces: tuple[bytes, ...] = ()
    cut: bool = False
    silent: bool = False
    held: int = -1


@attrs.frozen
class Request:
    path: str
    headers: dict[str, str]
    body: Any


def whole(message: dict[str, Any], **more: Any) -> Answer:
    """An answer in one piece."""
    body = {"model": "small-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}
    return Answer(headers={"Content-Type": "application/json"}, pieces=(json.dumps(body).encode(),))


def chunk(delta: dict[str, Any] | None, finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    """One piece of a stream; without a delta one without choices, as the usage comes."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    return {"model": "small-1", "choices": choices, **more}


def stream(*chunks: dict[str, Any] | str, done: bool = True, **how: Any) -> Answer:
    """A stream of these pieces; a str is sent as it is."""
    lines = [each if isinstance(each, str) else json.dumps(each) for each in chunks]
    pieces = [f"data: {line}\n\n".encode() for line in [*lines, *(["[DONE]"] if done else [])]]
    return Answer(headers={"Content-Type": "text/event-stream"}, pieces=tuple(pieces), **how)


def streamed(*texts: str) -> Answer:
    """A stream of these texts, and the usage at its end."""
    return stream(
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": text}) for text in texts),
        chunk({}, "stop"),
        chunk(None, usage={"prompt_tokens": 3, "completion_tokens": len(texts)}),
    )


def held(answer: Answer, after: int) -> Answer:
    """An answer that stops after so many pieces, until it may go on."""
    return attrs.evolve(answer, held=after)


def failing(status: int, message: str = "not today", **headers: str) -> Answer:
    """A refusal; headers as keywords, `retry_after="1"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"error": {"message": message, "type": "some_error"}}).encode()
    return Answer(status, {"Content-Type": "application/json", **named}, (body,))


class ModelServer:
    def __init__(self, answers: tuple[Answer, ...]) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.connections = 0
        self.url = ""
        self.together = 0
        """How many requests must have come before the first is answered."""
        self._come = trio.Condition()
        self.go_on = trio.Event()

    async def asked(self, times: int) -> None:
        """Wait until so many requests have come."""
        async with self._come:
            while len(self.requests) < times:
                await self._come.wait()

    async def serve(self, transport: trio.SocketStream) -> None:
        self.connections += 1
        connection = h11.Connection(h11.SERVER)
        try:
            while await self._answer(connection, transport):
                connection.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass  # the client has gone
        finally:
            await trio.aclose_forcefully(transport)

    async def _answer(self, connection: h11.Connection, transport: trio.SocketStream) -> bool:
        request, body = None, b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await transport.receive_some())
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return False
        assert request is not None
        headers = {name.decode(): value.decode() for name, value in request.headers}
        self.requests.append(Request(request.target.decode(), headers, json.loads(body)))
        async with self._come:
            self._come.notify_all()
            while len(self.requests) < self.together:
                await self._come.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        response = h11.Response(
            status_code=answer.status, headers=[*answer.headers.items(), ("Connection", "keep-alive")]
        )
        await transport.send_all(connection.send(response))
        for place, piece in enumerate(answer.pieces):
            if place == answer.held:
                await self.go_on.wait()
            await transport.send_all(connection.send(h11.Data(data=piece)))
        if answer.silent:
            await trio.sleep_forever()
        if answer.cut:
            return False
        await transport.send_all(connection.send(h11.EndOfMessage()))
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE


@asynccontextmanager
async def model_server(*answers: Answer) -> AsyncIterator[ModelServer]:
    """A server that gives these answers, for as long as the block runs."""
    server = ModelServer(answers)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
        server.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/v1"
        yield server
        nursery.cancel_scope.cancel()
