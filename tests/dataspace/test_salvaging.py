"""Salvage, on logs made by hand: which records are kept, what of them, and why others are not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logmaker import LOG_ID, A, B, LogMaker, closed_log, frames_of, with_byte

from dataspace.log import erasures
from dataspace.log.frames import Type, parse, place
from dataspace.log.marks import Certificate
from dataspace.log.rewriting import Kept, Rewriter
from dataspace.log.salvaging import Chain, Salvage
from dataspace.log.verdicts import Evidence, Outcome, SegmentBytes
from dataspace.log.verify import Verification
from dataspace.proofs.merkle import Tree, leaf_hash
from dataspace.records import STORE_UID, ZERO_HASH, Kind

C = b"session-c-------"


class Memory:
    """A log in memory, as a rewriter writes it."""

    def __init__(self) -> None:
        self.segments: list[bytearray] = []

    def begin(self, segment: int) -> None:
        assert segment == len(self.segments) + 1
        self.segments.append(bytearray())

    def write(self, data: bytes) -> None:
        self.segments[-1] += data

    def whole(self) -> list[SegmentBytes]:
        return [SegmentBytes(number, bytes(data)) for number, data in enumerate(self.segments, 1)]


def gone_through(segments: Sequence[SegmentBytes], certificate=lambda kept: False) -> tuple[Salvage, list[Kept]]:
    log = Salvage(segments)
    log.look()
    return log, list(log.kept(certificate))


def chain(log: Salvage, uid: bytes) -> Chain:
    return log.chains[uid]


def without(log: LogMaker, nth: int) -> list[SegmentBytes]:
    """A log in which one bit of the header of record `nth` is another."""
    record = log.records[nth]
    return [SegmentBytes(1, with_byte(log.data, place(record.address)[1] + 5))]


def test_of_many_holes_the_first_ones_are_kept_and_the_others_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(erasures, "MOST", 1)
    log = LogMaker()
    log.batch(log.record(A, cells=["one", "two", "three"]))
    data = log.data
    for said in (b"one", b"two", b"three"):
        data = data.replace(said, said.upper())
    told, _ = gone_through([SegmentBytes(1, data)])
    for met in (told.holes, told.pieces):
        assert (len(met.first), met.count) == (1, 3)
    assert told.holes.first[0].number == 0


def test_what_is_written_anew_is_a_log_with_the_same_hashes():
    log = closed_log()
    told, kept = gone_through(log.segments())
    assert told.log_id == LOG_ID
    memory = Memory()
    rewriter = Rewriter(LOG_ID, memory, 1500)
    assert [rewriter.add(each) for each in kept] == [1, 2, 3, 4, 5, 6]
    rewriter.end()
    tree = Tree()
    check = Verification(memory.whole(), Evidence(log_id=LOG_ID), tree=tree)
    assert list(check.findings()) == []
    assert check.verdict.outcome is Outcome.CLEAN
    assert tree.root(6) == Tree(leaf_hash(record.hash) for record in log.records).root(6)
    assert (check.counts.cells, check.counts.pages) == (4, 1)


def test_a_chain_ends_before_its_first_record_that_is_not_there():
    log = closed_log()
    told, kept = gone_through(without(log, 3))  # the second of session A, of three
    a = chain(told, A)
    assert (a.seq, a.lost, a.last, a.why) == (1, 2, 3, "seq 2 is missing")
    assert chain(told, B).lost == 0
    assert len(kept) == 4


def test_a_session_without_its_beginning_is_lost():
    told, _ = gone_through(without(closed_log(), 1))
    a = chain(told, A)
    assert (a.seq, a.lost, a.why) == (0, 1, "its beginning, seq 1, is missing")


def forked(at: int) -> LogMaker:
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    hashes = []
    for number in range(5):
        record = log.record(A, f"word {number}")
        log.batch(record)
        hashes.append(record.hash)
    log.batch(log.record(C, kind=Kind.FORKED, after=(at, hashes[at - 1]), message={"id": "c", "parent": A, "seq": at}))
    log.batch(log.record(C, "on"))
    log.batch()
    return log


@pytest.mark.parametrize(("at", "kept"), [(2, True), (3, True), (4, False), (5, False)])
def test_a_fork_is_kept_if_its_parent_is_up_to_where_it_left_it(at: int, kept: bool):
    """Invariant 26."""
    told, _ = gone_through(without(forked(at), 4))  # seq 4 of the parent
    assert chain(told, A).seq == 3
    c = chain(told, C)
    assert (c.seq, c.lost) == ((at + 2, 0) if kept else (0, at + 1))
    assert bool(c.why) is not kept


def test_what_a_record_says_is_erased_is_not_kept_though_it_is_there():
    log = closed_log()
    cells = {"session": A, "cells": [[4, [1]]]}
    log.batch(log.record(STORE_UID, kind=Kind.ERASE, message=cells))
    log.batch()
    told, kept = gone_through(without(log, 1))  # before it, so that positions are other ones
    assert told.erasures
    told, kept = gone_through(log.segments())
    [erased] = [part for each in kept for part in each.parts if part.body is None]
    assert erased.type == Type.CELL
    memory = Memory()
    rewriter = Rewriter(LOG_ID, memory, 1 << 20)
    for each in kept:
        rewriter.add(each)
    rewriter.end()
    check = Verification(memory.whole(), Evidence())
    assert list(check.findings()) == []
    assert check.counts.erased == 1
    assert b"two" not in memory.whole()[0].data


def test_pages_are_let_go_from_the_first_wrong_one_on():
    """Invariant 21."""
    log = closed_log()
    log.batch(log.record(A, kind=Kind.SNAPSHOT, pages=[b"one" * 9, b"two" * 9]), log.record(B, pages=[b"of b" * 9]))
    log.batch(log.record(A, kind=Kind.SNAPSHOT, pages=[b"three" * 9]))
    log.batch()
    wrong = next(each for each in frames_of(log.data) if log.data[each.body_offset :].startswith(b"two"))
    told, kept = gone_through([SegmentBytes(1, with_byte(log.data, wrong.body_offset))])
    pages = [part.body for each in kept for part in each.parts if part.type == Type.PAGE]
    assert pages == [b"page" * 5, b"one" * 9, None, b"of b" * 9, None]
    assert (chain(told, A).pageless, chain(told, A).lost, chain(told, B).pageless) == (4, 0, 0)


def test_a_base_is_let_go_like_any_snapshot_while_what_it_stands_for_is_there():
    log = closed_log()
    log.batch(log.record(A, kind=Kind.SNAPSHOT, pages=[b"a snapshot"]))
    log.batch(log.record(A, kind=Kind.BASE, pages=[b"the whole heap"]))
    log.batch(log.record(A, kind=Kind.SNAPSHOT, pages=[b"another"]))
    log.batch()
    said: list[tuple[bytes, list[bool]]] = [
        (b"the whole", [True, False, False]),
        (b"a snapshot", [False, True, True]),  # it shares no page with that
    ]
    for begins, there in said:
        wrong = next(each for each in frames_of(log.data) if log.data[each.body_offset :].startswith(begins))
        told, kept = gone_through([SegmentBytes(1, with_byte(log.data, wrong.body_offset))])
        pages = [part.body is not None for each in kept for part in each.parts if part.type == Type.PAGE]
        assert (pages[-3:], chain(told, A).lost) == (there, 0)


def test_checkpoints_are_offered_where_they_stand():
    log = closed_log()
    log.batch(extra=[(Type.CHECKPOINT, (6).to_bytes(8, "little") + b"r" * 32, b"the note")])
    log.batch()
    offered: list[Certificate] = []
    gone_through(log.segments(), lambda kept: offered.append(kept) or False)  # type: ignore[func-returns-value]  # it is none
    assert offered == [Certificate(6, b"r" * 32, b"the note")]


def test_a_checkpoint_over_other_records_is_not_kept():
    memory = Memory()
    rewriter = Rewriter(LOG_ID, memory, 1 << 20)
    _, kept = gone_through(closed_log().segments())
    for each in kept:
        rewriter.add(each)
    assert rewriter.certificate(Certificate(6, rewriter.tree.root(6), b"right"))
    assert not rewriter.certificate(Certificate(6, b"r" * 32, b"wrong"))
    assert not rewriter.certificate(Certificate(7, b"r" * 32, b"of more"))
    rewriter.end()
    assert list(Verification(memory.whole(), Evidence()).findings()) == []


def test_a_hand_that_made_all_checksums_fit_gets_nothing_kept():
    log = closed_log()
    record, *cells = log.whole(log.record(A, "was said", cells=["a cell"]))
    kind, head, body = record
    log.forge([(kind, head, body.replace(b"was", b"not")), *cells], 7, 7)
    log.batch(log.record(B))
    told, _ = gone_through(log.segments())
    assert (chain(told, A).lost, chain(told, B).lost) == (4, 0)
    assert chain(told, A).why == "the body of seq 4 is not the one that its hash covers"


def test_a_record_of_a_later_version_ends_its_chain():
    log = closed_log()
    log.batch(log.record(A, kind=99))
    told, _ = gone_through(log.segments())
    assert "kind 99" in chain(told, A).why


class Counting(bytes):
    looked = 0

    def __getitem__(self, where):  # type: ignore[no-untyped-def]  # as that of bytes
        found = super().__getitem__(where)
        Counting.looked += len(found) if isinstance(where, slice) else 1
        return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_bytes_are_gone_through_in_bounded_time(data: st.DataObject):
    """Invariant 42."""
    whole = closed_log().data
    pieces = st.one_of(st.binary(max_size=300), st.sampled_from([whole, whole[:900], whole[104:], bytes(64)]))
    content = Counting(b"".join(data.draw(st.lists(pieces, max_size=6))))
    Counting.looked = 0
    told, kept = gone_through([SegmentBytes(1, content)])
    assert Counting.looked <= 60 * len(content) + 10_000
    assert len(kept) <= 6
    assert all(each.seq == 0 or each.hash != ZERO_HASH for each in told.chains.values())


def test_the_frames_that_are_made_parse_where_they_are_put():
    memory = Memory()
    rewriter = Rewriter(LOG_ID, memory, 1 << 20)
    _, kept = gone_through(closed_log().segments())
    for each in kept:
        rewriter.add(each._replace(parts=[part._replace(body=None) for part in each.parts]))
    rewriter.end()
    data, at = memory.whole()[0].data, 0
    while at < len(data):
        found = parse(data, at, 1)
        assert found is not None
        at += found.size
    assert list(Verification(memory.whole(), Evidence()).findings()) == []


def test_a_record_that_a_hand_wrote_twice_is_kept_once():
    log = closed_log()
    record = log.record(A)
    log.batch(record)
    again = log.whole(record)
    log.forge(again, 8, 8)
    log.position = 7
    log.batch(log.record(A))
    told, kept = gone_through(log.segments())
    assert (chain(told, A).seq, chain(told, A).lost) == (5, 0)
    assert len(kept) == 8


def test_a_fork_shares_pages_with_its_parent_and_lets_go_of_its_snapshots_as_well():
    """Invariant 21."""
    log = closed_log()
    log.batch(log.record(A, kind=Kind.SNAPSHOT, pages=[b"of the parent"]))
    seq, hash = log.heads[A]
    log.batch(log.record(C, kind=Kind.FORKED, after=(seq, hash), message={"id": "c", "parent": A, "seq": seq}))
    log.batch(log.record(C, kind=Kind.SNAPSHOT, pages=[b"of the child"]))
    log.batch()
    wrong = next(each for each in frames_of(log.data) if log.data[each.body_offset :].startswith(b"of the parent"))
    _, kept = gone_through([SegmentBytes(1, with_byte(log.data, wrong.body_offset))])
    pages = [part.body for each in kept for part in each.parts if part.type == Type.PAGE]
    assert pages == [b"page" * 5, None, None]


@pytest.mark.parametrize("kind", [Type.RECORD, Type.CELL, Type.PAGE, Type.CHECKPOINT, Type.COMMIT, Type.SEGMENT])
@pytest.mark.parametrize("head", [b"", b"short", bytes(4000), b"\xff" * 200])
def test_sound_frames_with_heads_that_no_frame_has_are_passed_over(kind: Type, head: bytes):
    """Invariant 42."""
    log = closed_log()
    log.batch(log.record(B), extra=[(kind, head, b"a body")])
    log.batch(log.record(A))
    told, kept = gone_through(log.segments())
    assert len(kept) == 8
    assert not any(each.lost for each in told.chains.values())
