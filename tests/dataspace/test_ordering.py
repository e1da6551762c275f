"""The order of map and set keys: total, types apart, the same everywhere."""

from __future__ import annotations

import math
import random
from struct import pack, unpack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.values import CellRef, FrozenList, NotAValue, Promise, Ref, Symbol, key_of, scalar_key

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from(["a", "turn-done", "é"]).map(Symbol)
    | st.builds(Ref, st.none() | st.binary(min_size=16, max_size=16), st.integers(0, 2**40))
)


def shuffled(items: list[Any]) -> list[Any]:
    return random.Random(3).sample(items, len(items))


def test_types_come_in_their_order() -> None:
    keys = [None, False, True, -5, 2**80, -math.inf, 0.5, "", "b", b"", b"a", Symbol("a"), Ref(None, 1)]
    assert sorted(shuffled(keys), key=scalar_key) == keys


@given(scalars, scalars)
def test_two_scalars_have_one_key_only_if_they_are_the_same_value(one: Any, other: Any) -> None:
    assert (scalar_key(one) == scalar_key(other)) == (key_of(one) == key_of(other))


@given(scalars, scalars)
def test_any_two_scalars_are_ordered(one: Any, other: Any) -> None:
    first, second = scalar_key(one), scalar_key(other)
    assert (first < second) + (first == second) + (first > second) == 1


def test_what_python_takes_for_equal_is_told_apart() -> None:
    assert len({scalar_key(value) for value in (1, 1.0, True, 0, 0.0, -0.0, False)}) == 7
    assert scalar_key("turn") != scalar_key(Symbol("turn"))


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_floats_come_in_the_order_of_numbers(one: float, other: float) -> None:
    if one < other:
        assert scalar_key(one) < scalar_key(other)


def test_nans_lie_beyond_the_infinities_by_sign_and_payload() -> None:
    negative, quiet, odd = (
        unpack(">d", bytes.fromhex(bits))[0] for bits in ("fff8000000000000", "7ff8000000000000", "7ff8000000000001")
    )
    expected = [negative, -math.inf, -0.0, 0.0, math.inf, quiet, odd]
    ordered = sorted(shuffled(expected), key=scalar_key)
    assert [pack(">d", x) for x in ordered] == [pack(">d", x) for x in expected]


def test_refs_of_this_vat_come_first_then_by_session_and_actor() -> None:
    refs = [Ref(None, 9), Ref(b"a" * 16, 2), Ref(b"a" * 16, 10), Ref(b"b" * 16, 1)]
    assert sorted(shuffled(refs), key=scalar_key) == refs


@pytest.mark.parametrize("value", [FrozenList([1]), {}, CellRef(1, 1), Promise(1), object()])
def test_what_is_no_scalar_cannot_be_a_key(value: Any) -> None:
    with pytest.raises(NotAValue, match="cannot be a key"):
        scalar_key(value)
