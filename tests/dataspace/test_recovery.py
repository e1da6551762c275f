"""Recovery: each row of the table of verdicts, and that it never guesses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logmaker import A, B, LogMaker, small_log

from dataspace.log import scan
from dataspace.log.frames import (
    SEGMENT_SIZE,
    SegmentHead,
    Type,
    commit_frame,
    erased,
    frame,
    parse,
    place,
    segment_frame,
)
from dataspace.log.marks import Head, Mark
from dataspace.log.recovery import FIRST_WRITE, judge
from dataspace.log.verdicts import (
    BEGINNING,
    Evidence,
    Found,
    LogCorrupt,
    LogTampered,
    LogTruncated,
    NewerFormat,
    Outcome,
    SegmentBytes,
    SessionDamaged,
    Span,
    Verdict,
)
from dataspace.records import STORE_UID, ZERO_HASH, Kind, Record

SMALL = small_log()


def judged(data: bytes, evidence: Evidence | None = None) -> Verdict:
    """The verdict on a log of one segment."""
    return judge([SegmentBytes(1, data)], evidence or Evidence())


def closed_log() -> LogMaker:
    """A small log whose window is closed: all of it is known to be durable."""
    log = small_log()
    log.batch()
    return log


def two_segments() -> LogMaker:
    log = small_log()
    log.roll()
    log.batch(log.record(A, "in the second", cells=["more"]))
    log.batch()
    return log


def frames_of(data: bytes, segment: int = 1):
    at = 0
    while at < len(data):
        found = parse(data, at, segment)
        assert found is not None
        yield found
        at += found.size


def with_byte(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def body_of(log: LogMaker, record: Record, part: int | None = None) -> int:
    """The offset of a byte in the body of a record of the first segment, or of one of its parts."""
    found = list(frames_of(log.segments()[0].data))
    first = next(n for n, each in enumerate(found) if each.offset == place(record.address)[1])
    return found[first if part is None else first + 1 + part].body_offset


def newest(log: LogMaker) -> Head:
    return Head(log.position, log.records[-1].hash)


# A sound log


def test_a_sound_log_is_clean_to_its_end():
    verdict = judged(SMALL.data)
    assert verdict.outcome is Outcome.CLEAN
    assert verdict.error() is None
    assert verdict.end == Mark(1, len(SMALL.data), 6, SMALL.records[-1].hash, SMALL.commit)
    assert verdict.heads == SMALL.heads
    assert (verdict.records, verdict.epoch, verdict.log_id) == (6, 1, SMALL.log_id)
    assert (verdict.cut, verdict.damaged, verdict.lost) == (None, {}, ())


def test_a_log_of_many_segments_is_one():
    log = two_segments()
    verdict = judge(log.segments())
    assert verdict.outcome is Outcome.CLEAN
    assert verdict.end[:3] == (2, len(log.data), 7)
    assert verdict.heads == log.heads


def test_no_segments_are_a_log_that_begins():
    assert judge([]).end == BEGINNING
    assert judge([SegmentBytes(1, b"")]).end == BEGINNING
    assert judge([SegmentBytes(1, bytes(10_000))]).outcome is Outcome.CLEAN


@pytest.mark.parametrize("zeros", [1, 7, 8, 4096, (1 << 20) + 3])
def test_zeros_after_the_end_are_preallocation(zeros: int):
    verdict = judged(SMALL.data + bytes(zeros))
    assert verdict.outcome is Outcome.CLEAN
    assert verdict.end.offset == len(SMALL.data)


def test_a_segment_made_ahead_is_as_good_as_absent():
    log = two_segments()
    verdict = judge([*log.segments(), SegmentBytes(3, bytes(4096)), SegmentBytes(4, b"")])
    assert verdict == judge(log.segments())


def test_a_new_segment_without_a_batch_goes_on_in_it():
    log = small_log()
    log.roll()
    verdict = judge(log.segments())
    assert verdict.outcome is Outcome.CLEAN
    assert verdict.end == Mark(2, SEGMENT_SIZE, 6, log.records[-1].hash, log.commit)
    assert verdict.last == Span(2, 0, SEGMENT_SIZE)


def test_a_sealed_segment_may_have_zeros_after_its_end():
    log = two_segments()
    first, second = log.segments()
    assert judge([SegmentBytes(1, first.data + bytes(999)), second]).outcome is Outcome.CLEAN


def test_the_last_batch_is_what_must_be_made_durable():
    assert judged(SMALL.data).last == Span(1, SMALL.ends[-2], SMALL.ends[-1] - SMALL.ends[-2])


def test_the_first_batch_is_made_durable_with_its_segments_head():
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    assert judged(log.data).last == Span(1, 0, len(log.data))


def test_every_accepted_record_is_visited_in_order():
    visited: list[Found] = []
    log = two_segments()
    judge(log.segments(), visit=visited.append)
    assert [found.hash for found in visited] == [record.hash for record in log.records]
    assert [found.address for found in visited] == [record.address for record in log.records]
    assert [found.header.position for found in visited] == list(range(1, 8))


# Torn tails


def test_a_last_batch_cut_at_every_byte_loses_only_itself():
    """Invariant 4: a torn last batch, cut at every byte offset."""
    before = judged(SMALL.data[: SMALL.ends[-2]])
    for length in range(SMALL.ends[-2] + 1, SMALL.ends[-1]):
        verdict = judged(SMALL.data[:length])
        assert verdict.outcome is Outcome.TORN
        assert verdict.end == before.end
        assert verdict.heads == before.heads
        assert verdict.cut is not None
        assert verdict.cut[:2] == (1, SMALL.ends[-2])
        assert not any(SMALL.data[SMALL.ends[-2] + verdict.cut.length : length])


def test_every_flipped_byte_of_an_open_window_loses_only_that_batch():
    for at in range(SMALL.ends[-2], SMALL.ends[-1]):
        verdict = judged(with_byte(SMALL.data, at))
        assert verdict.outcome in (Outcome.TORN, Outcome.CLEAN)  # clean: a byte of padding
        assert verdict.end.offset in (SMALL.ends[-2], SMALL.ends[-1])
        assert (verdict.end.offset == SMALL.ends[-1]) is (verdict.outcome is Outcome.CLEAN)


@given(st.sets(st.integers(0, 40)), st.sampled_from([b"\0", b"\xa5", b"old"]))
def test_a_last_batch_with_any_sectors_missing_is_torn(lost: set[int], filler: bytes):
    """A power cut may keep any sectors of the write in flight, its commit frame too."""
    start = SMALL.ends[-2]
    data = bytearray(SMALL.data)
    for sector in lost:
        begin, end = start + 16 * sector, min(start + 16 * sector + 16, len(data))
        data[begin:end] = (filler * 16)[: max(0, end - begin)]
    verdict = judged(bytes(data))
    if verdict.outcome is Outcome.CLEAN:
        assert verdict.end.offset == (len(SMALL.data) if any(data[start:]) else start)
    else:
        assert verdict.outcome is Outcome.TORN
        assert verdict.end.offset == start


def test_a_cut_leaves_out_the_zeros_after_it():
    start = SMALL.ends[-2]
    verdict = judged(SMALL.data[: start + 100] + bytes(5000))
    assert verdict.cut is not None
    assert verdict.cut.length <= 100


def test_a_torn_first_frame_cuts_the_whole_segment():
    log = small_log()
    log.roll()
    verdict = judge([log.segments()[0], SegmentBytes(2, log.data[:50])])
    assert verdict.outcome is Outcome.TORN
    assert verdict.cut is not None
    assert verdict.cut[:2] == (2, 0)
    assert verdict.end.segment == 1


def test_a_torn_first_batch_leaves_the_segments_first_frame():
    log = two_segments()
    torn = log.data[: SEGMENT_SIZE + 64]
    verdict = judge([log.segments()[0], SegmentBytes(2, torn)])
    assert verdict.outcome is Outcome.TORN
    assert verdict.cut == Span(2, SEGMENT_SIZE, 64 - (len(torn) - len(torn.rstrip(b"\0"))))


@pytest.mark.parametrize("length", [1, 20, SEGMENT_SIZE, SEGMENT_SIZE + 100])
def test_a_creation_that_was_interrupted_begins_again(length: int):
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    verdict = judged(log.data[:length])
    assert verdict.outcome.writable
    assert verdict.end.position == 0


def test_a_torn_tail_and_damage_before_it_are_both_told():
    log = small_log()
    at = body_of(log, log.records[1])
    log.batch(log.record(B, "in flight"))
    verdict = judged(with_byte(log.data, at)[:-90])
    assert verdict.outcome is Outcome.DAMAGED
    assert verdict.cut is not None
    assert set(verdict.damaged) == {A}


def test_what_recovery_leaves_is_clean():
    """Invariant 10: recovery itself may be killed between any two of its steps."""
    for length in range(SMALL.ends[-2] + 1, SMALL.ends[-1], 13):
        data = SMALL.data[:length]
        torn = judged(data)
        assert torn.cut is not None
        for kept in range(torn.cut.offset, length, 8):  # a truncation that has come only so far
            assert judged(data[:kept]).end == torn.end
        assert judged(data[: torn.cut.offset]).outcome is Outcome.CLEAN


def test_a_closed_window_turns_a_wrong_body_into_damage():
    at = body_of(SMALL, SMALL.records[-1])
    assert judged(with_byte(SMALL.data, at)).outcome is Outcome.TORN
    assert judged(with_byte(closed_log().data, at)).outcome is Outcome.DAMAGED


def test_the_commit_in_flight_proves_the_batch_before_it():
    """Its own frames did not all get there, but nobody would have written it before the other was durable."""
    log = small_log()
    at = body_of(log, log.records[-1])
    log.batch(log.record(B, "in flight"))
    data = bytearray(with_byte(log.data, at))
    data[log.ends[-2] : log.ends[-2] + 16] = bytes(16)
    verdict = judged(bytes(data))
    assert verdict.outcome is Outcome.DAMAGED
    assert verdict.end.offset == log.ends[-2]
    assert verdict.cut is not None


# Damaged sessions


def test_a_wrong_body_damages_its_session_alone():
    log = closed_log()
    record = log.records[3]
    verdict = judged(with_byte(log.data, body_of(log, record)))
    assert verdict.outcome is Outcome.DAMAGED
    assert verdict.error() is None
    assert verdict.heads == log.heads
    assert set(verdict.damaged) == {A}
    assert verdict.damaged[A][:3] == (record.seq, record.position, record.address)


def test_a_wrong_cell_damages_the_session_that_it_belongs_to():
    log = closed_log()
    verdict = judged(with_byte(log.data, body_of(log, log.records[4], part=0)))
    assert {uid: damage.seq for uid, damage in verdict.damaged.items()} == {B: 2}


def test_the_first_damage_of_a_session_is_the_one_that_counts():
    log = closed_log()
    data = with_byte(log.data, body_of(log, log.records[3]))
    data = with_byte(data, body_of(log, log.records[1]))
    assert judged(data).damaged[A].seq == 1


def test_a_wrong_page_is_lost_and_damages_nobody():
    log = closed_log()
    verdict = judged(with_byte(log.data, body_of(log, log.records[3], part=2)))
    assert verdict.outcome is Outcome.CLEAN
    assert [(uid, lost.seq) for uid, lost in verdict.lost] == [(A, 2)]


def test_a_wrong_page_of_a_base_is_damage():
    log = small_log()
    log.batch(log.record(A, kind=Kind.BASE, pages=[b"page" * 5]))
    log.batch()
    verdict = judged(with_byte(log.data, body_of(log, log.records[-1], part=0)))
    assert set(verdict.damaged) == {A}


def test_a_wrong_checkpoint_is_lost_and_damages_nobody():
    log = small_log()
    log.batch(extra=[(Type.CHECKPOINT, (6).to_bytes(8, "little") + b"r" * 32, b"note")])
    log.batch()
    at = next(each for each in frames_of(log.data) if each.type == Type.CHECKPOINT).body_offset
    verdict = judged(with_byte(log.data, at))
    assert verdict.outcome is Outcome.CLEAN
    assert len(verdict.lost) == 1


def test_damage_names_the_session_the_seq_and_the_remedy():
    log = closed_log()
    verdict = judged(with_byte(log.data, body_of(log, log.records[3])))
    error = SessionDamaged.of(A, verdict.damaged[A])
    assert (error.session, error.seq) == (A.hex(), 2)
    assert "seq 2" in str(error)
    assert "export" in str(error)


def test_an_erased_body_is_no_damage():
    data = closed_log().data
    for found in list(frames_of(data)):
        if found.type in (Type.RECORD, Type.CELL, Type.PAGE):
            stub = erased(found, 1)
            data = data[: found.offset] + stub + bytes(found.size - len(stub)) + data[found.offset + found.size :]
    verdict = judged(data)
    assert verdict.outcome is Outcome.CLEAN
    assert verdict.heads == SMALL.heads


# Corruption


def test_no_flipped_byte_before_the_end_is_skipped_or_cut():
    """Invariant 4: damage before the end is named, and never shortens a history in silence."""
    log = closed_log()
    sound = judged(log.data)
    padding = set()
    for found in frames_of(log.data):
        padding |= set(range(found.body_offset + found.body_length, found.offset + found.size))
    for at in range(log.ends[-2]):
        verdict = judged(with_byte(log.data, at))
        assert verdict.cut is None
        if verdict.outcome.writable:
            assert verdict.end == sound.end
            assert verdict.damaged or verdict.lost or at in padding
        else:
            assert verdict.outcome is Outcome.CORRUPT
            assert isinstance(verdict.error(), LogCorrupt)


@pytest.mark.parametrize("span", [(0, 8), (104, 240), (300, 800), (250, 1400)])
def test_a_hole_before_a_commit_is_corrupt(span: tuple[int, int]):
    log = closed_log()
    data = bytearray(log.data)
    data[span[0] : span[1]] = bytes(span[1] - span[0])
    verdict = judged(bytes(data))
    assert verdict.outcome is Outcome.CORRUPT
    assert verdict.cut is None


def test_corruption_is_named_by_segment_and_offset():
    log = closed_log()
    error = judged(with_byte(log.data, log.ends[0] + 4)).error()
    assert isinstance(error, LogCorrupt)
    assert (error.segment, error.offset) == (1, log.ends[0])
    assert "read-only" in str(error)


def test_bytes_taken_out_are_noticed_by_who_saw_what_followed():
    """No frame after them lies where it says, so by itself the rest looks like a torn write."""
    log = closed_log()
    data = log.data[: log.ends[0]] + log.data[log.ends[1] :]
    assert judged(data).outcome is Outcome.TORN
    assert judged(data, Evidence(seen=(newest(log),))).outcome is Outcome.TRUNCATED


@pytest.mark.parametrize("nth", range(3))
def test_a_batch_written_again_after_the_end_is_torn(nth: int):
    """Its frames say that they lie elsewhere."""
    log = closed_log()
    ends = [SEGMENT_SIZE, *log.ends]
    verdict = judged(log.data + log.data[ends[nth] : ends[nth + 1]])
    assert verdict.outcome is Outcome.TORN
    assert verdict.end.offset == len(log.data)


def test_two_swapped_batches_are_corrupt():
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    log.batch(log.record(A, "first"))
    log.batch(log.record(B, "other"))
    log.batch()
    one, two, three = log.ends[:3]
    data = log.data[:one] + log.data[two:three] + log.data[one:two] + log.data[three:]
    assert judged(data).outcome is Outcome.CORRUPT


def test_a_gap_in_positions_is_corrupt():
    log = small_log()
    log.position += 1
    log.batch(log.record(A))
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_gap_in_a_chain_is_corrupt():
    log = small_log()
    log.record(A, "never written")
    log.batch(log.record(A))
    verdict = judged(log.data)
    assert verdict.outcome is Outcome.CORRUPT
    assert A.hex() in verdict.what


def test_a_seq_that_skips_is_corrupt_though_the_hash_fits():
    log = small_log()
    log.batch(log.record(A, after=(7, log.heads[A][1])))
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_record_on_another_past_is_corrupt():
    log = small_log()
    log.batch(log.record(A, after=(log.heads[A][0], b"x" * 32)))
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("after", [(4, b"x" * 32), (0, b"x" * 32), (4, ZERO_HASH)])
def test_a_session_that_does_not_begin_at_its_beginning_is_corrupt(after: tuple[int, bytes]):
    log = small_log()
    log.batch(log.record(b"session-c-------", after=after))
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_fork_begins_after_the_seq_of_its_parent():
    log = small_log()
    log.batch(log.record(b"session-c-------", kind=Kind.FORKED, after=(2, log.records[3].hash)))
    assert judged(log.data).outcome is Outcome.CLEAN


def test_a_stale_owners_record_is_corrupt():
    log = small_log()
    log.epoch = 3
    log.batch(log.record(A))
    log.epoch = 2
    log.batch(log.record(A))
    verdict = judged(log.data)
    assert verdict.outcome is Outcome.CORRUPT
    assert "stale" in verdict.what


def test_without_the_chain_check_another_past_would_pass(monkeypatch: pytest.MonkeyPatch):
    """Invariant 45: the control of the two tests above."""
    log = small_log()
    log.batch(log.record(A, after=(log.heads[A][0], b"x" * 32)))
    admit = scan.Trail._admit
    monkeypatch.setattr(scan.Trail, "_admit", lambda self, header, hash: admit(self, header, hash) and "")
    assert judged(log.data).outcome is Outcome.CLEAN


@pytest.mark.parametrize("change", [{"crcs": [1]}, {"count": 2}], ids=str)
def test_a_commit_that_covers_other_frames_is_not_followed(change):
    log = small_log()
    start = len(log.data)
    log.forge(log.whole(log.record(A)), 7, 7, **change)
    verdict = judged(log.data)
    assert (verdict.outcome, verdict.end.offset) == (Outcome.TORN, start)
    log.batch()
    verdict = judged(log.data)
    assert (verdict.outcome, verdict.end.offset) == (Outcome.CORRUPT, start)


@pytest.mark.parametrize(("first", "last", "at"), [(6, 7, 7), (7, 8, 7), (7, 9, 9), (7, 6, 7)])
def test_a_commit_of_other_positions_is_corrupt(first: int, last: int, at: int):
    log = small_log()
    record = log.record(A)
    record.position = at
    log.forge(log.whole(record), first, last)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_commit_of_another_past_is_corrupt():
    log = small_log()
    log.forge(log.whole(log.record(A)), 7, 7, previous=b"x" * 32)
    assert judged(log.data).outcome is Outcome.CORRUPT
    log.roll()
    assert judge(log.segments()).outcome is Outcome.CORRUPT


def test_a_record_with_a_part_missing_is_corrupt():
    log = small_log()
    record, _ = log.whole(log.record(A, cells=["cell"]))
    log.forge([record], 7, 7)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_record_with_a_part_missing_before_another_is_corrupt():
    log = small_log()
    record, _ = log.whole(log.record(A, cells=["cell"]))
    other = log.record(B)
    other.position = 8
    log.forge([record, *log.whole(other)], 7, 8)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_part_of_another_record_is_corrupt():
    log = small_log()
    record, (kind, head, body) = log.whole(log.record(A, cells=["cell"]))
    log.forge([record, (kind, (6).to_bytes(8, "little") + head[8:], body)], 7, 7)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_part_elsewhere_than_its_record_says_is_corrupt():
    log = small_log()
    (kind, head, body), cell = log.whole(log.record(A, cells=["cell"]))
    start = int.from_bytes(head[-4:], "little") + 8
    log.forge([(kind, head[:-4] + start.to_bytes(4, "little"), body), cell], 7, 7)
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("kind", [Type.RECORD, Type.CELL, Type.CHECKPOINT])
def test_a_head_of_another_length_is_corrupt(kind: Type):
    log = small_log()
    log.forge([(kind, b"short", b"")], 7, 6)
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("kind", [Type.SEGMENT, Type.ERASED])
def test_a_frame_that_does_not_belong_here_is_corrupt(kind: Type):
    log = small_log()
    log.forge([(kind, b"", b"")], 7, 6)
    log.batch()
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_checkpoint_ahead_of_the_log_is_corrupt():
    log = small_log()
    log.batch(extra=[(Type.CHECKPOINT, (7).to_bytes(8, "little") + bytes(32), b"")])
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_segment_is_corrupt(missing: int):
    log = two_segments()
    log.roll()
    log.batch(log.record(B))
    segments = log.segments()
    del segments[missing]
    verdict = judge(segments)
    assert verdict.outcome is Outcome.CORRUPT
    assert "missing" in verdict.what


def test_a_missing_last_segment_is_noticed_by_who_saw_its_records():
    log = two_segments()
    assert judge(log.segments()[:1]).outcome is Outcome.CLEAN
    assert judge(log.segments()[:1], Evidence(seen=(newest(log),))).outcome is Outcome.TRUNCATED


def test_an_unsound_frame_in_a_sealed_segment_is_corrupt():
    """Even in its last batch: the next segment proves that it was durable."""
    log = small_log()
    log.roll()
    first, second = log.segments()
    data = with_byte(first.data, log.ends[-2])
    verdict = judge([SegmentBytes(1, data), second])
    assert verdict.outcome is Outcome.CORRUPT
    assert "sealed" in verdict.what


def test_a_wrong_body_at_the_end_of_a_sealed_segment_is_damage():
    log = small_log()
    at = body_of(log, log.records[-1])
    log.roll()
    first, second = log.segments()
    assert judge([SegmentBytes(1, with_byte(first.data, at)), second]).outcome is Outcome.DAMAGED


def test_a_sealed_segment_cut_anywhere_is_corrupt():
    log = two_segments()
    first, second = log.segments()
    for length in range(0, len(first.data), 24):
        assert judge([SegmentBytes(1, first.data[:length]), second]).outcome is Outcome.CORRUPT


def test_something_after_the_seal_is_corrupt():
    log = two_segments()
    first, second = log.segments()
    assert judge([SegmentBytes(1, first.data + b"\0\0more"), second]).outcome is Outcome.CORRUPT


@pytest.mark.parametrize(
    "change",
    [
        {"log_id": b"another-log's-id"},
        {"first_position": 9},
        {"previous_length": 8},
        {"previous_commit": b"c" * 32},
        {"id": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_segment_head_that_does_not_fit_is_corrupt(change):
    log = small_log()
    log.roll()
    head = SegmentHead(1, 2, log.log_id, 7, len(log.done[0]), log.commit)._replace(**change)
    written = parse(segment_frame(head), 0, head.id)
    assert written is not None
    data, _ = frame(Type.SEGMENT, written.head, b"", 2, 0)
    assert judge([log.segments()[0], SegmentBytes(2, data)]).outcome is Outcome.CORRUPT


def test_a_first_segment_that_goes_on_from_another_is_corrupt():
    head = SegmentHead(1, 1, SMALL.log_id, 7, 0, ZERO_HASH)
    assert judged(segment_frame(head)).outcome is Outcome.CORRUPT


def test_a_segment_under_another_name_is_not_cut():
    log = two_segments()
    first, second = log.segments()
    verdict = judge([first, SegmentBytes(2, first.data)])
    assert verdict.outcome is Outcome.CORRUPT
    assert judge([SegmentBytes(1, second.data)]).outcome is Outcome.CORRUPT


def test_what_is_no_log_is_not_cut():
    """Invariant 22: nothing starts afresh over what it could not read."""
    assert judged(b"somebody's file\n" * FIRST_WRITE).outcome is Outcome.CORRUPT


def test_a_torn_tail_before_another_segment_is_corrupt():
    log = small_log()
    log.roll()
    first, second = log.segments()
    assert judge([SegmentBytes(1, first.data[:-8]), SegmentBytes(2, second.data[:50])]).outcome is Outcome.CORRUPT


# Quoted bytes


def test_frames_quoted_in_a_body_are_never_frames():
    quoted = SMALL.data.decode("latin-1")
    log = small_log()
    log.batch(log.record(A, quoted, cells=[quoted]))
    assert judged(log.data).records == 7
    for cut in range(log.ends[-2] + 8, len(log.data), 16):
        verdict = judged(log.data[:cut])
        assert (verdict.outcome, verdict.end.offset) == (Outcome.TORN, log.ends[-2])


def test_a_commit_that_is_not_aligned_is_none():
    log = small_log()
    log.batch(log.record(A, "x" * 300))
    at = body_of(log, log.records[-1]) + 101
    quoted, _ = commit_frame(50, 50, [1], b"x" * 32, 1, at)
    torn = log.data[:at] + quoted + log.data[at + len(quoted) : -80]
    assert at % 8
    assert judged(torn).outcome is Outcome.TORN


# Truncation and tampering


def test_a_log_that_ends_before_what_was_seen_is_truncated():
    seen = Evidence(seen=(newest(SMALL),))
    assert judged(SMALL.data, seen).outcome is Outcome.CLEAN
    for cut in (SMALL.ends[-2], SMALL.ends[-2] + 40, SMALL.ends[0], 0):
        verdict = judged(SMALL.data[:cut], seen)
        assert verdict.outcome is Outcome.TRUNCATED
        assert verdict.cut is None
        assert isinstance(verdict.error(), LogTruncated)


def test_another_record_where_one_was_seen_is_tampering():
    verdict = judged(SMALL.data, Evidence(seen=(Head(3, b"x" * 32),)))
    assert verdict.outcome is Outcome.TAMPERED
    assert isinstance(verdict.error(), LogTampered)


def test_a_rewritten_history_does_not_extend_what_was_seen():
    other = LogMaker()
    other.batch(other.record(STORE_UID, kind=Kind.CREATED))
    other.batch(other.record(A, "rewritten"), other.record(B))
    other.batch(other.record(A), other.record(A), other.record(A))
    assert judged(other.data).outcome is Outcome.CLEAN
    assert judged(other.data, Evidence(seen=(newest(SMALL),))).outcome is Outcome.TAMPERED


def test_another_log_is_tampering():
    assert judged(SMALL.data, Evidence(log_id=SMALL.log_id)).outcome is Outcome.CLEAN
    assert judged(SMALL.data, Evidence(log_id=b"x" * 16)).outcome is Outcome.TAMPERED


# Newer versions


def test_a_newer_format_is_refused_by_its_number():
    head = SegmentHead(2, 1, SMALL.log_id, 1, 0, ZERO_HASH)
    error = judged(segment_frame(head) + b"whatever").error()
    assert isinstance(error, NewerFormat)
    assert "format is 2" in str(error)


@pytest.mark.parametrize("closed", [True, False])
def test_an_unknown_frame_type_is_refused(closed: bool):
    log = small_log()
    log.batch(extra=[(99, b"", b"new")])
    data = log.data if closed else log.data[:-80]
    verdict = judged(data)
    assert verdict.outcome is Outcome.NEWER
    assert verdict.cut is None


def test_an_unknown_flag_is_refused():
    log = small_log()
    log.batch(extra=[(Type.CHECKPOINT, bytes(40), b"new")], flags=4)
    assert judged(log.data).outcome is Outcome.NEWER


def test_an_unknown_kind_of_record_is_refused():
    log = small_log()
    log.batch(log.record(A, kind=200))
    assert judged(log.data).outcome is Outcome.NEWER


# Where to begin


def mark_at(log: LogMaker, nth: int) -> tuple[Mark, dict[bytes, tuple[int, bytes]]]:
    """The mark after batch `nth` of a one-segment log, with the heads at it."""
    verdict = judged(log.data[: log.ends[nth]])
    return verdict.end, dict(verdict.heads)


@pytest.mark.parametrize("nth", range(4))
def test_a_mark_saves_the_way_to_it(nth: int):
    start, heads = mark_at(SMALL, nth)
    visited: list[Found] = []
    evidence = Evidence(start=start, heads=heads.get)
    verdict = judge(SMALL.segments(), evidence, visited.append)
    whole = judged(SMALL.data)
    assert verdict.began == start
    assert verdict.end == whole.end
    assert {**heads, **verdict.heads} == whole.heads
    assert [found.header.position for found in visited] == list(range(start.position + 1, 7))
    assert verdict.last == (None if nth == 3 else whole.last)


def test_a_mark_in_a_new_segment_is_good():
    log = small_log()
    log.roll()
    start = judge(log.segments()).end
    log.batch(log.record(A))
    heads = dict(small_log().heads)
    verdict = judge(log.segments(), Evidence(start=start, heads=heads.get))
    assert (verdict.began, verdict.records) == (start, 1)


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize(
    "change",
    [
        {"commit": b"x" * 32},
        {"offset": 8},
        {"offset": 10**9},
        {"offset": 0},
        {"segment": 2},
        {"segment": 0},
        {"position": 2},
    ],
    ids=str,
)
def test_a_mark_that_does_not_fit_is_not_trusted(change, nth: int):
    start, heads = mark_at(SMALL, nth)
    verdict = judged(SMALL.data, Evidence(start=start._replace(**change), heads=heads.get))
    assert verdict == judged(SMALL.data)


@pytest.mark.parametrize("change", [{"commit": b"x" * 32}, {"position": 2}], ids=str)
def test_a_mark_in_a_new_segment_that_does_not_fit_is_not_trusted(change):
    log = small_log()
    log.roll()
    whole = judge(log.segments())
    assert judge(log.segments(), Evidence(start=whole.end._replace(**change))) == whole


def test_false_heads_make_no_verdict_worse():
    """Invariant 21: what is derived may be damaged in any way."""
    start, _ = mark_at(SMALL, 1)
    for heads in (lambda uid: (7, b"x" * 32), lambda uid: None):
        visited: list[Found] = []
        verdict = judge(SMALL.segments(), Evidence(start=start, heads=heads), visited.append)
        assert verdict == judged(SMALL.data)
        assert [found.header.position for found in visited] == list(range(1, 7))


def test_a_mark_does_not_hide_a_missing_segment():
    log = two_segments()
    log.roll()
    end = judge(log.segments()).end
    assert judge(log.segments(), Evidence(start=end)).began == end
    assert judge(log.segments()[1:], Evidence(start=end)).outcome is Outcome.CORRUPT


def test_a_mark_does_not_hide_that_a_segment_before_it_is_no_segment():
    log = two_segments()
    log.roll()
    segments = log.segments()
    start = judge(segments).end
    for nth in (0, 1):
        sound = segments[nth].data
        for data in (sound[:-8], with_byte(bytes(sound), 30)):
            changed = [*segments[:nth], SegmentBytes(nth + 1, data), *segments[nth + 1 :]]
            assert judge(changed, Evidence(start=start)).outcome is Outcome.CORRUPT


def test_the_newest_epoch_is_the_evidences_or_a_records():
    assert judged(SMALL.data, Evidence(epoch=9)).epoch == 9
    log = small_log()
    log.epoch = 12
    log.batch(log.record(A))
    assert judged(log.data, Evidence(epoch=9)).epoch == 12


# Anything at all


@st.composite
def changed_logs(draw: st.DrawFn) -> tuple[LogMaker, list[SegmentBytes]]:
    """A log of a few segments, closed, and its bytes with a few things done to them."""
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    for _ in range(draw(st.integers(1, 6))):
        uids = draw(st.lists(st.sampled_from([A, B]), max_size=3))
        log.batch(*[log.record(uid, cells=["cell"] * draw(st.integers(0, 2))) for uid in uids])
        if draw(st.booleans()) and draw(st.booleans()):
            log.roll()
    log.batch()
    segments = log.segments()
    for _ in range(draw(st.integers(1, 3))):
        nth = draw(st.integers(0, len(segments) - 1))
        number, data = segments[nth]
        one, two, three = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 3)))
        changed = draw(
            st.sampled_from(
                [
                    data[:one],
                    data[:one] + data[two:],
                    data[:one] + bytes(two - one) + data[two:],
                    data[:two] + data[one:],
                    data[:one] + data[two:three] + data[one:two] + data[three:],
                    data + data[one:two],
                    with_byte(data, one) if one < len(data) else data,
                ]
            )
        )
        segments[nth] = SegmentBytes(number, bytes(changed))
    return log, segments


@given(changed_logs())
def test_nothing_acknowledged_is_ever_lost_in_silence(case: tuple[LogMaker, list[SegmentBytes]]):
    log, segments = case
    verdict = judge(segments, Evidence(seen=(newest(log),)))
    if verdict.outcome.writable:
        assert verdict.end.position == log.position
        assert verdict.heads == log.heads
    else:
        assert verdict.error() is not None
    known = {record.hash for record in log.records}
    assert all(hash in known for _, hash in verdict.heads.values()) or not verdict.outcome.writable


@given(st.lists(st.binary(max_size=300), max_size=3))
def test_no_bytes_make_recovery_raise(files: list[bytes]):
    judge([SegmentBytes(number, data) for number, data in enumerate(files, 1)])


def test_cost_grows_with_what_follows_the_mark_alone(monkeypatch: pytest.MonkeyPatch):
    """Invariant 36: batches read to open a log whose mark is near its end."""
    read = []
    real = scan.read_batch
    monkeypatch.setattr("dataspace.log.recovery.read_batch", lambda *at: read.append(at) or real(*at))
    counts = []
    for turns in (10, 500):
        log = small_log()
        for _ in range(turns):
            log.batch(log.record(A))
        start, heads = mark_at(log, len(log.ends) - 2)
        read.clear()
        assert judged(log.data, Evidence(start=start, heads=heads.get)).began == start
        counts.append(len(read))
    assert counts[0] == counts[1]
