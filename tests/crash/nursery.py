"""A program that leads lives: processes that are told to die, one after another.

It reads what each life is as a line of JSON, forks (so that nothing is imported twice), waits, and writes how it ended.
It can also kill the process from outside, after a while. `Nursery` starts it, `serve` is the program.

The one rule: whatever ends a life but its own end or a kill is an error of the test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash.kill_points import EXIT

ROOT = Path(__file__).parents[2]


class Nursery:
    """The program of a module that calls `serve`."""

    def __init__(self, module: str) -> None:
        self._command = [sys.executable, "-m", module]

    def __enter__(self) -> Nursery:
        self._program = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        with self._program as program:
            assert program.stdin is not None
            program.stdin.close()

    def lead(self, life: dict[str, Any], after: float = 0) -> bool:
        """Lead one life, killed from outside `after` so many seconds, if any. Whether it was killed in any way."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps([life, after]) + "\n")
        self._program.stdin.flush()
        code = int(self._program.stdout.readline())
        assert code in (0, EXIT, -signal.SIGKILL), f"the process ended with {code}"
        return code != 0


def serve(lead: Callable[[dict[str, Any]], None]) -> None:
    """Lead the lives that come on the standard input."""
    for line in sys.stdin:
        life, after = json.loads(line)
        pid = os.fork()
        if not pid:
            _be(lead, life)
        if after:
            _kill_later(pid, after)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _be(lead: Callable[[dict[str, Any]], None], life: dict[str, Any]) -> None:
    try:
        lead(life)
    except BaseException:  # noqa: BLE001  # whatever it is, who reads the exit code must see it
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _kill_later(pid: int, after: float) -> None:
    until = time.monotonic() + after
    while time.monotonic() < until and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
