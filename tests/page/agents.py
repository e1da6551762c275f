"""The actor types of the server that a browser looks at: an agent as the README has it, and one that keeps nothing."""

from __future__ import annotations

from keeve import Actor, List, Model, Text, Toolbox, actor, tool, user


@actor("page.agent", version=1)
class Agent(Actor):
    """It keeps its messages, and states nothing."""

    model: Model
    tools: Toolbox
    messages: List[dict]

    async def turn(self, text: Text) -> Text:
        self.messages.append(user(text))
        while True:
            reply = await self.model.complete(self.messages.view(), tools=self.tools.view())
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                return reply["content"] or ""
            for call, outcome in await self.tools.run_all(reply["tool_calls"]):
                self.messages.append(tool(call, outcome))


@actor("page.terse", version=1)
class Terse(Actor):
    """It keeps how often it was asked, and states that."""

    asked: int = 0

    def turn(self, text: Text) -> Text:
        self.asked += 1
        self.assert_fact("page.asked", self.asked, Text(text))
        return f"{self.asked}: {text}"


@actor("page.brief", version=1)
class Brief(Actor):
    """It keeps what it was told, and of three the newest alone."""

    messages: List[dict]

    def turn(self, text: Text) -> Text:
        if len(self.messages) == 2:
            self.messages.clear()
        self.messages.append(user(text))
        return f"{text}!"
