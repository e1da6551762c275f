"""What a session may be set to, and the error for what it may not.

The one rule: a setting is refused where it is given, with its name and the way to set it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from actors.chat import marked
from actors.tools import Source, Tools
from dataspace.errors import KeeveError
from dataspace.values import FrozenDict, Text
from vat.objects.actor import Actor, Device
from vat.objects.collections import List

MODES: Final = ("agent", "chat")
"""`agent` offers the tools and carries out what the model calls; `chat` does neither."""

SETTINGS: Final = (
    *("model", "tool_device", "system", "mode", "options"),
    *("max_steps", "max_tokens", "max_seconds", "parallel", "tools"),
)
"""What `configure` takes."""

CHECKED: Final = ("mode", "parallel", "max_steps", "max_tokens", "max_seconds", "options")
"""The fields that cannot be just anything."""


class BadSetting(KeeveError, ValueError):
    """A field of a session (`field`) that cannot be meant; says why (`reason`)."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field} {self.reason}; spawn(Session, {self.field}=...) or configure({self.field}=...) sets it"


def check(field: str, value: Any) -> None:
    """Raise `BadSetting` for what a field of a session cannot be."""
    if field == "mode" and value not in MODES:
        raise BadSetting("mode", f"is {value!r} and not one of {', '.join(MODES)}")
    if field == "parallel" and type(value) is not bool:
        raise BadSetting("parallel", f"is {value!r}: it is True, or False for one tool call after another")
    if field == "max_steps" and (type(value) is not int or value < 1):
        raise BadSetting("max_steps", f"is {value!r}: a turn takes at least one answer, and a whole number of them")
    if field == "max_tokens" and (type(value) is not int or value < 0):
        raise BadSetting("max_tokens", f"is {value!r}: it is a number of tokens, or 0 for no limit")
    if field == "max_seconds" and not (type(value) in (int, float) and 0 <= value < math.inf):
        raise BadSetting("max_seconds", f"is {value!r}: it is a number of seconds, or 0 for no limit")
    if field == "options" and not isinstance(value, Mapping):
        raise BadSetting("options", f"is a {type(value).__name__}: it is a dict of what is sent with each request")


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
        for name, value in fields.items():
            check(name, value)
        tools = fields.get("tools")
        bare = next((tool for tool in tools if callable(tool)), None) if isinstance(tools, list | tuple) else None
        if bare is not None:
            name = getattr(bare, "__name__", "...")
            raise BadSetting("tools", f"has a function: make Tools({name}) of it, and give that to the host as well")
        return {**fields, "tools": tools.schemas} if isinstance(tools, Tools | Source) else fields

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
        self._check_settings()

    def _system_message(self) -> dict[str, Any]:
        return {"role": "system", "content": marked(self.system)}

    def _check_settings(self) -> None:
        for name in CHECKED:
            check(name, getattr(self, name))
