"""Counting what sessions do, from what they state: turns by how they end, and the tokens that these have used.

The one rule: counted from when the server starts, whoever asks for a turn; and nothing is read for it, since every turn
passes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dataspace.facts import Fact
from keeve.faces import ENDS
from keeve.server.serving import Serving

KINDS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
"""What of a usage is counted."""


def count_turns(serving: Serving) -> None:
    """From now on, count."""

    def heard(fact: Fact) -> None:
        serving.metrics.turned(ENDS.get(fact.label, "accepted"))
        usage = fact.keywords.get("usage")
        if not isinstance(usage, Mapping):
            return
        for kind in KINDS:
            count = usage.get(kind)
            if type(count) is int and count > 0:
                serving.metrics.used(kind.removesuffix("_tokens"), count)

    serving.host.on_fact(("turn", *ENDS), heard)
    serving.metrics.shows("keeve_log_position", "The position at the end of the log.", lambda: _position(serving))


def _position(serving: Serving) -> int:
    return serving.host.observe("(_ . _)", after="head").cursor.position
