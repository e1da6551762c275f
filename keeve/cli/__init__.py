"""The command line: `keeve chat`, `ls`, `show`, `log`, `fork`, `effects`, `resolve`, `delete`, `verify`, `doctor`.

A command ends with 0; with 2 when it was asked for what cannot be (a `KeeveError` whose `usage` is true, or words that
are no command), with 1 when what was asked is fine and failed, with 130 when Ctrl-C ended it, with 141 when nobody
reads on.

The one rule: what is refused is said in words. A traceback is a mistake of ours, or was asked for with `--debug`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from traceback import format_exception

from cyclopts import CycloptsError

from dataspace.errors import KeeveError
from keeve.cli.advice import advised
from keeve.cli.app import app as commands
from keeve.cli.text import plain
from vat.devices.outcomes import alone

__all__ = ["main", "run"]

FAILED, USAGE, INTERRUPTED, UNHEARD = 1, 2, 130, 141
DEBUG = "--debug"


def main() -> None:
    """The `keeve` program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    _log_to_stderr(logging.DEBUG if DEBUG in sys.argv else logging.WARNING)
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = UNHEARD
    if code == UNHEARD:
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(tokens: Sequence[str]) -> int:
    """Run a command line; gives its exit code. What there is to say is said on the standard streams."""
    try:
        code = commands(list(tokens), exit_on_error=False, print_error=False)
        return code if isinstance(code, int) else 0
    except CycloptsError as wrong:
        command = " ".join(["keeve", *(wrong.command_chain or ())])
        return _refuse(f"{wrong}\nTry: {command} --help", USAGE)
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
            return _refuse(advised(str(error)), USAGE if error.usage else FAILED)
        where = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{where}{error.strerror or error}", FAILED)


def _refuse(message: str, code: int) -> int:
    print(f"keeve: {plain(message)}", file=sys.stderr)
    return code


class _Clean(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record))


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Clean("keeve: %(message)s"))
    root = logging.getLogger("keeve")
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False
