"""The objects that clients are given: a response, its usage, a chat completion, a list.

The one rule: each is a function of what a session says of a turn (`Responding.response`), so it is the same whenever it
is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dataspace.errors import KeeveError
from keeve import errors as known
from keeve.remedies import worded
from keeve.server.errors import KEEPER, ErrorAnswer, Refusal, answer_to, code_named
from keeve.server.openai.ids import completion_id, response_id
from keeve.server.openai.items import Json, items_of, plain, text_in

Turn = Mapping[str, Any]

REASONS: Final = {"steps": "max_messages", "tokens": "max_output_tokens", "time": "max_output_tokens"}
"""Why an answer is not complete, by the limit of the session that was reached."""


def status_of(turn: Turn) -> str:
    """The status of a response."""
    status: str = turn["status"]
    return "incomplete" if status == "completed" and incomplete(turn) else status


def incomplete(turn: Turn) -> Json | None:
    """Why an answer is not complete; None if it is."""
    span = turn["span"]
    if span.get("limit") in REASONS:
        return {"reason": REASONS[span["limit"]]}
    if span.get("finish") == "length":
        return {"reason": "max_output_tokens"}
    return {"reason": "content_filter"} if span.get("finish") == "content_filter" else None


def label_of(turn: Turn) -> str:
    """What the tools of the host are called in the items of a turn."""
    return str(turn["asked"].get("tool_device", "tools"))


def response_of(turn: Turn, uid: bytes, output: list[Json] | None = None) -> Json:
    """A response; with `output` those items are in it, and else all that there are."""
    asked, span = turn["asked"], turn["span"]
    about = asked.get("about", {})
    echoed = about.get("request", {})
    status = status_of(turn)
    options = asked.get("options", {})
    conversation = about.get("conversation")
    return {
        "id": response_id(uid, turn["turn"]),
        "object": "response",
        "created_at": int(asked.get("at") or span.get("begun") or 0),
        "completed_at": int(span["ended"]) if status == "completed" else None,
        "status": status,
        "background": bool(echoed.get("background", False)),
        "error": error_of(turn) if status == "failed" else None,
        "incomplete_details": incomplete(turn) if status == "incomplete" else None,
        "instructions": plain(asked.get("system")) or None,
        "max_output_tokens": echoed.get("max_output_tokens"),
        "max_tool_calls": None,
        "model": about.get("model", "model"),
        "output": items_of(turn["output"], uid, label_of(turn)) if output is None else output,
        "parallel_tool_calls": echoed.get("parallel_tool_calls", True),
        "previous_response_id": about.get("previous"),
        "conversation": None if conversation is None else {"id": conversation},
        "prompt_cache_key": echoed.get("prompt_cache_key"),
        "reasoning": {"effort": None, "summary": None, **plain(echoed.get("reasoning", {}))},
        "safety_identifier": echoed.get("safety_identifier"),
        "service_tier": "default",
        "store": echoed.get("store", True),
        "temperature": echoed.get("temperature", 1.0),
        "text": {"format": {"type": "text"}, **plain(echoed.get("text", {}))},
        "tool_choice": plain(echoed.get("tool_choice", "auto")),
        "tools": [_tool(tool) for tool in asked.get("tools", ())] + plain(echoed.get("host_tools", [])),
        "top_logprobs": 0,
        "top_p": options.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": usage_of(span.get("usage")),
        "user": echoed.get("user"),
        "metadata": plain(about.get("metadata", {})),
    }


def _tool(schema: Any) -> Json:
    function: Json = plain(schema["function"])
    return {"type": "function", "description": None, "parameters": {}, "strict": False, **function}


def error_of(turn: Turn) -> Json:
    """Why a turn has failed, in the words of a response."""
    error = turn["span"].get("error") or {}
    busy = error.get("error") == "ModelBusy"
    return {"code": "rate_limit_exceeded" if busy else "server_error", "message": failure_of(turn).whole().message}


def failure_of(turn: Turn) -> Refusal:
    """What is answered in the place of a turn that failed, or was interrupted. It has failed: asking again is new."""
    error = turn["span"].get("error") or {"error": "TurnInterrupted", "message": "the turn was interrupted"}
    name = str(error.get("error"))
    message = worded(text_in(error.get("message")), "http") or "it has failed"
    kind = getattr(known, name, None)
    if not (isinstance(kind, type) and issubclass(kind, KeeveError)):
        kind, message = known.Failed, f"{name}: {message}"
    answer = answer_to(kind) or ErrorAnswer(502, KEEPER)
    if answer.of_set_up and answer.message is not None:
        message = answer.message(None)
    return Refusal(answer.status, code_named(name), message, answer.remedy, headers={"x-should-retry": "false"})


def usage_of(usage: Any) -> Json | None:
    """What was used, in the words of a response; None where the model did not say."""
    if not usage:
        return None
    before, after = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    asked, answered = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": int(before.get("cached_tokens", 0)), "cache_write_tokens": 0},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": int(after.get("reasoning_tokens", 0))},
        "total_tokens": int(usage.get("total_tokens", asked + answered)),
    }


def chat_usage(usage: Any) -> Json:
    """The same in the words of a chat completion; noughts where the model did not say, as clients count on it."""
    usage = usage or {}
    asked, answered = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
    details = {
        name: plain(usage[name]) for name in ("prompt_tokens_details", "completion_tokens_details") if name in usage
    }
    total = int(usage.get("total_tokens", asked + answered))
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": total, **details}


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    details = usage.get(name)
    return details if isinstance(details, Mapping) else {}


def finish_of(turn: Turn) -> str:
    """Why the model stopped, in the words of a chat completion."""
    span = turn["span"]
    if span.get("limit") == "client":
        return "tool_calls"
    if span.get("finish") in ("length", "content_filter"):
        return str(span["finish"])
    return "length" if span.get("limit") in REASONS else "stop"


def completion_of(turn: Turn, uid: bytes) -> Json:
    """A chat completion: the last answer of a turn."""
    asked, span = turn["asked"], turn["span"]
    answers = [each for each in turn["output"] if each["message"]["role"] == "assistant"]
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    if answers:
        last, own = answers[-1]["message"], answers[-1]["own"]
        content = last.get("content")
        message |= {"content": None if content is None else text_in(content), "refusal": plain(last.get("refusal"))}
        calls = plain((last.get("tool_calls") or ())[own:])
        if calls and span.get("limit") == "client":
            message["tool_calls"] = calls
    return {
        "id": completion_id(uid, turn["turn"]),
        "object": "chat.completion",
        "created": int(asked.get("at") or span.get("begun") or 0),
        "model": asked.get("about", {}).get("model", "model"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish_of(turn)}],
        "usage": chat_usage(span.get("usage")),
        "service_tier": "default",
    }


def listing(items: Sequence[Json], more: bool) -> Json:
    """A page of a list."""
    ids = [item["id"] for item in items] or [""]
    return {"object": "list", "data": list(items), "first_id": ids[0], "last_id": ids[-1], "has_more": more}
