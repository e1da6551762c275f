"""Runs the command line in this process, and gives what it said.

Only what a command says and leaves behind is looked at, so every test here could be one of a child process; a few
are, where a process of its own is the point.
"""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Any, NamedTuple

from keeve.cli import run

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, "-c", "import sys; sys.argv[0] = 'keeve'; from keeve.cli import main; main()"]
"""The command line as a program, from the checkout."""

LOGGERS = ("keeve", "hypercorn")
"""Python's loggers that a server has tell its own log, for as long as its process lives."""


class Said(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document of the output."""
        return loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON of each line of the output."""
        return [loads(line) for line in self.out.splitlines()]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without what would choose a model or a store, or how the streams of Python are buffered."""
    others = ("KEEVE_K", "KEEVE_M", "KEEVE_ST", "OPENAI", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "TERM": "dumb"} | dict(more or {})


@contextmanager
def _streams(input: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(input), "utf-8")
    sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", write_through=True)
    try:
        yield out, err
    finally:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.detach()  # type: ignore[attr-defined]  # all three are the wrappers made above
        sys.stdin, sys.stdout, sys.stderr = before


def keeve(*words: str | Path, input: str | bytes = "", env: Mapping[str, str] | None = None) -> Said:
    """Run `keeve` with these words; `input` is its standard input."""
    given = input.encode() if isinstance(input, str) else input
    before = dict(os.environ)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    told = [([*logger.handlers], logger.level, logger.propagate) for logger in loggers]
    os.environ.clear()
    os.environ.update(environment(env))
    try:
        with _streams(given) as (out, err), ThreadPoolExecutor(1) as thread:
            # In a thread, because a command may run trio, and the test may do so already.
            code = thread.submit(run, [str(word) for word in words]).result()
            return Said(code, out.getvalue().decode(), err.getvalue().decode())
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, told, strict=True):
            logger.handlers[:], logger.propagate = handlers, propagate  # what they told is on a stream that is no more
            logger.setLevel(level)
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def keeve_process(
    *words: str | Path, env: Mapping[str, str] | None = None, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """`keeve` as a process of its own, with pipes; it is over when the block is."""
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    with subprocess.Popen([*PROGRAM, *map(str, words)], env=environment(env), **how) as process:
        try:
            yield process
        finally:
            process.kill()
