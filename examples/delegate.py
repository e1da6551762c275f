"""One actor uses sessions of its own by messages alone: it spawns one, talks to it, forks it, and observes both.

python examples/delegate.py              # in ./data-examples/delegate, or in a folder that you name
"""

from __future__ import annotations

import sys
from typing import Any

import trio

from keeve import Actor, List, Promise, Ref, actor, open_host


@actor("example.editor", version=1)
class Editor(Actor):
    """Asks a session for a draft, has a fork of it try another way, and keeps what both said."""

    drafts: List[str]
    seen: List[int]

    def begin(self, topic: str) -> Promise:
        """A promise of the two drafts."""
        self.observe("(turn-done . _)", self.noticed)
        return self.directory.spawn("keeve.session").then(self.spawned, topic)

    def spawned(self, session: Ref, topic: str) -> Promise:
        """The session is there: let it write."""
        return session.turn(f"write about {topic}").then(self.written, session)

    def written(self, text: str, session: Ref) -> Promise:
        """The first draft: let a fork write another one."""
        self.drafts.append(text)
        return session.fork().then(self.forked)

    def forked(self, twin: Ref) -> Promise:
        """The fork knows what the first one said, and goes its own way."""
        return twin.turn("now more briefly").then(self.done)

    def done(self, text: str) -> list[str]:
        """Both drafts are there."""
        self.drafts.append(text)
        return list(self.drafts)

    def noticed(self, event: dict[str, Any]) -> None:
        """Hears of every turn that ends in this store from now on, each once."""
        self.seen.append(event["position"])
        self.assert_fact("example.noticed", event["session"], len(self.seen))


async def main(folder: str) -> None:
    async with open_host(folder, actors=[Editor]) as host:
        editor = await host.spawn(Editor)
        print(await editor.begin("the sea"))
        mine = (await editor.describe())["id"]
        async for event in host.observe("(example.noticed ?session ?count)", session=mine):
            print("the editor noticed", event.captures["session"])
            if event.captures["count"] == 2:
                break
        for session in host.sessions():
            print(session.id, session.type, session.seq)


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else "./data-examples/delegate")
