"""What models have said of the answers that they are giving: for who begins to listen in the middle of one.

Of each session the pieces of its newest answer are kept, those of the newest attempt. Nothing counts on it: an answer
of which this does not have all is told when it is whole.

The one rule: it holds what was told at some moment, and never waits.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import attrs

from vat.host.watching import Piece

SESSIONS: Final = 1000
"""Sessions whose newest answer is kept."""

PIECES: Final = 10_000
"""Pieces of an answer that are kept; of a longer one none are."""


@attrs.define
class Answer:
    """The pieces of one attempt at an answer; None where there were too many."""

    effect: str
    attempt: int
    pieces: list[Piece] | None


class Heard:
    """Hears what all running effects tell (`Host.on_progress`)."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._all = True
        """Whether the newest answer of every session is here, of which a piece was told."""

    def hear(self, piece: Piece) -> None:
        """A running effect tells something."""
        if piece.method != "complete":
            return
        answer = self._answers.get(piece.session)
        if answer is None or (answer.effect, answer.attempt) != (piece.effect, piece.attempt):
            answer = self._answers[piece.session] = Answer(piece.effect, piece.attempt, [])
            self._answers.move_to_end(piece.session)
            if len(self._answers) > SESSIONS:
                self._answers.popitem(last=False)
                self._all = False
        if answer.pieces is not None:
            answer.pieces.append(piece)
            if len(answer.pieces) > PIECES:
                answer.pieces = None

    def of(self, session: str, effect: str) -> list[Piece] | None:
        """All pieces of the answer that this effect of a session gives, so far; None if some may be missing."""
        answer = self._answers.get(session)
        if answer is not None and answer.effect == effect:
            return None if answer.pieces is None else list(answer.pieces)
        return [] if self._all or answer is not None else None

    def forget(self, session: str) -> None:
        """The answer is whole."""
        self._answers.pop(session, None)
