"""Which sessions `keeve chat` can talk to.

The one rule: what a type lacks is said before anything is asked of a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dataspace.errors import KeeveError
from keeve.looking import CONVERSATION, StatesNoTurns, must_state_turns
from vat.objects.types import type_of

NEEDED: Final = ("turn", "status", "steer", "interrupt")
"""The methods that a conversation asks for."""


class NoConversation(KeeveError, TypeError):
    """A session of another type than those that can be talked to; says what its type lacks."""

    usage = True

    def __init__(self, session: str, type: str, missing: Sequence[str]) -> None:
        say = "" if NEEDED[0] in missing else "say something to it with `keeve turn`, "
        super().__init__(
            f"session {session!r} is a {type}, which has no {', '.join(missing)}: `keeve chat` needs the methods "
            f"{', '.join(NEEDED)}, as Session has them; {say}look at it with `keeve show` or `keeve log`"
        )


async def must_talk(ref: Any, id: str, type: str, actors: Sequence[type]) -> None:
    """Raise `NoConversation` for a session of that type that cannot be talked to.

    Of a type that is not among `actors` it is asked itself.
    """
    described = next((found for cls in actors if (found := type_of(cls)).name == type), None)
    if described is not None:
        missing = [name for name in NEEDED if name not in described.methods]
        if missing:
            raise NoConversation(id, described.name, missing)
    elif type != CONVERSATION:
        try:
            await must_state_turns(ref, id)
        except StatesNoTurns as error:
            if error.error:  # it may have all that is needed: nobody can tell
                raise
            raise NoConversation(id, type, ["status of its turns"]) from None
