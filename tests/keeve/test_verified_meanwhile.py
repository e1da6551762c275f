"""Verifying a store that goes on meanwhile: what is newer than what was looked at is no fault of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from signing_hosts import Till, opened

from dataspace.catalog import checking
from dataspace.catalog.catalog import Catalog
from dataspace.catalog.checking import Right, check_catalog
from keeve import Settings, open_host
from tests.vat.hosts import catalog_of, store_of
from vat.host.verifying import verify_at_once

KEY = bytes(range(32))


async def test_a_reader_is_behind_the_bytes_that_it_looks_at(store_folder: Path) -> None:
    """Its owner has made, deleted and reclaimed sessions, under keys that were not there, since the reader opened."""
    async with opened(store_folder, key=KEY) as owner:
        await owner.spawn(Till, "first")
        async with open_host(store_folder, key=KEY, readonly=True, settings=Settings(follow=1000.0)) as reader:
            await (await owner.spawn(Till, "second")).pay(1)
            await owner.spawn(Till, "gone")
            await owner.delete("gone")
            await owner.reclaim()
            owner.checkpoint()
            report = verify_at_once(store_of(reader), catalog_of(reader))
            assert report.troubles == ()
            assert report.counts.records == store_of(owner).head.position


async def test_what_goes_while_the_catalog_is_looked_at_is_not_missed_in_it(store_folder: Path) -> None:
    async with opened(store_folder) as host:
        await (await host.spawn(Till, "gone")).fork(into="twin")
        await host.delete("gone")
        right = Right(store_of(host))
        await host.reclaim()
        later = Catalog(None, store_of(host))
        assert set(later.positions(None, "fork")) < set(right.catalog.positions(None, "fork"))
        assert not any(check_catalog(later, right))


async def test_a_long_past_is_looked_at_in_steps(store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of them a host has its turn."""
    async with opened(store_folder) as host:
        for number in range(4):
            await (await host.spawn(Till, f"till-{number}")).fork()
        right = Right(store_of(host))
        at_once = list(check_catalog(catalog_of(host), right))
        monkeypatch.setattr(checking, "_FACTS", 5)
        in_steps = list(check_catalog(catalog_of(host), right))
        assert not any(at_once)
        assert not any(in_steps)
        assert len(in_steps) > len(at_once)
