"""What goes to an archive, named in few bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dataspace.log.leaving import DEEDS, Named, named

MAYBE = [*range(DEEDS, 20), 127, 128, 3000]
pieces = st.dictionaries(st.integers(1, 1 << 40), st.sets(st.sampled_from(MAYBE), min_size=1, max_size=4), max_size=8)


def flat(of: dict[int, set[int]]) -> list[tuple[int, int]]:
    return [(position, number) for position in sorted(of) for number in sorted(of[position])]


@settings(max_examples=40)
@given(pieces, pieces, st.integers(1, 40))
def test_what_is_named_is_found_and_nothing_else(
    first: dict[int, set[int]], second: dict[int, set[int]], most: int
) -> None:
    names = [*named(flat(first), most), *named(flat(second), most)]
    assert sum(each.pieces for each in names) == len(flat(first)) + len(flat(second))
    found = Named([(each.data, 0) for each in names])
    for position in sorted({*first, *second, 7}):
        there = first.get(position, set()) | second.get(position, set())
        assert {number for number in MAYBE if found.has(position, number)} == there


@settings(max_examples=40)
@given(pieces, st.integers(0, 1 << 40))
def test_names_count_after_a_position(of: dict[int, set[int]], after: int) -> None:
    found = Named([(each.data, after) for each in named(flat(of))])
    assert all(found.has(position, number) == (position > after) for position, number in flat(of))


@given(st.binary(max_size=40))
def test_what_is_no_name_names_what_it_can_and_raises_nothing(data: bytes) -> None:
    """Invariant 42."""
    found = Named([(data, 0)])
    assert not any(found.has(position, 1 << 20) for position in range(50))


def test_however_much_goes_a_record_takes_three_bytes_and_no_name_is_long() -> None:
    """Invariant 36: What a record has to say of an archive is bounded, whatever goes there."""
    most = 1 << 12
    names = list(named(((n >> 1, n & 1) for n in range(2, 50_002)), most))
    assert sum(len(each.data) for each in names) <= 3 * (25_000 + len(names))
    assert max(len(each.data) for each in names) <= most + 20
