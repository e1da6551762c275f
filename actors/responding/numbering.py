"""The messages of a conversation by number, and what is put among them from outside of a turn.

A message's number is its place from 0, the instructions not counted, and stays its own whatever is removed: it is what
others name a message by. What a model is told first (`_instruct`) stands before number 0 and may change with each turn.

The one rule: `messages` is what the model is told, so after each change it is a conversation that a model takes: behind
an answer that has called stands the outcome of each call, before anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from actors.chat import marked
from actors.messages import NOT_RUN, tool_message
from dataspace.values import Text
from vat.objects.actor import Actor
from vat.objects.collections import List, Set
from vat.objects.moving import Kept, append_item


class Numbering(Actor):
    """The part of a conversation that knows which message is which."""

    system: Text
    messages: List[Mapping[str, Any]]

    _instructed: bool = False
    """Whether the first message is what the model is told first."""
    _removed: Set[int]
    """The numbers of messages that were removed."""

    def _end(self) -> int:
        """The number of the message that comes next."""
        return len(self.messages) - self._instructed + len(self._removed)

    def _place(self, number: int) -> int | None:
        """Where the message of that number stands; None for one that is not there."""
        if not 0 <= number < self._end() or number in self._removed:
            return None
        return number - sum(1 for _ in takewhile(lambda gone: gone < number, self._removed)) + self._instructed

    def _numbered(self, start: int, stop: int) -> list[tuple[int, Mapping[str, Any]]]:
        """The messages from one number to before another, each with its own."""
        numbers = [number for number in range(max(start, 0), min(stop, self._end())) if number not in self._removed]
        if not numbers:
            return []
        first = self._place(numbers[0])
        assert first is not None
        return list(zip(numbers, self.messages[first : first + len(numbers)], strict=True))

    def _instruct(self, system: str) -> None:
        """From now on the model is told this first; "" for nothing."""
        if system == (self.system if self._instructed else ""):
            return
        self.system = Text(system)
        message = {"role": "system", "content": marked(system)}
        if not self._instructed:
            self.messages.insert(0, message)
        elif system:
            self.messages[0] = message
        else:
            del self.messages[0]
        self._instructed = bool(system)

    def _put(self, given: Sequence[tuple[Mapping[str, Any], Kept]], *, asking: bool) -> None:
        """Put messages at the end, each with the form in which it is stored already.

        Outcomes come right behind the answers that have called. A call without one is told as not carried out; but for
        those of the very last answer, if the model is not being asked: their outcomes may be put next.
        """
        outcomes: dict[str, list[Kept]] = {}
        for message, stored in given:
            if message["role"] == "tool":
                outcomes.setdefault(message["tool_call_id"], []).append(stored)
        said = [each for each in given if each[0]["role"] != "tool"]
        self._tell_outcomes(open_calls(self.messages), outcomes, leave=not (asking or said))
        for at, (message, stored) in enumerate(said):
            append_item(self.messages, stored)
            self._tell_outcomes(called(message), outcomes, leave=not asking and at == len(said) - 1)

    def _tell_outcomes(self, ids: Iterable[str], outcomes: dict[str, list[Kept]], leave: bool) -> None:
        for id in ids:
            if outcomes.get(id):
                append_item(self.messages, outcomes[id].pop(0))
            elif not leave:
                self.messages.append(tool_message(id, NOT_RUN))

    def _cut(self, number: int) -> None:
        """Forget all messages from that number on."""
        for gone in [gone for gone in self._removed if gone >= number]:
            self._removed.discard(gone)
        kept = number - len(self._removed) + self._instructed
        del self.messages[kept:]


def called(message: Mapping[str, Any]) -> list[str]:
    """The ids of the calls in an answer; none of any other message."""
    return [call["id"] for call in message.get("tool_calls") or ()] if message["role"] == "assistant" else []


def open_calls(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The calls of the last answer that have no outcome, if nothing but outcomes came after it.

    >>> answer = {"role": "assistant", "tool_calls": [{"id": "c1"}, {"id": "c2"}]}
    >>> open_calls([answer, {"role": "tool", "tool_call_id": "c2"}])
    ['c1']
    """
    told: set[str] = set()
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message["role"] != "tool":
            return [id for id in called(message) if id not in told]
        told.add(message["tool_call_id"])
    return []


def unfitting(messages: Iterable[Mapping[str, Any]], waiting: Iterable[str]) -> str | None:
    """The id of the first outcome that is of no call: none that waits for one, and none in these messages.

    >>> unfitting([{"role": "tool", "tool_call_id": "c1", "content": "3"}], ["c1"])
    >>> unfitting([{"role": "tool", "tool_call_id": "c2", "content": "3"}], ["c1"])
    'c2'
    """
    messages = list(messages)
    known = {*waiting, *(id for message in messages for id in called(message))}
    for message in messages:
        if message["role"] == "tool" and message["tool_call_id"] not in known:
            return str(message["tool_call_id"])
    return None
