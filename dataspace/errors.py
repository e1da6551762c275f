"""The root of every error that Keeve raises.

Errors are nouns that carry data. Each package defines its own beside the code that raises them; all of
them are `KeeveError`, so that a caller can catch what is ours and let the rest pass. A message says what
is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import ClassVar


class KeeveError(Exception):
    """Something that Keeve refuses or cannot do.

    `usage` tells the two kinds apart: `True` when the caller asked for something that cannot be (the
    command line ends with 2), `False` when what was asked is fine and failed (it ends with 1).
    """

    usage: ClassVar[bool] = False


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is Ctrl-C, or a group with that in it. All else that users' code raises is its own affair."""
    todo = [error]
    while todo:
        found = todo.pop()
        if isinstance(found, KeyboardInterrupt):
            return True
        if isinstance(found, BaseExceptionGroup):
            todo.extend(BaseExceptionGroup.exceptions.__get__(found))
    return False
