"""The root of every error that Keeve raises.

Errors are nouns that carry data. Each package defines its own beside the code that raises them; all of
them are `KeeveError`, so that a caller can catch what is ours and let the rest pass. A message says what
is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import Any, ClassVar


class KeeveError(Exception):
    """Something that Keeve refuses or cannot do.

    `usage` tells the two kinds apart: `True` when the caller asked for something that cannot be (the
    command line ends with 2), `False` when what was asked is fine and failed (it ends with 1). `ordinary`:
    it is how things go, and no failure; logs say it without where it came from. `quotes`: its message may have in it
    what somebody said or gave, and content is in no log. A class whose messages never do says so itself
    (`class DiskFull(KeeveError, quotes=False)`): what is derived from it has other words, and says it anew.
    Lines of logs have it from `dataspace.in_logs`.
    """

    usage: ClassVar[bool] = False
    ordinary: ClassVar[bool] = False
    quotes: ClassVar[bool] = True

    def __init_subclass__(cls, *, quotes: bool = True, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.quotes = quotes

    @property
    def named(self) -> str:
        """The name of its class; of one that stands for another, of that one."""
        return type(self).__name__

    @property
    def logged(self) -> str:
        """What a log says of it: its message, or only what it is, its class, where that may quote something."""
        return self.named if self.quotes else str(self)


class Broken(KeeveError):
    """An outcome that cannot come any more; the base of the reasons that the runtime itself gives."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Deleted(Broken, quotes=False):
    """The session that was asked, or listened to, has been deleted; its id and uid never come back."""

    usage: ClassVar[bool] = True


def gone(session: str) -> Deleted:
    """The error for a session that was deleted."""
    return Deleted(f"session {session!r} has been deleted, and its id never comes back: use another")
