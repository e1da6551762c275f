"""OpenAI's Agents SDK with its conversation session and a tool, as anybody would use it; tells what came as JSON."""

import asyncio
import json

from agents import Agent, OpenAIConversationsSession, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


async def main() -> None:
    agent = Agent(name="guide", instructions="Be brief.", model="model", tools=[weather])
    session = OpenAIConversationsSession()
    first = await Runner.run(agent, "weather in Ulm?", session=session)
    second = Runner.run_streamed(agent, "thank you", session=session)
    async for _ in second.stream_events():
        pass
    items = await session.get_items()
    await session.pop_item()
    left = await session.get_items()
    await session.clear_session()
    kinds = [item.get("type", "message") for item in items]
    print(json.dumps([first.final_output, second.final_output, kinds, len(left)]))


asyncio.run(main())
