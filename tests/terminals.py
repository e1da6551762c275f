"""A person at a real terminal, made for a test, with `keeve` in it.

The one rule: nothing waits for a time. A person types when what comes before is shown.
"""

from __future__ import annotations

import os
import pty
import re
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import trio

from tests.cli_runner import environment
from tests.forks import Fork
from tests.model_server import Answer, ModelServer, model_server

CTRL_C, CTRL_D = b"\x03", b"\x04"
PATIENCE = 60.0
"""Seconds until a test gives up waiting for what should come at once."""


class Person:
    """Somebody who types into a terminal, and reads what is shown there."""

    def __init__(self, process: Fork, terminal: int) -> None:
        self.process = process
        self.terminal = terminal
        self.raw = ""
        self.seen = ""
        """The same without what only styles it."""
        self._read = 0

    def types(self, keys: bytes | str) -> None:
        """Press these keys; a str is a line, with its Enter."""
        os.write(self.terminal, keys if isinstance(keys, bytes) else f"{keys}\n".encode())

    def presses(self, key: bytes, until: str) -> None:
        """Press a key, and again if nothing comes of it: one in the moment in which a prompt appears can be lost."""
        for _ in range(10):
            self.types(key)
            end = time.monotonic() + PATIENCE / 10
            while until not in self.seen[self._read :] and time.monotonic() < end:
                self._look()
            if until in self.seen[self._read :]:
                break
        self.sees(until)

    def sees(self, *texts: str) -> None:
        """Wait until these are shown, one after another, after what was waited for before."""
        for text in texts:
            self._wait(lambda text=text: text in self.seen[self._read :], text)  # type: ignore[misc]  # of this round
            self._read = self.seen.index(text, self._read) + len(text)

    def leaves(self) -> int:
        """Wait for the end; gives the exit code."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self._look()
        self._look()
        assert self.process.returncode is not None, self.seen
        return self.process.returncode

    def _wait(self, until: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not until():
            assert time.monotonic() < end, f"{what!r} was not shown, but: {self.seen!r}"
            assert self._look() or self.process.poll() is None, f"it ended without {what!r}: {self.seen!r}"

    def _look(self) -> bool:
        ready, _, _ = select.select([self.terminal], [], [], 0.05)
        if not ready:
            return False
        try:
            data = os.read(self.terminal, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.raw += data.decode(errors="replace")
        self.seen = re.sub(r"\x1b\[\?2004l\r|\x1b\[[0-9;?]*[A-Za-z]", "", self.raw).replace("\r\n", "\n")
        return bool(data)


@contextmanager
def person(*words: str | Path, env: Mapping[str, str] | None = None) -> Iterator[Person]:
    """`keeve` in a terminal of its own."""
    ours, theirs = pty.openpty()
    given = environment({"TERM": "xterm", "NO_COLOR": "1", "INPUTRC": "/dev/null", **(env or {})})
    process = Fork([*map(str, words)], (theirs, theirs, theirs), given, terminal=True)
    os.close(theirs)
    try:
        yield Person(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@contextmanager
def chatting(store: Path, env: Mapping[str, str] | None = None) -> Iterator[Person]:
    """Somebody in a conversation with session `s1`, from the first prompt on, and till Ctrl-D unless they leave."""
    with person("chat", "s1", "--store", store, env=env) as someone:
        someone.sees("> ")
        yield someone
        if someone.process.returncode is None:
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0
        assert "Traceback" not in someone.seen


class Service:
    """The model's service, as who talks in another thread asks of it."""

    def __init__(self, server: ModelServer) -> None:
        self.goes_on: Callable[[], None] = partial(trio.from_thread.run_sync, server.go_on.set)
        """Send what is held."""
        self.was_asked: Callable[[int], None] = partial(trio.from_thread.run, server.asked)
        """Wait until so many requests have come."""
        self.requests = server.requests


async def talk(store: Path, says: Callable[[Person, Service], None], *answers: Answer) -> tuple[Person, Service]:
    """Somebody says this in a conversation with a model whose service gives these answers."""

    def at_a_terminal() -> Person:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": server.url}
        with chatting(store, env) as someone:
            says(someone, service)
        return someone

    async with model_server(*answers) as server:
        service = Service(server)
        return await trio.to_thread.run_sync(at_a_terminal), service
