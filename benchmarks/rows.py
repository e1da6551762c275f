"""What every benchmark here has in common: rows with a verdict if there is a target, the machine, the command line.

The one rule: a row is a ratio to a floor that was measured in the same run, or says what it is in.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import attrs
import trio

from vat.host.settings import Settings

Rows: TypeAlias = Mapping[str, Callable[[], Awaitable[Any]]]
"""What measures one row or a list of them, by the name that the command line knows."""


@attrs.frozen
class Row:
    """A number that was measured: `value` against `target`; `below` says on which side of it the value must be.

    Where nothing is promised the target is None.
    """

    name: str
    value: float
    target: float | None
    below: bool
    detail: str

    @classmethod
    def shown(cls, name: str, value: float, detail: str) -> Row:
        """One of which nothing is promised."""
        return cls(name, value, None, False, detail)

    @property
    def verdict(self) -> str:
        if self.target is None:
            return "-"
        good = self.value <= self.target if self.below else self.value >= self.target
        half = self.value <= 2 * self.target if self.below else self.value >= self.target / 2
        return "ok" if good else "near" if half else "MISSED"


async def measure(every: Rows, names: Sequence[str]) -> list[Row]:
    """The rows of these names, or all of them, each printed when it is there."""
    measured: list[Row] = []
    for name in names or every:
        found = await every[name]()
        for row in found if isinstance(found, list) else [found]:
            measured.append(row)
            relation = "at most" if row.below else "at least"
            wanted = "" if row.target is None else f"{relation} {row.target:<5g} "
            print(f"{row.verdict:7} {row.value:9.3f}  {wanted}{row.name}   [{row.detail}]", flush=True)
    return measured


def machine(folder: Path) -> str:
    """What this ran on."""
    name = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    mounts = sorted((line.split()[1], line.split()[2]) for line in _lines("/proc/mounts"))
    system = next((kind for mount, kind in reversed(mounts) if str(folder.resolve()).startswith(mount)), "?")
    versions = f"Python {platform.python_version()}, trio {trio.__version__}, SQLite {apsw.sqlite_lib_version()}"
    return f"{os.cpu_count()} × {name}; {system}; {platform.system()} {platform.release()}; {versions}; {Settings()}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def main(about: str, names: Sequence[str], rows_of: Callable[[Path, bool], Rows]) -> None:
    """Measure, print, and end with 1 when a row is under half of its target.

    `rows_of` is given a folder for stores, and whether to be quick; `names` are those of its rows.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{' '.join(names)}; default: all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes, fewer rounds")
    parser.add_argument("--store", type=Path, default=None, help="a folder on the disk to measure (default: here)")
    args = parser.parse_args()
    if unknown := [name for name in args.rows if name not in names]:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(names)}")
    root = Path(tempfile.mkdtemp(prefix="keeve-bench-", dir=args.store or Path.cwd()))
    print(machine(root), flush=True)
    try:
        rows = trio.run(measure, rows_of(root, args.quick), args.rows)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(any(row.verdict == "MISSED" for row in rows))
