"""The ids that clients are given. Each says what it names, so that nothing is stored to find it again:

    resp_, chatcmpl-    a turn of a session: its uid, and the number of the turn
    conv_               a session
    msg_, fc_, fco_, mcp_    an item of a conversation: the uid, the number of the message, which part of it

A uid is 16 bytes that nobody guesses; and who may reach its session is asked each time all the same.

The one rule: an id is a name and no permission.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TURN: Final = re.compile(r"(?:resp_|chatcmpl-)([0-9a-f]{32})([0-9a-f]{8})", re.ASCII)
_CONVERSATION: Final = re.compile(r"conv_([0-9a-f]{32})", re.ASCII)
_ITEM: Final = re.compile(r"(?:msg|fc|fco|mcp)_([0-9a-f]{32})([0-9a-f]{8})([0-9a-f]{4})", re.ASCII)


class TurnId(NamedTuple):
    """A turn of a session."""

    uid: bytes
    turn: int


class ItemId(NamedTuple):
    """A part of a message of a session: 0 is what it says, those from 1 on are its calls."""

    uid: bytes
    number: int
    part: int


def response_id(uid: bytes, turn: int) -> str:
    """The id of a response.

    >>> turn_of(response_id(b"k" * 16, 3)).turn
    3
    """
    return f"resp_{uid.hex()}{turn:08x}"


def completion_id(uid: bytes, turn: int) -> str:
    """The id of a chat completion."""
    return f"chatcmpl-{uid.hex()}{turn:08x}"


def conversation_id(uid: bytes) -> str:
    """The id of a conversation."""
    return f"conv_{uid.hex()}"


def item_id(kind: str, uid: bytes, number: int, part: int = 0) -> str:
    """The id of an item; `kind` is `msg`, `fc`, `fco` or `mcp`."""
    return f"{kind}_{uid.hex()}{number:08x}{part:04x}"


def turn_of(id: str) -> TurnId | None:
    """The turn that the id of a response names; None if it is none."""
    found = _TURN.fullmatch(id)
    return None if found is None else TurnId(bytes.fromhex(found[1]), int(found[2], 16))


def uid_of(id: str) -> bytes | None:
    """The uid of the session that is a conversation; None if the id is none."""
    found = _CONVERSATION.fullmatch(id)
    return None if found is None else bytes.fromhex(found[1])


def item_of(id: str) -> ItemId | None:
    """The part of a message that the id of an item names; None if it is none."""
    found = _ITEM.fullmatch(id)
    return None if found is None else ItemId(bytes.fromhex(found[1]), int(found[2], 16), int(found[3], 16))
