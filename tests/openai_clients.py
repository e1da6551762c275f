"""The real `openai` package as a client of a server in this process, and models that stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx2
import openai
import trio
import trio.testing
from openai._base_client import get_platform

from tests.server_worlds import TOKENS, World
from vat.devices.devices import Effect, effect


def client_of(world: World, name: str = "owner", **options: Any) -> openai.AsyncOpenAI:
    """A client with the token of that principal."""
    transport = httpx2.ASGITransport(app=world.app, raise_app_exceptions=True)
    http = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420/v1")
    client = openai.AsyncOpenAI(
        api_key=TOKENS[name], base_url="http://127.0.0.1:8420/v1", http_client=http, max_retries=0, **options
    )
    client._platform = get_platform()  # or it is asked for in a thread, which a test cannot wait for
    return client


def schema(name: str) -> dict[str, Any]:
    """A function tool of a client, as the Responses API has it."""
    return {"type": "function", "name": name, "description": "", "parameters": {"type": "object"}, "strict": False}


class Streams:
    """A model that answers in pieces: each answer is a list of deltas (at an event it waits for that)."""

    def __init__(self, *answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.asked: list[list[Any]] = []

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        self.asked.append(list(messages))
        await trio.testing.wait_all_tasks_blocked()  # whoever listens does so by now
        text, called = "", {}
        for piece in self.answers.pop(0):
            if isinstance(piece, trio.Event):
                await piece.wait()
                continue
            delta = {"content": piece} if isinstance(piece, str) else piece
            effect.progress({"attempt": effect.attempt, "delta": delta})
            await trio.lowlevel.checkpoint()
            text += delta.get("content") or ""
            for part in delta.get("tool_calls", ()):
                call = called.setdefault(
                    part["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] = part.get("id") or call["id"]
                call["function"]["name"] = part["function"].get("name") or call["function"]["name"]
                call["function"]["arguments"] += part["function"].get("arguments") or ""
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if called:
            message["tool_calls"] = list(called.values())
        return {"message": message, "usage": None, "model": "streams", "finish_reason": "stop"}
