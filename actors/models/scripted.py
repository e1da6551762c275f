"""A model that plays a transcript: for tests, demonstrations and replays.

It holds the whole conversation as it should be, and answers only if what it is given is the transcript so far, to the
byte: the same types, the same keys in the same order. So a test that runs to its end has shown that nothing of the
conversation was lost, doubled or changed on the way.

The one rule: it has no state. Where it stands follows from how many messages it is given, so it survives restarts and
serves any number of sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataspace.errors import KeeveError
from vat.devices.devices import Effect, effect


class ScriptMismatch(KeeveError):
    """The conversation is not the transcript: `place` is the first difference, `expected` and `found` what is there."""

    def __init__(self, place: str, expected: str, found: str) -> None:
        super().__init__(place, expected, found)
        self.place = place
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"{self.place}: the transcript has {self.expected}, the conversation {self.found}"


class ScriptedModel:
    """Plays `transcript`, a list of messages in OpenAI chat form, answering with its assistant messages."""

    def __init__(self, transcript: Sequence[Mapping[str, Any]]) -> None:
        self._transcript = list(transcript)

    @effect(on_crash="retry")
    async def complete(
        self,
        effect: Effect,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """The transcript's next message. Raises `ScriptMismatch`. Costs a pass over the conversation."""
        turn = len(messages)
        for place, (expected, found) in enumerate(zip(self._transcript, messages, strict=False)):
            _compare(expected, found, f"messages[{place}]")
        if turn >= len(self._transcript):
            raise ScriptMismatch(f"messages[{turn}]", "ended", "wants an answer")
        answer = self._transcript[turn]
        if answer.get("role") != "assistant":
            raise ScriptMismatch(f"messages[{turn}]", f"a message of {answer.get('role')!r}", "wants an answer")
        return {
            "message": answer,
            "usage": None,
            "model": "scripted",
            "finish_reason": "tool_calls" if answer.get("tool_calls") else "stop",
        }


def _compare(expected: Any, found: Any, place: str) -> None:
    """Raise `ScriptMismatch` at the first place where two values differ."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        if list(expected) != list(found):
            raise ScriptMismatch(place, f"the keys {_shown(list(expected))}", _shown(list(found)))
        for key in expected:
            _compare(expected[key], found[key], f"{place}.{key}")
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            _compare(one, other, f"{place}[{number}]")
        if len(expected) != len(found):
            raise ScriptMismatch(place, f"{len(expected)} items", f"{len(found)} items")
    elif type(expected) is not type(found) or expected != found:
        raise ScriptMismatch(place, *_apart(expected, found))


def _apart(expected: Any, found: Any) -> tuple[str, str]:
    """Two different values, shown from a little before where they differ."""
    if not isinstance(expected, str) or not isinstance(found, str):
        return _shown(expected), _shown(found)
    same = 0
    while same < min(len(expected), len(found)) and expected[same] == found[same]:
        same += 1
    start = max(0, same - 20)
    where = f" (from character {start})" if start else ""
    return _shown(expected[start:]) + where, _shown(found[start:]) + where


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
