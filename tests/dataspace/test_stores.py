"""The stores of this project, held against the conformance class."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dataspace.drafts import Draft
from dataspace.log.marks import Damage
from dataspace.log.memory import MemoryLog, MemoryStore
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Store
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import STORE_UID, Kind
from keeve.testing.stores import Chain, Opened, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def opened(self) -> Opened:
        log = MemoryLog()

        def opened(readonly: bool = False) -> Store:
            return MemoryStore(log, readonly=readonly)

        return opened

    def test_damage_stops_its_session_and_never_the_chain_of_the_store(self) -> None:
        log = MemoryLog()
        store = MemoryStore(log)
        bad = Chain()
        store.append([bad.record()])
        damage = Damage(1, 2, 2, "its body")
        log.damaged.update({bad.uid: damage, STORE_UID: damage})
        with pytest.raises(SessionDamaged):
            store.append([bad.record()])
        own = Draft(STORE_UID, 2, Kind.RECOVERED, 0).seal(log.records[0].header.hash, bytes)
        store.append([own])
        assert store.head.hash == own.hash


class TestSegmentStore(StoreContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        def opened(readonly: bool = False) -> Store:
            return SegmentStore(tmp_path / "store", now=int, salts=os.urandom, readonly=readonly)

        return opened


class TestEncryptedSegmentStore(StoreContract):
    """Every body is sealed, and every few records begin a new segment."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        def opened(readonly: bool = False) -> Store:
            given = {"segment_bytes": 3000, "readonly": readonly, "key": bytes(range(32))}
            return SegmentStore(tmp_path / "store", now=int, salts=os.urandom, **given)

        return opened


class TestSegmentStoreOfSmallSegments(StoreContract):
    """Every few records begin a new segment."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        def opened(readonly: bool = False) -> Store:
            return SegmentStore(tmp_path / "store", now=int, salts=os.urandom, segment_bytes=2000, readonly=readonly)

        return opened
