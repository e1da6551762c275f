"""What one document has room for. Whatever was said, a page is made at once and sent at once; so it has as many turns,
messages or events as there is room for, the newest, and of each text no more than a person reads on a page.

The one rule: nothing is left out in silence. Of what is cut it is said how much more there is, and what does not come
on this page comes on the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import attrs

from keeve.faces import ENDS
from keeve.looking import ROOM, weight
from keeve.server.page.said import as_text

LETTERS: Final = 200_000
"""Letters of one text that are shown."""
LEAST: Final = 300
"""Letters of a text that are shown where there is no more room."""
FEW: Final = 8
"""Records that are looked at first: where much was said in them, others are not read."""

Event = dict[str, Any]


def cut(text: str, most: int | None = None) -> str:
    """A text, or how it begins and how much more there is; `most` letters of it, `LETTERS` unless it is told.

    >>> cut("abc", 3), cut("abcde", 3)
    ('abc', 'abc…\\n(2 more letters)')
    """
    letters = LETTERS if most is None else most
    return text if len(text) <= letters else f"{text[:letters]}…\n({len(text) - letters:,} more letters)"


@attrs.define
class Newest:
    """The newest events of those that come one after another, at most `most`, and as many as there is room for.

    full: whether others had to go. What one record states goes together, but for the newest: of that, `left` had to.
    """

    most: int
    events: list[Event] = attrs.field(factory=list)
    full: bool = False
    left: int = 0
    _weights: list[int] = attrs.field(factory=list)

    def add(self, event: Event) -> None:
        """One event more, of which what is shown is kept."""
        if self.events and self.events[-1]["position"] != event["position"]:
            self.left = 0
        self._weights.append(len(event["text"]))
        self.events.append({**event, "text": cut(event["text"]), "fields": [], "keywords": {}, "captures": {}})
        while len(self.events) > self.most or (len(self.events) > 1 and sum(self._weights) > ROOM):
            self.full = True
            first = self.events[0]["position"]
            if first == event["position"]:
                self.left += 1
                going = 1
            else:
                going = next(n for n, each in enumerate(self.events) if each["position"] != first)
            del self.events[:going], self._weights[:going]


@attrs.define
class TurnsKept:
    """What is shown of the turns from `first` to `last` (None: to the newest), from their events as they come: of the
    newest of these, as many as there is room for; one at least, whose later texts are cut short where that is much."""

    first: int
    last: int | None = None
    _kept: dict[int, list[tuple[int, Event]]] = attrs.field(factory=dict)
    """By turn, what came of it, and as which event."""
    _weights: dict[int, int] = attrs.field(factory=dict)
    _weight: int = 0
    _came: int = 0

    @property
    def events(self) -> list[Event]:
        """Those of the turns for which there is room, as they came."""
        every = sorted(chain.from_iterable(self._kept.values()), key=itemgetter(0))
        return [event for _, event in every]

    def add(self, event: Event) -> None:
        """One event more. What is of none of these turns is not kept."""
        number = event["fields"][0] if event["fields"] else None
        if type(number) is not int or event["label"] not in OF_TURNS:
            return
        if number < self.first or (self.last is not None and number > self.last):
            return
        heavy, before = weight(event["keywords"]), self._weights.get(number, 0)
        letters = max(LEAST, min(LETTERS, ROOM - before))
        self._came += 1
        self._kept.setdefault(number, []).append((self._came, _in_short(event, lambda text: cut(text, letters))))
        self._weights[number] = before + heavy
        self._weight += heavy
        while self._weight > ROOM and len(self._kept) > 1:
            gone = min(self._kept)
            del self._kept[gone]
            self._weight -= self._weights.pop(gone)
            self.first = gone + 1


OF_TURNS: Final = frozenset(
    (
        *("turn", "steered", "model-output", "tool-call", "tool-result", "tool-unknown"),
        *("approval-wanted", "approval-given", "approval-refused", *ENDS),
    )
)
"""What a conversation is shown by."""

TEXTS: Final = ("input", "arguments", "output", "reason", "name", "by", "via", "limit")


def _in_short(event: Event, short: Callable[[str], str]) -> Event:
    """An event of a turn with what is shown of it, in which no text is longer than `short` leaves it."""
    said: Mapping[str, Any] = event["keywords"]
    kept: dict[str, Any] = {name: short(as_text(said[name])) for name in TEXTS if said.get(name) is not None}
    if "message" in said:
        message = said["message"] if isinstance(said["message"], dict) else {"content": said["message"]}
        texts = {name: short(as_text(message.get(name))) for name in ("content", "refusal")}
        kept["message"] = {**texts, "tool_calls": bool(message.get("tool_calls"))}
    error = said.get("error")
    if isinstance(error, dict) and "message" in error:
        kept["error"] = {"error": short(str(error.get("error", "Error"))), "message": short(as_text(error["message"]))}
    elif error is not None:
        kept["error"] = short(as_text(error))
    if isinstance(said.get("usage"), dict):
        kept["usage"] = {"total_tokens": said["usage"].get("total_tokens")}
    fields = [short(each) if isinstance(each, str) else each for each in event["fields"][:3]]
    return {**event, "fields": fields, "keywords": kept, "text": ""}
