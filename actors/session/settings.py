"""What a session may be set to, and the error for what it may not.

The one rule: a setting is refused where it is given, with its name and the way to set it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from actors.chat import marked
from actors.tools import Source, Tools
from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from dataspace.values import FrozenDict, Text
from vat.objects.actor import Actor, Device
from vat.objects.collections import List
from vat.objects.types import manage
from vat.objects.views import ListView

MODES: Final = ("agent", "chat")
"""`agent` offers the tools and carries out what the model calls; `chat` does neither."""

SETTINGS: Final = (
    *("model", "tool_device", "system", "mode", "options"),
    *("max_steps", "max_tokens", "max_seconds", "parallel", "tools"),
)
"""What `configure` takes."""

CHECKED: Final = ("mode", "parallel", "max_steps", "max_tokens", "max_seconds", "options")
"""Those that are checked before each turn as well, since a subclass may set them; cheap to look at."""

TAKEN: Final = ("self", "effect", "messages", "tools")
"""What the session itself gives to a model, and no option can be called."""

LONGEST_SHOWN: Final = 100
"""Characters of a value that an error shows."""

LONGEST_TURN: Final = 10**9
"""Seconds (31 years); what is more cannot be added to every clock."""


SET_IT: Final = Remedy("set-field", "; spawn(Session, {field}=...) or configure({field}=...) sets it")
TRUTH: Final = Remedy("truth", "it is True, or False")
TOOLS: Final = Remedy("tools", "it is a Tools, or a list")
SCHEMA: Final = Remedy("schema", "a schema is a dict, as Tools(...).schemas has them")


class BadSetting(KeeveError, ValueError):
    """A field of a session (`field`) that cannot be meant; says why (`reason`)."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field} {self.reason}{SET_IT(field=self.field)}"


def check(field: str, value: Any) -> None:
    """Raise `BadSetting` for what a field of a session cannot be."""
    reason = None
    if field == "mode" and not (isinstance(value, str) and value in MODES):
        reason = f"is {_shown(value)} and not one of {', '.join(MODES)}"
    elif field == "parallel" and type(value) is not bool:
        reason = f"is {_shown(value)}: {TRUTH()} for one tool call after another"
    elif field == "max_steps" and (type(value) is not int or value < 1):
        reason = f"is {_shown(value)}: a turn takes at least one answer, and a whole number of them"
    elif field == "max_tokens" and (type(value) is not int or value < 0):
        reason = f"is {_shown(value)}: it is a number of tokens, or 0 for no limit"
    elif field == "max_seconds" and not (type(value) in (int, float) and 0 <= value <= LONGEST_TURN):
        reason = f"is {_shown(value)}: it is a number of seconds, at most {LONGEST_TURN}, or 0 for no limit"
    elif field == "options":
        reason = _wrong_options(value)
    elif field in ("model", "tool_device") and not (isinstance(value, str | Device) and str(value)):
        reason = f"is {_shown(value)}: it is the name of a device of the host"
    elif field == "system" and not isinstance(value, str):
        reason = f"is {_shown(value)}: it is a text, or '' for none"
    elif field == "tools":
        reason = _wrong_tools(value)
    if reason:
        raise BadSetting(field, reason)


def _wrong_options(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return f"is a {type(value).__name__}: it is a dict of what is sent with each request"
    for name in value:
        if not isinstance(name, str):
            return f"has {_shown(name)} for a name: each option is called by a string"
        if name in TAKEN:
            return f"has {name!r}, which the session itself gives to the model: leave it out"
    return None


def _wrong_tools(value: Any) -> str | None:
    if not isinstance(value, Sequence | ListView) or isinstance(value, str | bytes):
        return f"is {_shown(value)}: {TOOLS()} of schemas in the form that the model takes"
    for place, schema in enumerate(value):
        if callable(schema):
            name = getattr(schema, "__name__", "...")
            return f"has a function: make Tools({name}) of it, and give that to the host as well"
        if not isinstance(schema, Mapping):
            return f"has {_shown(schema)} at {place}: {SCHEMA()}"
        function = schema.get("function")
        named = isinstance(function, Mapping) and isinstance(function.get("name"), str) and function["name"]
        if schema.get("type", "function") == "function" and not named:
            return f"has a schema without a name at {place}: give {{'type': 'function', 'function': {{'name': ...}}}}"
    return None


def _shown(value: Any) -> str:
    """What was given, for an error's message: whatever it is, and not at length."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # a number with too many digits, or anything else that is no value
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


class Settings(Actor):
    """The part of a session that it is given; see `Session` for what each field is."""

    model: Device = "model"  # type: ignore[assignment]  # a field of that kind is given a name
    tool_device: Device = "tools"  # type: ignore[assignment]  # as above
    system: Text = Text("")
    mode: str = "agent"
    options: Mapping[str, Any] = FrozenDict()
    parallel: bool = True
    max_steps: int = 100
    max_tokens: int = 0
    max_seconds: float = 0
    tools: List[Mapping[str, Any]]
    messages: List[Mapping[str, Any]]

    @classmethod
    def given(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises `BadSetting`. `tools` may be a `Tools` or a `McpTools`, whose schemas it stands for."""
        tools = fields.get("tools")
        taken = {**fields, "tools": tools.schemas} if isinstance(tools, Tools | Source) else fields
        for name, value in taken.items():
            check(name, value)
        return taken

    @manage
    def configure(
        self,
        *,
        model: str | None = None,
        tool_device: str | None = None,
        system: Text | None = None,
        mode: str | None = None,
        options: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        parallel: bool | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **unknown: Any,
    ) -> None:
        """Change what is given, from the next request to the model on. Changes nothing if it raises `BadSetting`."""
        if unknown:
            raise TypeError(f"a session has no setting {min(unknown)!r} to configure: it has {', '.join(SETTINGS)}")
        given: dict[str, Any] = {"model": model, "tool_device": tool_device, "mode": mode, "options": options}
        given |= {"max_steps": max_steps, "max_tokens": max_tokens, "max_seconds": max_seconds, "parallel": parallel}
        for name, value in {**given, "system": system, "tools": tools}.items():
            if value is not None:
                check(name, value)
        for name, value in given.items():
            if value is not None:
                setattr(self, name, value)
        if system is not None:
            self.system = Text(system)
            if self.messages and self.messages[0].get("role") == "system":
                self.messages[0] = self._system_message()
            elif self.messages:
                self.messages.insert(0, self._system_message())
        if tools is not None:
            self.tools.clear()
            self.tools.extend(tools)

    def _system_message(self) -> dict[str, Any]:
        return {"role": "system", "content": marked(self.system)}

    def _check_settings(self) -> None:
        for name in CHECKED:
            check(name, getattr(self, name))
