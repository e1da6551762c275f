"""Frames: what parses, what does not, and what each head carries."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logmaker import A, LogMaker, small_log

from dataspace.log.frames import (
    COMMIT_SIZE,
    PREFIX,
    SEGMENT_SIZE,
    SegmentHead,
    Type,
    address,
    body_fits,
    checkpoint_frame,
    checkpoint_head,
    commit_frame,
    commit_head,
    commit_pattern,
    erased,
    frame,
    headers_crc,
    parse,
    part_head,
    place,
    record_frames,
    record_head,
    segment_frame,
    segment_head,
)


def body_of(data: bytes, found) -> bytes:
    start = found.body_offset
    return data[start : start + found.body_length]


@given(
    st.sampled_from([Type.RECORD, Type.CELL, Type.PAGE, Type.CHECKPOINT]),
    st.binary(max_size=40),
    st.binary(max_size=60),
    st.integers(1, 2**32 - 1),
    st.integers(0, 2**36).map(lambda n: 8 * n),
    st.integers(0, 3),
)
def test_a_frame_parses_as_it_was_written(kind, head, body, segment, offset, flags):
    data, crc = frame(kind, head, body, segment, offset, flags)
    found = parse(data, 0, segment, offset)
    assert found is not None
    assert found[:5] == (offset, kind, kind, flags, head)
    assert found.header_crc == crc
    assert found.size == len(data)
    assert len(data) % 8 == 0
    start = found.body_offset - offset
    assert body_fits(found, data[start : start + len(body)])
    assert parse(memoryview(data), 0, segment, offset) == found


def test_every_flipped_bit_of_a_header_is_noticed():
    data, _ = frame(Type.CELL, b"head", b"body", 1, 64)
    for at in range(PREFIX + 4):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            assert parse(bytes(flipped), 0, 1, 64) is None


def test_every_flipped_bit_of_a_body_is_noticed():
    data, _ = frame(Type.CELL, b"", b"body", 1, 64)
    found = parse(data, 0, 1, 64)
    assert found is not None
    for bit in range(32):
        assert not body_fits(found, (int.from_bytes(b"body") ^ 1 << bit).to_bytes(4))
    assert not body_fits(found, b"bod")


def test_a_frame_elsewhere_is_not_a_frame():
    data, _ = frame(Type.CELL, b"head", b"body", 1, 64)
    assert parse(data, 0, 1, 64)
    assert parse(data, 0, 1, 72) is None
    assert parse(data, 0, 2, 64) is None
    assert parse(bytes(8) + data, 8, 1, 64) is None


@given(st.integers(0, 300))
def test_zeros_never_parse(length: int):
    assert parse(bytes(length), 0, 0) is None


@given(st.binary(max_size=200), st.integers(0, 50))
def test_no_bytes_make_parse_raise(data: bytes, at: int):
    parse(data, at, int.from_bytes(data[20:24], "little"))


@pytest.mark.parametrize("length", range(PREFIX + 8))
def test_a_header_that_is_cut_short_does_not_parse(length: int):
    data, _ = frame(Type.CELL, b"12345678", b"body", 1, 0)
    assert parse(data[:length], 0, 1) is None


def test_a_length_bomb_does_not_parse():
    bomb = struct.pack("<IBBHIIII", 0, 2, 0, 0, 2**32 - 1, 2**32 - 1, 0, 1)
    assert parse(bomb + bytes(100), 0, 1) is None


def test_a_records_head_says_where_its_parts_lie():
    log = LogMaker()
    record = log.record(A, cells=["one", "two"], pages=[b"page"])
    record.position = 7
    chunks, crcs, size = record_frames(record, 3, 1, 800)
    data = b"".join(chunks)
    assert len(data) == size
    assert len(crcs) == 4
    found = parse(data, 0, 1, 800)
    assert found is not None
    header, starts = record_head(found.head)
    assert header.hash == record.hash
    assert (header.position, header.epoch) == (7, 3)
    for number, (start, content) in enumerate(zip(starts, [*record.cells, *record.pages], strict=True)):
        part = parse(data, start, 1, 800)
        assert part is not None
        assert part.type == (Type.CELL if number < 2 else Type.PAGE)
        assert part_head(part.head) == (7, number)
        assert data[part.body_offset - 800 :][: part.body_length] == content


@given(st.binary(max_size=200))
def test_a_head_that_is_none_raises_struct_error(head: bytes):
    for read in (record_head, part_head, commit_head, checkpoint_head):
        try:
            read(head)
        except struct.error:
            continue


def test_a_commit_carries_what_it_covers():
    data, hash = commit_frame(4, 6, [1, 2, 3], b"p" * 32, 2, 160)
    found = parse(data, 0, 2, 160)
    assert found is not None
    assert commit_head(found.head) == (4, 6, headers_crc([1, 2, 3]), 3, b"p" * 32)
    assert len(data) == COMMIT_SIZE == found.size
    assert len(hash) == 32
    assert data[4:].startswith(commit_pattern(2))


def test_a_commit_covers_the_order_of_its_frames():
    assert headers_crc([1, 2]) != headers_crc([2, 1])


def test_a_checkpoint_carries_its_size_root_and_note():
    data, _ = checkpoint_frame(5, b"r" * 32, b"note", 1, 0)
    found = parse(data, 0, 1)
    assert found is not None
    assert checkpoint_head(found.head) == (5, b"r" * 32)
    assert body_of(data, found) == b"note"


def test_a_segment_begins_with_who_it_is():
    head = SegmentHead(1, 9, b"l" * 16, 44, 1000, b"c" * 32)
    data = segment_frame(head)
    found = parse(data, 0, 9)
    assert found is not None
    assert segment_head(found.head) == head
    assert len(data) == SEGMENT_SIZE


def test_a_segment_head_of_something_else_is_none():
    assert segment_head(b"") is None
    assert segment_head(b"ANOTHERS" + bytes(72)) is None


def test_a_newer_segment_head_may_be_longer():
    head = SegmentHead(2, 9, b"l" * 16, 44, 1000, b"c" * 32)
    found = parse(segment_frame(head), 0, 9)
    assert found is not None
    assert segment_head(found.head + b"more") == head


def test_an_erased_frame_keeps_its_place_and_its_header_crc():
    data = small_log().data
    at = SEGMENT_SIZE
    while (found := parse(data, at, 1)) is not None:
        if found.type in (Type.RECORD, Type.CELL, Type.PAGE):
            stub = erased(found, 1)
            gone = parse(data[:at] + stub + bytes(found.size - len(stub)) + data[at + found.size :], at, 1)
            assert gone == found._replace(type=Type.ERASED)
        at += found.size
    assert at == len(data)


def test_only_an_erased_frame_says_what_it_was():
    data, _ = frame(Type.CELL, b"", b"body", 1, 0)
    changed = bytearray(data)
    changed[6] = Type.PAGE
    checked = bytes(changed[4:PREFIX])
    changed[:4] = crc32(checked, crc32(bytes(8))).to_bytes(4, "little")
    assert parse(bytes(changed), 0, 1) is None


@given(st.integers(1, 2**23), st.integers(0, 2**40 - 1))
def test_an_address_is_a_place(segment: int, offset: int):
    assert place(address(segment, offset)) == (segment, offset)
