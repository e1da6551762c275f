"""Ending a turn: `interrupt`, as a conversation has it, and as an agent of one's own has it.

The one rule: what has no turns that are numbered is asked without a number; with one, only what takes it.
"""

from __future__ import annotations

from typing import Any

from keeve.faces import face
from keeve.looking.stating import outcome


async def end_turn(ref: Any, session: str, turn: int | None) -> dict[str, Any]:
    """Have a session's turn end, the one of that number or the one that runs; what its `interrupt` gave, in JSON.

    That is the number of a turn, or None; anything else is the `answer`. Raises `NoSuchMethod`, or `OtherParameters`
    for an `interrupt` that takes no turn, or more; and what it raises.
    """
    answer = await outcome(ref.interrupt() if turn is None else ref.interrupt(turn=turn))
    if answer is None or type(answer) is int:
        return {"session": session, "turn": answer}
    return {"session": session, "turn": None, "answer": face(answer)}
