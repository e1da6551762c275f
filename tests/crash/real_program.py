"""A program like a user's: it opens a store, holds a conversation and a fork of it, and says what was acknowledged.

Each line that it prints is one acknowledged thing, or `refused` with the class of the error. The steps have request
ids, so whoever runs it again takes those that are missing.

    python -m tests.crash.real_program FOLDER

The one rule: only errors that Keeve names are expected; any other ends it with a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from actors.models import EchoModel
from actors.session import Session
from dataspace.errors import KeeveError
from keeve.api import open_host
from vat.host.settings import Settings

TURNS = 6
FORKED_AFTER = 3


async def main(folder: str) -> None:
    """All steps, each one tried even when the one before was refused."""
    try:
        settings = Settings(first_snapshot=2, snapshot_records=4)
        async with open_host(folder, devices={"model": EchoModel()}, settings=settings) as host:
            s = await _acknowledged("spawned", lambda: host.spawn(Session, "s", request="s"))
            if s is None:
                return
            for n in range(FORKED_AFTER):
                await _acknowledged(f"turn {n}", lambda n=n: s.turn(f"turn {n}", request=f"turn {n}"))
            await _acknowledged("snapshot", s.snapshot)
            fork = await _acknowledged("forked", lambda: s.fork(into="f", request="f"))
            for n in range(FORKED_AFTER, TURNS):
                await _acknowledged(f"turn {n}", lambda n=n: s.turn(f"turn {n}", request=f"turn {n}"))
            if fork is not None:
                await _acknowledged("turn in the fork", lambda: fork.turn("aside", request="aside"))
    except KeeveError as error:
        print(f"refused {type(error).__name__}", flush=True)


async def _acknowledged(what: str, ask: Callable[[], Awaitable[Any]]) -> Any:
    try:
        came = await ask()
    except KeeveError as error:
        print(f"refused {type(error).__name__}", flush=True)
        return None
    print(what, flush=True)
    return came


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
