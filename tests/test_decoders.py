"""Every decoder, fed with anything: something, or its own error, within bounds of memory and steps."""

from __future__ import annotations

import gc
import struct
import sys
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.log.frames import record_head
from dataspace.observe.cursor import BadCursor, Cursor
from dataspace.patterns import BadPattern
from dataspace.patterns import parse as parse_pattern
from dataspace.values import ERASED, Blob, CelledBlob, CellRef, Promise, Ref, Symbol
from dataspace.values.encoding import encode
from tests.decoders import DECODERS, Decoder

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
SOUND = [sound for decoder in DECODERS.values() for sound in decoder.sound]

every_decoder = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)


@st.composite
def mutated(draw: st.DrawFn, sound: list[bytes]) -> bytes:
    data = bytearray(draw(st.sampled_from(sound)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
        data = data or bytearray(b"\0")
    return bytes(data)


@every_decoder
def test_what_is_sound_is_read(decoder: Decoder) -> None:
    for sound in decoder.sound:
        if decoder.name != "public key":  # its id is not that of its name
            assert decoder.read(sound) != ""


@every_decoder
def test_what_is_none_raises_the_decoders_own_error(decoder: Decoder) -> None:
    """Invariant 42: no other error comes out of a decoder."""

    @given(st.binary(max_size=80) | mutated(list(decoder.sound) or SOUND) | mutated(SOUND) | stored.map(encode))
    def fed(data: bytes) -> None:
        with suppress(decoder.errors):
            decoder.read(data)

    fed()


SIZE = 1 << 14
BOMBS = {
    "lists in lists": b"\x91" * SIZE,
    "lists that announce all that follows": (b"\xdd" + (SIZE // 8).to_bytes(4)) * (SIZE // 5),
    "dicts that announce all that follows": (b"\xdf" + (SIZE // 16).to_bytes(4)) * (SIZE // 5),
    "bytes longer than there are": b"\xc6\xff\xff\xff\xff" * (SIZE // 5),
    "ext types longer than there are": b"\xc9\xff\xff\xff\xff\x01" * (SIZE // 6),
    "small numbers": b"\xdc\xff\xff" + b"\x01" * SIZE,
    "zeros": bytes(SIZE),
    "ones": b"\xff" * SIZE,
    "opened": b"(" * SIZE,
    "opened objects": b'{"a":' * (SIZE // 5),
    "lines": b"\n" * SIZE,
    "lines of signatures": b"a\n\n" + "— a AAAA\n".encode() * (SIZE // 11),
    "data": b"data: {}\n\n" * (SIZE // 10),
    "digits": b"9" * SIZE,
    "backslashes": b'(a "' + b"\\" * SIZE,
}


@every_decoder
@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS)
def test_no_bytes_cost_more_than_their_length_allows(decoder: Decoder, data: bytes) -> None:
    """Invariant 42: memory and steps are bounded by the length of what is read."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1

    gc.disable()  # what others have left is not taken away meanwhile, by calls of its own
    tracemalloc.start()
    sys.setprofile(count)
    try:
        with suppress(decoder.errors):
            decoder.read(data)
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.enable()
    assert peak < 100 * len(data) + (1 << 20)
    assert calls < 20 * len(data)


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
    with suppress(BadPattern):
        assert parse_pattern(str(parse_pattern(text))) == parse_pattern(text)


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
