"""Which sessions `keeve chat` can talk to.

The one rule: what a type lacks is said before anything is asked of a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dataspace.errors import KeeveError
from keeve import blocking
from vat.objects.types import type_of

NEEDED: Final = ("turn", "status", "steer", "interrupt")
"""The methods that a conversation asks for."""


class NoConversation(KeeveError, TypeError):
    """A session of another type than those that can be talked to; says what its type lacks."""

    usage = True

    def __init__(self, session: str, type: str, missing: Sequence[str]) -> None:
        super().__init__(
            f"session {session!r} is a {type}, which has no {', '.join(missing)}: `keeve chat` needs the methods "
            f"{', '.join(NEEDED)}, as Session has them; look at it with `keeve show` or `keeve log`"
        )


def must_talk(host: blocking.Host, id: str, actors: Sequence[type]) -> None:
    """Raise `NoConversation` for a session that is there and cannot be talked to."""
    row = next((row for row in host.sessions(id, limit=1) if row.id == id), None)
    described = next((found for cls in actors if row is not None and (found := type_of(cls)).name == row.type), None)
    missing = [] if described is None else [name for name in NEEDED if name not in described.methods]
    if described is not None and missing:
        raise NoConversation(id, described.name, missing)
