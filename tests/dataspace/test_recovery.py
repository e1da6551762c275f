"""Recovery: what is sound, what was seen, where to begin, and that nothing is ever lost in silence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logmaker import (
    SMALL,
    A,
    B,
    LogMaker,
    judged,
    mark_at,
    newest,
    small_log,
    two_segments,
    with_byte,
)

from dataspace.log import scan
from dataspace.log.frames import (
    SEGMENT_SIZE,
    SegmentHead,
    Type,
    segment_frame,
)
from dataspace.log.marks import BEGINNING, Head, Mark
from dataspace.log.recovery import judge
from dataspace.log.verdicts import (
    Evidence,
    Found,
    LogTampered,
    LogTruncated,
    NewerFormat,
    Outcome,
    SegmentBytes,
    Span,
)
from dataspace.records import STORE_UID, ZERO_HASH, Kind

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


@pytest.mark.parametrize(("kind", "flags"), [(Type.CELL, 1), (Type.CELL, 3), (Type.CELL, 255), (Type.CHECKPOINT, 2)])
def test_a_flag_that_is_not_known_is_of_a_newer_version(kind: Type, flags: int):
    """What is compressed, say, cannot be read here: refused when it is opened, not at the first question."""
    log = small_log()
    log.batch(extra=[(kind, bytes(12), b"new")], flags=flags)
    verdict = judged(log.data)
    assert verdict.outcome is Outcome.NEWER
    assert f"flags {flags:#x}; this version reads format 1, and no such flags" in str(verdict.error())


def test_an_unknown_kind_of_record_is_refused():
    log = small_log()
    log.batch(log.record(A, kind=200))
    assert judged(log.data).outcome is Outcome.NEWER


# Where to begin


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
