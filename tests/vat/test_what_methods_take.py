"""What a method can be called with: the quick answer is the one that Python gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from vat.objects.describing import taken_by


def none(me: Any) -> None: ...
def one(me: Any, a: Any) -> None: ...
def only_by_place(me: Any, a: Any, /, b: Any = 1) -> None: ...
def more(me: Any, a: Any, b: Any = 1, *rest: Any) -> None: ...
def by_name(me: Any, *, a: Any) -> None: ...
def may_be_by_name(me: Any, b: Any = 1, *, a: Any = 1) -> None: ...
def anything(*args: Any, **named: Any) -> None: ...


@pytest.mark.parametrize("function", [none, one, only_by_place, more, by_name, may_be_by_name, anything])
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
