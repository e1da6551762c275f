"""What a function declares of itself as a tool: `@tool`.

The one rule: the mark is on the function; calling it is what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeVar, overload

import attrs

from actors.messages import outcome_message
from actors.tools.errors import BadTool
from vat.devices.devices import Policy

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "__keeve_tool__"


@attrs.frozen
class Declared:
    """What `@tool` was given. `policy` is None where nothing was said about how it is run."""

    name: str | None = None
    description: str | None = None
    policy: Policy | None = None
    approval: bool = False
    longest: int | None = None


def declared(function: Callable[..., Any]) -> Declared:
    """What a function declares; nothing of its own where it is not marked."""
    mark: Declared = getattr(function, _MARK, Declared())
    return mark


def names_given(whose: str, parameter: str, given: Iterable[str]) -> frozenset[str]:
    """The names of tools that a parameter was given. Raises `BadTool` for what is no list of them.

    A text is none: it would be taken for its letters, and nothing would be said of the tool that was meant.
    """
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        names = list(given)
        if all(isinstance(name, str) for name in names):
            return frozenset(names)
    shown = repr(given) if isinstance(given, str) else '"some_tool"'
    raise BadTool(whose, f"{parameter} is a list of names of tools: give {parameter}=[{shown}]")


def check_said_of(said: Iterable[str], there: Collection[str]) -> None:
    """Raise `BadTool` for a name of which something is said, a policy or that it needs approval, and that no tool has.

    So nobody takes for guarded what is not: who has mistyped a name learns it before anything is called.
    """
    for name in said:
        if name not in there:
            known = ", ".join(there) or "none"
            raise BadTool(name, f"something is said of it, and it is not here; there are {known}")


@overload
def tool(call: Mapping[str, Any], outcome: Any, /) -> dict[str, Any]: ...
@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    approval: bool = ...,
    longest: int | None = ...,
    on_crash: Literal["unknown", "retry"] = ...,
    timeout: float | None = ...,
    concurrency: int | None = ...,
    attempts: int = ...,
    backoff: float = ...,
    retry_on: tuple[type[Exception], ...] = ...,
) -> Callable[[F], F]: ...
def tool(
    first: Any = None,
    /,
    *outcome: Any,
    name: str | None = None,
    description: str | None = None,
    approval: bool = False,
    longest: int | None = None,
    **policy: Any,
) -> Any:
    """`@tool(...)` says how a function is run as a tool; `tool(call, outcome)` is the message about a call.

    name, description: in the place of the function's own.
    approval: a person has to approve of each call first.
    longest: characters that a model is told of its answer.
    on_crash, timeout, concurrency, attempts, backoff, retry_on: as in `Policy`.

    Raises `BadPolicy`.
    """
    if outcome:
        return outcome_message(first, *outcome)
    mark = Declared(name, description, Policy(**policy) if policy else None, approval, longest)

    def put(function: F) -> F:
        setattr(function, _MARK, mark)
        return function

    return put if first is None else put(first)
