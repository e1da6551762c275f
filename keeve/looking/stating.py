"""Whether a session states its turns: by these facts it is known which number an input has been given.

The one rule: nobody is asked here. What a `status()` has given is looked at, see `asking.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy

SAY_AS_TURN: Final = Remedy(
    "say-as-turn", "say it as a turn, and wait for what comes of it; or call its own methods, such as ref.steer(...)"
)


class StatesNoTurns(KeeveError, TypeError):
    """A session's type states no turns, as one's own agents do not: an input to it cannot be known by its number.

    error: what its `status()` has failed with, where that is why nobody can tell.
    """

    usage: ClassVar[bool] = True

    def __init__(self, session: str, error: str = "") -> None:
        self.session = session
        self.error = error
        why = f"cannot say whether it states its turns, since its status() fails ({error})"
        super().__init__(
            f"session {session!r} {why if error else 'is of a type that states no turns'}, so that an input to it has "
            f"no number to be known by: {'mend that, or ' if error else ''}{SAY_AS_TURN()}"
        )


def states_turns(status: Any) -> bool:
    """Whether what a session's `status()` gives says that it states its turns. A type of one's own may tell how many
    turns it has accepted, and cannot state them."""
    return isinstance(status, dict) and type(status.get("accepted")) is int and status.get("stated") is True
