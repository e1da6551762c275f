"""Telling a turn as the chunks of a chat completion.

The one rule: what was sent is not taken back. Of another attempt that says something else nothing more is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keeve.server.openai.ids import completion_id
from keeve.server.openai.items import Json, text_in
from keeve.server.openai.objects import chat_usage, failure_of, finish_of
from keeve.server.streams import Put, Sent


class Chunks:
    """Tells a turn as the chunks of a chat completion. A `Teller` of `keeve.server.openai.following`."""

    def __init__(self, put: Put, uid: bytes, n: int, usage: bool) -> None:
        self._put = put
        self._usage = usage
        self._head: Json = {"id": completion_id(uid, n), "object": "chat.completion.chunk", "created": 0, "model": ""}
        self._text = ""
        """What was sent of the answer that is being given."""
        self._said = ""

    async def began(self, turn: Mapping[str, Any]) -> None:
        asked = turn["asked"]
        self._head["created"] = int(asked.get("at", 0))
        self._head["model"] = asked.get("about", {}).get("model", "model")
        await self._chunk({"role": "assistant", "content": ""})

    async def _chunk(self, delta: Json, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        await self._put(Sent({**self._head, "choices": [choice], **({"usage": None} if self._usage else {})}))

    async def text(self, number: int, piece: str) -> None:
        self._said += piece
        if self._said.startswith(self._text):
            new, self._text = self._said[len(self._text) :], self._said
            if new:
                await self._chunk({"content": new})

    async def call(self, number: int, at: int, id: str, name: str, piece: str) -> None:
        """Calls are told when the answer is whole: before that nobody knows whose they are."""

    async def again(self) -> None:
        self._said = ""

    async def answered(self, number: int, message: Mapping[str, Any], own: int) -> None:
        text = text_in(message.get("content"))
        if text.startswith(self._text) and len(text) > len(self._text):
            await self._chunk({"content": text[len(self._text) :]})
        self.next_answer()
        for at, call in enumerate((message.get("tool_calls") or ())[own:]):
            function = {"name": call["function"]["name"], "arguments": text_in(call["function"].get("arguments"))}
            said = {"index": at, "id": call["id"], "type": "function", "function": function}
            await self._chunk({"tool_calls": [said]})

    def next_answer(self) -> None:
        """Another answer begins."""
        self._text = self._said = ""

    async def came(self, message: Mapping[str, Any]) -> None:
        """What tools of the host give is told to the model alone."""

    async def ended(self, turn: Mapping[str, Any]) -> None:
        if turn["status"] != "completed":
            await self._put(Sent(failure_of(turn).whole().document()))
            return
        await self._chunk({}, finish_of(turn))
        if self._usage:
            await self._put(Sent({**self._head, "choices": [], "usage": chat_usage(turn["span"].get("usage"))}))
        await self._put(Sent("[DONE]"))
