"""`Tools`: a device that carries out a model's tool calls with async functions.

    async def weather(city: str, days: int = 1) -> str:
        "The weather in a city."

    tools = Tools(weather)
    open_host(..., devices={"tools": tools});  host.spawn(Session, tools=tools.schemas)

The schemas that a model is given are made from the functions' signatures and docstrings.

The one rule: what a model sends is checked before a function is called. A call that does not fit breaks with an error
that says so, which the model is told, so that it can do better.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final, Literal, Union, get_args, get_origin, get_type_hints

from dataspace.errors import KeeveError
from vat.devices.devices import Effect, Policy, effect

Function = Callable[..., Awaitable[Any]]

_KINDS: Final[dict[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class BadTool(KeeveError, TypeError):
    """A function that cannot be a tool; `reason` says why and what to do."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name} cannot be a tool: {self.reason}"


class NoSuchTool(KeeveError, LookupError):
    """A model called a tool (`name`) that is not there; `known` are those that are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return f"there is no tool {self.name!r}; there are {', '.join(self.known) or 'none'}"


class BadArguments(KeeveError, ValueError):
    """A model called a tool (`name`) with arguments that do not fit; `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"the arguments of {self.name} do not fit: {self.reason}"


class Tools:
    """A device that runs these functions, each under its own name.

    A function takes what the model sends as keyword arguments; one whose first parameter is annotated `Effect` is
    given that as well. `policy` is how they are run; by default a call that was under way when the host died is not run
    again. `schemas` is what a `Session` is given as `tools`. Raises `BadTool`.
    """

    def __init__(self, *functions: Function, policy: Policy | None = None) -> None:
        self._tools: dict[str, _Tool] = {}
        self.schemas: list[dict[str, Any]] = []
        for function in functions:
            tool = _Tool(function)
            if tool.name in self._tools:
                raise BadTool(tool.name, "there are two of that name")
            self._tools[tool.name] = tool
            self.schemas.append(tool.schema)
        self.policies = {} if policy is None else {"run": policy}

    @effect
    async def run(self, effect: Effect, call: Mapping[str, Any]) -> Any:
        """Carry out one tool call. Raises `NoSuchTool`, `BadArguments`, and what the function raises."""
        function = call["function"]
        tool = self._tools.get(function["name"])
        if tool is None:
            raise NoSuchTool(function["name"], tuple(self._tools))
        arguments = tool.arguments(function.get("arguments"))
        return await (tool.function(effect, **arguments) if tool.takes_effect else tool.function(**arguments))


class _Tool:
    """A function, its schema, and what its arguments must be."""

    def __init__(self, function: Function) -> None:
        if not inspect.iscoroutinefunction(function):
            raise BadTool(getattr(function, "__name__", repr(function)), "it is no `async def`; make it one")
        self.function = function
        self.name = function.__name__
        parameters = list(inspect.signature(function).parameters.values())
        hints = get_type_hints(function)
        self.takes_effect = bool(parameters) and hints.get(parameters[0].name) is Effect
        properties: dict[str, Any] = {}
        required: list[str] = []
        for parameter in parameters[self.takes_effect :]:
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise BadTool(self.name, f"a model names its arguments, and {parameter} has none; write it out")
            if parameter.name not in hints:
                raise BadTool(self.name, f"{parameter.name} is not annotated, so a model cannot know what it is")
            properties[parameter.name] = _schema(hints[parameter.name], f"{self.name}: {parameter.name}")
            if parameter.default is parameter.empty:
                required.append(parameter.name)
        self._properties = properties
        self._required = required
        accepted = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        described = {"name": self.name, "description": inspect.getdoc(function) or "", "parameters": accepted}
        self.schema = {"type": "function", "function": described}

    def arguments(self, text: Any) -> dict[str, Any]:
        """What a model sent, as keyword arguments. Raises `BadArguments`."""
        try:
            sent = json.loads(text) if text else {}
        except (TypeError, ValueError, RecursionError) as error:
            raise BadArguments(self.name, f"they are no JSON ({error})") from None
        if not isinstance(sent, dict):
            raise BadArguments(self.name, "they are no object")
        for name in self._required:
            if name not in sent:
                raise BadArguments(self.name, f"{name!r} is missing")
        for name, value in sent.items():
            if name not in self._properties:
                raise BadArguments(self.name, f"{name!r} is not one of {', '.join(self._properties) or 'none'}")
            wrong = _misfit(value, self._properties[name])
            if wrong:
                raise BadArguments(self.name, f"{name!r} {wrong}")
        return sent


def _schema(kind: Any, where: str) -> dict[str, Any]:
    """The JSON schema of an annotation. Raises `BadTool`."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _KINDS:
        return {"type": _KINDS[kind]}
    if kind is Any:
        return {}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is Union or origin is types.UnionType:
        return {"anyOf": [_schema(part, where) for part in parts]}
    if kind is list or origin is list:
        return {"type": "array", "items": _schema(parts[0], where) if parts else {}}
    if kind is dict or (origin is dict and parts[0] is str):
        return {"type": "object", "additionalProperties": _schema(parts[1], where) if parts else {}}
    raise BadTool(where, f"{kind} has no form in JSON; use str, int, float, bool, None, list, dict, Literal or a union")


def _misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Why a value does not fit one of the schemas that `_schema` makes; "" when it does."""
    if "anyOf" in schema:
        return "" if any(not _misfit(value, one) for one in schema["anyOf"]) else "fits none of what it may be"
    if "enum" in schema:
        fits = any(value == one and type(value) is type(one) for one in schema["enum"])
        return "" if fits else f"is not one of {json.dumps(schema['enum'])}"
    kind = schema.get("type")
    if kind is None:
        return ""
    if kind == "array" and isinstance(value, list):
        return next((f"has an item that {wrong}" for item in value if (wrong := _misfit(item, schema["items"]))), "")
    if kind == "object" and isinstance(value, dict):
        rest = schema["additionalProperties"]
        return next((f"has a value that {wrong}" for item in value.values() if (wrong := _misfit(item, rest))), "")
    if kind == "number" and type(value) is int:
        return ""
    return "" if _KINDS.get(type(value)) == kind else f"is no {kind}"
