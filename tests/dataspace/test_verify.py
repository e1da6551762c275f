"""The whole check of a log: what a disk or a hand can have done to it, each told once."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from logmaker import A, B, LogMaker, closed_log, frames_of, small_log

from dataspace.log import scan
from dataspace.log.findings import Finding
from dataspace.log.frames import COMMIT_SIZE, PREFIX, Frame, Type, commit_frame, erased, frame, parse, place
from dataspace.log.marks import Head
from dataspace.log.verdicts import Evidence, Outcome, SegmentBytes
from dataspace.log.verify import PLACES, Verification
from dataspace.proofs.merkle import Tree, leaf_hash
from dataspace.records import STORE_UID, Kind

C = b"session-c-------"


def findings(segments: Sequence[SegmentBytes], evidence: Evidence | None = None, **hooks) -> list[Finding]:
    return list(Verification(segments, evidence or Evidence(), **hooks).findings())


def with_byte(segments: Sequence[SegmentBytes], at: int, nth: int = 0) -> list[SegmentBytes]:
    changed = list(segments)
    data = changed[nth].data
    changed[nth] = SegmentBytes(nth + 1, data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
    return changed


def test_a_sound_log_has_no_findings_and_is_counted():
    log = closed_log()
    check = Verification(log.segments(), Evidence())
    assert list(check.findings()) == []
    counts = check.counts
    assert (counts.segments, counts.batches, counts.records, counts.cells, counts.pages) == (1, 5, 6, 4, 1)
    assert counts.bytes == len(log.data) - 104
    assert check.verdict.outcome is Outcome.CLEAN


def test_zeros_after_the_end_are_no_finding():
    assert findings([SegmentBytes(1, small_log().data + bytes(999)), SegmentBytes(2, bytes(99))]) == []


def test_a_torn_tail_is_told_as_such():
    log = small_log()
    (found,) = findings([SegmentBytes(1, log.data[:-8])])
    assert found[:3] == (Outcome.TORN, 1, log.ends[-2])


@pytest.mark.parametrize("part", [0, 1])
def test_a_wrong_body_is_told_with_its_session_and_seq(part: int):
    log = closed_log()
    record = log.records[1]
    frames = [each for each in frames_of(log.data) if each.offset >= place(record.address)[1]]
    changed = frames[part]
    (found,) = findings(with_byte(log.segments(), changed.body_offset))
    assert found[:3] == (Outcome.DAMAGED, 1, changed.offset)
    assert (found.uid, found.seq) == (A, 1)


def test_every_flipped_byte_is_told():
    log = closed_log()
    for at in range(len(log.data)):
        assert findings(with_byte(log.segments(), at))


def rewritten(*changes: tuple[int, bytes, bytes]) -> LogMaker:
    """A log in which a hand changed bytes of the last record, and made every checksum fit again."""
    log = small_log()
    record = log.record(A, "what was said", cells=["the first cell", "the other cell"])
    frames = log.whole(record)
    for nth, old, new in changes:
        kind, head, body = frames[nth]
        assert old in body
        frames[nth] = (kind, head, body.replace(old, new))
    log.forge(frames, 7, 7)
    log.batch()
    return log


def test_a_body_that_a_hand_rewrote_is_told():
    assert findings(rewritten().segments()) == []
    (found,) = findings(rewritten((0, b"what was said", b"what was read")).segments())
    assert (found.outcome, found.uid, found.seq) == (Outcome.DAMAGED, A, 4)
    assert "hash" in found.what


def test_a_cell_that_a_hand_rewrote_is_told():
    (found,) = findings(rewritten((2, b"the other", b"any other")).segments())
    assert (found.outcome, found.uid, found.seq) == (Outcome.DAMAGED, A, 4)
    assert "cell 1" in found.what


def test_two_swapped_cells_are_told():
    log = small_log()
    record, (one, head_one, first), (two, head_two, second) = log.whole(log.record(A, cells=["one", "two"]))
    log.forge([record, (one, head_one, second), (two, head_two, first)], 7, 7)
    log.batch()
    assert len(findings(log.segments())) == 2


def test_a_record_without_the_cells_that_it_names_is_told():
    log = small_log()
    kind, head, body = log.whole(log.record(A, cells=["cell"]))[0]
    count = struct.pack("<I", 0)
    log.forge([(kind, head[:-8] + count, body)], 7, 7)
    log.batch()
    (found,) = findings(log.segments())
    assert "names 1 cells and has 0" in found.what


def test_a_body_that_is_no_encoding_is_told():
    log = small_log()
    record = log.record(A)
    broken = type(record)(A, record.seq, record.kind, 0, record.previous, record.salts, b"\xc1", b"")
    log.batch(broken)
    (found,) = findings(log.segments())
    assert "cannot be read" in found.what


def test_a_chain_that_does_not_fit_is_told_once_and_followed_on():
    log = small_log()
    log.batch(log.record(A, after=(3, b"x" * 32)))
    log.batch(log.record(A), log.record(B))
    (found,) = findings(log.segments())
    assert found.outcome is Outcome.CORRUPT
    assert A.hex() in found.what


def test_after_an_unsound_frame_it_goes_on_with_the_next_batch():
    log = closed_log()
    segments = with_byte(log.segments(), log.ends[0] + 4)
    check = Verification(segments, Evidence())
    found = list(check.findings())
    assert found[0][:3] == (Outcome.CORRUPT, 1, log.ends[0])
    assert check.counts.records == 4
    lost = [each.what for each in found[1:]]
    assert len(lost) == 2  # the two sessions whose first records are gone
    assert any(A.hex() in what for what in lost)
    assert any(B.hex() in what for what in lost)


def test_faults_in_two_segments_are_both_told():
    log = small_log()
    log.roll()
    log.batch(log.record(B))
    log.batch(log.record(B))
    log.batch()
    segments = with_byte(with_byte(log.segments(), log.ends[1] + 4), 104 + 4, nth=1)
    assert {found.segment for found in findings(segments)} == {1, 2}


def test_a_missing_segment_is_told():
    log = small_log()
    log.roll()
    log.batch(log.record(B))
    assert findings(log.segments()[1:])[0].outcome is Outcome.CORRUPT


def test_a_commit_of_another_past_is_told():
    log = small_log()
    log.forge(log.whole(log.record(A)), 7, 7, previous=b"x" * 32)
    log.batch(log.record(A))
    assert [found.outcome for found in findings(log.segments())] == [Outcome.CORRUPT]


def test_what_was_seen_is_held_against_the_log():
    log = small_log()
    (found,) = findings(log.segments(), Evidence(seen=(Head(9, b"x" * 32),)))
    assert found.outcome is Outcome.TRUNCATED


def test_a_mark_does_not_shorten_the_check():
    log = closed_log()
    check = Verification(log.segments(), Evidence(start=Verification(log.segments(), Evidence()).verdict.end))
    assert list(check.findings()) == []
    assert check.counts.records == 6


def nested(count: int) -> bytes:
    """A log with `count` commits and as many frames, all of them in the body of a frame, and each of these long enough
    to end where a chain of `count` other frames begins."""
    log = small_log()
    chain = len(log.data) + count * (COMMIT_SIZE + PREFIX + 16)
    out = [log.data]
    at = len(log.data)
    for _ in range(count):
        commit, _ = commit_frame(7, 6, (), bytes(32), 1, at)
        body = at + COMMIT_SIZE + PREFIX + 12
        head, _ = frame(Type.CELL, bytes(12), bytes(chain - body), 1, at + COMMIT_SIZE)
        out.append(commit + head[: PREFIX + 12] + bytes(4))
        at += COMMIT_SIZE + PREFIX + 16
    for _ in range(count):
        out.append(frame(Type.CELL, bytes(12), b"", 1, at)[0])
        at += len(out[-1])
    return b"".join([*out, b"no frame"])


def test_frames_within_frames_are_read_once(monkeypatch: pytest.MonkeyPatch):
    """Invariant 42: bounded time, counted in frames that are looked at."""
    looks = 0

    def counted(*where: Any) -> Frame | None:
        nonlocal looks
        looks += 1
        return parse(*where)

    monkeypatch.setattr(scan, "parse", counted)
    assert findings([SegmentBytes(1, nested(400))])
    assert looks < 4 * 400


def test_a_file_with_a_thousand_faults_is_given_up():
    """Invariant 42: each place where frames do not parse may cost the longest head of a frame."""
    log = small_log()
    for _ in range(PLACES + 10):
        log.data += b"no frame"
        log.batch()
    found = findings(log.segments())
    assert len([each for each in found if each.what.startswith("no frame begins here")]) == PLACES
    assert found[-1].what == "frames do not parse in 1000 places; what comes after the last of them was not read"


def test_what_was_erased_is_counted_and_not_called_wrong():
    log = closed_log()
    data = log.data
    for found in list(frames_of(data)):
        if found.type in (Type.RECORD, Type.CELL, Type.PAGE):
            stub = erased(found, 1)
            data = data[: found.offset] + stub + bytes(found.size - len(stub)) + data[found.offset + found.size :]
    check = Verification([SegmentBytes(1, data)], Evidence())
    assert list(check.findings()) == []
    assert check.counts.erased == 11


def forked(parent: bytes, seq: int, hash: bytes) -> list[Finding]:
    log = small_log()
    log.batch(log.record(C, kind=Kind.FORKED, after=(seq, hash), message={"parent": parent}))
    return findings(log.segments())


def test_a_fork_is_held_against_its_parent():
    parent = small_log().records[3]
    assert forked(A, parent.seq, parent.hash) == []
    assert "no such record" in forked(A, parent.seq, b"x" * 32)[0].what
    assert "no such record" in forked(A, parent.seq + 1, parent.hash)[0].what


def test_a_fork_whose_parent_is_not_here_is_counted():
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    log.batch(log.record(C, kind=Kind.FORKED, after=(5, b"x" * 32), message={"parent": A}))
    check = Verification(log.segments(), Evidence())
    assert list(check.findings()) == []
    assert check.counts.orphans == 1


def test_each_checkpoint_is_shown_after_the_records_that_it_covers():
    log = small_log()
    log.batch(extra=[(Type.CHECKPOINT, (6).to_bytes(8, "little") + b"r" * 32, b"the note")])
    tree = Tree()
    met: list[object] = []

    def note(size: int, root: bytes, text: bytes) -> str:
        met.append((tree.size, size, root, text))
        return "the signature is wrong"

    (found,) = findings(log.segments(), tree=tree, note=note)
    assert met == [(6, 6, b"r" * 32, b"the note")]
    assert tree.root(6) == Tree(leaf_hash(record.hash) for record in log.records).root(6)
    assert (found.outcome, found.what, found.altered) == (Outcome.TAMPERED, "the signature is wrong", True)


def test_progress_is_told_on_the_way_and_never_goes_back():
    seen: list[int] = []
    findings(closed_log().segments(), progress=lambda counts: seen.append(counts.batches))
    assert seen == sorted(seen)
    assert seen[-1] == 5
