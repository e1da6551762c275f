"""A session with a tool: the model asks for it, the host runs it, and the log says what happened.

    python examples/tools.py ./data

The model here plays a script, so that this runs anywhere; put `ChatModel(...)` in its place for a real one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import trio

from keeve import Effect, Session, effect, open_host

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Script:
    """A model that calls a tool once and then tells what it heard."""

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> dict[str, Any]:
        """Answers the last message."""
        last = messages[-1]
        if last["role"] == "user":
            function = {"name": "weather", "arguments": json.dumps({"city": "Oslo"})}
            call = {"id": "call_1", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        else:
            message = {"role": "assistant", "content": f"It is {last['content']} there."}
        return {"message": message, "usage": {"total_tokens": 12}, "model": "script"}


class Tools:
    """The tools of this host. A crash while one runs leaves its outcome unknown, and it is not run again by itself."""

    @effect(timeout=10)
    async def run(self, effect: Effect, call: Mapping[str, Any]) -> str:
        """Carries out one tool call."""
        city = json.loads(call["function"]["arguments"])["city"]
        return f"raining in {city}"


async def main(folder: str) -> None:
    async with open_host(folder, devices={"model": Script(), "tools": Tools()}) as host:
        s = await host.spawn(Session)
        await s.configure(tools=[WEATHER])
        print(await s.turn("What is the weather like?"))
        async for event in host.observe("(_ . _)", after="start", until="head"):
            print(f"{event.position:4} {event.value}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else "./data")
