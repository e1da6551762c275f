"""Verbs: whether what is asked of a session is to `read` it, a `turn`, or to `manage` it.

Over HTTP, at `/v1`, on the page and over a connection the same thing needs the same verb, and tokens name it the same:

    a method of an actor    as it is marked: `@read`, `@manage`, or neither, which is a turn; a field is read
    what every ref has      EVERY_REF
    what the desk is asked  AT_THE_DESK

The one rule: the verb of a thing is said here, or on the method itself, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vat.host.host import Host
from vat.host.outside import HostRef
from vat.objects.types import ActorType

READ: Final = "read"
TURN: Final = "turn"
MANAGE: Final = "manage"

EVERY_REF: Final[Mapping[str, str]] = {
    "describe": READ,
    "fork": MANAGE,
    "narrow": MANAGE,
    "revoke": MANAGE,
    "snapshot": MANAGE,
}
"""What every ref to an actor has besides the actor's own."""

AT_THE_DESK: Final[Mapping[str, str]] = {
    "approve": MANAGE,
    "delete": MANAGE,
    "erase": MANAGE,
    "facts": READ,
    "get": READ,
    "look": READ,
    "observe": READ,
    "refuse": MANAGE,
    "resolve": MANAGE,
    "sessions": READ,
    "spawn": MANAGE,
    "watch": READ,
}
"""What is asked by a session's id, or of none, by the names that tokens have of it."""


def verb_in(kind: ActorType, method: str) -> str:
    """The verb of a method or a field of actors of that type. What they do not have is a turn, which fails."""
    if method in EVERY_REF:
        return EVERY_REF[method]
    found = kind.methods.get(method)
    if found is None:
        return READ if method in kind.fields else TURN
    return MANAGE if found.manage else READ if found.read else TURN


def verb_of(host: Host, ref: HostRef[object], method: str) -> str:
    """The verb of a call. Costs a restore for an actor inside of a session that is not in memory."""
    if method in EVERY_REF:
        return EVERY_REF[method]
    kind = host.described(ref)
    return READ if kind is None else verb_in(kind, method)
