"""Packed numbers come back, one by one and all together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataspace.catalog.packing import item, least, pack, unpack

numbers = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50)
near = st.builds(
    lambda base, steps: [base + step for step in steps],
    st.integers(0, 2**63),
    st.lists(st.integers(0, 70_000), min_size=1),
)


@given(numbers | near)
def test_what_is_packed_comes_back(given_: list[int]) -> None:
    packed = pack(given_)
    assert unpack(packed) == given_
    assert [item(packed, at) for at in range(len(given_))] == given_
    assert item(packed, len(given_)) is None
    assert least(packed) == min(given_)


def test_near_numbers_take_a_byte_or_two_each() -> None:
    assert len(pack([10**12 + at for at in range(200)])) <= 200 + 8
    assert len(pack([10**12 + 30 * at for at in range(1000)])) <= 2000 + 8
