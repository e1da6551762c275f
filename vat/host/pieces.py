"""Pieces: what running effects tell, as a model's answer comes; and those that wait for one who takes them.

The one rule: they are a preview. Nothing of them is in the log, and what counts is what the log has. So who is slow
loses the oldest, and nobody waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

import attrs

from dataspace.values import Value

WAITING: Final = 10_000
"""Pieces that wait for one who takes them."""


@attrs.frozen
class Piece:
    """Something that a running effect told.

    session: the id of the session that wants the effect. effect: the effect's id, the same in every attempt.
    device, method: who told it. value: what was told. after: the position of the newest durable record then, so that
    events up to there came before it. missed: how many pieces before it the watcher was too slow for.
    """

    session: str
    effect: str
    device: str
    method: str
    value: Value
    after: int
    missed: int = 0

    @property
    def text(self) -> str:
        """What it adds to the text of a model's answer; "" if it tells of something else."""
        delta = self.value.get("delta") if isinstance(self.value, dict) else None
        content = delta.get("content") if isinstance(delta, dict) else None
        return content if isinstance(content, str) else ""

    @property
    def failed(self) -> str:
        """Why the attempt that told it has failed, if the model is asked again; "" if it tells of something else."""
        failed = self.value.get("failed") if isinstance(self.value, dict) else None
        return failed if isinstance(failed, str) else ""

    @property
    def attempt(self) -> int:
        """Which attempt of the device at this effect told it, from 1: with a new one, what was told before is void."""
        attempt = self.value.get("attempt") if isinstance(self.value, dict) else None
        return attempt if type(attempt) is int else 1


class Pieces:
    """Pieces that wait, in order: the newest `WAITING` at most. The next one that is taken says how many were lost."""

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self._waiting = deque(pieces)
        self._missed = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def first(self) -> Piece | None:
        """The one that is taken next."""
        return self._waiting[0] if self._waiting else None

    def put(self, piece: Piece) -> None:
        """One more."""
        if len(self._waiting) >= WAITING:
            self._waiting.popleft()
            self._missed += 1
        self._waiting.append(piece)

    def take(self) -> Piece:
        """The first of them. Raises `IndexError` when none waits."""
        piece = self._waiting.popleft()
        if self._missed:
            piece, self._missed = attrs.evolve(piece, missed=self._missed), 0
        return piece
