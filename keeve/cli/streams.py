"""The standard streams, whatever a command was given as such.

A command may be started with any of the three closed. What it opens next would then get the number of a standard
stream, and whatever is said to that stream would go into it: into the log, for one.

The one rule: no number of a standard stream is ever a file of ours.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper


def plug() -> bool:
    """See to it that all three are open, and can be written any text. False when there is no standard output."""
    heard = _there(1)
    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_WRONLY), (2, "stderr", os.O_WRONLY)):
        if not _there(number):
            os.open(os.devnull, flags)  # it gets the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return heard


def unplug(number: int) -> None:
    """Have nothing more written to a standard stream: Python flushes once more at its end, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _there(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
