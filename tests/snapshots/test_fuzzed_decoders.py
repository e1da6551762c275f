"""Every decoder of what is stored, fed with anything: its own error, or a value."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.drafts import Draft, read_deeds, read_statements, read_used
from dataspace.errors import KeeveError
from dataspace.log.frames import parse, record_head, segment_head
from dataspace.log.publishing import unpack
from dataspace.log.recovery import judge
from dataspace.log.verdicts import SegmentBytes
from dataspace.observe.cursor import BadCursor, Cursor
from dataspace.patterns import BadPattern
from dataspace.patterns import parse as parse_pattern
from dataspace.records import Kind, split_body, split_cell
from dataspace.values import ERASED, Blob, CelledBlob, CellRef, Promise, Ref, Symbol
from dataspace.values.encoding import BadEncoding, decode, decode_strict, encode
from snapshots import BadPage, ListTree, MapTree, MemoryPages, SetTree, decode_node, decode_tree, write

numbers = st.integers(0, 5) | st.integers(-(2**70), 2**70)
leaves = st.one_of(
    *(st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=4), st.binary(max_size=40)),
    *(st.just(ERASED), st.just(Symbol("turn")), st.just(b"d" * 32), st.just("turn")),
    *(st.just(Ref(None, 3)), st.just(Promise(3)), st.just(CellRef(3, 4)), st.just(Blob("a/b", b"c"))),
    st.just(CelledBlob("a/b", CellRef(3, 4))),
)
stored = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


def a_page(tree: Any) -> bytes:
    pages = MemoryPages()
    write(tree, pages)
    return next(reversed(pages.data.values()))


def a_record() -> tuple[bytes, bytes]:
    draft = Draft(b"u" * 16, 4, Kind.CRANK, 5)
    draft.message = {"method": "turn", "text": draft.cell("x" * 300)}
    draft.stated(draft.operation(1, 2), "turn", [1, draft.cell("y" * 300)], {"by": "ada"})
    record = draft.seal(b"h" * 32, bytes)
    return record.deeds, record.facts


SOUND = [
    *a_record(),
    a_page(ListTree().extend(range(40))),
    a_page(MapTree().put(1, {"a": [1]}).put("b", Ref(None, 1))),
    a_page(SetTree().add(1).add("b")),
    encode([0, 3, 4, 5, b"d" * 32, True]),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SOUND)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
        data = data or bytearray(b"\0")
    return bytes(data)


anything = st.binary(max_size=80) | mutated() | stored.map(encode)


@pytest.mark.parametrize(
    ("read", "errors"),
    [
        (decode, BadEncoding),
        (lambda data: decode_strict(data, cells=True), BadEncoding),
        (lambda data: read_deeds(data, tree=decode_tree), BadEncoding),
        (lambda data: read_statements(data, lambda cell: "loaded"), BadEncoding),
        (read_used, BadEncoding),
        (decode_tree, BadEncoding),
        (decode_node, BadPage),
        (split_cell, ValueError),
        (split_body, ()),
        (unpack, ()),
        (segment_head, ()),
        (lambda data: parse(data, 0, 1), ()),
        (lambda data: judge([SegmentBytes(1, data)]), ()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_none_raises_the_decoders_own_error(read: Callable[[bytes], Any], errors: Any) -> None:
    """Invariant 42: no other error comes out of a decoder."""

    @given(anything)
    def fed(data: bytes) -> None:
        with suppress(errors):
            read(data)

    fed()


@given(st.text(max_size=120) | st.from_regex(r"[0-9a-f]{32}:\d{1,20}(\.\d{1,20})?:[0-9a-f]{64}"))
def test_a_text_is_a_cursor_or_a_bad_one(text: str) -> None:
    """Invariant 42."""
    try:
        cursor = Cursor.parse(text)
    except BadCursor:
        return
    assert Cursor.parse(str(cursor)) == cursor


@given(st.text(st.sampled_from('()[]{}?_.#:"\\ \nt1-+ea,é'), max_size=60))
def test_a_text_is_a_pattern_or_a_bad_one(text: str) -> None:
    """Invariant 42."""
    try:
        parse_pattern(text)
    except (BadPattern, KeeveError):
        return


def test_patterns_nested_without_end_are_refused() -> None:
    """Invariant 42: bounded, and no RecursionError."""
    for text in ("(" * 100_000, "(a " + "{" * 100_000, '(a "' + "\\" * 100_001, "(a " * 5000 + ")" * 5000):
        with pytest.raises(BadPattern):
            parse_pattern(text)


def test_a_head_of_any_length_is_one_or_none() -> None:
    for length in range(140):
        try:
            record_head(bytes(length))
        except struct.error:
            continue
        assert length == 116
