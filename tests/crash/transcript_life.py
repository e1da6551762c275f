"""A process that plays a transcript, through a `Session` or an async method, and may be told to die on the way.

Run as a program it is a nursery of such processes (`tests.crash.nursery`).

What is outside the store (`Outside`) is synced line by line: which tools ran, what was found unknown, at which point
the process died.

The one rule: a life does what an application would do: open the host, settle what is unknown, ask with the same
request ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import trio

from actors.messages import UNKNOWN, user
from actors.models.scripted import ScriptedModel
from actors.session import Session
from actors.talking import Message, Model
from actors.toolbox import Toolbox
from actors.tools import tool
from dataspace.values import Text
from keeve.api import open_host
from keeve.testing.crashes import CRASH_AT, crash_files_from
from tests.actors.scenes import schema
from tests.crash.conversations import beside_each_other, ended, outputs_in, read_transcript
from tests.crash.kill_points import Killer, PointFiles, append_line, tell_of_fibers, tell_of_the_rest
from tests.crash.nursery import serve
from vat.devices.devices import Effect, effect
from vat.host.settings import Settings
from vat.objects.actor import Actor, actor
from vat.objects.collections import List

SETTINGS = Settings(first_snapshot=12, snapshot_records=30)
SEGMENT_BYTES = 60_000
BASH = schema("bash")


@attrs.frozen
class Life:
    """One process: where it works, what it plays, and how it is to die.

    through: a `Session`, or the loop of `Agent`. beside: the seed by which calls are made beside each other; 0 for
    one after another. unknown: whether calls of unknown outcome are settled with what is recorded, or left.
    point, nth: the named point, and the time of reaching it. at: the file operation.
    """

    folder: str
    transcript: str
    outside: str
    messages: int
    through: Literal["session", "loop"] = "session"
    beside: int = 0
    unknown: Literal["settled", "left"] = "settled"
    point: str = ""
    nth: int = 1
    at: str = ""

    @property
    def said(self) -> list[dict[str, Any]]:
        """The transcript as this life plays it."""
        said = read_transcript(self.transcript, self.messages)
        if self.beside:
            said = beside_each_other(said, self.beside)
        return ended(said) if self.through == "loop" else said


class Outside:
    """The files beside the store."""

    def __init__(self, folder: Path) -> None:
        self.ran = folder / "ran"
        """The id of each tool call that was carried out, and its effect's."""
        self.unknown = folder / "unknown"
        """The effect of each tool call that was found unknown."""
        self.died = folder / "died"
        """The point of each death."""
        self.ended = folder / "ended"
        """Written when the turn is over."""

    @staticmethod
    def lines(path: Path) -> list[str]:
        """What a file says so far."""
        return path.read_text().splitlines() if path.exists() else []


@actor("transcripts.agent", version=1)
class Agent(Actor):
    """The loop that people write."""

    model: Model
    tools: Toolbox
    messages: List[Message]

    async def turn(self, text: Text) -> Text:
        self.messages.append(user(text))
        while True:
            reply = await self.model.complete(self.messages.view(), tools=self.tools.view())
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                return reply["content"]
            for call, outcome in await self.tools.run_all(reply["tool_calls"]):
                self.messages.append(tool(call, outcome))


class Teller(ScriptedModel):
    """The scripted model, with points around its answer. A call of unknown outcome may have any answer."""

    def __init__(self, transcript: Sequence[Mapping[str, Any]], killer: Killer) -> None:
        super().__init__(transcript)
        self._outputs = outputs_in(transcript)  # type: ignore[arg-type]  # they are dicts
        self._killer = killer

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, *, tools: Any = None, **options: Any) -> dict[str, Any]:
        self._killer.reached("model: asked")
        heard = [
            {**said, "content": self._outputs[said["tool_call_id"]]} if said["content"] == UNKNOWN else said
            for said in messages
        ]
        answer = await super().complete(effect, heard, tools=tools, **options)
        self._killer.reached("model: answered, not recorded")
        return answer


class Shell:
    """The tool of the transcripts: answers each call with its recorded output, and notes outside that it ran."""

    def __init__(self, outputs: Mapping[str, str], killer: Killer, outside: Outside) -> None:
        self._outputs = outputs
        self._killer = killer
        self._outside = outside

    @effect()
    async def run(self, effect: Effect, call: Mapping[str, Any]) -> str:
        self._killer.reached("tool: started, not called")
        append_line(self._outside.ran, f"{call['id']} {effect.id}")
        self._killer.reached("tool: called, no outcome")
        return self._outputs[call["id"]]


async def play(life: Life) -> None:
    """Play the transcript to its end, or until death."""
    outside = Outside(Path(life.outside))
    killer = Killer(life.point, life.nth, outside.died)
    points = PointFiles(killer)
    files = crash_files_from({CRASH_AT: life.at}) if life.at else points
    transcript = life.said
    outputs = outputs_in(transcript)
    tell_of_the_rest(killer)
    tell_of_fibers(killer)
    async with (
        open_host(
            life.folder,
            files=files,
            actors=[Agent],
            devices={"model": Teller(transcript, killer), "tools": Shell(outputs, killer, outside)},
            settings=attrs.evolve(SETTINGS, hold_unknown=life.unknown == "settled"),
            segment_bytes=SEGMENT_BYTES,
        ) as host,
        trio.open_nursery() as nursery,
    ):
        points.phase = ""
        if life.unknown == "settled":
            nursery.start_soon(settle_unknown, host, outputs, outside, killer)
        session = await begin(life, host, transcript)
        await session.turn(transcript[1]["content"], request="turn")
        nursery.cancel_scope.cancel()
        points.phase = "closing"
    append_line(outside.ended, "over")


async def begin(life: Life, host: Any, transcript: list[dict[str, Any]]) -> Any:
    """The session of the conversation."""
    if life.through == "loop":
        return await host.spawn(Agent, "t", request="spawn", messages=transcript[:1], tools=[BASH])
    answers = sum(said["role"] == "assistant" for said in transcript)
    system = transcript[0]["content"]
    return await host.spawn(Session, "t", request="spawn", system=system, max_steps=answers, tools=[BASH])


async def settle_unknown(host: Any, outputs: Mapping[str, str], outside: Outside, killer: Killer) -> None:
    """Settle each tool call of unknown outcome with the output that is recorded."""
    while True:
        for status in host.effects():
            if status.state == "unknown":
                append_line(outside.unknown, status.id)
                killer.reached("resolving: before")
                await host.resolve(status.id, value=outputs[status.args[0]["id"]])
                killer.reached("resolving: after")
        await trio.sleep(0.002)


if __name__ == "__main__":
    serve(lambda said: trio.run(play, Life(**said)))
