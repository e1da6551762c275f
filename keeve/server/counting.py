"""Counting what sessions do, from what they state: turns by how they end, and the tokens that these have used.

The one rule: counted from when the server starts, by observers like any others, so that it is one who asks for a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dataspace.observe.events import Event
from keeve.faces import ENDS
from keeve.server.serving import Serving

KINDS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
"""What of a usage is counted."""


def count_turns(serving: Serving) -> None:
    """From now on, count."""

    def heard(event: Event) -> None:
        fact = event.value
        if event.kind != "assert":
            return
        serving.metrics.turned(ENDS.get(fact.label, "accepted"))
        usage = fact.keywords.get("usage")
        if not isinstance(usage, Mapping):
            return
        for kind in KINDS:
            count = usage.get(kind)
            if type(count) is int and count > 0:
                serving.metrics.used(kind.removesuffix("_tokens"), count)

    for label in ("turn", *ENDS):
        serving.host.observe(f"({label} . _)", heard, after="head")
    serving.metrics.shows("keeve_log_position", "The position at the end of the log.", lambda: _position(serving))


def _position(serving: Serving) -> int:
    return serving.host.observe("(_ . _)", after="head").cursor.position
