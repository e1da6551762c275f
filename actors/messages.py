"""Chat messages, made: what a person says, and what a model is told of a call that it has made.

The one rule: every text is marked as content, so that it can be erased alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from actors.chat import marked, told
from dataspace.values import Text
from vat.devices.outcomes import OutcomeUnknown
from vat.failures import failure_of

UNKNOWN: Final = (
    "The outcome of this call is unknown: it was started, and nobody knows whether it took effect. "
    "It has not been run again. Find out before you repeat it."
)
"""What a model is told of a call whose outcome nobody knows."""

NOT_RUN: Final = "This call was not carried out: the turn ended before it."
"""What a model is told of a call that was never started."""

NO_RESULT: Final = (
    "What came of this call is not known here: the turn broke off before its result was noted. It may have taken "
    "effect, or never have been made. Find out before you repeat it."
)
"""What a model is told of a call that a conversation has no result of."""

FAILED: Final = "This call failed: "
"""How what a model is told of a call that broke begins."""


def failed(error: BaseException) -> str:
    """What a model is told of a call that broke with `error`.

    >>> failed(ValueError("no such city"))
    'This call failed: ValueError: no such city'
    """
    if isinstance(error, OutcomeUnknown):
        return UNKNOWN
    failure = failure_of(error)
    return f"{FAILED}{failure['error']}: {failure['message']}"


def named(error: BaseException) -> dict[str, Any]:
    """An error in a fact: its class's name and its message."""
    failure = failure_of(error)
    return {"error": failure["error"], "message": Text(failure["message"])}


def user(content: Any) -> dict[str, Any]:
    """The message of a person: a text, or a list of content parts.

    >>> user("hello")
    {'role': 'user', 'content': 'hello'}
    """
    return {"role": "user", "content": marked(content)}


def tool_message(id: str, content: Any) -> dict[str, Any]:
    """The message that tells a model this of its call `id`: a text, or a list of content parts.

    >>> tool_message("c1", "rain")
    {'role': 'tool', 'content': 'rain', 'tool_call_id': 'c1'}
    """
    return {"role": "tool", "content": marked(content), "tool_call_id": id}


def outcome_message(call: Mapping[str, Any], outcome: Any) -> dict[str, Any]:
    """The message that tells a model what came of its call: a value, or the exception that it broke with.

    >>> outcome_message({"id": "c1"}, {"rows": 3})
    {'role': 'tool', 'content': '{"rows": 3}', 'tool_call_id': 'c1'}
    """
    return tool_message(call["id"], failed(outcome) if isinstance(outcome, BaseException) else told(outcome))


def with_results(messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A conversation as a model can be sent it: each tool call has its result behind it, and be it that none is known.

    Services refuse one in which a call has none, as after a turn that broke off between an answer and the results of
    its calls: each request from then on. A result that came later takes its place; a call without an id is left as it
    is. Nothing that is stored is changed.

    >>> call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    >>> broken_off = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "user", "content": "and?"}]
    >>> [message["role"] for message in with_results(broken_off)]
    ['assistant', 'tool', 'user']
    """
    given = list(messages)
    whole: list[Mapping[str, Any]] = []
    without: list[str] = []
    late: set[int] = set()

    def complete(at: int) -> None:
        for id in without:
            found = _late(given, at, id)
            late.update(found)
            whole.extend([given[n] for n in found] or [tool_message(id, NO_RESULT)])
        without.clear()

    for at, message in enumerate(given):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role != "tool":
            complete(at)
        elif (id := message.get("tool_call_id")) in without:
            without.remove(id)
        if at not in late:
            whole.append(message)
        if role == "assistant":
            without += _called(message)
    complete(len(given))
    return whole


def _late(messages: Sequence[Any], after: int, id: str) -> list[int]:
    """Where the result of a call is that came later than behind it, if there is one: before that id is used again."""
    for at in range(after, len(messages)):
        message = messages[at]
        if isinstance(message, Mapping) and message.get("role") == "tool" and message.get("tool_call_id") == id:
            return [at]
        if id in _called(message):
            break
    return []


def _called(message: Any) -> list[str]:
    """The ids of the calls that an answer asks for."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    return [call["id"] for call in calls or () if isinstance(call, Mapping) and isinstance(call.get("id"), str)]
