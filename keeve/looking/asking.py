"""Asking a session what every agent may have: what comes of a call (`outcome`), `status`, and `interrupt`, which ends a
turn.

The one rule: an agent of one's own has these as it likes, or has none of them. So nothing is asked of it that it need
not have to answer, what it gives is told as its own, and for a look nothing of it is called that may write.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

import trio

from actors.session import Session
from dataspace.errors import KeeveError
from keeve.faces import face
from keeve.looking.sessions import CONVERSATIONS
from keeve.looking.stating import StatesNoTurns, states_turns
from vat.errors import BadCall, Failed, NoSuchMethod, ReadOnly
from vat.objects.types import type_of

PATIENCE: Final = 2.0
"""Seconds for a `status` of which an answer does not depend: one of one's own may wait for anything."""

_SESSION: Final = frozenset(type_of(Session).public)


async def outcome(awaited: Awaitable[Any]) -> Any:
    """What comes of a call; an error of the session's own, of whatever class, as `Failed`."""
    try:
        return await awaited
    except KeeveError:
        raise
    except Exception as error:
        raise Failed(type(error).__name__, str(error)) from error


async def told_status(ref: Any) -> Any:
    """What a session tells of how far it is; None for one of a type that has nothing to read that can be asked so.
    Raises `Failed` where it raises something.

    A method that is not marked `@read` is not called: whatever it may do, nobody has asked for it. Which ones are, a
    server of an earlier version does not tell: there it is called, as commands of that version call it.
    """
    try:
        described = await ref.describe()
        readable = described.get("reads", described["methods"])
        if "status" not in readable and "status" not in described["fields"]:
            return None
        return await outcome(ref.status())
    except (NoSuchMethod, BadCall, ReadOnly):
        return None


async def status_of(ref: Any) -> Any:
    """The same; None also for one whose `status` fails."""
    try:
        return await told_status(ref)
    except Failed:
        return None


async def must_state_turns(ref: Any, session: str) -> None:
    """Raise `StatesNoTurns` unless a session states its turns.

    It is asked before anything is said, so that nothing is accepted of which nobody could tell.
    """
    try:
        status = await told_status(ref)
    except Failed as error:
        raise StatesNoTurns(session, str(error)) from error
    if not states_turns(status):
        raise StatesNoTurns(session)


async def end_turn(ref: Any, session: str, turn: int | None, request: str | None = None) -> dict[str, Any]:
    """Have a session's turn end, the one of that number or the one that runs; what its `interrupt` gave, in JSON. Asked
    again with its `request` id it is what it was the first time, and no other turn ends.

    That is the number of a turn, or None if there was none to end; of a type that states no turns, and of whatever else
    it gave, it is the `answer`. What has no turns that are numbered is asked without a number; with one, only what
    takes it. Raises `NoSuchMethod`, or `OtherParameters` for an `interrupt` that takes no turn, or more; and what it
    raises.
    """
    states = await _is_conversation(ref)  # before: when it has ended, the host may be about to end as well
    answer = await outcome(ref.interrupt(request=request, **({} if turn is None else {"turn": turn})))
    numbered = answer is None or type(answer) is int
    ended = {"session": session, "turn": answer if numbered else None}
    if numbered and (states or await _says_that_it_states(ref)):
        return ended
    return {**ended, "answer": face(answer)}


async def _is_conversation(ref: Any) -> bool:
    """Whether a session is a conversation, by what it has: one that is made of `Session` has all that this has. False
    where nobody can tell now, which is no failure of what is asked besides."""
    try:
        described = await ref.describe()
    except KeeveError:
        return False
    return described["type"] in CONVERSATIONS or _SESSION.issubset((*described["methods"], *described["fields"]))


async def _says_that_it_states(ref: Any) -> bool:
    """Whether a session says that it states its turns. What fails or waits here is no part of what was asked before."""
    with trio.move_on_after(PATIENCE):
        try:
            return states_turns(await told_status(ref))
        except KeeveError:
            return False
    return False
