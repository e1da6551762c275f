"""A process that plays a transcript through a `Session`, and may be told to die on the way.

Run as a program it is a nursery of such processes (`tests.crash.nursery`).

What is outside the store (`Outside`) is synced line by line: which tools ran, what was found unknown, at which point
the process died.

The one rule: a life does what an application would do: open the host, settle what is unknown, ask with the same
request ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from actors.models.scripted import ScriptedModel
from actors.session import Session
from dataspace.catalog import catalog, tables
from keeve.api import open_host
from keeve.testing.crashes import CRASH_AT, crash_files_from
from tests.crash.kill_points import Killer, PointFiles, append_line
from tests.crash.nursery import serve
from vat.devices.devices import Effect, effect
from vat.host.engine import Settings

SETTINGS = Settings(first_snapshot=12, snapshot_cranks=30)
SEGMENT_BYTES = 60_000
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


@attrs.frozen
class Life:
    """One process: where it works, what it plays, and how it is to die.

    point, nth: the named point, and the time of reaching it. at: the file operation.
    """

    folder: str
    transcript: str
    outside: str
    messages: int
    point: str = ""
    nth: int = 1
    at: str = ""


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


def read_transcript(path: str | Path, messages: int) -> list[dict[str, Any]]:
    """The first `messages` messages of a transcript, ended by an answer that calls a tool."""
    said: list[dict[str, Any]] = [json.loads(line) for line in Path(path).read_text().splitlines()[:messages]]
    while said[-1]["role"] != "assistant":
        said.pop()
    return said


class Model(ScriptedModel):
    """The scripted model, with points around its answer."""

    def __init__(self, transcript: Sequence[Mapping[str, Any]], killer: Killer) -> None:
        super().__init__(transcript)
        self._killer = killer

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, *, tools: Any = None, **options: Any) -> dict[str, Any]:
        self._killer.reached("model: asked")
        answer = await super().complete(effect, messages, tools=tools, **options)
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
    transcript = read_transcript(life.transcript, life.messages)
    outputs = {said["tool_call_id"]: said["content"] for said in transcript if said["role"] == "tool"}
    write = tables.Tables._write

    def interrupted(self: Any, db: Any, recent: Any) -> None:
        write(self, db, recent)
        killer.reached("catalog: in a transaction")

    tables.Tables._write = interrupted  # type: ignore[method-assign]  # this process is only a test
    catalog.RUN = 40  # type: ignore[misc]  # as above: so that there are transactions on the way
    async with (
        open_host(
            life.folder,
            files=files,
            unknown="hold",
            devices={"model": Model(transcript, killer), "tools": Shell(outputs, killer, outside)},
            settings=attrs.evolve(SETTINGS, hold_unknown=True),
            segment_bytes=SEGMENT_BYTES,
        ) as host,
        trio.open_nursery() as nursery,
    ):
        points.phase = ""
        nursery.start_soon(settle_unknown, host, outputs, outside, killer)
        session = await host.spawn(
            Session,
            "t",
            request="spawn",
            system=transcript[0]["content"],
            max_steps=sum(said["role"] == "assistant" for said in transcript),
            tools=[BASH],
        )
        await session.turn(transcript[1]["content"], request="turn")
        nursery.cancel_scope.cancel()
        points.phase = "closing"
    append_line(outside.ended, "over")


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
