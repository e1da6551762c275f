"""Canaries: words that are said in every place that a session has, and searched for in every file of its store.

The one rule: a canary is looked for in every form in which it could lie there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio

from dataspace.values.encoding import encode
from keeve import Actor, Session, Tools, actor, effect, tool
from keeve.api import open_host
from vat.devices.devices import Effect
from vat.host.host import Host
from vat.host.settings import Settings
from vat.objects.collections import List, Map

LONG = " and so on" * 40
"""What makes a canary too long to stand in a record."""


def forms(canary: str) -> Iterator[bytes]:
    """The bytes as which a word may lie in a file."""
    raw = canary.encode()
    yield raw
    yield encode(canary)
    yield canary.encode("utf-16-le")
    yield canary.encode("utf-16-be")
    yield raw.hex().encode()
    for shift in range(3):  # wherever in a longer text it stands, its middle is written in one of these ways
        yield base64.b64encode(bytes(shift) + raw)[4:-4]


def found(folder: Path, *canaries: str) -> list[str]:
    """Which canaries are in which files of a folder."""
    seen = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            for canary in canaries:
                if any(form in data for form in forms(canary)):
                    seen.append(f"{canary} in {path.relative_to(folder)}")
    return seen


@tool
async def look(city: str) -> dict[str, str]:
    """Say what the weather is like.

    city: where
    """
    if city.startswith("NOWHERE"):
        raise LookupError(f"there is no {city}")
    return {"said": f"tool result of {city}"}


def answer(word: str) -> str:
    """What the model says in the end to an input that begins with a word."""
    return 'output for {"said": "tool result of %s"}' % word  # noqa: UP031  # braces are the message's


class Model:
    """Calls a tool once in each turn, and says what it was told in the end; while its gate is shut, nothing."""

    def __init__(self) -> None:
        self.gate = trio.Event()
        self.gate.set()
        self.asked: list[Any] = []

    @effect(on_crash="retry")
    async def complete(
        self, effect: Effect, messages: Sequence[Any], *, tools: Any = None, **options: Any
    ) -> dict[str, Any]:
        last = messages[-1]
        self.asked.append(last["content"])
        await self.gate.wait()
        if last["role"] == "tool":
            return {"message": {"role": "assistant", "content": f"output for {last['content']}"}, "usage": None}
        function = {"name": "look", "arguments": json.dumps({"city": str(last["content"]).partition(" ")[0]})}
        call = {"id": "c1", "type": "function", "function": function}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "usage": None}


@actor("tests.keeper")
class Keeper(Actor):
    """Keeps what it is given in every way that there is."""

    last: str = ""
    lines: List[str]
    by_name: Map[str, str]

    def keep(self, text: str, count: int = 1) -> str:
        self.last = text
        for n in range(count):
            self.lines.append(f"{text} {n}")
            self.by_name[f"name {n}"] = f"{text} by name {n}"
        self.assert_fact("tests.kept", text, long=text + LONG)
        return f"{text} is kept"

    def copy(self) -> None:
        """Say again what the first line says."""
        self.lines.append(str(self.lines[0]))

    async def wait(self, text: str, seconds: float = 3600) -> str:
        await self.sleep(seconds)
        return text

    def fail(self, text: str) -> None:
        raise ValueError(text)


def host_of(folder: Path, **options: Any) -> Any:
    """A host of the store in a folder."""
    settings = Settings(first_snapshot=4, snapshot_records=8, closing_records=1, **options.pop("settings", {}))
    devices = {"model": options.pop("model", None) or Model(), "tools": Tools(look)}
    return open_host(folder, actors=[Keeper], devices=devices, settings=settings, **options)


async def converse(host: Host, id: str, *inputs: str) -> None:
    """A conversation with tools; all but the first input wait for the one before."""
    session = await host.spawn(Session, id, system="be brief", tools=Tools(look).schemas)
    async with trio.open_nursery() as nursery:
        for said in inputs:
            nursery.start_soon(session.turn, said)
            await trio.lowlevel.checkpoint()


async def keep(host: Host, id: str, canary: str) -> Any:
    """A session that keeps a canary in every way that there is; a fiber of it waits."""
    keeper = await host.spawn(Keeper, id, last=canary)
    await keeper.keep(canary, 100)
    await keeper.keep(canary + LONG)
    with suppress(ValueError):
        await keeper.fail(canary)
    with trio.move_on_after(0.05):
        await keeper.wait(canary)
    await keeper.snapshot()
    return keeper
