"""What every store must do, as a test class: inherit from it and say how yours is opened.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def opened(self, tmp_path):
            return lambda **options: MyStore(tmp_path / "store", **options)

Each call of `opened` opens the one store of that test, so a second call is a reopening. It takes `readonly`.

The one rule: what is tested here is what whoever uses a store relies upon, and nothing of how it is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from dataspace.log.marks import Certificate, Head
from dataspace.log.store import (
    NoSuchPart,
    NoSuchRecord,
    StaleOwner,
    Store,
    StoreClosed,
    StoreOwned,
    StoreReadOnly,
    WrongHead,
)
from dataspace.records import STORE_UID, ZERO_HASH, Kind
from keeve.testing.chains import Chain, Opened, texts
from keeve.testing.erasure import ErasureContract

__all__ = ["Chain", "Opened", "StoreContract", "texts"]


class StoreContract(ErasureContract):
    """The conformance class of stores."""

    @pytest.fixture
    def opened(self) -> Opened:
        """How a store of this kind is opened; to be overridden."""
        raise NotImplementedError("override the fixture `opened`")

    @pytest.fixture
    def store(self, opened: Opened) -> Iterator[Store]:
        """A new store, open."""
        store = opened()
        yield store
        store.close()

    def test_a_new_store_holds_the_record_of_its_creation(self, store: Store) -> None:
        (only,) = store.scan()
        assert only.header.kind == Kind.CREATED
        assert (only.header.uid, only.header.seq, only.header.previous) == (STORE_UID, 1, ZERO_HASH)
        assert store.head == Head(1, only.header.hash)

    def test_positions_follow_each_other_without_a_gap(self, store: Store) -> None:
        first, second = Chain("a"), Chain("b")
        batch = [first.record(), second.record(), first.record()]
        store.append(batch)
        store.append([second.record()])
        assert [record.position for record in batch] == [2, 3, 4]
        assert [stored.header.position for stored in store.scan()] == [1, 2, 3, 4, 5]

    def test_the_head_is_the_newest_record(self, store: Store) -> None:
        batch = Chain().records(3)
        store.append(batch)
        assert store.head == Head(4, batch[-1].hash)

    def test_what_was_appended_is_read_back(self, store: Store) -> None:
        record = Chain().record("said", cells=["text", b"bytes", ""], pages=[b"page", b""])
        store.append([record])
        stored = store.read(record.address)
        assert stored.header.hash == record.hash
        assert stored.body().digest == stored.header.body_digest
        assert (stored.body().deeds, stored.body().facts, stored.rest()) == (b"said", b"facts", None)
        assert [stored.cell(n) for n in range(3)] == ["text", b"bytes", ""]
        assert [stored.page(n) for n in (3, 4)] == [b"page", b""]
        assert stored.attachments == 5
        assert [stored.part(n) for n in range(5)] == [*record.cells, *record.pages]

    @pytest.mark.parametrize("size", [0, 1, 255, 8_000, 9_000, 300_000])
    def test_content_of_every_size_is_read_back(self, store: Store, size: int) -> None:
        chain = Chain()
        records = [chain.record("x" * size, cells=["y" * size], pages=[b"z" * size]) for _ in range(3)]
        store.append(records)
        for stored in list(store.scan())[1:]:
            assert len(stored.body().deeds) == size
            assert stored.cell(0) == "y" * size
            assert stored.page(1) == b"z" * size

    def test_a_record_with_thousands_of_cells_is_read_back(self, store: Store) -> None:
        chain = Chain()
        records = [chain.record("many", cells=[str(n) for n in range(3000)]), chain.record("after")]
        store.append(records)
        assert store.read(records[0].address).cell(2999) == "2999"
        assert texts(store) == ["many", "after"]
        assert store.read(records[0].address).next == records[1].address

    def test_a_part_that_is_not_there_is_named(self, store: Store) -> None:
        record = Chain().record(cells=["text"], pages=[b"page"])
        store.append([record])
        stored = store.read(record.address)
        asked: list[tuple[Callable[[int], object], int]] = [
            (stored.cell, 2),
            (stored.cell, 1),
            (stored.page, 0),
            (stored.part, -1),
        ]
        for ask, number in asked:
            with pytest.raises(NoSuchPart):
                ask(number)

    def test_an_address_where_no_record_begins_is_refused(self, store: Store) -> None:
        record = Chain().record()
        store.append([record])
        for address in (0, -8, 1 << 50):
            with pytest.raises(NoSuchRecord):
                store.read(address)

    def test_each_record_knows_the_one_after_it(self, store: Store) -> None:
        chain = Chain()
        records = [chain.record(cells=["cell"]), chain.record(), chain.record()]
        store.append(records[:2])
        second = store.read(records[1].address)
        assert store.read(records[0].address).next == records[1].address
        assert second.next is None
        store.settle()
        store.append(records[2:])
        assert second.next == records[2].address

    def test_a_scan_begins_at_an_address_or_after_a_mark(self, store: Store) -> None:
        records = Chain().records(4)
        store.append(records[:2])
        mark = store.mark
        store.append(records[2:])
        assert [stored.address for stored in store.scan(records[1].address)] == [
            record.address for record in records[1:]
        ]
        assert [stored.address for stored in store.scan(mark)] == [record.address for record in records[2:]]
        assert list(store.scan(store.mark)) == []

    def test_a_scan_goes_on_to_what_was_appended_meanwhile(self, store: Store) -> None:
        chain = Chain()
        store.append(chain.records(2))
        seen = []
        for stored in store.scan():
            seen.append(stored.header.position)
            if len(seen) < 10:
                store.append([chain.record()])
        assert seen == list(range(1, store.head.position + 1))

    def test_marks_are_known_again(self, store: Store) -> None:
        chain = Chain()
        marks = [store.mark]
        for _ in range(3):
            store.append([chain.record()])
            marks.append(store.mark)
        store.settle()
        assert all(store.holds(mark) for mark in marks)
        assert store.holds(store.mark)
        assert not store.holds(marks[1]._replace(commit=marks[2].commit))
        assert not store.holds(marks[1]._replace(position=3))
        assert not store.holds(marks[-1]._replace(segment=9))

    def test_an_empty_batch_changes_nothing(self, store: Store) -> None:
        mark = store.mark
        store.append([])
        assert store.mark == mark

    def test_settling_moves_no_position(self, store: Store) -> None:
        store.append([Chain().record()])
        head = store.head
        store.settle()
        settled = store.mark
        store.settle()
        assert (store.head, store.mark) == (head, settled)

    def test_a_certificate_is_kept_beside_the_records(self, store: Store, opened: Opened) -> None:
        chain = Chain()
        store.append(chain.records(2))
        head = store.head
        store.settle(Certificate(3, bytes(32), b"first"))
        assert store.head == head
        store.append([chain.record()])
        store.settle(Certificate(4, bytes(32), b"second"))
        assert list(dict.fromkeys(store.notes())) == [b"second", b"first"]
        assert [stored.header.position for stored in store.scan()] == [1, 2, 3, 4]
        store.close()
        again = opened()
        assert list(dict.fromkeys(again.notes())) == [b"second", b"first"]
        again.append([chain.record()])
        assert again.head.position == 5
        again.close()

    @pytest.mark.parametrize("wrong", ["seq", "previous", "twice"])
    def test_a_record_that_does_not_follow_its_chain_is_refused_whole(self, store: Store, wrong: str) -> None:
        chain, other = Chain("a"), Chain("b")
        record = chain.record()
        store.append([record])
        if wrong == "seq":
            chain.seq += 1
        elif wrong == "previous":
            chain.hash = bytes(32)
        else:
            chain.back(record)
        before = store.mark
        batch = [other.record(), chain.record()]
        with pytest.raises(WrongHead) as caught:
            store.append(batch)
        assert caught.value.session == chain.uid.hex()
        assert caught.value.expected == (1, record.hash)
        assert store.mark == before
        assert [each.position for each in batch] == [0, 0]
        other.back(batch[0])
        store.append([other.record()])

    def test_a_refused_batch_leaves_its_chain_as_it_was(self, store: Store) -> None:
        chain = Chain()
        good, wrong = chain.record("good"), Chain("s", seq=7).record()
        with pytest.raises(WrongHead):
            store.append([good, wrong])
        store.append([good])
        assert store.chain(chain.uid) == (1, good.hash)
        assert texts(store) == ["good"]

    def test_a_fork_begins_where_it_left_its_parent(self, store: Store) -> None:
        parent = Chain("parent")
        store.append(parent.records(3))
        child = Chain("child", parent.seq, parent.hash)
        forked = child.record(kind=Kind.FORKED)
        store.append([forked])
        assert store.chain(child.uid) == (4, forked.hash)

    def test_what_was_appended_is_there_after_a_reopening(self, opened: Opened) -> None:
        chain = Chain()
        store = opened()
        store.append(chain.records(3))
        store.append([chain.record("last", cells=["cell"])])
        head, log_id, epoch = store.head, store.log_id, store.epoch
        store.close()
        again = opened()
        assert (again.head, again.log_id) == (head, log_id)
        assert again.epoch > epoch
        assert texts(again)[-1] == "last"
        assert again.chain(chain.uid) == (4, chain.hash)
        again.append([chain.record()])
        assert again.head.position == head.position + 1
        again.close()

    def test_marks_are_known_after_a_reopening(self, opened: Opened) -> None:
        store = opened()
        store.append([Chain().record()])
        mark = store.mark
        store.close()
        again = opened()
        assert again.holds(mark)
        again.close()

    def test_records_carry_the_epoch_of_their_owner(self, opened: Opened) -> None:
        chain = Chain()
        epochs = []
        for _ in range(2):
            store = opened()
            epochs.append(store.epoch)
            store.append([chain.record()])
            store.close()
        store = opened()
        assert [stored.header.epoch for stored in store.scan()][1:] == epochs
        store.close()

    def test_a_second_owner_is_refused(self, store: Store, opened: Opened) -> None:
        with pytest.raises(StoreOwned):
            opened()
        store.append([Chain().record()])

    def test_a_closed_store_takes_nothing(self, store: Store, opened: Opened) -> None:
        store.close()
        with pytest.raises((StoreClosed, StaleOwner)):
            store.append([Chain().record()])
        store.close()
        opened().close()

    def test_a_reader_sees_what_is_durable_and_writes_nothing(self, store: Store, opened: Opened) -> None:
        chain = Chain()
        store.append(chain.records(2))
        reader = opened(readonly=True)
        assert reader.head == store.head
        assert texts(reader) == texts(store)
        with pytest.raises(StoreReadOnly):
            reader.append([chain.record()])
        reader.close()

    def test_a_reader_follows_the_owner(self, store: Store, opened: Opened) -> None:
        chain = Chain()
        reader = opened(readonly=True)
        for _ in range(3):
            store.append([chain.record()])
            assert reader.refresh() == store.head
            assert texts(reader) == texts(store)
        reader.close()

    def test_readers_in_other_threads_see_whole_records_only(self, store: Store) -> None:
        chain = Chain()
        done = threading.Event()
        wrong: list[object] = []

        def read() -> None:
            while not done.is_set():
                positions = [stored.header.position for stored in store.scan()]
                heard = [stored.body().deeds for stored in store.scan(store.mark)]
                if positions != list(range(1, len(positions) + 1)) or any(not text for text in heard):
                    wrong.append(positions)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            store.append([chain.record(cells=["c" * 300])])
        done.set()
        for thread in threads:
            thread.join()
        assert not wrong
