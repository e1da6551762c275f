"""A store that lives through several processes, in one: hosts that die at a chosen file operation and are opened again.

    lives = Lives(folder)
    s = lives.session_vat("s1")
    s.turn("hello")
    with lives.simulated_crash_mid_save():
        s.snapshot()                          # the process dies somewhere in here
    s = lives.restore_latest("s1")            # in the next one

What each process was told is noted beside it (`told`), so that a test compares with what was seen from outside and not
with what the session says of itself.

The one rule: a process that has died does nothing more. Its refs raise, and only the folder goes on.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actors.models import EchoModel
from actors.session import Session
from keeve.blocking import Host, open_host
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from vat.host.asking import NotRunning


class Lives:
    """Opens a host on `folder` when one is needed, with `options` for `open_host`.

    Its model is an echo, unless another one is given: of its own, so that it goes on with what a dead process asked.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.options = {**options, "devices": {"model": EchoModel(), **options.get("devices", {})}}
        self.files = CrashFiles()
        self.crashed = False
        """Whether the last simulated crash has happened (it does not when its operation never comes)."""
        self.told: dict[str, list[str]] = {}
        """The inputs that each session has acknowledged, by its id."""
        self._host: Host | None = None

    @property
    def host(self) -> Host:
        """The host of the process that lives now."""
        if self._host is None:
            self.files = CrashFiles()
            self._host = open_host(self.folder, files=self.files, **self.options)
        return self._host

    def session_vat(self, id: str) -> Witness:
        """A new session."""
        return Witness(self, id, self.host.spawn(Session, id))

    def restore(self, snapshot: Any) -> Witness:
        """The session of a snapshot."""
        return Witness(self, snapshot.session, self.host.restore(snapshot))

    def restore_latest(self, id: str) -> Witness:
        """The session of that id."""
        return Witness(self, id, self.host.restore_latest(id))

    def observe(self, pattern: str) -> Iterator[Any]:
        """The events that match so far."""
        return self.host.observe(pattern)

    @contextmanager
    def simulated_crash_mid_save(self, after: int = 1, partial: int = 0) -> Iterator[None]:
        """The process dies in a file operation of what the block does: the one after `after` others.

        A write leaves its first `partial` bytes. `crashed` tells afterwards whether it came to that.
        """
        host = self.host
        self.files.crash(after, partial=partial)
        try:
            yield
        except (SimulatedCrash, NotRunning):
            if not self.files.dead:
                raise
        self._host = None
        self.files.spare()  # a host that idles writes by itself, and may do so just now
        with suppress_crash():
            host.close()
        self.crashed = self.files.dead

    def die(self) -> None:
        """The process dies between two operations: nothing is written any more, not even in order."""
        host, self._host = self.host, None
        self.files.crash(0)
        with suppress_crash():
            host.close()

    def close(self) -> None:
        """Stop in order."""
        if self._host is not None:
            host, self._host = self._host, None
            host.close()


class Witness:
    """A session's ref that notes which inputs were acknowledged."""

    def __init__(self, lives: Lives, id: str, ref: Any) -> None:
        self._lives = lives
        self._id = id
        self._ref = ref

    def turn(self, input: str) -> Any:
        """Take a turn; it is noted once it was answered."""
        answer = self._ref.turn(input)
        self._lives.told.setdefault(self._id, []).append(input)
        return answer

    def fork(self, **how: Any) -> Witness:
        """A fork, which has been told what this one was."""
        child = self._ref.fork(**how)
        id = child.describe()["id"]
        self._lives.told[id] = list(self.history_before_crash)
        return Witness(self._lives, id, child)

    @property
    def history_before_crash(self) -> list[str]:
        """What this session had acknowledged, as seen from outside."""
        return self._lives.told.get(self._id, [])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ref, name)


@contextmanager
def suppress_crash() -> Iterator[None]:
    """Let the end of a process that has died pass."""
    try:
        yield
    except BaseException as error:
        if not _of_the_dead(error):
            raise


def _of_the_dead(error: BaseException | None) -> bool:
    """Whether it is a crash, or was raised while one was on its way: what was open is closed then."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_of_the_dead, error.exceptions))
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return _of_the_dead(error.__context__)
    return isinstance(error, SimulatedCrash)
