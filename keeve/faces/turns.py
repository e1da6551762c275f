"""The turns of a session, put together from what it has stated.

The one rule: a function of events. A turn is what its facts say, and nothing is asked of the session itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from actors.tools import CallRefused
from dataspace.observe.events import Event
from keeve.faces.values import face, utc_time

TELLING = frozenset(
    ("turn", "model-output", "tool-call", "tool-result", "tool-unknown", "turn-done", "turn-failed", "turn-interrupted")
)
"""The labels of the facts that are looked at."""

ENDS = {"turn-done": "done", "turn-failed": "failed", "turn-interrupted": "interrupted"}
"""The labels of those that end a turn, and what it is then."""


@attrs.define
class Turn:
    """One exchange. `state` is `open` until it is `done`, `failed` or `interrupted`; times in µs since 1970."""

    number: int
    seq: int
    began: int
    input: Any
    by: Any = None
    via: Any = None
    request: Any = None
    state: str = "open"
    ended: int = 0
    end: int = 0
    """The seq of the record with which it was over."""
    limit: Any = None
    """The limit that ended it early."""
    output: Any = None
    error: Any = None
    usage: Any = None
    answers: int = 0
    """How often the model has answered."""
    calls: list[str] = attrs.field(factory=list)
    """The tools that were called, by name."""
    failed: int = 0
    """Calls that came to an error, but for those that a person has refused."""
    refused: int = 0
    """Calls that a person has refused."""
    unknown: int = 0
    """Calls whose outcome nobody knows."""

    @property
    def face(self) -> dict[str, Any]:
        """The turn in JSON."""
        return {
            "turn": self.number,
            "seq": self.seq,
            "end": self.end or None,
            "state": self.state,
            "began": utc_time(self.began),
            "ended": utc_time(self.ended) if self.ended else None,
            "input": face(self.input),
            "output": face(self.output),
            "error": face(self.error),
            "usage": face(self.usage),
            "limit": face(self.limit),
            "by": face(self.by),
            "via": face(self.via),
            "request": face(self.request),
            "model_answers": self.answers,
            "tool_calls": self.calls,
            "failed_calls": self.failed,
            "refused_calls": self.refused,
            "unknown_calls": self.unknown,
        }


def turns_of(events: Iterable[Event]) -> list[Turn]:
    """The turns that these events, of one session and its ancestors, tell of."""
    turns: dict[int, Turn] = {}
    for event in events:
        fact = event.value
        if fact.label not in TELLING or not fact.fields or event.kind != "assert":
            continue
        number, said = fact.fields[0], fact.keywords
        if type(number) is not int:
            continue
        if fact.label == "turn":
            turns[number] = Turn(
                number,
                event.seq,
                event.time,
                said.get("input"),
                said.get("by"),
                said.get("via"),
                said.get("request"),
            )
        elif number in turns:
            tell(turns[number], event)
    return list(turns.values())


def tell(turn: Turn, event: Event) -> None:
    """Add to a turn what a fact says of it."""
    fact = event.value
    if fact.label == "model-output":
        turn.answers += 1
    elif fact.label == "tool-call":
        turn.calls.append(str(fact.keywords.get("name", "")))
    elif fact.label == "tool-result":
        error = fact.keywords.get("error")
        if isinstance(error, dict):
            refused = error.get("error") == CallRefused.__name__
            turn.refused += refused
            turn.failed += not refused
    elif fact.label == "tool-unknown":
        turn.unknown += 1
    elif fact.label in ENDS:
        turn.state = ENDS[fact.label]
        turn.ended = event.time
        turn.end = event.seq
        turn.limit = fact.keywords.get("limit")
        turn.output = fact.keywords.get("output")
        turn.error = fact.keywords.get("error")
        turn.usage = fact.keywords.get("usage")
