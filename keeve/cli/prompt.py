"""Where the lines of a conversation come from: a person at a terminal, or whatever else is the standard input.

While an answer comes, what is typed is not shown by the terminal itself, or it would stand in the middle of the answer.
The first key has a line asked for, and the answer waits until that is entered.

The one rule: lines are asked for in the main thread, so that Ctrl-C ends the asking, and readline leaves the terminal
as it was.
"""

from __future__ import annotations

import select
import socket
import sys
import termios
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

PROMPT: Final = "> "
FURTHER: Final = ". "
"""The prompt after a line that ends with a backslash: what is said goes on."""


def at_a_terminal() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


class Keyboard:
    """The keys of a person at a terminal: between lines that are asked for, they wait unseen. A context manager."""

    def __init__(self) -> None:
        self._seen = termios.tcgetattr(sys.stdin)
        self._unseen = [*self._seen]
        self._unseen[3] &= ~(termios.ICANON | termios.ECHO)  # each key is there at once; Ctrl-C stays what it is

    def __enter__(self) -> Keyboard:
        self._set(self._unseen)
        return self

    def __exit__(self, *_: object) -> None:
        self._set(self._seen)

    def _set(self, mode: list[Any]) -> None:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, mode)  # keys that wait are kept

    def line(self) -> str:
        """What is said next: a line, or several, of which all but the last end with a backslash, or that were pasted.

        Raises `EOFError` for Ctrl-D, `KeyboardInterrupt` for Ctrl-C.
        """
        self._set(self._seen)
        try:
            said = input(PROMPT)
            while said.endswith("\\"):
                said = f"{said[:-1]}\n{input(FURTHER)}"
            return said.strip()
        except UnicodeDecodeError:
            return ""  # what was typed is no text in this terminal's encoding
        finally:
            self._set(self._unseen)

    def lines(self, history: Iterable[str]) -> Iterator[str]:
        """The lines that say something, to Ctrl-D. `history` is what Up brings back."""
        with suppress(ImportError):  # not every Python has it; input() then has no editing
            import readline

            readline.parse_and_bind("set enable-bracketed-paste on")
            readline.clear_history()
            for line in history:
                readline.add_history(line)
        while True:
            try:
                line = self.line()
            except EOFError:
                return
            if line:
                yield line


def piped() -> Iterator[str]:
    """The lines of the standard input as they come, without those that say nothing."""
    if sys.stdin is None:
        return
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.strip():
            yield text


class Bell:
    """What wakes the main thread while it waits: whatever it waits for rings, in any thread."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)

    def close(self) -> None:
        """Ring no more."""
        self._here.close()
        self._there.close()

    def ring(self) -> None:
        """Wake who waits, or will wait next. Does nothing once it is closed."""
        with suppress(OSError):
            self._there.send(b".")

    def wait(self, keys: bool, seconds: float | None = None) -> bool:
        """Return when it has rung, or `seconds` are over (`False`), or, with `keys`, a key was pressed (`True`)."""
        ready, _, _ = select.select([self._here, *([sys.stdin] if keys else [])], [], [], seconds)
        with suppress(OSError):
            while self._here.recv(1 << 12):
                pass
        return sys.stdin in ready
