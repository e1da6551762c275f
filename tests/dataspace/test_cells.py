"""Cells: which content is kept apart, and how it comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from value_strategies import containers, same, scalars

from dataspace.values import (
    CELLED,
    ERASED,
    Blob,
    CelledBlob,
    CelledDict,
    CelledList,
    CellRef,
    FrozenDict,
    FrozenList,
    NotAValue,
    Promise,
    Ref,
    Text,
    freeze,
    thaw,
)

LONG = "x" * 257


class Shouting(str):
    def __str__(self) -> str:
        return self.upper()


class Packet(bytes):
    pass


class Cells:
    """A sink that remembers what it was given."""

    def __init__(self) -> None:
        self.contents: list[str | bytes] = []
        self.references: list[Ref | Promise] = []

    def cell(self, content: str | bytes) -> CellRef:
        self.contents.append(content)
        return CellRef(7, len(self.contents) - 1, content)

    def reference(self, value: Ref | Promise) -> Ref | Promise:
        self.references.append(value)
        return value


def unloaded(cell: CellRef) -> str:
    raise AssertionError(f"{cell} was to be loaded")


long_ones = st.text(min_size=60, max_size=300) | st.binary(min_size=250, max_size=260)
contents = containers(scalars | long_ones | st.text(max_size=300).map(Text))


@pytest.mark.parametrize(
    ("content", "is_cell"),
    [
        ("x" * 256, False),
        ("x" * 257, True),
        ("é" * 128, False),
        ("é" * 129, True),
        ("\U0001f600" * 64, False),
        ("\U0001f600" * 65, True),
        (b"x" * 256, False),
        (b"x" * 257, True),
        ("\ud800" * 85, False),  # each becomes three bytes
        ("\ud800" * 86, True),
        (Text(""), True),
        (Text("short"), True),
    ],
)
def test_content_over_256_bytes_and_every_text_becomes_a_cell(content: Any, is_cell: bool) -> None:
    for value in (content, [content], {"key": content}):
        cells = Cells()
        frozen = freeze(value, cells)
        assert len(cells.contents) == is_cell
        assert (type(frozen) in CELLED) == is_cell


def test_the_cells_content_is_plain_and_valid() -> None:
    cells = Cells()
    freeze([Text("\ud800"), Packet(LONG.encode()), Shouting(LONG)], cells)
    assert [type(content) for content in cells.contents] == [str, bytes, str]
    assert cells.contents == ["\ufffd", LONG.encode(), LONG]


def test_without_a_sink_nothing_becomes_a_cell() -> None:
    value = freeze({"a": [LONG, LONG.encode(), Text("t"), Blob("a/b", LONG.encode())]})
    assert type(value) is FrozenDict
    assert type(value["a"]) is FrozenList
    assert value == {"a": [LONG, LONG.encode(), "t", Blob("a/b", LONG.encode())]}


def test_keys_never_become_cells() -> None:
    assert type(freeze({LONG: 1}, Cells())) is FrozenDict


def test_the_same_content_twice_is_two_cells() -> None:
    one, other = freeze([LONG, LONG], Cells())
    assert one != other


def test_a_long_blob_keeps_its_content_in_a_cell() -> None:
    stored = freeze(Blob("a/b", b"x" * 257), Cells())
    assert stored == CelledBlob("a/b", CellRef(7, 0))
    assert thaw(stored, unloaded) == Blob("a/b", b"x" * 257)
    assert type(freeze(Blob("a/b", b"x"), Cells())) is Blob


def holds_a_cell(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(holds_a_cell, value))
    if isinstance(value, dict):
        return any(map(holds_a_cell, value.values()))
    return isinstance(value, CellRef | CelledBlob)


@given(contents)
def test_the_type_says_whether_a_cell_is_inside_at_all_depths(value: Any) -> None:
    def check(stored: Any) -> None:
        assert (type(stored) in CELLED) == holds_a_cell(stored)
        if isinstance(stored, FrozenList | FrozenDict):
            assert stored.celled == holds_a_cell(stored)
        for item in stored if isinstance(stored, list) else stored.values() if isinstance(stored, dict) else ():
            check(item)

    check(freeze(value, Cells()))


@given(contents)
def test_what_is_stored_and_thawed_reads_as_what_is_frozen_without_cells(value: Any) -> None:
    read = thaw(freeze(value, Cells()), unloaded)
    assert same(read, freeze(value))
    assert type(read) not in CELLED


def test_thaw_gives_the_same_object_when_there_is_no_cell_in_it() -> None:
    value = freeze({"a": ["short"]}, Cells())
    assert thaw(value, unloaded) is value


def test_thaw_leaves_the_parts_without_cells_as_they_are() -> None:
    value = freeze({"a": ["short"], "b": LONG}, Cells())
    assert thaw(value, unloaded)["a"] is value["a"]


def test_thaw_loads_the_content_that_a_cell_does_not_have() -> None:
    stored = CelledDict({"a": CelledList([CellRef(3, 0), CellRef(3, 1, "here")])})
    asked = []

    def load(cell: CellRef) -> str:
        asked.append(cell)
        return "loaded"

    assert thaw(stored, load) == {"a": ["loaded", "here"]}
    assert asked == [CellRef(3, 0)]


def test_erased_content_reads_as_erased_in_a_string_and_in_a_blob() -> None:
    stored = freeze([LONG, Blob("a/b", b"x" * 257)], Cells())
    for cell in (stored[0], stored[1].content):
        cell.content = None
    assert thaw(stored, lambda cell: ERASED) == [ERASED, ERASED]


def test_the_sink_sees_every_ref_and_promise_and_says_how_it_is_kept() -> None:
    class Near(Cells):
        def reference(self, value: Ref | Promise) -> Ref | Promise:
            super().reference(value)
            return Ref(None, value.actor) if isinstance(value, Ref) else value

    far, promise, sink = Ref(b"u" * 16, 3), Promise(1), Near()
    assert freeze([far, {"a": [promise, far]}], sink) == [Ref(None, 3), {"a": [promise, Ref(None, 3)]}]
    assert sink.references == [far, promise, far]
    assert freeze([far]) == [far]


def test_stored_forms_are_no_input() -> None:
    stored = freeze({"a": [LONG]}, Cells())
    with pytest.raises(NotAValue, match=r"^value\.a\[0\]: CellRef is not a value"):
        freeze(stored)


def test_a_hundred_megabytes_are_one_cell_and_no_copy() -> None:
    """Invariant 41: a 100 MB string has a defined answer."""
    content = "x" * 100_000_000
    cells = Cells()
    freeze({"content": content}, cells)
    assert cells.contents[0] is content
