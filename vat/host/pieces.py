"""A piece: something that a running effect told, as a model's answer comes.

The one rule: it is a preview. Nothing of it is in the log, and what counts is what the log has.
"""

from __future__ import annotations

import attrs

from dataspace.values import Value


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
