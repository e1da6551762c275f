"""Signed notes in a log: kept beside the records, found again, and no danger to any of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio
import trio.testing
from segment_folders import opened, segment, spoil

from dataspace.errors import KeeveError
from dataspace.log.files import DiskFull
from dataspace.log.marks import Certificate
from dataspace.log.memory import MemoryStore
from dataspace.log.verdicts import Outcome
from dataspace.log.verify import Verification
from dataspace.log.writer import Writer
from dataspace.proofs.signers import SignerFailed
from keeve.testing.crashes import CrashFiles
from keeve.testing.stores import Chain, texts


@pytest.fixture
def folder(store_folder: Path) -> Path:
    return store_folder


def noted(folder: Path, *notes: bytes, close: bool = True) -> None:
    """A store in which each note was kept after a record."""
    chain = Chain()
    store = opened(folder)
    for note in notes:
        store.append([chain.record()])
        store.settle(Certificate(store.head.position, bytes(32), note))
    store.close()


def test_the_newest_is_read_from_a_file_of_its_own(folder: Path):
    noted(folder, b"one", b"two")
    assert (folder / "checkpoint").read_bytes() == b"two"
    store = opened(folder, readonly=True)
    assert next(store.notes()) == b"two"
    store.close()


def test_without_the_file_they_are_found_in_the_log(folder: Path):
    """Invariant 21: the file is derived."""
    noted(folder, b"one", b"two")
    (folder / "checkpoint").unlink()
    store = opened(folder)
    assert list(store.notes()) == [b"two", b"one"]
    store.close()


def test_those_of_earlier_segments_are_found_too(folder: Path):
    chain = Chain()
    store = opened(folder, segment_bytes=600)
    for number in range(6):
        store.append([chain.record()])
        store.settle(Certificate(store.head.position, bytes(32), b"%d" % number))
    assert store.mark.segment > 2
    (folder / "checkpoint").unlink()
    assert list(store.notes()) == [b"5", b"4", b"3", b"2", b"1", b"0"]
    store.close()


@pytest.mark.parametrize("content", [b"", b"x" * (1 << 19)])
def test_a_file_of_something_else_is_no_matter(folder: Path, content: bytes):
    """Invariant 21."""
    noted(folder, b"one")
    (folder / "checkpoint").write_bytes(content)
    store = opened(folder)
    assert b"one" in store.notes()
    store.close()


def test_one_that_was_cut_anywhere_is_gone_and_nothing_else(folder: Path):
    """Invariant 4: what was torn is the note alone."""
    chain = Chain()
    store = opened(folder)
    store.append(chain.records(2))
    store.settle()
    start = store.mark
    store.settle(Certificate(3, bytes(32), b"a note"))
    end = store.mark
    store.close()
    whole = segment(folder).read_bytes()
    for length in range(start.offset, end.offset):
        segment(folder).write_bytes(whole[:length])
        (folder / "head").unlink(missing_ok=True)
        (folder / "checkpoint").unlink(missing_ok=True)
        shutil.rmtree(folder / "cut", ignore_errors=True)
        store = opened(folder, files=CrashFiles())
        assert store.fault is None
        assert len(texts(store)) == 2
        assert list(store.notes()) == []
        store.close()


def test_a_damaged_one_is_passed_over(folder: Path):
    noted(folder, b"the first note", b"the second note")
    (folder / "checkpoint").unlink()
    spoil(folder, b"the first note", b"the worst note")
    store = opened(folder)
    assert store.fault is None
    assert list(store.notes()) == [b"the second note"]
    with store.still() as (segments, evidence):
        found = list(Verification(segments, evidence).findings())
    damaged = [each for each in found if each.what == "a checkpoint is not what was written"]
    assert [(each.outcome, each.uid) for each in damaged] == [(Outcome.DAMAGED, None)]
    store.close()


def test_it_proves_the_batch_before_it_durable(folder: Path):
    chain = Chain()
    store = opened(folder)
    store.append([chain.record("precious")])
    store.settle(Certificate(2, bytes(32), b"a note"))
    store.close()
    (folder / "head").unlink()
    spoil(folder, b"precious", b"worthles")
    store = opened(folder)
    assert chain.uid in store.damaged  # and not cut, as a torn batch would be
    store.close()


class Desk:
    """Has one certificate at a time."""

    def __init__(self) -> None:
        self.next: Certificate | None = None
        self.done: list[Certificate] = []
        self.raises: KeeveError | None = None
        self.asked = 0

    def pending(self) -> Certificate | None:
        self.asked += 1
        if self.raises is not None:
            raise self.raises
        return self.next

    def kept(self, certificate: Certificate) -> None:
        self.done.append(certificate)
        self.next = None


async def test_what_is_signed_is_kept_when_the_log_is_settled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
):
    store, desk = MemoryStore(), Desk()
    writer = Writer(store, on_durable=lambda _: None, on_failed=lambda _, error: None, certifier=desk)
    nursery.start_soon(writer.run)
    note = desk.next = Certificate(1, bytes(32), b"note")
    await trio.sleep(1)
    assert not desk.done  # nothing was written, so that nothing is settled
    writer.settle_soon()
    await trio.sleep(1)
    await writer.drain()
    assert desk.done == [note]
    assert list(store.notes()) == [b"note"]
    writer.enqueue(Chain().record())
    await writer.drain()
    await trio.sleep(1)
    await writer.drain()
    assert desk.done == [note]


async def test_what_cannot_be_signed_is_signed_later_and_ever_more_rarely(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
):
    store, desk = MemoryStore(), Desk()
    writer = Writer(store, on_durable=lambda _: None, on_failed=lambda _, error: None, certifier=desk)
    nursery.start_soon(writer.run)
    desk.raises = SignerFailed("example", "the signer is away")
    writer.settle_soon()
    await settling(writer, 3600)
    assert 10 < desk.asked < 100
    assert "the signer is away" in caplog.text
    desk.raises, desk.next = None, Certificate(1, bytes(32), b"note")
    await settling(writer, 120)
    assert list(store.notes()) == [b"note"]
    asked = desk.asked
    await settling(writer, 3600)
    assert desk.asked <= asked + 1


async def test_a_disk_that_was_full_when_the_log_was_settled_is_tried_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
):
    desk = Desk()

    class Full(MemoryStore):
        full = True

        def settle(self, certificate: Certificate | None = None) -> None:
            if self.full:
                raise DiskFull("/disk", "no space", undone=True)
            super().settle(certificate)

    store = Full()
    writer = Writer(store, on_durable=lambda _: None, on_failed=lambda _, error: None, certifier=desk)
    nursery.start_soon(writer.run)
    desk.next = Certificate(1, bytes(32), b"note")
    writer.settle_soon()
    await settling(writer, 10)
    assert "no space" in caplog.text
    store.full = False
    await settling(writer, 120)
    assert list(store.notes()) == [b"note"]


async def settling(writer: Writer, seconds: int) -> None:
    """Let time pass; what a thread does counts as none."""
    for _ in range(seconds // 2):
        await trio.sleep(2)
        await writer.drain()


async def test_all_that_is_to_be_kept_is_kept_at_the_end():
    """Several: what witnesses have signed, and the newest."""

    class Two(Desk):
        def kept(self, certificate: Certificate) -> None:
            super().kept(certificate)
            if len(self.done) < 2:
                self.next = Certificate(2, bytes(32), b"two")

    store, desk = MemoryStore(), Two()
    desk.next = Certificate(1, bytes(32), b"one")
    writer = Writer(store, on_durable=lambda _: None, on_failed=lambda _, error: None, certifier=desk)
    writer.keep_now()
    assert list(store.notes()) == [b"two", b"one"]
