"""What a command says: answers on the standard output, notes on the standard error.

For people, text: with styles on a terminal, plain elsewhere. With `--json`, JSON on the standard output and nothing
else there.

The one rule: whoever prints hands over data; that it is clean (see `keeve.cli.text`) is seen to here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from keeve.cli.text import plain, visible


class Output:
    """Where a command's answers (`out`) and notes (`err`) go."""

    def __init__(self, *, as_json: bool = False, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err
        self._console = plain_console(self.out)
        self._notes = plain_console(self.err)

    @property
    def terminal(self) -> bool:
        """Whether the answers are read on a terminal."""
        return self._console.is_terminal

    def document(self, value: Any) -> None:
        """JSON: one document on one line, or one of several lines."""
        # Escaped once more where a terminal would obey it; inside of strings that is the same JSON.
        self.out.write(visible(json.dumps(value, ensure_ascii=False, allow_nan=False)) + "\n")
        self.out.flush()

    def say(self, text: str = "", style: str = "") -> None:
        """An answer, which may have several lines."""
        self._console.print(Text(plain(text), style), soft_wrap=True)

    def piece(self, text: str, style: str = "") -> None:
        """A part of an answer that goes on; the caller has cleaned it."""
        self._console.print(Text(text, style), end="", soft_wrap=True)
        self.out.flush()

    def note(self, text: str, style: str = "dim", *, prose: bool = False) -> None:
        """Something beside the answer: where it cannot be told, the answer is what counts.

        On a terminal `prose` is broken between words; all else stays one line, which can be copied.
        """
        with suppress(OSError):
            self._notes.print(Text(plain(text), style), soft_wrap=not (prose and self._notes.is_terminal))

    def passing(self, text: str) -> None:
        """What is being done, on a line that the next one overwrites; on a terminal only. The empty text clears it."""
        if self._notes.is_terminal and not self._notes.is_dumb_terminal:
            with suppress(OSError):
                self.err.write(f"\r\x1b[K{set_cell_size(visible(text), min(cell_len(text), self._notes.width - 1))}")
                self.err.flush()

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows under columns. On a terminal the last column is cut at its edge."""
        lines = [[visible(cell) for cell in row] for row in (columns, *rows)]
        widths = [max(cell_len(line[n]) for line in lines) for n in range(len(columns) - 1)]
        for number, line in enumerate(lines):
            cells = [set_cell_size(cell, width) for cell, width in zip(line, widths, strict=False)]
            text = "  ".join([*cells, line[-1]]).rstrip()
            if self.terminal and cell_len(text) > self._console.width:
                text = set_cell_size(text, self._console.width - 1) + "…"
            self._console.print(Text(text, "bold" if number == 0 else ""), soft_wrap=True)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # The library would end the process, with 1.
        raise BrokenPipeError


def plain_console(stream: TextIO) -> Console:
    """A console that makes nothing of what it is given, and says of a broken pipe what it is."""
    return _Console(file=stream, highlight=False, markup=False, emoji=False)
