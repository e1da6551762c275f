"""Named points at which a process ends itself, so that each can be hit on purpose.

A `Killer` is told which point, and which time of reaching it; `PointFiles` tells it of every step of a commit, by what
the batch holds; devices tell it themselves, and `tell_of_the_rest` and `tell_of_fibers` have parts of the host do so.

The one rule: a process that dies here has said so first, in a file that is synced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from dataspace.catalog import catalog, tables
from dataspace.log.files import Files
from dataspace.log.frames import Type, parse, record_head
from dataspace.records import Kind
from vat.crank.fibers import Fibers
from vat.crank.rerun import Rerun
from vat.heap.restore import Lineage
from vat.host.errands import Errands

EXIT: Final = 137

BATCHES: Final = ("created", "spawn", "crank", "started", "snapshot")
STEPS: Final = ("before it is written", "torn", "not synced", "durable, nobody told")
POINTS: Final = (
    *(f"{batch}: {step}" for batch in BATCHES for step in STEPS),
    "settling: before it is written",
    "recovered: before it is written",
    "recovered: torn",
    "opening: between two operations",
    "closing: between two operations",
    "segment: before it is made",
    "segment: made, and empty",
    "catalog: in a transaction",
    "restoring: between two records",
    "model: asked",
    "model: answered, not recorded",
    "tool: started, not called",
    "tool: called, no outcome",
    "tool: answered, not recorded",
    "resolving: before",
    "resolving: after",
)
"""The points, by name."""

FIBERS: Final = (
    "fiber: to go on",
    "fiber: has gone on, not recorded",
    "fiber: run again, at its beginning",
    "fiber: run again, between two parts",
    "fiber: run again, to go on",
)
"""Those that only a fiber comes to."""

_SPECIAL: Final = {
    Kind.CREATED: "created",
    Kind.RECOVERED: "recovered",
    Kind.SPAWN: "spawn",
    Kind.SNAPSHOT: "snapshot",
    Kind.STARTED: "started",
}


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, durably."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, line.encode() + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)


class Killer:
    """Ends the process when `point` is reached for the `nth` time; says so in `said`."""

    def __init__(self, point: str, nth: int, said: Path) -> None:
        self._point = point
        self._left = nth
        self._said = said

    def due(self, point: str) -> bool:
        """Whether it is time to die at `point`. To be asked once each time that it is reached."""
        if point == self._point:
            self._left -= 1
        return point == self._point and self._left == 0

    def reached(self, point: str) -> None:
        """Die, if it is time."""
        if self.due(point):
            self.die()

    def die(self) -> NoReturn:
        """End the process, as a kill would: nothing is flushed, closed or finished."""
        append_line(self._said, self._point)
        os._exit(EXIT)


class PointFiles(Files):
    """The file layer of a host that is to die at a point. `phase` is "opening", "closing" or empty."""

    def __init__(self, killer: Killer) -> None:
        super().__init__()
        self._killer = killer
        self._written: dict[int, str] = {}
        self.phase = "opening"

    def open(self, path: Path, *, create: bool = False) -> int:
        segment = create and path.suffix == ".seg" and not path.exists()
        if segment:
            self._killer.reached("segment: before it is made")
        fd = super().open(path, create=create)
        if segment:
            self._killer.reached("segment: made, and empty")
        return fd

    def write(self, fd: int, offset: int, data: bytes, size: int | None = None) -> None:
        self._step()
        batch = self._batch(fd, offset, data)
        if batch:
            self._killer.reached(f"{batch}: before it is written")
            if self._killer.due(f"{batch}: torn"):
                super().write(fd, offset, data[: max(1, len(data.rstrip(b"\0")) * 2 // 3)])
                self._killer.die()
        super().write(fd, offset, data, size)
        if batch:
            self._written[fd] = batch

    def sync(self, fd: int) -> None:
        self._step()
        batch = self._written.pop(fd, "")
        if batch:
            self._killer.reached(f"{batch}: not synced")
        super().sync(fd)
        if batch:
            self._killer.reached(f"{batch}: durable, nobody told")

    def truncate(self, fd: int, length: int) -> None:
        self._step()
        super().truncate(fd, length)

    def rename(self, path: Path, to: Path) -> None:
        self._step()
        super().rename(path, to)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)

    @contextmanager
    def naming(self, path: Path) -> Iterator[None]:
        with super().naming(path):
            yield
            self._step()

    def _step(self) -> None:
        if self.phase:
            self._killer.reached(f"{self.phase}: between two operations")

    def _batch(self, fd: int, offset: int, data: bytes) -> str:
        """What a write brings: named after the rarest of its records; empty when it is no batch."""
        path = Path(self._paths[fd])
        if path.suffix != ".seg":
            return ""
        kinds, at, commits = set(), 0, 0
        while (found := parse(data, at, int(path.stem), offset)) is not None:
            if found.type == Type.RECORD:
                kinds.add(record_head(found.head)[0].kind)
            commits += found.type == Type.COMMIT
            at += found.size
        if not kinds:
            return "settling" if commits else ""
        return next((name for kind, name in _SPECIAL.items() if kind in kinds), "crank")


def tell_of_the_rest(killer: Killer) -> None:
    """Have catalog, restore and errands tell of the points in them. This process is only a test, and stays so."""
    _around(tables.Tables, "_write", after=lambda: killer.reached("catalog: in a transaction"))
    catalog.RUN = 40  # type: ignore[misc]  # so that there are transactions on the way
    _around(Lineage, "at", before=lambda: killer.reached("restoring: between two records"))
    settled = Errands._settled

    def come(self: Any, wanted: Any, outcome: Any) -> None:
        if wanted.device == "tools":
            killer.reached("tool: answered, not recorded")
        settled(self, wanted, outcome)

    Errands._settled = come  # type: ignore[method-assign]  # as said above


def tell_of_fibers(killer: Killer) -> None:
    """Have fibers tell of the points that they come to. This process is only a test, and stays so."""
    advance, again, run = Fibers.advance, Fibers._bring, Rerun._run
    running: list[int] = []
    """The parts that were run again by the runs that are under way."""

    def advancing(self: Any, *args: Any) -> Any:
        if running:
            return advance(self, *args)
        killer.reached("fiber: to go on")
        returned = advance(self, *args)
        killer.reached("fiber: has gone on, not recorded")
        return returned

    def running_again(self: Any, numbers: Any) -> None:
        killer.reached("fiber: run again, at its beginning")
        running.append(0)
        try:
            again(self, numbers)
        finally:
            running.pop()
        killer.reached("fiber: run again, to go on")

    def next_part(self: Any, *args: Any) -> None:
        running[-1] += 1
        if running[-1] > 1:
            killer.reached("fiber: run again, between two parts")
        run(self, *args)

    Fibers.advance, Fibers._bring, Rerun._run = (  # type: ignore[method-assign]  # as said above
        advancing,
        running_again,
        next_part,
    )


def _around(
    owner: Any, name: str, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None
) -> None:
    function = getattr(owner, name)

    def told(*args: Any) -> Any:
        before()
        returned = function(*args)
        after()
        return returned

    setattr(owner, name, told)
