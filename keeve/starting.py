"""While the program `keeve` starts: Ctrl-C ends it with 130 and no word, and no garbage is looked for.

To import everything takes a moment, in which Python would answer Ctrl-C with a traceback, and look again and again
through what stays to the end. `keeve.cli.main` has both be as Python has them again.

The one rule: a program that only imports `keeve` keeps its own Ctrl-C, and its own garbage collector.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from itertools import pairwise

INTERRUPTED = 130

_stopped = False
"""Whether the garbage collector was stopped here, and by nobody else."""


def starts() -> None:
    """If this process is the program `keeve`: have Ctrl-C end it at once, unless somebody has said otherwise, and look
    for no garbage."""
    global _stopped
    if is_the_program(sys.argv, sys.orig_argv):
        _stopped = gc.isenabled()
        gc.disable()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)


def has_started() -> None:
    """From here on Ctrl-C is a `KeyboardInterrupt`; what is there stays, and is not looked through for garbage.

    A collector that somebody else has stopped stays as it is.
    """
    global _stopped
    if _stopped:
        _stopped = False
        gc.freeze()
        gc.enable()
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_the_program(argv: list[str], given: list[str]) -> bool:
    """Whether these are the words of `keeve` or `python -m keeve`; `given` are those that Python itself was given.

    >>> is_the_program(["/usr/bin/keeve", "ls"], ["python3", "/usr/bin/keeve", "ls"])
    True
    >>> is_the_program(["-m", "ls"], ["python3", "-m", "keeve", "ls"])
    True
    >>> is_the_program(["keeve.py"], ["python3", "keeve.py"]) or is_the_program(["-m"], ["python3", "-m", "shop"])
    False
    """
    if argv[:1] == ["-m"]:
        return any(pair == ("-m", "keeve") for pair in pairwise(given))
    return bool(argv) and os.path.basename(argv[0]) == "keeve"


def _end(*_: object) -> None:
    os._exit(INTERRUPTED)
