"""Processes that run `keeve` as forks of one that has imported it: the imports are most of what a start would cost.

A fork has its own words, streams, environment and folder, and none of the descriptors and signals of others: it is what
`subprocess` would have started, but for three things. What Python reads from the environment when it starts was read
before. The seed of its hashes is that of all forks here. And all of `keeve` is imported in it, so an import that is
missing does not show there.

    python -m tests.forks FD

is the process that forks, and is told of each by the socket of that number.

The one rule: nothing is run in the process that forks, but imports.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pkgutil import resolve_name, walk_packages
from typing import Any

from keeve import starting
from tests.cli_runner import ROOT, environment

KEEVE = "keeve.cli:main"
STREAMS = ("stdin", "stdout", "stderr")


class Fork:
    """A process that runs a function, to be told, asked and waited for as one of `subprocess`.

    Its streams are descriptors; `terminal` makes the first of them the terminal of a session of its own.
    """

    def __init__(
        self,
        words: Sequence[str],
        streams: tuple[int, int, int],
        env: Mapping[str, str],
        terminal: bool = False,
        function: str = KEEVE,
    ) -> None:
        self._watcher, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        said = {"words": [*words], "env": {**env}, "folder": os.getcwd(), "terminal": terminal, "function": function}
        with theirs:
            socket.send_fds(_forking(), [json.dumps(said).encode()], [*streams, theirs.fileno()])
        self.pid = int(self._watcher.recv(32))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None and self._ends(0):
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; gives its exit code. Its pid is nobody's from then on."""
        if self.returncode is None:
            if not self._ends(timeout):
                raise subprocess.TimeoutExpired("a fork", timeout or 0)
            with self._watcher as watcher:
                self.returncode = int(watcher.recv(32))
                watcher.shutdown(socket.SHUT_WR)
                watcher.recv(1)  # comes to the end when it has let go of the pid
        return self.returncode

    def fileno(self) -> int:
        """What can be read from when it has ended, until that is asked for."""
        return self._watcher.fileno()

    def _ends(self, timeout: float | None) -> bool:
        looked = select.poll()
        looked.register(self, select.POLLIN)
        return bool(looked.poll(None if timeout is None else timeout * 1000))

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:  # if it ends just now, its pid is still its own
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


@cache
def _forking() -> socket.socket:
    """The process that forks, for as long as this one lives."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.forks", str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), pass_fds=[theirs.fileno()])

    def ends() -> None:
        ours.close()
        process.wait()

    atexit.register(ends)
    return ours


def serve(number: int) -> None:
    """Fork whenever that is told. Returns at the end, and in each fork when it has run what it was to run."""
    packages = import_module("keeve")
    for each in walk_packages(packages.__path__, "keeve."):
        if not each.name.startswith("keeve.testing") and not each.name.endswith("__main__"):
            import_module(each.name)
    import_module("actors.models.service")  # who makes a model imports it
    # Who asks for forks ends this process; and a fork that has not begun yet is not to miss its Ctrl-C.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    with socket.socket(fileno=number) as told:
        while True:
            data, given, _, _ = socket.recv_fds(told, 1 << 20, 4)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if not data:
                return
            if not os.fork():
                break
            for each in given:
                os.close(each)
    said = json.loads(data)
    _watch(given)
    _be(said, given)
    try:
        resolve_name(said["function"])()
    except SystemExit as ended:
        # What is left of an end. To take apart what was imported would cost more than all the rest.
        threading._shutdown()  # type: ignore[attr-defined]  # as Python itself and `multiprocessing` do
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 0)


def _watch(given: list[int]) -> None:
    """Return in a fork of this process, which itself tells the tester its pid, waits, and tells how it has ended.

    Until the tester has taken that in, the pid stays: a signal to it reaches nobody else.
    """
    pid = os.fork()
    if not pid:
        return
    *streams, tells = given
    for each in streams:
        os.close(each)
    with suppress(ConnectionError), socket.socket(fileno=tells) as tester:  # one that has gone need not be told
        tester.send(str(pid).encode())
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None  # it waits
        tester.send(str(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status).encode())
        tester.recv(1)
        os.waitpid(pid, 0)
    os._exit(0)


def _be(said: dict[str, Any], given: list[int]) -> None:
    """Take on what a process is given when it starts."""
    for number, each in enumerate(given[:3]):
        os.dup2(each, number)
    for each in map(int, os.listdir("/proc/self/fd")):
        if each > 2:
            with suppress(OSError):  # that of the list itself is closed by now
                os.close(each)
    if said["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(said["folder"])
    os.environ.clear()
    os.environ.update(said["env"])
    sys.argv = ["keeve", *said["words"]]
    starting.starts()  # as `keeve` does when it is imported
    for number, name in enumerate(STREAMS):
        was = getattr(sys, name)
        buffering = 1 if name == "stderr" or os.isatty(number) else -1
        stream = open(number, was.mode, buffering, encoding=was.encoding, errors=was.errors, closefd=False)  # noqa: SIM115  # it stays
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


if __name__ == "__main__":
    serve(int(sys.argv[1]))
