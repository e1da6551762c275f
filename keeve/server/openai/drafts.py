"""The answer that is being given: its pieces, as they are heard.

The one rule: pieces of an attempt are told where it is sure that all of them are heard, from the first one on, and that
they are of this turn. What is missed is told when the answer is whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import trio

from vat.host.pieces import Piece, Pieces


class Draft:
    """See the file."""

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._begun = False
        """Whether the turn gives answers by now: before that, what is said is of another one."""
        self._whole = False
        """Whether all pieces of the attempt were heard."""
        self._attempt = 1
        self.came = trio.Event()
        """Set when there may be more to tell; whoever waits for it makes a new one."""

    def hear(self, piece: Piece) -> None:
        """The model has said something."""
        self._pieces.put(piece)
        self.came.set()

    def begins(self) -> None:
        """The next answer is about to be given: nothing of it was said before now."""
        self._begun, self._whole, self._attempt = True, True, 1

    def take_up(self, said: list[Piece]) -> None:
        """It is being given already, and this is all that was said of it up to now."""
        self._pieces = Pieces(said)  # those that were heard here are the last of them
        self._begun, self._whole, self._attempt = True, True, said[0].attempt if said else 1
        self.came.set()

    def upto(self, position: int) -> Iterator[Piece | None]:
        """What can be told of it that was said when the log ended there, or before; None where another attempt begins.

        Each is taken when it is asked for.
        """
        while (piece := self._pieces.first) is not None and piece.after <= position:
            piece = self._pieces.take()
            if not self._begun:
                continue
            self._whole = (self._whole or piece.attempt != self._attempt) and not piece.missed
            if piece.attempt != self._attempt:
                self._attempt = piece.attempt
                yield None
            if self._whole:
                yield piece
