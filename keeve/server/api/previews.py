"""Previews in a stream of facts: what models say of answers that they are giving, between the facts where it was said.

A piece says behind which position of the log it was told. It is told here once the stream has come that far, and before
what came later. Who begins to look in the middle of an answer is told first all that was said of it, or where nobody
has kept that, with the next piece, that some are missed.

The one rule: pieces are a preview. They have no cursor, and what counts is the fact that has all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import trio

from keeve.server.heard import METHOD, Heard
from keeve.server.serving import Serving
from keeve.server.streams import Sent, as_event
from vat.host.pieces import Piece, Pieces
from vat.host.resolving import EffectStatus
from vat.host.within import in_hand


@attrs.frozen
class SoFar:
    """All that was said of an answer, as one piece, and as it is sent to each who begins to look there."""

    piece: Piece
    sent: Sent

    @classmethod
    def of(cls, piece: Piece) -> SoFar:
        """Make it. Costs its text."""
        said = {**piece_face(piece), "so_far": True}
        return cls(piece, Sent(said, "piece", framed=as_event(Sent(said, "piece"))))


class Previews:
    """What is told of a session, from when this was made until `close`."""

    def __init__(self, serving: Serving, session: str) -> None:
        self._pieces = Pieces()
        self._so_far = serving.heard.so_far(session, SoFar.of)
        if self._so_far is not None:
            self._pieces.put(self._so_far.piece)
        self._begun = {
            effect.id
            for effect in in_hand(serving.host)
            if effect.session == session and effect.state == "running" and not _known(serving.heard, effect)
        }
        """The effects that may have told something of which nothing is known."""
        self.close = serving.host.on_progress(self._hear, session)
        self.came = trio.Event()
        """Set when there may be more to tell; whoever waits for it makes a new one."""

    def _hear(self, piece: Piece) -> None:
        if piece.text or piece.failed:
            self._pieces.put(piece)
            self.came.set()

    def upto(self, position: int) -> Iterator[Sent]:
        """What was told when the log ended there, or before; each is taken when it is asked for."""
        while (piece := self._pieces.first) is not None and piece.after <= position:
            piece = self._pieces.take()
            if piece.effect in self._begun:
                self._begun.discard(piece.effect)
                piece = attrs.evolve(piece, missed=piece.missed + 1)
            if self._so_far is not None and piece is self._so_far.piece:
                yield self._so_far.sent
            else:
                yield Sent({**piece_face(piece), "so_far": False}, "piece")


def _known(heard: Heard, effect: EffectStatus) -> bool:
    """Whether all that an effect has told up to now is known."""
    if effect.method != METHOD or not heard.keeps(effect.session):
        return False
    return heard.of(effect.session, effect.id) is not None


def piece_face(piece: Piece) -> dict[str, Any]:
    """A piece in JSON."""
    said = {"text": piece.text, "attempt": piece.attempt, "failed": piece.failed, "missed": piece.missed}
    return {**said, "effect": piece.effect}
