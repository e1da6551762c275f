"""The command line: `keeve chat`, `ls`, `show`, `log`, `fork`, `effects`, `resolve`, `approve`, `refuse`, `delete`,
`verify`, `doctor`; `checkpoint`, `prove`, `check`, `keys`; `new-key`, `rekey`; `dump`, `salvage`; and `gc`, `erase`,
`archive`.

A command ends with 0; with 2 when it was asked for what cannot be (a `KeeveError` whose `usage` is true, or words that
are no command), with 1 when what was asked is fine and failed, with 130 when Ctrl-C ended it, with 141 when nobody
reads on.

The one rule: what is refused is said in words. A traceback is a mistake of ours, or was asked for with `--debug`.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from traceback import format_exception
from typing import TextIO

from cyclopts import CycloptsError

from dataspace.errors import KeeveError
from keeve import starting
from keeve.cli.commands import app as program
from keeve.cli.output import plain_console
from keeve.cli.streams import plug, unplug
from keeve.cli.text import plain
from keeve.cli.words import in_order, of_all_commands, said
from keeve.remedies import worded
from vat.devices.outcomes import alone

__all__ = ["main", "run"]

FAILED, USAGE, INTERRUPTED, UNHEARD = 1, 2, starting.INTERRUPTED, 141
DEBUG = "--debug"


def main() -> None:
    """The `keeve` program."""
    starting.has_started()
    heard = plug()
    _log_to_stderr(logging.DEBUG if DEBUG in sys.argv else logging.WARNING)
    code = run(sys.argv[1:]) if heard else _refuse("the standard output is closed: open it, or use /dev/null", FAILED)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = UNHEARD
    except OSError as error:
        code = code if code == FAILED else _failed(error)  # who has failed by now has said so
    if code in (UNHEARD, FAILED):
        unplug(1)
    try:
        sys.stderr.flush()
    except OSError:  # what stands in its buffer can be told to nobody
        unplug(2)
    sys.exit(code)


def run(tokens: Sequence[str]) -> int:
    """Run a command line; gives its exit code. What there is to say is said on the standard streams."""
    try:
        console = plain_console(sys.stdout)
        words = in_order(tokens)
        if of_all_commands(words):
            program.resolved_commands()  # of a command that is not imported, no more than its name would be told
        code = program(words, console=console, exit_on_error=False, print_error=False)
        return code if isinstance(code, int) else 0
    except CycloptsError as wrong:
        command = " ".join(["keeve", *(wrong.command_chain or ())])
        return _refuse(f"{said(wrong)}\nTry: {command} --help", USAGE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return UNHEARD
    except (KeeveError, OSError, BaseExceptionGroup) as raised:
        error = alone(raised)
        if not isinstance(error, KeeveError | OSError):
            raise
        if DEBUG in tokens:
            print(plain("".join(format_exception(error))), file=sys.stderr)
        if isinstance(error, KeeveError):
            return _refuse(worded(str(error), "commands"), USAGE if error.usage else FAILED)
        return _failed(error)


def _failed(error: OSError) -> int:
    # What the disk refuses is a `KeeveError` that names its file: what has none is what the command says.
    where = error.filename or "the output cannot be written"
    return _refuse(f"{where}: {error.strerror or error}", FAILED)


def _refuse(message: str, code: int) -> int:
    told = (handler.told for handler in logging.getLogger("keeve").handlers if isinstance(handler, _Warnings))
    if any(message in each for each in told):  # the host has said it, in these words
        return code
    with suppress(OSError):  # where nobody can be told, the code says it
        print(f"keeve: {plain(message)}", file=sys.stderr, flush=True)
    return code


class _Clean(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return plain(worded(super().format(record), "commands"))


class _Warnings(logging.StreamHandler[TextIO]):
    """Tells what a host logs, and keeps the newest of what it has told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: deque[str] = deque(maxlen=100)

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        self.told.append(worded(record.getMessage(), "commands"))


def _log_to_stderr(level: int) -> None:
    handler = _Warnings()
    handler.setFormatter(_Clean("keeve: %(message)s"))
    root = logging.getLogger("keeve")
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False
