"""A process in which many sessions take turns at once, and that may be told to die on the way.

Each session has a client, which writes down beside the store what it was told, and goes on from there in the next
process, with the same request ids.

The one rule: a client never asks for a turn before it was told of the one before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import trio

from actors.models import EchoModel
from actors.session import Session
from keeve.api import open_host
from keeve.testing.crashes import CRASH_AT, crash_files_from
from tests.crash.nursery import serve
from vat.host.settings import Settings

SETTINGS = Settings(vats=24, snapshot_records=100)
SEGMENT_BYTES = 4 << 20


@attrs.frozen
class Life:
    """One process: the store, the folder for what clients were told, the sessions, and the turns of each in all."""

    folder: str
    outside: str
    sessions: int
    turns: int
    at: str = ""


def told(outside: str | Path, id: str) -> int:
    """Of how many turns the client of a session was told."""
    path = Path(outside) / id
    return path.read_bytes().count(b"\n") if path.exists() else 0


async def lead(life: Life) -> None:
    """Take turns until all are taken."""
    async with (
        open_host(
            life.folder,
            devices={"model": EchoModel()},
            files=crash_files_from({CRASH_AT: life.at}),
            settings=SETTINGS,
            segment_bytes=SEGMENT_BYTES,
        ) as host,
        trio.open_nursery() as nursery,
    ):
        for number in range(life.sessions):
            nursery.start_soon(_client, host, f"s{number}", life)
    (Path(life.outside) / "ended").touch()


async def _client(host: Any, id: str, life: Life) -> None:
    session = await host.spawn(Session, id, request=f"spawn {id}")
    with (Path(life.outside) / id).open("ab", buffering=0) as file:
        for n in range(told(life.outside, id), life.turns):
            said = f"{id} says {n}"
            assert await session.turn(said, request=f"turn {n}") == said
            file.write(b"%d\n" % n)


if __name__ == "__main__":
    serve(lambda said: trio.run(lead, Life(**said)))
