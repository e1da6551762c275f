"""A request of the Responses API or of chat completions, as what a session is asked (`actors.responding.asking`).

Every parameter that is not null is one of: understood; of no consequence here, and accepted; or refused by its name,
because an answer without it would be another one than was asked for.

The one rule: what is kept of a request follows from its body alone, so that the same body is the same request.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
from starlette.requests import Request

from actors.responding import names_in
from keeve.server.errors import Refusal, no_model, there_are
from keeve.server.openai.items import Json, refused
from keeve.server.serving import Serving

HARMLESS: Final = frozenset(
    {
        *("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
        *("service_tier", "stream_options", "background_options", "include"),
    }
)
"""They change how a request is served and not what it means."""

UNMEANT: Final = HARMLESS | {"stream", "store"}
"""They say how the answer is to come, or what is kept, so a request is the same with others."""

PASSED: Final = ("temperature", "top_p")
"""Sent to the model as they are."""

CHAT_PASSED: Final = (
    *PASSED,
    *("max_tokens", "max_completion_tokens", "frequency_penalty", "presence_penalty", "logit_bias", "seed", "stop"),
    *("response_format", "reasoning_effort", "verbosity"),
)

RESPONSES: Final = frozenset(
    {
        *("input", "model", "instructions", "previous_response_id", "conversation", "metadata", "stream", "background"),
        *("store", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "text", "reasoning"),
        *("truncation", *PASSED),
    }
)

CHAT: Final = frozenset(
    {"messages", "model", "metadata", "stream", "store", "tools", "tool_choice", "parallel_tool_calls", "n"}
    | {*CHAT_PASSED}
)

INCLUDED: Final = ("message.output_text.logprobs",)
"""What cannot be had with an answer; anything else that may be asked for is of what there is not here."""

LONGEST_METADATA: Final = 16

MOST_TOOLS: Final = 1000
"""Tools that a request may bring, and names of the host's that it may allow."""


@attrs.frozen
class Model:
    """What a model's name stands for: the device that is asked, and the one whose tools it has, if it has any."""

    name: str
    device: str
    tools: str | None = None


async def body_of(request: Request) -> Json:
    """The JSON object that a request brings; {} for nothing. Half a surrogate pair is U+FFFD. Raises a `Refusal`."""
    data = await request.body()
    if not data:
        return {}
    try:
        text = data.decode()
        body = json.loads(text, parse_constant=_constant, parse_float=_finite)
        if _HALF.search(text):
            body = _whole(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "bad_json", f"the body is no JSON: {error}", "send a JSON object") from None
    if not isinstance(body, dict):
        raise Refusal(400, "bad_json", "the body is JSON, and no object", "send a JSON object")
    return {name: value for name, value in body.items() if value is not None}


_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def _whole(value: Any) -> Any:
    """A value of JSON without lone halves of surrogate pairs, which are no characters."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(name): _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.40} is too large a number")
    return number


def check_names(body: Json, known: frozenset[str]) -> None:
    """Raise a `Refusal` for a parameter that is not understood, and not of no consequence."""
    for name in body:
        if name not in known and name not in HARMLESS:
            what = f"the parameter {name!r} is not supported here, and an answer without it would be another one"
            raise refused(what, name, "leave it out", "unsupported_parameter")
    for name in body.get("include", ()) if isinstance(body.get("include"), list) else ():
        if name in INCLUDED:
            raise refused(f"{name!r} cannot be included", "include", "leave it out", "unsupported_parameter")


def host_tools(serving: Serving) -> dict[str, Any]:
    """The tools of the host, by the name of their device."""
    return {} if serving.tools is None else {"tools": serving.tools}


def models(serving: Serving) -> dict[str, Model]:
    """All models by name: each that the host has, alone and with the tools of each tool device (`name+tools`)."""
    found = {name: Model(name, device) for name, device in serving.named.items()}
    for name, device in serving.named.items():
        for tools in host_tools(serving):
            found[f"{name}+{tools}"] = Model(f"{name}+{tools}", device, tools)
    return found


def model_of(serving: Serving, body: Json) -> Model:
    """The model that a request names; the first if it names none. Raises a `Refusal` (404)."""
    known = models(serving)
    name = body.get("model", next(iter(known), "model"))
    if not isinstance(name, str) or name not in known:
        raise no_model(name, known)
    return known[name]


def metadata_of(body: Json) -> dict[str, str]:
    """The metadata of a request. Raises a `Refusal`."""
    given = body.get("metadata", {})
    if not isinstance(given, dict) or len(given) > LONGEST_METADATA:
        raise refused(f"it has to be an object with at most {LONGEST_METADATA} keys", "metadata")
    for name, value in given.items():
        if not isinstance(value, str) or len(name) > 64 or len(value) > 512:
            raise refused("its keys have at most 64 characters, its values are texts of at most 512", "metadata")
    return given


def flag(body: Json, name: str, usual: bool = False) -> bool:
    """A parameter that is true or false. Raises a `Refusal`."""
    value = body.get(name, usual)
    if type(value) is not bool:
        raise refused("it has to be true or false", name)
    return value


def number(body: Json, name: str, least: float, most: float, whole: bool = False) -> None:
    """Raise a `Refusal` unless a parameter that is there is such a number."""
    value = body.get(name)
    if value is not None and (type(value) not in ((int,) if whole else (int, float)) or not least <= value <= most):
        raise refused(f"it has to be a {'whole ' if whole else ''}number from {least:g} to {most:g}", name)


class Wanted:
    """What a request asks of a session: known by what the client sent, and made of that when it is needed.

    sent: what the client sent. make: gives the input and how it is asked; what the server has, a model for one that is
    not named, its tools, is looked at then. Raises as that does.
    """

    def __init__(self, sent: Sequence[Any], make: Callable[[], Awaitable[tuple[list[Json], Json]]]) -> None:
        self.sent = sent
        self._make = make
        self._made: tuple[list[Json], Json] | None = None

    async def made(self) -> tuple[list[Json], Json]:
        """The input, and how it is asked, as they are at first."""
        if self._made is None:
            self._made = await self._make()
        return self._made


def meant(body: Json, *others: str) -> Json:
    """What counts of a request when it is asked whether it is the same, without these others."""
    return {name: value for name, value in body.items() if name not in UNMEANT and name not in others}


# What the model is asked.


async def how_of(serving: Serving, body: Json, about: Json) -> Json:
    """What a session is asked to do with the input of a response. Raises a `Refusal`, and as `Tools.ready`."""
    instructions = body.get("instructions", "")
    if not isinstance(instructions, str):
        raise refused("it has to be a text", "instructions")
    number(body, "temperature", 0, 2)
    number(body, "top_p", 0, 1)
    number(body, "max_output_tokens", 1, 10**9, whole=True)
    if body.get("truncation", "disabled") != "disabled":
        raise refused("only 'disabled' is supported", "truncation", "leave it out", "unsupported_parameter")
    options: Json = {name: body[name] for name in PASSED if name in body}
    if "max_output_tokens" in body:
        options["max_completion_tokens"] = body["max_output_tokens"]
    options |= _text_options(body.get("text", {})) | _reasoning_options(body.get("reasoning", {}))
    tools, own, device = _tools(serving, body.get("tools", []), responses=True)
    return await _how(serving, body, about, instructions, tools, own, device, options)


async def chat_how(serving: Serving, body: Json, system: str, about: Json) -> Json:
    """The same, of a chat completion."""
    if body.get("n", 1) != 1:
        raise refused("only 1 is supported", "n", "ask as often as answers are wanted", "unsupported_parameter")
    options: Json = {name: body[name] for name in CHAT_PASSED if name in body}
    tools, own, device = _tools(serving, body.get("tools", []), responses=False)
    return await _how(serving, body, about, system, tools, own, device, options)


async def _how(
    serving: Serving, body: Json, about: Json, system: str, tools: list[Json], own: Any, device: str, options: Json
) -> Json:
    model = model_of(serving, body)
    if model.tools is not None and (own is False or device == model.tools):
        own, device = True, model.tools
    choice = _choice(body)
    if own is not False and serving.tools is not None:
        await serving.tools.ready(serving.vault)
    _check_choice(choice.get("tool_choice", "auto"), [*names_in(tools), *_own_names(serving, own)])
    if tools or own is not False:
        options |= choice
    return {
        "model": model.device,
        "system": system,
        "tools": tools,
        "own": own,
        "tool_device": device,
        "options": options,
        "about": {"model": model.name, **about},
    }


def _text_options(text: Any) -> Json:
    if not isinstance(text, dict):
        raise refused("it has to be an object", "text")
    options: Json = {}
    for name, value in text.items():
        if name == "verbosity" and value is not None:
            options["verbosity"] = value
        elif name == "format" and isinstance(value, dict):
            kind = value.get("type")
            if kind == "json_schema":
                schema = {key: item for key, item in value.items() if key != "type" and item is not None}
                options["response_format"] = {"type": "json_schema", "json_schema": schema}
            elif kind == "json_object":
                options["response_format"] = {"type": "json_object"}
            elif kind != "text":
                raise refused(f"there is no format {kind!r}", "text.format", "there are text, json_object, json_schema")
        elif value is not None:
            raise refused(f"{name!r} is not supported", f"text.{name}", "leave it out", code="unsupported_parameter")
    return options


def _reasoning_options(reasoning: Any) -> Json:
    if not isinstance(reasoning, dict):
        raise refused("it has to be an object", "reasoning")
    for name, value in reasoning.items():
        # A summary is told beside an answer, and changes nothing of it.
        if value is not None and name not in ("effort", "summary", "generate_summary"):
            raise refused(
                f"{name!r} is not supported", f"reasoning.{name}", "leave it out", code="unsupported_parameter"
            )
    return {"reasoning_effort": reasoning["effort"]} if reasoning.get("effort") is not None else {}


def _choice(body: Json) -> Json:
    options: Json = {}
    if "parallel_tool_calls" in body:
        options["parallel_tool_calls"] = flag(body, "parallel_tool_calls")
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, str) and choice in ("none", "auto", "required"):
        if choice != "auto":
            options["tool_choice"] = choice
    elif isinstance(choice, dict) and choice.get("type") in ("function", "mcp"):
        name = choice.get("name") or (choice.get("function") or {}).get("name")
        if not isinstance(name, str):
            raise refused("it names no tool", "tool_choice")
        options["tool_choice"] = {"type": "function", "function": {"name": name}}
    else:
        remedy = 'there are "none", "auto", "required", and a function or an mcp tool by name'
        raise refused("what it asks for is not supported", "tool_choice", remedy, "unsupported_parameter")
    return options


def _own_names(serving: Serving, own: Any) -> list[str]:
    """The names of the host's tools that are offered."""
    names = [] if serving.tools is None or own is False else names_in(serving.tools.schemas)
    return [name for name in names if own is True or name in own]


def _check_choice(choice: Any, names: list[str]) -> None:
    """Raise a `Refusal` where a tool has to be called that is not there."""
    if choice == "required" and not names:
        raise refused("a tool has to be called, and there is none", "tool_choice", "give tools, or leave it out")
    if isinstance(choice, dict) and (name := choice["function"]["name"]) not in names:
        what = f"the tool {name!r:.100} has to be called, and is not among the tools of this request"
        raise refused(what, "tool_choice", there_are(names))


def _tools(serving: Serving, given: Any, *, responses: bool) -> tuple[list[Json], Any, str]:
    """The client's tools, as a model takes them; which of the host's it is offered; and the device of these."""
    if not isinstance(given, list):
        raise refused("it has to be a list", "tools")
    if len(given) > MOST_TOOLS:
        raise refused(f"there are {len(given):,} tools, and may be {MOST_TOOLS:,}", "tools", "leave some out")
    theirs: list[Json] = []
    own: Any = False
    device = next(iter(host_tools(serving)), "tools")
    for place, tool in enumerate(given):
        at = f"tools[{place}]"
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind == "function":
            theirs.append(_function(tool if responses and "function" not in tool else tool.get("function"), at))
        elif kind == "mcp" and responses and own is False:
            device, own = _host_tools(serving, tool, at)
        else:
            remedy = "there are functions" + (", and mcp with the server_label of tools of this host" * responses)
            raise refused(f"tools of the type {kind!r} are not supported", at, remedy, "unsupported_tool")
    return theirs, own, device


def _function(function: Any, at: str) -> Json:
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise refused("a function has to have a name", at)
    kept = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {name: function[name] for name in kept if function.get(name) is not None}}


def _host_tools(serving: Serving, tool: Json, at: str) -> tuple[str, Any]:
    label = tool.get("server_label")
    if not isinstance(label, str) or label not in host_tools(serving) or "server_url" in tool or "connector_id" in tool:
        remedy = f"name tools of this host by server_label, without a server_url: {there_are(host_tools(serving))}"
        raise refused("only tools of this host are called here", at, remedy, "unsupported_tool")
    if tool.get("require_approval", "never") not in ("never", None):
        raise refused(
            "the host's tools say themselves which calls need approval", f"{at}.require_approval", "leave it out"
        )
    allowed = tool.get("allowed_tools")
    if isinstance(allowed, Mapping):
        allowed = allowed.get("tool_names")
    if allowed is not None and not (isinstance(allowed, list) and all(isinstance(name, str) for name in allowed)):
        raise refused("it has to be a list of names", f"{at}.allowed_tools")
    if allowed is not None and len(allowed) > MOST_TOOLS:
        what = f"there are {len(allowed):,} names, and may be {MOST_TOOLS:,}"
        raise refused(what, f"{at}.allowed_tools", "leave it out to allow all tools")
    return label, True if allowed is None else allowed
