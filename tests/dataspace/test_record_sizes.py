"""Records that are larger than a store takes, or that have more parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from segment_folders import opened

from dataspace.log.frames import MAX_HEAD, record_head_length
from dataspace.log.segments import SegmentStore
from dataspace.log.store import MAX_PARTS, RecordTooLarge
from keeve.testing.stores import Chain, texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[SegmentStore]:
    store = opened(folder)
    yield store
    store.close()


def test_a_record_that_is_too_large_is_refused(store: SegmentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataspace.log.store.MAX_RECORD", 1000)
    chain = Chain()
    record = chain.record("x" * 600, cells=["y" * 600])
    with pytest.raises(RecordTooLarge, match="1"):
        store.append([record])
    chain.back(record)
    store.append([chain.record("x" * 600)])


def test_what_no_head_has_room_for_is_refused_before_it_is_written(folder: Path) -> None:
    """Invariant 43: a record whose parts could not be found again would take the whole log with it."""
    assert record_head_length(MAX_PARTS) <= MAX_HEAD
    store = opened(folder)
    chain = Chain()
    record = chain.record(cells=[""])
    record.cells = list(record.cells) * (MAX_PARTS + 1)
    with pytest.raises(RecordTooLarge, match=f"{MAX_PARTS + 1} cells"):
        store.append([record])
    chain.back(record)
    store.append([chain.record("smaller")])
    store.close()
    assert texts(opened(folder)) == ["smaller"]
