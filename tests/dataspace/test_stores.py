"""The stores of this project, held against the conformance class."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dataspace.log.memory import MemoryLog, MemoryStore
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Store
from keeve.testing.stores import Opened, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def opened(self) -> Opened:
        log = MemoryLog()

        def opened(readonly: bool = False) -> Store:
            return MemoryStore(log, readonly=readonly)

        return opened


class TestSegmentStore(StoreContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        def opened(readonly: bool = False) -> Store:
            return SegmentStore(tmp_path / "store", now=int, salts=os.urandom, readonly=readonly)

        return opened


class TestSegmentStoreOfSmallSegments(StoreContract):
    """Every few records begin a new segment."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        def opened(readonly: bool = False) -> Store:
            return SegmentStore(tmp_path / "store", now=int, salts=os.urandom, segment_bytes=2000, readonly=readonly)

        return opened
