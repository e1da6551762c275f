"""What every store must do when content is erased, as a part of the test class in `stores`.

The one rule: what was erased is asked for in every way in which it could come out.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from dataspace.log.store import BodyErased, Erasure, NoSuchPart, NoSuchRecord, Store, StoreReadOnly
from dataspace.records import STORE_UID, Record
from dataspace.values import ERASED
from keeve.testing.chains import Chain, Opened, texts


def _written(store: Store) -> tuple[Chain, list[Record]]:
    """Records with cells and pages, in several batches."""
    chain = Chain()
    batches = [[chain.record(f"body {n}", cells=[f"cell {n}" * 9, b"raw"], pages=[b"page" * n])] for n in range(1, 5)]
    for batch in batches:
        store.append(batch)
    return chain, [record for batch in batches for record in batch]


class ErasureContract:
    """The conformance class of stores, as far as erasing goes. Takes the fixtures `store` and `opened`."""

    def test_what_is_erased_is_gone_and_its_header_stays(self, store: Store) -> None:
        _, records = _written(store)
        before = [stored.header for stored in store.scan()]
        assert store.erase([Erasure(records[1].address)]) == 4
        found = store.read(records[1].address)
        assert found.attachments == 3
        with pytest.raises(BodyErased):
            found.body()
        with pytest.raises(BodyErased):
            found.page(2)
        assert [found.cell(0), found.cell(1), found.part(2)] == [ERASED] * 3
        assert [stored.header for stored in store.scan()] == before

    def test_what_is_not_erased_stays(self, store: Store) -> None:
        _, records = _written(store)
        store.erase([Erasure(records[1].address), Erasure(records[2].address, [0], body=False)])
        third, fourth = store.read(records[2].address), store.read(records[3].address)
        assert (third.body().deeds, third.cell(0), third.cell(1)) == (b"body 3", ERASED, b"raw")
        assert (fourth.body().deeds, fourth.cell(0), fourth.page(2)) == (b"body 4", "cell 4" * 9, b"page" * 4)

    def test_what_is_withheld_reads_as_erased_and_can_be_erased_yet(self, store: Store) -> None:
        _, records = _written(store)
        held = store.read(records[1].address)
        store.withheld.add(9, {records[1].position: [0], records[2].position: [1]})
        for found in (held, store.read(records[1].address)):
            assert [found.cell(0), found.part(0), found.cell(1), found.body().deeds] == [
                ERASED,
                ERASED,
                b"raw",
                b"body 2",
            ]
            assert found.page(2) == b"page" * 2
        assert store.read(records[2].address).cell(1) is ERASED
        assert store.erase([Erasure(records[1].address, [0], body=False)]) == 1
        store.withheld.gone(9)
        assert [store.read(record.address).cell(0) for record in records[1:3]] == [ERASED, "cell 3" * 9]
        assert store.read(records[2].address).cell(1) is ERASED  # whatever is in a file, it is erased

    def test_erasing_again_changes_nothing(self, store: Store) -> None:
        _, records = _written(store)
        erasures = [Erasure(records[0].address, [1]), Erasure(records[2].address)]
        assert store.erase(erasures) == 6
        assert store.erase(erasures) == 0
        assert store.erase([]) == 0

    def test_the_log_goes_on_and_opens_again_after_an_erasure(self, store: Store, opened: Opened) -> None:
        chain, records = _written(store)
        store.erase([Erasure(record.address) for record in records])
        store.append([chain.record("after")])
        store.close()
        again = opened()
        assert again.fault is None
        assert not again.damaged
        with pytest.raises(BodyErased):
            again.read(records[0].address).body()
        again.append([chain.record("and after that")])
        assert texts_of_whole(again) == ["after", "and after that"]
        again.close()

    def test_only_what_is_there_is_erased(self, store: Store) -> None:
        _, records = _written(store)
        with pytest.raises(NoSuchPart):
            store.erase([Erasure(records[0].address, [3])])
        with pytest.raises(NoSuchRecord):
            store.erase([Erasure(1 << 60)])
        assert len(texts(store)) == 4

    def test_a_reader_erases_nothing_and_sees_what_was_erased(self, store: Store, opened: Opened) -> None:
        chain, records = _written(store)
        reader = opened(readonly=True)
        with pytest.raises(StoreReadOnly):
            reader.erase([Erasure(records[0].address)])
        reader.read(records[0].address).body()
        store.erase([Erasure(records[0].address)])
        store.append([chain.record()])
        reader.refresh()
        with pytest.raises(BodyErased):
            reader.read(records[0].address).body()
        reader.close()


def texts_of_whole(store: Store) -> list[str]:
    """What is said by the records of sessions that still have their body."""
    found = []
    for stored in store.scan():
        with suppress(BodyErased):
            if stored.header.uid != STORE_UID:
                found.append(stored.body().deeds.decode())
    return found
