"""A segment is read while it is looked at, and may be cut under whoever reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logmaker import two_segments

from dataspace.log.files import ReadFailed
from dataspace.log.layout import Layout
from dataspace.log.opening import looked_at
from dataspace.log.recovery import judge
from dataspace.log.verdicts import Evidence, Outcome
from dataspace.log.verify import Verification
from dataspace.log.windows import Window

DATA = bytes(range(251)) * 1400


def window(length: int = len(DATA)) -> Window:
    return Window(lambda offset, size: DATA[offset : offset + size], length, "a file")


@given(st.lists(st.tuples(st.integers(0, len(DATA) + 9), st.integers(0, len(DATA) + 9)), max_size=20))
def test_any_slices_are_those_of_the_bytes(places: list[tuple[int, int]]) -> None:
    read = window()
    assert len(read) == len(DATA)
    for start, length in places:
        assert read[start : start + length] == DATA[start : start + length]
        assert read[start : start + length % 600] == DATA[start : start + length % 600]


def test_nothing_is_read_beyond_the_length() -> None:
    assert bytes(window(1000)[990:1010]) == DATA[990:1000]


def test_reading_on_takes_few_calls() -> None:
    calls: list[int] = []

    def read(offset: int, size: int) -> bytes:
        calls.append(size)
        return DATA[offset : offset + size]

    on = Window(read, len(DATA), "a file")
    assert b"".join(bytes(on[at : at + 100]) for at in range(0, len(DATA), 100)) == DATA
    assert len(calls) < 12


def written(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.log.mkdir()
    for segment in two_segments().segments():
        layout.segment(segment.id).write_bytes(bytes(segment.data[:]))
    return layout


def test_a_log_is_judged_from_its_files(tmp_path: Path) -> None:
    with looked_at(written(tmp_path)) as segments:
        assert judge(segments).outcome is Outcome.CLEAN
        assert list(Verification(segments, Evidence()).findings()) == []


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("left", [0, 300])
def test_a_segment_that_is_cut_while_it_is_looked_at_is_an_error(tmp_path: Path, number: int, left: int) -> None:
    """Invariant 22: a failed read is an error; and never the end of the process."""
    layout = written(tmp_path)
    with looked_at(layout) as segments:
        os.truncate(layout.segment(number), left)
        with pytest.raises(ReadFailed, match=r"\.seg: cannot be read \(it ends at offset .* and was longer"):
            judge(segments)
