"""What a request asks for: which model, what it is told first, tools, options; and what cannot be asked for.

| of `how` | what it is |
|---|---|
| `model` | the name of a device |
| `system` | what the model is told first; "" for nothing |
| `tools` | schemas of the client's own tools, in chat form |
| `own` | which of the tools that the session has (`offered`) are offered: all (True), none (False), or those names |
| `tool_device` | the device that carries these out |
| `options` | sent with each request to the model |
| `about` | anything to keep with the request, for whoever asks later |

The one rule: all of it is looked at before anything is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from actors.chat import BadInput, check_input
from actors.session import check
from dataspace.errors import KeeveError
from dataspace.values import Text

ROLES: Final = ("user", "system", "developer", "assistant", "tool")

ASKED: Final = ("model", "system", "tools", "own", "tool_device", "options", "about")


class BadRequest(KeeveError, ValueError):
    """Something in a request (`where`) that cannot be done; says why (`what`)."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str, where: str) -> None:
        super().__init__(what, where)
        self.what = what
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; correct it and ask again"


class NotCalled(KeeveError):
    """A model that had to call a tool (`wanted`: its name, or "one") called none, or another one."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        what = "a tool" if self.wanted == "one" else f"the tool {self.wanted!r}"
        return f"the model was told by tool_choice that it has to call {what}, and did not: ask one that keeps to that"


def uncalled(choice: Any, answer: Mapping[str, Any]) -> str:
    """What an answer had to call by that `tool_choice` and did not: the name of a tool, or "one"; "" for nothing.

    >>> uncalled("required", {"content": "no"}), uncalled("auto", {"content": "no"})
    ('one', '')
    """
    names = [call["function"]["name"] for call in answer.get("tool_calls") or ()]
    if isinstance(choice, Mapping):
        function = choice.get("function")
        wanted = function.get("name") if isinstance(function, Mapping) else None
        return str(wanted) if isinstance(wanted, str) and wanted not in names else ""
    return "one" if choice == "required" and not names else ""


def marked_how(how: Any) -> Any:
    """What is asked for, the instructions in it marked as content."""
    return (
        {**how, "system": Text(how["system"])}
        if isinstance(how, Mapping) and isinstance(how.get("system"), str)
        else how
    )


def names_in(tools: Any) -> list[str]:
    """The names of functions in schemas that were checked."""
    return [schema["function"]["name"] for schema in tools if schema.get("type", "function") == "function"]


def check_how(how: Any) -> None:
    """Raise `BadRequest` or `BadSetting`."""
    if not isinstance(how, Mapping) or set(how) != set(ASKED):
        raise BadRequest(f"it is a dict with {', '.join(ASKED)}", "how")
    for name in ("model", "system", "tools", "tool_device", "options"):
        check(name, how[name])
    own = how["own"]
    if type(own) is not bool and not (isinstance(own, list) and all(isinstance(name, str) for name in own)):
        raise BadRequest("it is True, False or a list of names", "own")
    if not isinstance(how["about"], Mapping):
        raise BadRequest("it is a dict", "about")
    seen: set[str] = set()
    for name in names_in(how["tools"]):
        if name in seen:
            raise BadRequest(f"there are two tools of the name {name!r}", "tools")
        seen.add(name)


def check_messages(messages: Any) -> None:
    """Raise `BadInput` for what is no list of messages that a model could be given."""
    if not isinstance(messages, list):
        raise BadInput(f"it is of type {type(messages).__name__}, and no list of messages")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            raise BadInput(f"message {place} has no role that there is: {', '.join(ROLES)}")
        content, calls = message.get("content"), message.get("tool_calls")
        if not (content is None and message["role"] == "assistant"):
            check_input(content)
        if message["role"] == "tool" and not isinstance(message.get("tool_call_id"), str):
            raise BadInput(f"message {place} has no 'tool_call_id'")
        if calls is not None and not (isinstance(calls, list) and all(map(_is_call, calls))):
            raise BadInput(f"message {place} has calls without an id or the name of a function")


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str) and isinstance(call.get("id"), str)
