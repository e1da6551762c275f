"""The quick look at a log passes nothing that the slow one finds fault with, and changes nothing of what is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logmaker import A, B, LogMaker, closed_log

from dataspace.drafts import Draft
from dataspace.log import sweep
from dataspace.log.findings import Counts, Finding
from dataspace.log.frames import SEGMENT_SIZE, Type, erased, parse
from dataspace.log.scan import Trail
from dataspace.log.sweep import Sweep
from dataspace.log.verdicts import Evidence, SegmentBytes
from dataspace.log.verify import Verification
from dataspace.proofs.merkle import Tree, leaf_hash
from dataspace.records import STORE_UID, ZERO_HASH, Kind, Record

C = b"session-c-------"


def long_log() -> LogMaker:
    """Three segments, sessions that speak in turn, cells, pages, a fork, a checkpoint."""
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    for number in range(12):
        one = log.record(A, f"a {number}", cells=["x" * (7 * number)] * (number % 3))
        log.batch(one, log.record(B, "b" * number, pages=[b"page" * number] * (number % 2)))
        if number in (3, 7):
            log.roll()
    parent = log.heads[A]
    log.batch(
        log.record(A, kind=Kind.FORK),
        log.record(C, kind=Kind.FORKED, after=parent, message={"parent": A, "seq": parent[0]}),
    )
    log.batch(extra=[(Type.CHECKPOINT, (27).to_bytes(8, "little") + b"r" * 32, b"a note")])
    log.batch(log.record(C), log.record(B))
    log.batch()
    return log


LONG = long_log()


def found(segments: Sequence[SegmentBytes]) -> tuple[set[Finding], Counts, bytes]:
    tree = Tree()
    check = Verification(segments, Evidence(), tree=tree)
    return set(check.findings()), check.counts, tree.root(tree.size)


def without_sweep(
    segments: Sequence[SegmentBytes], monkeypatch: pytest.MonkeyPatch
) -> tuple[set[Finding], Counts, bytes]:
    with monkeypatch.context() as patched:
        patched.setattr(Sweep, "follow", lambda self, segment, at, end: at)
        return found(segments)


def swept(log: LogMaker) -> tuple[int, list[bytes]]:
    """How far a sweep comes along the last segment of a log of one, and the leaves that it gives."""
    leaves: list[bytes] = []
    look: Sweep

    def passed() -> None:
        leaves.extend(look.leaves)
        look.begin(len(leaves))

    look = Sweep(Trail(lambda uid: None), passed)
    return look.follow(SegmentBytes(1, log.data), SEGMENT_SIZE, len(log.data)), leaves


def test_a_log_that_is_right_is_swept_to_its_end():
    log = closed_log()
    at, leaves = swept(log)
    assert at == len(log.data)
    assert leaves == [leaf_hash(record.hash) for record in log.records]


def test_what_is_counted_and_found_is_the_same_without_the_sweep(monkeypatch: pytest.MonkeyPatch):
    assert found(LONG.segments()) == without_sweep(LONG.segments(), monkeypatch)
    assert found(LONG.segments())[0] == set()


@pytest.mark.parametrize("size", [64, 300, 4096])
def test_however_much_is_read_at_once_all_is_passed(size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweep, "_CHUNK", size)
    assert swept(closed_log())[0] == len(closed_log().data)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_found_in_a_damaged_log_is_the_same_without_the_sweep(data: st.DataObject):
    """Invariant 4."""
    segments = LONG.segments()
    for _ in range(data.draw(st.integers(1, 3))):
        nth = data.draw(st.integers(0, len(segments) - 1))
        content = bytes(segments[nth].data)
        at = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(1, 40))
        put = data.draw(st.sampled_from([b"", bytes(length), content[at : at + length][::-1], content[:length]]))
        segments[nth] = SegmentBytes(nth + 1, content[:at] + put + content[at + length :])
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert found(segments) == without_sweep(segments, monkeypatch)


def forged(change: Callable[[LogMaker], Any]) -> LogMaker:
    """A log at whose end a hand has written something, with every checksum right."""
    log = closed_log()
    change(log)
    log.batch()
    return log


def _body(log: LogMaker, deeds: bytes, facts: bytes = b"") -> Record:
    seq, previous = log.heads[A]
    record = Record(A, seq + 1, Kind.CRANK, 0, previous, bytes(32), deeds, facts)
    log.heads[A] = (record.seq, record.hash)
    return record


def _other_cell(log: LogMaker) -> None:
    record, (kind, head, body) = log.whole(log.record(A, cells=["one"]))
    log.forge([record, (kind, head, body[:-1] + b"!")], 7, 7)


def _other_body(log: LogMaker) -> None:
    ((kind, head, body),) = log.whole(log.record(A, "was said"))
    log.forge([(kind, head, body.replace(b"was", b"not"))], 7, 7)


def _length_beyond(log: LogMaker) -> None:
    ((kind, head, body),) = log.whole(log.record(A, "was said"))
    log.forge([(kind, head, body[:32] + (1 << 20).to_bytes(4, "big") + body[36:])], 7, 7)


def _last_epochs(log: LogMaker) -> None:
    log.epoch = (1 << 32) - 1
    log.batch(log.record(A), log.record(B))
    log.batch(log.record(A))


def _cell_elsewhere(log: LogMaker) -> None:
    (kind, head, body), *cells = log.whole(log.record(A, cells=["one"]))
    log.forge([(kind, head[:-4] + (8).to_bytes(4, "little"), body), *cells], 7, 7)


FORGERIES: dict[str, Callable[[LogMaker], Any]] = {
    "a body of another digest": _other_body,
    "a cell of another digest": _other_cell,
    "no encoding": lambda log: log.batch(_body(log, b"\xc1")),
    "deeds with something after them": lambda log: log.batch(_body(log, msgpack.packb([0, [], b"", 0]) + b"\0")),
    "deeds of five": lambda log: log.batch(_body(log, msgpack.packb([0, 0, [], b"", 0]))),
    "a count that is none": lambda log: log.batch(_body(log, msgpack.packb([0, [], b"", -1]))),
    "a cell that is not there": lambda log: log.batch(_body(log, msgpack.packb([0, [], bytes(32), 0]))),
    "facts of two": lambda log: log.batch(_body(log, msgpack.packb([0, [], b"", 0]), msgpack.packb([[], b""]))),
    "facts with another cell": lambda log: log.batch(
        _body(log, msgpack.packb([0, [], b"", 0]), msgpack.packb([[], [], bytes(32)]))
    ),
    "another chain": lambda log: log.batch(log.record(A, after=(4, b"x" * 32))),
    "a gap in a chain": lambda log: log.batch(log.record(A, after=(5, log.heads[A][1]))),
    "a session that begins in the middle": lambda log: log.batch(log.record(C, after=(3, b"x" * 32))),
    "a second beginning": lambda log: log.batch(log.record(A, after=(0, ZERO_HASH))),
    "an unknown kind": lambda log: log.batch(log.record(A, kind=99)),
    "a stale owner": lambda log: (setattr(log, "epoch", 0), log.batch(log.record(A))),
    "a commit that covers other frames": lambda log: log.forge(log.whole(log.record(A)), 7, 7, crcs=[1]),
    "a commit of other positions": lambda log: log.forge(log.whole(log.record(A)), 7, 8),
    "a commit after another": lambda log: log.forge(log.whole(log.record(A)), 7, 7, previous=bytes(32)),
    "a commit of another count": lambda log: log.forge(log.whole(log.record(A)), 7, 7, count=2),
    "facts with something after them": lambda log: log.batch(
        _body(log, msgpack.packb([0, [], b"", 0]), b"\x93\x90\x90\xc4\x00\x90\xc4\x00")
    ),
    "a cell at another place than its record says": _cell_elsewhere,
    "deeds that end after their body": _length_beyond,
    "epochs that nothing can come after": _last_epochs,
    "a seq that nothing can come after": lambda log: log.batch(
        log.record(C, kind=Kind.FORKED, after=(1 << 63, b"x" * 32))
    ),
    "no cell after its record": lambda log: log.forge(log.whole(log.record(A, cells=["one"]))[:1], 7, 7),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_a_hand_made_fit_is_not_passed(name: str, monkeypatch: pytest.MonkeyPatch):
    log = forged(FORGERIES[name])
    told = found(log.segments())
    assert told == without_sweep(log.segments(), monkeypatch)
    assert told[0]
    assert swept(log)[0] < len(log.data)


def test_erased_bodies_are_left_to_the_slow_look():
    log = closed_log()
    frame = parse(log.data, SEGMENT_SIZE, 1)
    assert frame is not None
    instead = erased(frame, 1)
    end = frame.offset + frame.size
    data = log.data[: frame.offset] + instead + bytes(frame.size - len(instead)) + log.data[end:]
    told, counts, _ = found([SegmentBytes(1, data)])
    assert (told, counts.erased, counts.records) == (set(), 1, 6)


@pytest.mark.parametrize("pending", [0, 127, 128, 255, 256, 65535, 65536, 1 << 32, 1 << 62])
@pytest.mark.parametrize("cells", [0, 1, 8, 2100])
def test_every_length_of_what_a_body_says_of_its_cells_is_passed(pending: int, cells: int):
    log = closed_log()
    draft = Draft(A, log.heads[A][0] + 1, Kind.CRANK, 0)
    draft.pending = pending
    content = [draft.cell(f"cell {number} " * 40) for number in range(cells)]
    draft.stated(draft.operation(), "said", [], {"texts": content[1:2]} if cells > 1 else {})
    log.batch(draft.seal(log.heads[A][1], lambda n: bytes(n)))
    assert swept(log)[0] == len(log.data)
