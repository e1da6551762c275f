"""What recovery says of each thing that may be found: the table, row by row. What else there is to each is in
`test_recovery`, `test_torn_tails` and `test_corruption`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest
from logmaker import SMALL, A, closed_log, newest, small_log, two_segments, with_byte

from dataspace.log.frames import SEGMENT_SIZE, SegmentHead, Type, parse, segment_frame
from dataspace.log.marks import Head
from dataspace.log.recovery import judge
from dataspace.log.verdicts import (
    NOTHING_KNOWN,
    Evidence,
    LogCorrupt,
    LogTampered,
    LogTruncated,
    NewerFormat,
    Outcome,
    SegmentBytes,
)
from dataspace.records import ZERO_HASH

Segments: TypeAlias = "Sequence[SegmentBytes]"

SEEN = Evidence(seen=(newest(SMALL),))
END = len(SMALL.data)


def one(data: bytes) -> Segments:
    return [SegmentBytes(1, data)]


def in_body_of(kind: Type, data: bytes) -> int:
    """Where the body of the first frame of a kind lies, after the log's first batch."""
    at = SMALL.ends[0]
    while (found := parse(data, at, 1)) is not None:
        if found.type == kind:
            return found.body_offset + found.body_length // 2
        at += found.size
    raise AssertionError(f"no {kind.name} frame")


def spliced() -> Segments:
    """A record that another history of its session has."""
    log = small_log()
    log.heads[A] = (log.heads[A][0], b"x" * 32)
    log.batch(log.record(A, "of another past"))
    log.batch()
    return one(log.data)


def of_type(kind: int) -> Segments:
    log = small_log()
    log.batch(extra=[(kind, b"", b"new")])
    return one(log.data)


def of_kind(kind: int) -> Segments:
    log = small_log()
    log.batch(log.record(A, kind=kind))
    return one(log.data)


def two(change: Callable[[list[SegmentBytes]], Any]) -> Segments:
    """Two segments, changed."""
    segments = two_segments().segments()
    change(segments)
    return segments


def flip_first(segments: list[SegmentBytes]) -> None:
    segments[0] = SegmentBytes(1, with_byte(bytes(segments[0].data), SEGMENT_SIZE + 20))


TABLE: dict[str, tuple[Callable[[], Segments], Evidence, Outcome]] = {
    "every byte accounted for": (lambda: one(SMALL.data), SEEN, Outcome.CLEAN),
    "zeros after the end": (lambda: one(SMALL.data + bytes(4096)), SEEN, Outcome.CLEAN),
    "half a batch at the end": (lambda: one(SMALL.data[: END - 100]), NOTHING_KNOWN, Outcome.TORN),
    "a commit without its frames": (
        lambda: one(SMALL.data[: SMALL.ends[-2]] + bytes(80) + SMALL.data[SMALL.ends[-2] + 80 :]),
        NOTHING_KNOWN,
        Outcome.TORN,
    ),
    "noise after the last commit": (lambda: one(SMALL.data + b"noise" * 99), SEEN, Outcome.TORN),
    "a wrong body in the batch in flight": (lambda: one(with_byte(SMALL.data, END - 90)), NOTHING_KNOWN, Outcome.TORN),
    "a wrong body of a record": (
        lambda: one(with_byte(closed_log().data, in_body_of(Type.RECORD, closed_log().data))),
        SEEN,
        Outcome.DAMAGED,
    ),
    "a wrong cell": (
        lambda: one(with_byte(closed_log().data, in_body_of(Type.CELL, closed_log().data))),
        SEEN,
        Outcome.DAMAGED,
    ),
    "a wrong head, and a commit after it": (
        lambda: one(with_byte(SMALL.data, SMALL.ends[0] + 20)),
        SEEN,
        Outcome.CORRUPT,
    ),
    "a record of another past": (spliced, NOTHING_KNOWN, Outcome.CORRUPT),
    "a wrong head in a sealed segment": (lambda: two(flip_first), NOTHING_KNOWN, Outcome.CORRUPT),
    "a missing segment": (lambda: two(lambda segments: segments.pop(0)), NOTHING_KNOWN, Outcome.CORRUPT),
    "an end before what was seen": (lambda: one(SMALL.data[: SMALL.ends[1]]), SEEN, Outcome.TRUNCATED),
    "a batch taken out of what was seen": (
        lambda: one(SMALL.data[: SMALL.ends[0]] + SMALL.data[SMALL.ends[1] :]),
        SEEN,
        Outcome.TRUNCATED,
    ),
    "another record where one was seen": (
        lambda: one(SMALL.data),
        Evidence(seen=(Head(3, b"x" * 32),)),
        Outcome.TAMPERED,
    ),
    "another log": (lambda: one(SMALL.data), Evidence(log_id=b"x" * 16), Outcome.TAMPERED),
    "a newer format": (
        lambda: one(segment_frame(SegmentHead(2, 1, SMALL.log_id, 1, 0, ZERO_HASH))),
        NOTHING_KNOWN,
        Outcome.NEWER,
    ),
    "an unknown type of frame": (lambda: of_type(99), NOTHING_KNOWN, Outcome.NEWER),
    "an unknown kind of record": (lambda: of_kind(200), NOTHING_KNOWN, Outcome.NEWER),
}

ERRORS = {
    Outcome.CLEAN: type(None),
    Outcome.TORN: type(None),
    Outcome.DAMAGED: type(None),
    Outcome.CORRUPT: LogCorrupt,
    Outcome.TRUNCATED: LogTruncated,
    Outcome.TAMPERED: LogTampered,
    Outcome.NEWER: NewerFormat,
}


@pytest.mark.parametrize(("found", "known", "outcome"), TABLE.values(), ids=TABLE)
def test_what_is_found_decides(found: Callable[[], Segments], known: Evidence, outcome: Outcome) -> None:
    """Invariants 4 and 23."""
    verdict = judge(found(), known)
    assert verdict.outcome is outcome
    assert type(verdict.error()) is ERRORS[outcome]
    assert (verdict.cut is not None) is (outcome is Outcome.TORN)
    assert bool(verdict.damaged) is (outcome is Outcome.DAMAGED)
    assert outcome.writable is (outcome in (Outcome.CLEAN, Outcome.TORN, Outcome.DAMAGED))


def test_every_outcome_has_a_row() -> None:
    assert {outcome for _, _, outcome in TABLE.values()} == set(Outcome)
