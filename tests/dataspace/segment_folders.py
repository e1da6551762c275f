"""Folders with a segment store in them, for tests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

from dataspace.log.segments import SegmentStore


def opened(folder: Path, **options: object) -> SegmentStore:
    return SegmentStore(folder, **{"now": int, "salts": os.urandom, **options})  # type: ignore[arg-type] # as the tests say


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def segment(folder: Path, number: int = 1) -> Path:
    return folder / "log" / f"{number:08}.seg"


def spoil(folder: Path, said: bytes, instead: bytes) -> None:
    """Change what is in the first segment; as many bytes as there were."""
    with open(segment(folder), "r+b") as file:
        file.seek(file.read().index(said))
        file.write(instead)


def in_a_forked_child(act: Callable[[], int]) -> int:
    """The exit code of `act` in a forked child; 99 when it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn when there are threads
        pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
