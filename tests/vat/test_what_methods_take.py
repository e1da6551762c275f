"""What a method can be called with: the quick answer is the one that Python gives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from vat.objects.describing import taken_by

SECRET = "sk-SECRET"


def none(me: Any) -> None: ...
def one(me: Any, a: Any) -> None: ...
def only_by_place(me: Any, a: Any, /, b: Any = 1) -> None: ...
def more(me: Any, a: Any, b: Any = 1, *rest: Any) -> None: ...
def by_name(me: Any, *, a: Any) -> None: ...
def may_be_by_name(me: Any, b: Any = 1, *, a: Any = 1) -> None: ...
def anything(*args: Any, **named: Any) -> None: ...


def says_it_takes_none(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorated as frameworks do it that give arguments themselves: what it says of itself is another thing."""

    def given(me: Any, a: Any) -> Any:
        return function(me, a)

    given.__signature__ = inspect.Signature([])  # type: ignore[attr-defined]  # any function can have one
    return given


def says_it_takes_more(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def given(me: Any, a: Any) -> Any:
        return function(me, a, 1)

    return given


def enclosing(more: Any) -> Callable[..., Any]:
    def enclosed(me: Any, a: Any, *, b: Any = more) -> Any:
        return more

    return enclosed


claims_none, claims_more, closes_over = says_it_takes_none(one), says_it_takes_more(more), enclosing(1)


@pytest.mark.parametrize(
    "function",
    [none, one, only_by_place, more, by_name, may_be_by_name, anything, claims_none, claims_more, closes_over],
)
def test_what_is_refused_python_refuses(function: Callable[..., Any]) -> None:
    takes = taken_by(function, 1)
    for count, named in product(range(4), ({}, {"a": 1}, {"b": 1}, {"a": 1, "c": 1})):
        args = [1] * count
        try:
            function(None, *args, **named)
            fits = True
        except TypeError:
            fits = False
        assert (takes.problem(args, named) is None) == fits, (count, named)


def test_no_value_of_a_default_is_shown_to_who_calls() -> None:
    def send(me: Any, to: Any, key: Any = SECRET, /, how: Any = SECRET, *, token: Any = SECRET) -> None: ...

    assert str(taken_by(send, 1)) == "(to, key=…, /, how=…, *, token=…)"
