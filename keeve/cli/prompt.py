"""Where the lines of a conversation come from: a person at a terminal, or whatever else is the standard input.

The one rule: lines are asked for in the main thread, so that Ctrl-C ends the asking, and readline leaves the terminal
as it was.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any

PROMPT = "> "


def at_a_terminal() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def typed(history: Iterable[str]) -> Iterator[str]:
    """The lines that a person types, to Ctrl-D. Ctrl-C raises `KeyboardInterrupt`. `history` is what Up brings back."""
    with suppress(ImportError):  # not every Python has it; input() then has no editing
        import readline

        readline.clear_history()
        for line in history:
            readline.add_history(line)
    while True:
        try:
            line = input(PROMPT)
        except EOFError:
            return
        except UnicodeDecodeError:
            continue  # what was typed is no text in this terminal's encoding
        if line.strip():
            yield line


def piped() -> Iterator[str]:
    """The lines of the standard input as they come, without those that say nothing."""
    if sys.stdin is None:
        return
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.strip():
            yield text


class Asked:
    """Something that is waited for in a thread of its own, so that this one hears what is typed meanwhile."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.future: Future[Any] = Future()
        Thread(target=self._ask, args=(ask,), daemon=True).start()

    def _ask(self, ask: Callable[[], Any]) -> None:
        try:
            self.future.set_result(ask())
        except BaseException as error:  # noqa: BLE001  # it is given to who waits
            self.future.set_exception(error)

    def typed(self) -> Iterator[str]:
        """The lines that are typed until it has come; the empty one is Ctrl-D, after which nothing is heard."""
        done, wake = os.pipe()
        self.future.add_done_callback(lambda _: os.close(wake))  # the other end can be read then
        try:
            listening = [sys.stdin.fileno(), done]
            while done not in _ready(listening):
                line = os.read(listening[0], 1 << 16)
                if not line:
                    del listening[0]
                    yield ""
                elif text := line.decode("utf-8", "replace").strip():
                    yield text
        finally:
            os.close(done)


def _ready(files: list[int]) -> list[int]:
    """Which of these files can be read, when one can; the last one where a system cannot tell."""
    try:
        return select.select(files, [], [])[0]
    except OSError:  # where only sockets can be waited for
        os.read(files[-1], 1)
        return files[-1:]
