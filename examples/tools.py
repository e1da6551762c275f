"""A session with a tool: the model asks for it, the host runs it, and the log says what happened.

    python examples/tools.py              # in ./data-examples/tools, or in a folder that you name

The model here plays a script, so that this runs anywhere; put `ChatModel(...)` in its place for a real one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import trio

from keeve import Effect, Session, Tools, effect, open_host, tool


@tool(timeout=10)
async def weather(city: str) -> str:
    """The weather in a city now.

    A crash while it runs leaves its outcome unknown, and it is not run again by itself.
    """
    return f"raining in {city}"


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


async def main(folder: str) -> None:
    tools = Tools(weather)
    async with open_host(folder, devices={"model": Script(), "tools": tools}) as host:
        s = await host.spawn(Session, tools=tools)
        print(await s.turn("What is the weather like?"))
        async for event in host.observe("(_ . _)", after="start", until="head"):
            print(f"{event.position:4} {event.value}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else "./data-examples/tools")
