"""Small models and tools for the tests of sessions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vat.devices.devices import Effect, effect


def says(text: str | None, *calls: Mapping[str, Any], usage: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A model's answer."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    return {"message": message, "usage": usage, "model": "said", "finish_reason": "tool_calls" if calls else "stop"}


def schema(name: str) -> dict[str, Any]:
    """The schema of a tool, as a session is given it."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def calls(id: str, name: str = "look", **arguments: Any) -> dict[str, Any]:
    """A tool call."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


class Says:
    """Gives one answer after another (raises those that are exceptions), and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[Any], dict[str, Any]]] = []

    @effect(on_crash="retry")
    async def complete(
        self, effect: Effect, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **options: Any
    ) -> Any:
        self.asked.append((list(messages), options if tools is None else {**options, "tools": list(tools)}))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Does:
    """A tool device that looks up what it answers by the call's id (raises it if it is an exception)."""

    def __init__(self, **outputs: Any) -> None:
        self.outputs = outputs
        self.calls: list[str] = []

    @effect
    async def run(self, effect: Effect, call: Mapping[str, Any]) -> Any:
        self.calls.append(call["id"])
        output = self.outputs[call["id"]]
        if isinstance(output, Exception):
            raise output
        return output


def tool(id: str, content: Any) -> dict[str, Any]:
    """The message that tells a model of a tool's output."""
    return {"role": "tool", "content": content, "tool_call_id": id}


def user(content: Any) -> dict[str, Any]:
    """The message of an input."""
    return {"role": "user", "content": content}
