"""Values: what is one, what is not, and what it becomes when it enters."""

from __future__ import annotations

import collections
import datetime
import enum
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from value_strategies import containers, same, scalars

from dataspace.errors import KeeveError
from dataspace.patterns import pattern
from dataspace.values import (
    ERASED,
    MAX_DEPTH,
    Blob,
    CellRef,
    NotAValue,
    Promise,
    Ref,
    Symbol,
    Text,
    freeze,
)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


# What is a value


@given(containers(scalars))
def test_a_value_comes_back_the_same(value: Any) -> None:
    assert same(freeze(value), value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        2**80,
        -0.0,
        "a",
        b"a",
        Symbol("turn"),
        Ref(None, 1),
        Promise(3),
        ERASED,
        Blob("a/b", b"c"),
    ],
)
def test_each_scalar_is_a_value(value: Any) -> None:
    frozen = freeze(value)
    assert frozen == value
    assert type(frozen) is type(value)


def test_a_nan_comes_back_as_it_is() -> None:
    nan = float("nan")
    assert freeze(nan) is nan


def test_a_tuple_becomes_a_list() -> None:
    assert freeze((1, (2,))) == [1, [2]]


class Colour(enum.IntEnum):
    RED = 3


class Role(enum.StrEnum):
    USER = "user"


class Shouting(str):
    def __str__(self) -> str:
        return self.upper()


class Grams(float):
    pass


class Packet(bytes):
    pass


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        (Colour.RED, 3),
        (Role.USER, "user"),
        (Shouting("quiet"), "quiet"),
        (Grams(1.5), 1.5),
        (Packet(b"ab"), b"ab"),
        (Text("said"), "said"),
    ],
)
def test_a_subclass_becomes_its_plain_value(value: Any, becomes: Any) -> None:
    for frozen in (freeze(value), freeze([value])[0], freeze({"key": value})["key"]):
        assert type(frozen) is type(becomes)
        assert frozen == becomes


def test_a_key_of_a_subclass_becomes_a_plain_str() -> None:
    (key,) = freeze({Role.USER: 1})
    assert type(key) is str
    assert key == "user"


def test_ordered_and_default_dicts_are_dicts_in_their_order() -> None:
    ordered = collections.OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    assert list(freeze(ordered)) == ["b", "a"]
    assert freeze(collections.defaultdict(list, a=[1])) == {"a": [1]}


def test_a_subclass_of_a_ref_stays_what_it_is_and_equals_the_plain_one() -> None:
    class Near(Ref):
        __slots__ = ()

    near = Near(None, 4)
    assert freeze([near])[0] is near
    assert near == Ref(None, 4)
    assert hash(near) == hash(Ref(None, 4))
    assert near != Ref(b"u" * 16, 4)


# What is not


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"messages": [0, 1, 2, {"content": datetime.datetime(2020, 1, 1)}]},
            "value.messages[3].content: datetime",
        ),
        ({"a b": {1, 2}}, "value['a b']: set"),
        (object(), "value: object"),
        ([bytearray(b"a")], "value[0]: bytearray"),
        ((1, 1j), "value[1]: complex"),
        ({"f": len}, "value.f: builtin_function_or_method"),
        ([CellRef(1, 1)], "value[0]: CellRef"),
        ({"k" * 100: 1j}, "value[a key of 100 characters]: complex"),
    ],
)
def test_what_is_no_value_is_named_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(NotAValue) as caught:
        freeze(value)
    assert str(caught.value).startswith(f"{message} is not a value")


@pytest.mark.parametrize("kind", [str, int, float, bytes, list, dict, tuple, Ref, Blob])
def test_a_mock_that_says_that_it_is_a_value_is_none(kind: type) -> None:
    """Invariant 41: what a thing is decides, not what it says of itself."""
    for mock in (Mock(spec=kind), MagicMock(spec=kind)):
        with pytest.raises(NotAValue, match=r"value\.made\[1\]: (Magic)?Mock is not"):
            freeze({"made": [1, mock]})
        with pytest.raises(NotAValue):
            pattern("turn", mock)


@pytest.mark.parametrize(
    "reference",
    [
        Ref(None, -1),
        Ref(None, 1 << 64),
        Ref(None, True),
        Ref(None, "1"),  # type: ignore[arg-type]  # as the test says
        Ref(b"short", 1),
        Ref("s" * 16, 1),  # type: ignore[arg-type]  # as the test says
        Promise(-1),
        Promise(1 << 64),
    ],
)
def test_a_reference_that_could_not_be_read_again_is_no_value(reference: Any) -> None:
    """Invariant 41: it is refused where it stands, and not when a record of it is written or read."""
    with pytest.raises(NotAValue, match=r"value\[0\]: the (number|session)"):
        freeze([reference])


def test_the_path_begins_with_what_the_caller_calls_the_value() -> None:
    with pytest.raises(NotAValue) as caught:
        freeze([0, 1, 2, {"content": datetime.datetime(2020, 1, 1)}], path="messages")
    assert caught.value.path == "messages[3].content"
    assert caught.value.kind is datetime.datetime
    assert str(caught.value) == "messages[3].content: datetime is not a value (keep its .isoformat())"


def test_a_class_can_say_what_to_give_in_its_place() -> None:
    class Held:
        __keeve_remedy__ = "give its id"

    with pytest.raises(NotAValue, match=r"tools: Held is not a value \(give its id\)"):
        freeze(Held(), path="tools")


def test_not_a_value_is_a_type_error_and_ours() -> None:
    assert issubclass(NotAValue, TypeError)
    assert issubclass(NotAValue, KeeveError)


@pytest.mark.parametrize("key", [1, None, b"a", ("a",)])
def test_a_key_that_is_no_str_is_refused_where_it_is(key: Any) -> None:
    with pytest.raises(NotAValue, match=r"^value\.a\[0\]: the keys of a dict are str, and one is "):
        freeze({"a": [{key: 1}]})


def test_a_key_too_large_to_be_printed_is_refused_all_the_same() -> None:
    with pytest.raises(NotAValue, match=r"^value: the keys of a dict are str, and one is int$"):
        freeze({10**5000: 1})


@pytest.mark.parametrize(
    ("blob", "path"), [(Blob("a/b", "text"), "value.content"), (Blob(1, b"c"), "value.media_type")]
)
def test_a_blob_of_something_else_than_bytes_is_refused(blob: Blob, path: str) -> None:
    with pytest.raises(NotAValue) as caught:
        freeze(blob)
    assert caught.value.path == path


def test_nesting_is_allowed_up_to_64_and_refused_beyond() -> None:
    """Invariant 41: nesting 1,000 deep has a defined answer."""
    assert freeze(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert freeze({"a": nested(MAX_DEPTH - 1)})
    for too_deep in (nested(MAX_DEPTH + 1), {"a": nested(MAX_DEPTH)}, nested(1000)):
        with pytest.raises(NotAValue, match="nested more than 64 deep"):
            freeze(too_deep)


def test_what_is_frozen_counts_its_depth_again() -> None:
    inner = freeze(nested(MAX_DEPTH))
    with pytest.raises(NotAValue, match="nested more than 64 deep"):
        freeze([inner])


def test_a_cycle_is_refused_at_the_container_that_contains_itself() -> None:
    """Invariant 41: cycles have a defined answer."""
    cycle: dict[str, Any] = {}
    cycle["inner"] = [1, {"back": cycle}]
    with pytest.raises(NotAValue, match=r"^value\.here: dict that contains itself$"):
        freeze({"here": cycle})


@pytest.mark.parametrize("held", [lambda inner: [inner, inner], lambda inner: {"a": inner, "b": inner}])
def test_a_value_that_is_held_twice_at_each_of_many_levels_is_refused(held: Callable[[Any], Any]) -> None:
    """Invariant 41: what grows with the power of its depth has a defined answer."""
    value: Any = "x" * 10_000
    for _ in range(MAX_DEPTH - 2):
        value = held(value)
    with pytest.raises(NotAValue, match=r"^input: larger than 256 MiB .* bring it in pieces") as caught:
        freeze(value, path="input")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "content",
    ["x" * (1 << 20), b"x" * (1 << 20), Text("x" * (1 << 20)), Blob("a/b", b"x" * (1 << 20)), {"k" * (1 << 20): 1}],
    ids=lambda content: type(content).__name__,
)
def test_content_counts_wherever_it_is_held(content: Any) -> None:
    assert len(freeze([content] * 200)) == 200
    with pytest.raises(NotAValue, match="larger than 256 MiB"):
        freeze([content] * 300)


# Strings


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("\ud800", "\ufffd"),
        ("a\udfffb\ud83d", "a\ufffdb\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("nul\0", "nul\0"),
        ("\ufeffé", "\ufeffé"),
    ],
)
def test_a_lone_surrogate_is_stored_as_the_replacement_character(text: str, stored: str) -> None:
    """Invariant 41: lone surrogates and NUL have a defined answer."""
    assert freeze(text) == stored
    assert freeze([text]) == [stored]
    assert freeze({text: text}) == {stored: stored}
    assert freeze(Text(text)) == stored
    assert freeze(Blob(text, b"")) == Blob(stored, b"")


@given(st.text(st.characters(exclude_categories=())))
def test_every_string_becomes_one_that_utf8_can_carry(text: str) -> None:
    freeze(text).encode()
