"""What models have used: counted once for each answer, by the model that gave it and what it was for.

    usage          {"small-1": {"turn": {"total_tokens": 40, ...}, "summary": {...}}}
    own_usage()    the same, without what was counted before this session was forked

An answer is counted in the crank that records it, so whatever is asked again (an attempt that failed, a call that was
under way when the host ended) counts when it is answered, and never twice.

The one rule: `usage` only grows, and goes on in a fork from where its parent was; `_own` begins anew when a
fork parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.counts import LONGEST_NAME, summed
from actors.session.forking import Forking
from vat.objects.actor import Device
from vat.objects.collections import Map
from vat.objects.types import read


class Usage(Forking):
    """The part of a session that counts."""

    # Of the session's settings.
    model: Device

    usage: Map[str, Mapping[str, Any]]

    _own: Map[str, Mapping[str, Any]]
    """As `usage`, without what was counted before the fork. A fork has its parent's until it parts."""

    @read
    def own_usage(self) -> dict[str, Any]:
        """What this session's own answers have used: as `usage`, without what its parent had used before the fork.

        The sum of it over a session and all of its forks is what the models have counted.
        """
        return {} if self._inherited() else dict(self._own)

    def _count(self, answer: Mapping[str, Any], purpose: str) -> None:
        """Count what one answer of a model device says that it has used. Turns count for `"turn"`.

        For subclasses that ask a model for something else: to be called where the answer is recorded, which is once.
        """
        used = answer.get("usage")
        if not isinstance(used, Mapping) or not used:
            return
        model = answer.get("model") or str(self.model)
        name = model[:LONGEST_NAME] if isinstance(model, str) and model else "unknown"
        self._part()
        for counts in (self.usage, self._own):
            before = counts.get(name, {})
            counts[name] = {**before, purpose: summed(before.get(purpose, {}), used)}
