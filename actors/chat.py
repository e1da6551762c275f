"""Chat messages as data: what is content in them, what a tool's answer is to a model, what a model's answer must be.

Content (what people, models and tools say) is marked with `Text`, so that it is kept as a cell however short and
can be erased alone. The functions that mark take any value, and give what they do not know back as it is.

The one rule: pure functions of messages in OpenAI chat form; the order of keys is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from dataspace.values import Blob, Erased, Symbol, Text, render, with_items
from vat.failures import failure_of
from vat.objects.types import Keep

LONGEST_NUMBER: Final = 8192
"""Bits; Python refuses to write much larger numbers in decimal."""

MOST_CALLS: Final = 1000
"""Tool calls of one answer. One crank may have to do with all of them, and all others of the host wait for that."""

DEEPEST_TOLD: Final = 40
"""Levels of lists and dicts in a message that are kept as such."""


PART: Final = Remedy("part", "({{'type': 'text', ...}})")
FOR_EXAMPLE: Final = Remedy("for-example", " (bytes without a Blob, NaN, ...)")


class BadInput(KeeveError, TypeError):
    """What was given as a turn's input is none; `what` says why."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"no input for a turn: {self.what}; give a string, or a list of content parts {PART()}"


ANSWER_SO: Final = Remedy(
    "answer-so",
    "Return {{'message': {{'role': 'assistant', 'content': ..., 'tool_calls': [...]}}, 'usage': {{...}} or None}}",
)


class BadAnswer(KeeveError):
    """A model device answered with something that is no answer; `what` is wrong with it. `asked`: no model did, it is a
    call that was to be made."""

    def __init__(self, what: str, asked: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.asked = asked

    def __str__(self) -> str:
        if self.asked:
            return (
                f"this is no tool call that can be made: {self.what}. Give it as a model does: "
                '{"id": "…", "function": {"name": "…", "arguments": "{…}"}}'
            )
        return f"the model device's answer cannot be used: {self.what}. {ANSWER_SO()}"


def marked(content: Any) -> Any:
    """A message's content, its text marked: a string, or a list of parts.

    >>> [type(part["text"]).__name__ for part in marked([{"type": "text", "text": "hello"}])]
    ['Text']
    """
    if isinstance(content, str):
        return Text(content)
    if isinstance(content, list):
        return [_with(part, "text", Text) if isinstance(part, Mapping) else part for part in content]
    return content


def marked_output(output: Any) -> Any:
    """What a tool gave, every text in it marked.

    >>> type(marked_output({"rows": ["a", "b"]})["rows"][1]).__name__
    'Text'
    """
    if isinstance(output, str):
        return Text(output)
    if isinstance(output, list):
        return [marked_output(part) for part in output]
    return {key: marked_output(part) for key, part in output.items()} if _is_map(output) else output


def marked_call(call: Any) -> Any:
    """A tool call, its arguments marked."""
    return _with(call, "function", lambda function: _with(function, "arguments", Text)) if _is_map(call) else call


def marked_message(message: Any) -> Any:
    """A message, its content and the arguments of its tool calls marked."""
    if not _is_map(message):
        return message
    changed = {**message}
    if "content" in changed:
        changed["content"] = marked(changed["content"])
    if isinstance(changed.get("tool_calls"), list):
        changed["tool_calls"] = [marked_call(call) for call in changed["tool_calls"]]
    return changed


def marked_answer(answer: Any) -> Any:
    """A model device's answer, its message marked."""
    return (
        {**answer, "message": marked_message(answer["message"])} if _is_map(answer) and "message" in answer else answer
    )


Content = Annotated[Any, Keep(marked)]
"""A string or a list of content parts."""

Output = Annotated[Any, Keep(marked_output)]
"""What a tool gave: a string, content parts, or any other value."""

Call = Annotated[Any, Keep(marked_call)]
"""A tool call, as a model has made it."""

Answer = Annotated[Any, Keep(marked_answer)]
"""What a model device answers."""


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _with(whole: Any, key: str, mark: Any) -> Any:
    if not _is_map(whole) or key not in whole:
        return whole
    part = whole[key]
    return {**whole, key: mark(part) if mark is not Text or isinstance(part, str) else part}


def check_input(input: Any) -> None:
    """Raise `BadInput` for what no model can be given."""
    if isinstance(input, str):
        return
    if not isinstance(input, list):
        raise BadInput(f"it is of type {type(input).__name__}")
    if not input:
        raise BadInput("the list is empty")
    for place, part in enumerate(input):
        if not _is_map(part) or not isinstance(part.get("type"), str):
            raise BadInput(f"part {place} has no 'type'")
        if tellable(part) is not part:  # it would be sent, and fail, with each request from now on
            raise BadInput(f"part {place} holds what JSON does not have{FOR_EXAMPLE()}")


def check_call(call: Any, place: int = 0, ids: Any = str | int, *, asked: bool = False) -> None:
    """Raise `BadAnswer` for a tool call that cannot be carried out, or told of: the one at that place of an answer, or
    of those that are `asked` for."""
    if not isinstance(call, Mapping) or not isinstance(call.get("id"), ids):
        raise BadAnswer(f"tool call {place} has no 'id'", asked)
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise BadAnswer(f"tool call {place} has no name of a function", asked)


def check_calls(calls: Sequence[Any], ids: Any = str | int, *, asked: bool = False) -> None:
    """The same for all the calls of an answer, or that are asked for at once: at most `MOST_CALLS`."""
    if len(calls) > MOST_CALLS:
        if asked:
            raise BadAnswer(f"there are more than {MOST_CALLS} of them; ask for so many at a time", asked)
        raise BadAnswer(f"it calls more than {MOST_CALLS} tools, and none of them was called")
    for place, call in enumerate(calls):
        check_call(call, place, ids, asked=asked)


def message_in(answer: Any) -> Mapping[str, Any]:
    """The message of a model device's answer, `tellable`: it is sent with each request from now on.

    Raises `BadAnswer` where it cannot be gone on with.
    """
    message = answer.get("message") if _is_map(answer) else None
    if not isinstance(message, Mapping):
        raise BadAnswer("it has no 'message'")
    if message.get("role") != "assistant":
        raise BadAnswer(f"the message has the role {render(message.get('role')):.100} instead of 'assistant'")
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise BadAnswer("its 'tool_calls' is no list")
    check_calls(calls or (), str)
    told: Mapping[str, Any] = tellable(message)
    return told


def told(output: Any) -> Any:
    """What a model is told of a tool's output: a string, or content parts; anything else as JSON. Never raises.

    >>> told({"rows": 3})
    '{"rows": 3}'
    >>> told([10**9000]).startswith('["#int(')
    True
    >>> told({"at": object()})
    'The tool answered with what cannot be shown: NotAValue: value: object is not a value'
    """
    if isinstance(output, str):
        return output
    if isinstance(output, Erased):
        return "[erased]"
    try:
        if isinstance(output, list) and output and all(_is_map(part) and "type" in part for part in output):
            return tellable(output)
        return json.dumps(tellable(output), ensure_ascii=False, default=render)
    except Exception as error:  # noqa: BLE001  # the tool has answered, whatever it was: nobody may hear that it has not
        failure = failure_of(error)
        return f"The tool answered with what cannot be shown: {failure['error']}: {failure['message']}"


def tellable(value: Any, deepest: int = DEEPEST_TOLD) -> Any:
    """A value with text in the place of what JSON does not have, as patterns write it; the very same if there is none.

    So is what lies deeper than it can be kept in a message. A `Blob`, erased content and a symbol stay: whoever asks a
    model knows what to send for these.

    >>> tellable({"at": float("nan"), "of": [b"ab", 3]})
    {'at': '+nan.0', 'of': ['#"6162"', 3]}
    """
    if isinstance(value, str | bool | Blob | Erased | Symbol) or value is None:
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= LONGEST_NUMBER else render(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else render(value)
    if not isinstance(value, dict | list | tuple) or not deepest:
        return render(value)
    return with_items(value, lambda item: tellable(item, deepest - 1), list, dict)


def answered(messages: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], int]:
    """The tool calls of the last answer, and how many of them have their message. Looks at those only."""
    for count in range(len(messages)):
        message = messages[-1 - count]
        if message.get("role") != "tool":
            calls = message.get("tool_calls") if message.get("role") == "assistant" else None
            return list(calls or ()), count
    return [], 0


def last_said(messages: Sequence[Mapping[str, Any]]) -> Any:
    """The content of the last answer; None where there is none."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == "assistant":
            return message.get("content")
    return None
