"""Where the lines of a conversation come from: a person at a terminal, or whatever else is the standard input.

The one rule: lines are asked for in the main thread, so that Ctrl-C ends the asking, and readline leaves the terminal
as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

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
