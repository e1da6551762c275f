"""The pieces of one turn: of all that a session's effects tell, what is told while that turn runs.

A piece says behind which position of the log it was told, and `TurnSpans` where a turn runs. Where all turns before it
were over when somebody began to hear, its pieces are told from the first one on.

The one rule: what is not sure to be of the turn is not told.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import trio

from keeve.looking import TurnSpans
from keeve.server.status import status_there
from vat.host.host import Host
from vat.host.outside import HostRef
from vat.host.pieces import Piece, Pieces


class TurnPieces:
    """What is heard of a turn. `over`: how many turns were over when it began to be heard, or shortly before that."""

    def __init__(self, over: int) -> None:
        self._spans = TurnSpans(over)
        self._accepted: tuple[int, int] | None = None
        """Its number, and where it was accepted."""
        self._pieces = Pieces()
        self.began = inf
        """The position behind which its pieces are told; infinite until that is known."""
        self.came = trio.Event()
        """Set when there may be more to tell; whoever waits for it makes a new one."""

    def hear(self, piece: Piece) -> None:
        """An effect of the session tells something. That an attempt has failed counts as well as text."""
        if piece.text or piece.failed:
            self._pieces.put(piece)
            self.came.set()

    def accepted(self, number: int, position: int) -> None:
        """It was accepted, by the record at that position. A turn that was over already has no more pieces."""
        self._accepted = number, position
        self._look()

    def ended(self, number: int, position: int) -> None:
        """A turn was over, by the record at that position."""
        self._spans.ended(number, position)
        self._look()

    def _look(self) -> None:
        if self._accepted is not None and self.began == inf:
            self.began, _ = self._spans.of(*self._accepted)
            if self.began < inf:
                self.came.set()

    def before(self, position: float = inf) -> Iterator[Piece]:
        """Its pieces that were told before the record at that position, each taken when it is asked for."""
        while self.began < inf and (piece := self._pieces.first) is not None and piece.after < position:
            piece = self._pieces.take()
            if piece.after >= self.began:
                yield piece


async def turns_over(host: Host, ref: HostRef[Any]) -> int:
    """How many turns of a session are over; 0 for one of a type that has nothing to read that tells it."""
    status = await status_there(host, ref)
    over = status.get("over") if isinstance(status, dict) else None
    return over if type(over) is int else 0
