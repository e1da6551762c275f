"""Messages as items, and back: what a conversation is in chat form, in the words of the Responses API.

    {"role": "user", "content": "hi"}              message
    {"role": "assistant", "content", "tool_calls"} message, and for each call function_call, or mcp_call with its output
    {"role": "tool", "tool_call_id", "content"}    function_call_output; of a call that was carried out here: in that

A tool of the host is shown as that of a server (`mcp_call`), which clients know not to call themselves.

The one rule: pure functions of messages; an item has the id that its message's number gives it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from actors.messages import FAILED, NOT_RUN, UNKNOWN
from dataspace.values import Blob, Erased, Symbol
from keeve.faces import face
from keeve.server.errors import AGAIN, Refusal
from keeve.server.openai.ids import item_id

Json = dict[str, Any]

ERASED: Final = "[erased]"


def refused(what: str, param: str, remedy: str = AGAIN, code: str = "invalid_value") -> Refusal:
    """Something in a request that cannot be done."""
    return Refusal(400, code, what, remedy, param=param.encode(errors="replace").decode())


# From messages to items.


def text_in(content: Any) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    if isinstance(content, Erased):
        return ERASED
    if isinstance(content, list):
        return "".join(text_in(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def items_of(told: Iterable[Mapping[str, Any]], uid: bytes, label: str) -> list[Json]:
    """The items that messages are; each is given with its number, and with how many of its calls are `own`."""
    items: list[Json] = []
    calls: dict[str, Json] = {}
    for each in told:
        number, message, own = each["number"], each["message"], each["own"]
        role = message["role"]
        if role == "tool":
            called = calls.get(message["tool_call_id"])
            if called is None:
                items.append(output_item(message, uid, number))
            else:
                called.update(came(message))
        elif role == "assistant":
            made = answer_items(message, uid, number, own, label)
            items += made
            named = zip(message.get("tool_calls") or (), _calls_in(made), strict=True)
            calls = {call["id"]: item for call, item in named if item["type"] == "mcp_call"}
        else:
            items.append(message_item(message, uid, number))
    return items


def _calls_in(items: Sequence[Json]) -> list[Json]:
    return [item for item in items if item["type"] != "message"]


def message_item(message: Mapping[str, Any], uid: bytes, number: int, status: str = "completed") -> Json:
    """The item of what was said."""
    role = message["role"]
    content = message.get("content")
    return {
        "id": item_id("msg", uid, number),
        "type": "message",
        "role": role,
        "status": status,
        "content": [] if content is None else answer_parts(message) if role == "assistant" else input_parts(content),
    }


def answer_parts(message: Mapping[str, Any]) -> list[Json]:
    """What the model has said, as content."""
    parts: list[Json] = []
    text = text_in(message.get("content"))
    refusal = message.get("refusal")
    if text or not refusal:
        parts.append(text_part(text))
    if isinstance(refusal, str) and refusal:
        parts.append({"type": "refusal", "refusal": refusal})
    return parts


def text_part(text: str) -> Json:
    """Text that the model has said."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def input_parts(content: Any) -> list[Json]:
    """What was said to the model, as content."""
    if not isinstance(content, list):
        return [{"type": "input_text", "text": text_in(content)}]
    return [_input_part(part) for part in content]


def _input_part(part: Any) -> Json:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        return {"type": "input_text", "text": text_in(part.get("text"))}
    if kind == "image_url":
        image = part["image_url"]
        url = _url(image.get("url"))
        return {"type": "input_image", "image_url": url, "detail": image.get("detail", "auto"), "file_id": None}
    if kind == "file":
        return {"type": "input_file", **{name: _url(value) for name, value in part["file"].items()}}
    return {"type": "input_text", "text": json.dumps(face(part))}


def _url(value: Any) -> Any:
    if isinstance(value, Blob):
        return f"data:{value.media_type},…"
    return ERASED if isinstance(value, Erased) else value


def answer_items(message: Mapping[str, Any], uid: bytes, number: int, own: int, label: str) -> list[Json]:
    """The items of an answer of the model: what it says, if it says something, and its calls."""
    calls = message.get("tool_calls") or ()
    items = (
        [message_item(message, uid, number)] if message.get("content") or message.get("refusal") or not calls else []
    )
    return items + [call_item(call, uid, number, at, at < own, label) for at, call in enumerate(calls)]


def call_item(call: Mapping[str, Any], uid: bytes, number: int, at: int, own: bool, label: str) -> Json:
    """The item of a call: of a function of the client's, or of a tool of the host's."""
    function = call["function"]
    said = {"name": function["name"], "arguments": text_in(function.get("arguments")) or "{}"}
    if own:
        item = {"id": item_id("mcp", uid, number, at + 1), "type": "mcp_call", "server_label": label, **said}
        return item | {"status": "in_progress", "output": None, "error": None, "approval_request_id": None}
    item = {"id": item_id("fc", uid, number, at + 1), "type": "function_call", "call_id": call["id"], **said}
    return item | {"status": "completed"}


def came(message: Mapping[str, Any]) -> Json:
    """What a call of the host's came to, by the message that tells the model of it."""
    text = message["content"] if isinstance(message["content"], str) else json.dumps(face(message["content"]))
    if text.startswith(FAILED) or text in (UNKNOWN, NOT_RUN):
        error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}
        return {"status": "failed", "output": None, "error": error}
    return {"status": "completed", "output": text, "error": None}


def output_item(message: Mapping[str, Any], uid: bytes, number: int) -> Json:
    """The item of what came of a call of the client's."""
    content = message["content"]
    return {
        "id": item_id("fco", uid, number),
        "type": "function_call_output",
        "call_id": message["tool_call_id"],
        "output": input_parts(content) if isinstance(content, list) else text_in(content),
        "status": "completed",
    }


# From items to messages.

IGNORED: Final = ("reasoning",)
"""Items that are accepted and left out: what the models that are asked here do not take."""


def messages_of(input: Any, where: str = "input") -> list[Json]:
    """The messages that the input of a request is: a text, or a list of items. Raises a `Refusal`."""
    if isinstance(input, str):
        return [{"role": "user", "content": input}]
    if not isinstance(input, list):
        raise refused("it has to be a text, or a list of items", where)
    messages: list[Json] = []
    joins = False  # whether a call belongs to the message before it
    for place, item in enumerate(input):
        at = f"{where}[{place}]"
        if not isinstance(item, dict):
            raise refused("an item has to be an object", at)
        kind = item.get("type", "message")
        if kind in IGNORED:
            continue
        if kind == "message":
            messages.append(_message_of(item, at))
            joins = messages[-1]["role"] == "assistant"
        elif kind in ("function_call", "mcp_call"):
            if not joins:
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(_call_of(item, at))
            joins = True
            if kind == "mcp_call":
                messages.append(_tool(_text(item, "id", at), _mcp_output(item)))
                joins = False
        elif kind == "function_call_output":
            messages.append(_tool(_text(item, "call_id", at), _output_of(item.get("output"), at)))
            joins = False
        else:
            known = "message, function_call, function_call_output, mcp_call, reasoning and item_reference"
            raise refused(f"items of the type {kind!r} are not supported", at, f"there are {known}")
    return messages


def _message_of(item: Json, at: str) -> Json:
    role = item.get("role")
    if role == "developer":
        role = "system"
    if role not in ("user", "assistant", "system"):
        raise refused(
            f"a message has to have one of the roles user, assistant, system and developer, not {role!r}", f"{at}.role"
        )
    content = item.get("content")
    if isinstance(content, str):
        return {"role": role, "content": content}
    if not isinstance(content, list):
        raise refused("content has to be a text or a list of parts", f"{at}.content")
    parts = [_part_of(part, f"{at}.content[{number}]") for number, part in enumerate(content)]
    if all(part["type"] == "text" for part in parts) and (role != "user" or len(parts) == 1):
        return {"role": role, "content": "".join(part["text"] for part in parts)}
    if role != "user":
        raise refused("only a user's message may have anything but text", f"{at}.content")
    if not parts:
        raise refused("it is empty", f"{at}.content")
    return {"role": role, "content": parts}


def _part_of(part: Any, at: str) -> Json:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("input_text", "output_text", "text"):
        return {"type": "text", "text": _text(part, "text", at)}
    if kind == "refusal":
        return {"type": "text", "text": _text(part, "refusal", at)}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        image = {"url": part["image_url"]}
        if part.get("detail") is not None:
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file" and isinstance(part.get("file_data"), str):
        return {"type": "file", "file": {k: part[k] for k in ("filename", "file_data") if part.get(k) is not None}}
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    remedy = "there are input_text, input_image with an image_url, input_file with file_data, and input_audio"
    raise refused(f"a part of the type {kind!r}, as it is here, is not supported", at, remedy)


def _call_of(item: Json, at: str) -> Json:
    id = _text(item, "call_id" if item["type"] == "function_call" else "id", at)
    function = {"name": _text(item, "name", at), "arguments": _text(item, "arguments", at)}
    return {"id": id, "type": "function", "function": function}


def _output_of(output: Any, at: str) -> Any:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output:
        return [_part_of(part, f"{at}.output[{number}]") for number, part in enumerate(output)]
    raise refused("it has to be a text or a list of parts", f"{at}.output")


def _mcp_output(item: Json) -> str:
    output, error = item.get("output"), item.get("error")
    return output if isinstance(output, str) else f"{FAILED}{json.dumps(error)}" if error else NOT_RUN


def _tool(id: str, content: Any) -> Json:
    return {"role": "tool", "content": content, "tool_call_id": id}


def _text(item: Any, name: str, at: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise refused(f"{name} has to be there, as a text", f"{at}.{name}")
    return value


def plain(value: Any) -> Any:
    """What a session has kept, as JSON: lists and dicts of it, erased content as text."""
    if isinstance(value, Erased):
        return ERASED
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
