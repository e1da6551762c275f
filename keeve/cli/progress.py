"""How far something is that takes long, told while it goes on: on a terminal, on a line that the next one overwrites.

The one rule: it is only looked at; what is told of goes on as if nobody did.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import trio

from keeve.cli.output import Output
from keeve.cli.text import size

OFTEN: Final = 0.5
"""Seconds between two looks."""


@asynccontextmanager
async def telling(output: Output, far: Callable[[], str]) -> AsyncIterator[None]:
    """Tell what `far` says, for as long as the block lasts."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_tell, output, far)
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()
            output.passing("")


async def _tell(output: Output, far: Callable[[], str]) -> None:
    while True:
        output.passing(far())
        await trio.sleep(OFTEN)


def written(folder: Path | None, what: str) -> Callable[[], str]:
    """How much has been written into a folder since now; nothing is said where nobody can look (None)."""
    if folder is None:
        return lambda: ""
    before = _bytes_in(folder)
    return lambda: f"{what}: {size(max(0, _bytes_in(folder) - before))}"


def _bytes_in(folder: Path) -> int:
    found = 0
    for path in folder.glob("*"):
        with suppress(FileNotFoundError):  # it went while we looked
            found += path.stat().st_size
    return found
