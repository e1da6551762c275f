"""Requests and answers of the chat completions API, as data: what is sent, and what is made of what comes back.

`body_of` writes a request, `answer_of` reads a whole answer, and an `Assembly` puts one together from the pieces of a
stream. What a service says is not trusted: whatever does not have the shape of an answer is `ModelNonsense`, which says
where. What is there beyond the shape (reasoning, annotations, ...) is kept as it came.

The one rule: pure functions; nothing here knows of HTTP.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from actors.messages import with_results
from actors.models.failures import ModelBusy, ModelNonsense, ModelRefused
from dataspace.errors import KeeveError
from dataspace.values import Blob, Erased, Symbol

LONGEST_REASON: Final = 1000
"""Characters of the words in which a service reports an error that are kept."""

Redact: TypeAlias = Callable[[Any], Any]
"""Gives a text without credentials, before it is cut."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


class NotJSON(KeeveError, ValueError):
    """Something in a request (`what`) that JSON cannot carry."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"a model cannot be sent {self.what}: the request is JSON; send its text instead"


def body_of(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    options: Mapping[str, Any],
    *,
    stream: bool,
) -> bytes:
    """The JSON of a request, its messages with their keys in the order that they have.

    A call without a result gets one that says so (`with_results`). An option that is `None` is left out. Erased content
    is sent as `[erased]`, a `Blob` as a data URL, a symbol as its name. Raises `NotJSON` for bytes, refs, promises,
    NaN, infinities and lone surrogates.
    """
    body: dict[str, Any] = {"model": model, "messages": with_results(messages)}
    if tools:
        body["tools"] = list(tools)
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    body |= options
    body = {key: value for key, value in body.items() if value is not None}
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_other).encode()
    except NotJSON:
        raise
    except ValueError:
        raise NotJSON("NaN, an infinity or half a surrogate pair") from None


def _other(value: Any) -> Any:
    if isinstance(value, Erased):
        return "[erased]"
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, Blob):
        return f"data:{value.media_type};base64,{base64.b64encode(value.content).decode()}"
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return list(value)
    raise NotJSON(f"a {type(value).__name__}")


def answer_of(body: Any, model: str, effect_id: str, redact: Redact = str) -> dict[str, Any]:
    """The answer in the decoded body of a response; see the package. Raises `ModelNonsense`, or what it reports."""
    raise_reported(body, redact)
    choices = _part(body, "choices", list, "the answer")
    if not choices:
        raise ModelNonsense("it has no choices")
    message = dict(_part(choices[0], "message", dict, "choices[0]"))
    if message.setdefault("role", "assistant") != "assistant":
        raise ModelNonsense(f"it has the role {message['role']!r} instead of 'assistant'")
    if message.get("tool_calls") is not None:
        message["tool_calls"] = _whole_calls(_part(message, "tool_calls", list, "the message"), effect_id)
    message.setdefault("content", None)
    return _answer(message, body.get("usage"), body.get("model") or model, choices[0].get("finish_reason"))


class Events:
    """The `data` of server-sent events, out of bytes that come in pieces of any size.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, of which names, ids and times to retry are
    passed over. Raises `ModelNonsense` when there are more than `most` bytes in all.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._begun: list[bytes] = []  # the pieces of a line that has not ended yet
        self._data: list[bytes] = []  # the lines of an event that has not ended yet

    def of(self, piece: bytes) -> list[str]:
        """The data of the events that end in the next piece."""
        self._size += len(piece)
        if self._size > self._most:
            raise ModelNonsense(f"it is longer than {self._most} bytes")
        self._begun.append(piece)
        if b"\n" not in piece and b"\r" not in piece:
            return []
        text = b"".join(self._begun)
        # Of a carriage return at the end nobody knows yet whether a line feed follows, which would belong to it.
        held = text.endswith(b"\r")
        *lines, rest = _LINE_END.split(text[:-1] if held else text)
        self._begun = [rest + b"\r"] if held else [rest]
        return [data for line in lines if (data := self._line(line)) is not None]

    def _line(self, line: bytes) -> str | None:
        if not line:
            data, self._data = self._data, []
            return b"\n".join(data).decode(errors="replace") if data else None
        name, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None


class Assembly:
    """An answer that comes in pieces. `add` takes the pieces in order, `answer` gives the whole."""

    def __init__(self, redact: Redact = str) -> None:
        self._redact = redact
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: dict[int, dict[str, Any]] = {}
        self._usage: Any = None
        self._model: Any = None
        self.finish_reason: Any = None
        """Why the model stopped, once it has; before that the stream is not at its end."""

    def add(self, chunk: Any) -> dict[str, Any]:
        """Take the next piece; gives what it adds to the message. Raises `ModelNonsense`, or what it reports."""
        raise_reported(chunk, self._redact)
        if not isinstance(chunk, dict):
            raise ModelNonsense(f"a piece of the stream is {_kind(chunk)} instead of an object")
        self._usage = chunk.get("usage") or self._usage
        self._model = chunk.get("model") or self._model
        choices = chunk.get("choices") or []
        if not isinstance(choices, list):
            raise ModelNonsense("choices is no list")
        if not choices:
            return {}
        self.finish_reason = _object(choices[0], "choices[0]").get("finish_reason") or self.finish_reason
        delta = choices[0].get("delta")
        if delta is None:
            return {}
        for key, piece in _object(delta, "delta").items():
            if key == "tool_calls":
                for part in piece or []:
                    self._add_call(_object(part, "delta.tool_calls"))
            elif key != "role":
                _gather(self._message, key, piece)
        return {key: piece for key, piece in delta.items() if piece is not None}

    def answer(self, model: str, effect_id: str) -> dict[str, Any]:
        """The whole answer; see the package."""
        message = _joined(self._message)
        if self._calls:
            calls = [self._calls[index] for index in sorted(self._calls)]
            calls = [{**call, "function": _joined(call["function"])} for call in calls]
            message["tool_calls"] = _whole_calls(calls, effect_id)
        return _answer(message, self._usage, self._model or model, self.finish_reason)

    def _add_call(self, part: Mapping[str, Any]) -> None:
        index = part.get("index")
        if index is None:
            # Some services do not number them: a new id is then a new call, and anything else belongs to the last one.
            last = max(self._calls, default=-1)
            new = last < 0 or (part.get("id") and part["id"] != self._calls[last].get("id"))
            index = last + 1 if new else last
        if type(index) is not int:
            raise ModelNonsense(f"the index of a tool call is {_kind(index)} instead of a number")
        call = self._calls.setdefault(
            index, {"id": None, "type": "function", "function": {"name": "", "arguments": _Pieces()}}
        )
        for key, piece in part.items():
            if key == "function":
                function = call["function"]
                for name, text in _object(piece, "tool_calls.function").items():
                    # A name that comes again is said again; only arguments come in pieces.
                    if name == "arguments":
                        _gather(function, name, text)
                    elif text:
                        function[name] = text
            elif key != "index" and piece:
                call[key] = piece


def raise_reported(body: Any, redact: Redact) -> None:
    """Raise the error that a body reports, if it does (some services do so with status 200, or in mid-stream)."""
    if isinstance(body, dict) and body.get("error"):
        error = body["error"]
        status = error.get("code") if isinstance(error, dict) else None
        status = status if type(status) is int else 200
        raise refusal(status, message_of(body, redact))


def refusal(status: int, message: str, retry_after: float | None = None) -> ModelRefused:
    """The error that a status stands for."""
    if status in (408, 409, 429) or status >= 500:
        return ModelBusy(status, message, retry_after)
    return ModelRefused(status, message)


def message_of(body: Any, redact: Redact = str) -> str:
    """The words in which a service reports an error, in any of the forms that are in use; `""` if there are none.

    >>> message_of({"error": {"message": "no such model", "type": "invalid_request_error"}})
    'no such model'
    """
    for _ in range(4):
        if not isinstance(body, dict):
            break
        body = body.get("error") or body.get("message") or body.get("detail")
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    said: str = redact(text)
    return said[:LONGEST_REASON]


def _whole_calls(calls: Sequence[Any], effect_id: str) -> list[dict[str, Any]]:
    whole = []
    for number, given in enumerate(calls):
        where = f"tool_calls[{number}]"
        call = dict(_object(given, where))
        if call.get("type", "function") == "function":
            function = _part(call, "function", dict, where)
            if not _part(function, "name", str, f"{where}.function"):
                raise ModelNonsense(f"{where}.function has no name")
            _part(function, "arguments", str, f"{where}.function")
        # A result names its call, so each needs an id; one that follows from the effect's is the same in each attempt.
        call["id"] = call.get("id") or f"call_{effect_id[:16]}_{number}"
        if type(call["id"]) is not str:
            raise ModelNonsense(f"{where}.id is {_kind(call['id'])} instead of a string")
        whole.append(call)
    return whole


class _Pieces(list[str]):
    """A string that grows; joined once, at the end, so that a long answer costs its length and not its square."""


def _gather(into: dict[str, Any], key: str, piece: Any) -> None:
    if isinstance(piece, str):
        before = into.get(key)
        if isinstance(before, _Pieces):
            before.append(piece)
        else:
            into[key] = _Pieces([piece])
    elif piece is not None:
        into[key] = piece


def _joined(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: "".join(part) if isinstance(part, _Pieces) else part for key, part in parts.items()}


def _answer(message: dict[str, Any], usage: Any, model: Any, finish_reason: Any) -> dict[str, Any]:
    return {
        "message": message,
        "usage": usage if isinstance(usage, dict) else None,
        "model": model if isinstance(model, str) else None,
        "finish_reason": finish_reason if isinstance(finish_reason, str) else None,
    }


def _part(whole: Any, key: str, kind: type, where: str) -> Any:
    part = _object(whole, where).get(key)
    if not isinstance(part, kind):
        raise ModelNonsense(f"{where} has {_kind(part)} for {key!r}")
    return part


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelNonsense(f"{where} is {_kind(value)} instead of an object")
    return value


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
