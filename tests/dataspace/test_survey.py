"""Surveying a segment: all of its bytes are told of, and every sound frame is found, whatever lies around it."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st
from logmaker import SMALL, closed_log, frames_of

from dataspace.log.frames import PREFIX, Type, erased, frame, parse
from dataspace.log.survey import Piece, Survey, owner_of

DATA = closed_log().data


def pieces(data: bytes, number: int = 1, base: int = 0) -> list[Piece]:
    return list(Survey(data, number, base).pieces())


def test_a_sound_segment_is_its_frames():
    found = pieces(DATA)
    assert [piece.frame for piece in found] == list(frames_of(DATA))
    assert not any(piece.wrong for piece in found)


def test_zeros_at_the_end_are_zeros_and_nothing_wrong():
    last = pieces(DATA + bytes(4096))[-1]
    assert (last.offset, last.size, last.zeros) == (len(DATA), 4096, True)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_frame_that_was_not_touched_is_found(data: st.DataObject):
    """Invariants 4 and 42."""
    at = data.draw(st.integers(0, len(DATA) - 1))
    length = data.draw(st.integers(1, 200))
    put = data.draw(st.sampled_from([bytes(length), b"\x01" * length, os.urandom(length), DATA[:length]]))
    damaged = (DATA[:at] + put + DATA[at + length :])[: len(DATA)]
    found = pieces(damaged)
    assert sum(piece.size for piece in found) == len(damaged)
    assert [piece.offset for piece in found] == [sum(piece.size for piece in found[:n]) for n in range(len(found))]
    sound = {piece.offset for piece in found if piece.frame is not None and not piece.wrong}
    for each in list(frames_of(DATA)):
        if damaged[each.offset : each.offset + each.size] == DATA[each.offset : each.offset + each.size]:
            assert each.offset in sound


def test_a_body_that_is_wrong_is_told_and_the_next_frame_is_found():
    each = next(each for each in list(frames_of(DATA)) if each.body_length)
    data = DATA[: each.body_offset] + b"\xff" + DATA[each.body_offset + 1 :]
    (wrong,) = [piece for piece in pieces(data) if piece.wrong]
    assert (wrong.offset, wrong.wrong) == (each.offset, "its body is not what was written")


def test_a_body_that_is_cut_off_is_told_as_such():
    each = [each for each in list(frames_of(DATA)) if each.body_length][-1]
    last = pieces(DATA[: each.body_offset + 3])[-1]
    assert (last.offset, last.size) == (each.offset, PREFIX + len(each.head) + 3)
    assert "after the end of the file" in last.wrong


def test_a_frame_that_lies_elsewhere_is_none():
    moved = DATA[:104] + bytes(8) + DATA[104:]
    assert [piece.frame for piece in pieces(moved)[1:]] == [None, None]


def test_a_piece_that_was_cut_out_is_read_at_its_own_offset():
    assert [piece.offset for piece in pieces(DATA[104:], base=104)] == [each.offset for each in list(frames_of(DATA))][
        1:
    ]


def test_erased_bodies_are_nothing_wrong():
    each = list(frames_of(DATA))[1]
    instead = erased(each, 1)
    data = DATA[: each.offset] + instead + bytes(each.size - len(instead)) + DATA[each.offset + each.size :]
    assert not any(piece.wrong for piece in pieces(data))


class Counting(bytes):
    """Bytes that count what is looked at."""

    looked = 0

    def __getitem__(self, where):  # type: ignore[no-untyped-def]  # as that of bytes
        found = super().__getitem__(where)
        self.looked += len(found) if isinstance(where, slice) else 1
        return found


def hostile(kind: int, length: int) -> bytes:
    """What looks like a header again and again, with a head of this length."""
    header = b"\0\0\0\0" + bytes((kind, 0, 0, 0)) + length.to_bytes(4, "little") + bytes(8) + (1).to_bytes(4, "little")
    return header * (200_000 // len(header))


def test_lengths_that_are_not_true_cost_no_more_than_the_file():
    """Invariant 42."""
    for length in (500, 20_000, 150_000, 1 << 24, (1 << 32) - 1):
        data = Counting(hostile(Type.RECORD, length))
        assert [piece.frame for piece in Survey(data, 1).pieces()] == [None]
        assert data.looked < 30 * len(data), length


def test_a_body_that_says_it_is_four_gigabytes_is_believed_as_far_as_there_are_bytes():
    whole, _ = frame(Type.CELL, bytes(12), b"x" * 100, 1, 0)
    lying = whole[:12] + ((1 << 32) - 1).to_bytes(4, "little") + whole[16:]
    assert parse(lying, 0, 1) is None
    (piece,) = pieces(lying)
    assert piece.wrong


@given(st.binary(max_size=3000))
def test_any_bytes_are_surveyed(data: bytes):
    """Invariant 42."""
    assert sum(piece.size for piece in pieces(data)) == len(data)


def test_a_file_says_which_segment_it_is():
    assert owner_of(SMALL.data) == 1
    assert owner_of(SMALL.data[:103]) is None
    assert owner_of(bytes(200)) is None
