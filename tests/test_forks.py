"""A fork is what a process that starts from nothing would be, and ends as one does."""

from __future__ import annotations

import atexit
import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from keeve import starting
from tests.cli_runner import environment
from tests.forks import Fork

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP)


def describe() -> None:
    """Say what this process is."""
    streams = [sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__]
    about = {
        "argv": sys.argv,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "descriptors": [number for number in range(1024) if is_open(number)],
        "signals": [getattr(each, "__name__", str(each)) for each in map(signal.getsignal, HANDLED)],
        "streams": [
            (each.fileno(), each.encoding, each.errors, each.line_buffering, each.mode, each.isatty())
            for each in streams  # type: ignore[union-attr]  # this one has all of them
        ],
        "blocked": [*signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "threads": threading.active_count(),
        "group": os.getpgid(0) == os.getpgid(os.getppid()),
    }
    print(json.dumps(about))
    threading.Thread(target=lambda: (time.sleep(0.01), print("a thread"))).start()
    atexit.register(print, "the end")
    sys.exit(3)


def is_open(number: int) -> bool:
    """Whether there is such a descriptor."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def fail() -> None:
    """End with an error that nobody expects."""
    raise ValueError("as it should")


def wait() -> None:
    """Wait for a signal, which may have come already."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    print("here", flush=True)
    os.read(woken, 1)


def forked(function: str, *words: str, **how: Any) -> tuple[Fork, int]:
    """A fork, and where its output can be read."""
    ours, theirs = os.pipe()
    with open(os.devnull, "r+b") as null:
        fork = Fork(
            words,
            (null.fileno(), theirs, how.get("errors", null.fileno())),
            how.get("env", environment()),
            function=f"tests.test_forks:{function}",
        )
    os.close(theirs)
    return fork, ours


def test_a_fork_is_given_what_a_process_of_its_own_is_given_and_ends_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env = environment({"SOMETHING": "ä"})
    del env["COLUMNS"]
    fork, ours = forked("describe", "--some", "wörds", env=env)
    with open(ours) as out:
        about, *rest = out.read().splitlines()
    code = "import sys; sys.argv[0] = 'keeve'; from tests.test_forks import describe; describe()"
    command = [sys.executable, "-c", code, "--some", "wörds"]
    null = subprocess.DEVNULL
    other = subprocess.run(command, env=env, stdin=null, stdout=subprocess.PIPE, stderr=null, check=False)
    own, *others = other.stdout.decode().splitlines()
    assert json.loads(about) == json.loads(own)
    assert (fork.wait(60), rest) == (other.returncode, others) == (3, ["a thread", "the end"])


def test_what_is_an_error_is_shown_as_one(tmp_path: Path) -> None:
    with (tmp_path / "errors").open("wb") as errors:
        fork, ours = forked("fail", errors=errors.fileno())
    os.close(ours)
    assert fork.wait(60) == 1
    assert (tmp_path / "errors").read_text().endswith("ValueError: as it should\n")


def test_a_fork_is_ended_and_waited_for_like_a_process() -> None:
    fork, ours = forked("wait")
    with open(ours) as out:
        assert out.readline() == "here\n"
        assert fork.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            fork.wait(0)
        fork.terminate()
        assert fork.wait(60) == fork.poll() == fork.returncode == -signal.SIGTERM
        fork.kill()  # of nobody
        assert out.read() == ""


def test_a_fork_that_has_ended_keeps_its_pid_until_that_is_known() -> None:
    forks = []
    for _ in range(10):  # so that the first of them had the time to be gone
        fork, ours = forked("sys.exit")
        os.close(ours)
        assert select.select([fork], [], [], 60)[0] == [fork]
        forks.append(fork)
    processes = [os.pidfd_open(fork.pid) for fork in forks]
    for fork, process in zip(forks, processes, strict=True):
        signal.pidfd_send_signal(process, 0)
        assert fork.wait(60) == 0
        with pytest.raises(ProcessLookupError):
            signal.pidfd_send_signal(process, 0)
        os.close(process)


def test_a_ctrl_c_right_after_the_start_of_a_fork_ends_it() -> None:
    for _ in range(20):
        fork, ours = forked("wait")
        fork.send_signal(signal.SIGINT)
        try:
            assert fork.wait(60) == starting.INTERRUPTED
        finally:
            fork.kill()
            os.close(ours)


def test_a_fork_at_a_terminal_is_reached_by_its_ctrl_c() -> None:
    ours, theirs = pty.openpty()
    fork = Fork([], (theirs, theirs, theirs), environment(), terminal=True, function="tests.test_forks:wait")
    os.close(theirs)
    said = b""
    while b"here" not in said:
        said += os.read(ours, 1024)
    os.write(ours, b"\x03")
    assert fork.wait(60) == starting.INTERRUPTED
    os.close(ours)
