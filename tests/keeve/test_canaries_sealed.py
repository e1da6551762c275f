"""Deletion and erasure in a store that is encrypted: the same, and the rest stays readable with its keys."""

from __future__ import annotations

from pathlib import Path

from dataspace.log.store import BodyErased
from dataspace.values import ERASED
from keeve import host_key
from tests.keeve.canaries import Keeper, answer, converse, found, host_of, keep
from tests.vat.hosts import store_of
from vat.host.host import Host

FIRST, SECOND, KEPT = "CANARYONE", "CANARYTWO", "CANARYKEPT"


def whole(host: Host, id: str) -> int:
    """How many records of a session have their body."""
    row = next(row for row in host.sessions(deleted=True) if row.id == id)
    count = 0
    for stored in store_of(host).scan():
        if stored.header.uid == row.uid:
            try:
                stored.body()
            except BodyErased:
                continue
            count += 1
    return count


async def test_a_turn_is_erased_and_all_who_have_it_go_on(tmp_path: Path) -> None:
    key = host_key(tmp_path / "host.key", make=True)
    folder = tmp_path / "store"
    async with host_of(folder, key=key) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is queued")
        child = await (await host.get("talk")).fork(into="child")
        await child.turn("on")
        assert await host.erase("child", turn=1) > 3
        for id in ("talk", "child"):
            said = [message["content"] for message in await (await host.get(id)).messages]
            assert said.count(ERASED) == 3
            assert f"{SECOND} is queued" in said
    async with host_of(folder, key=key) as host:
        assert await (await host.get("child")).turn("on") == answer("on")
        report = await host.verify()
        assert report.sound, report.troubles
    assert found(folder, FIRST, SECOND) == []


async def test_a_deleted_parent_is_reclaimed_and_its_fork_stays_whole(tmp_path: Path) -> None:
    """Invariant 26: In an encrypted store as well, a fork outlives its parent, and content goes with its last user."""
    key = host_key(tmp_path / "host.key", make=True)
    folder = tmp_path / "store"
    async with host_of(folder, key=key) as host:
        parent = await host.spawn(Keeper, "parent")
        await parent.keep(FIRST, 50)
        child = await parent.fork(into="child")
        await parent.keep(SECOND, 50)
        await keep(host, "other", KEPT)
        await host.delete("parent")
        await host.delete("other", force=True)
        gone = await host.reclaim()
        assert gone.sessions == 2
        assert whole(host, "other") == 1
        assert 1 < whole(host, "parent") < 5
        assert await child.last == FIRST
    async with host_of(folder, key=key) as host:
        child = await host.get("child")
        assert len(await child.lines) == 50
        report = await host.verify()
        assert report.sound, report.troubles
        await host.delete("child")
        await host.reclaim()
        assert whole(host, "parent") == whole(host, "child") == 1
        assert [row.id for row in host.sessions(deleted=True)] == ["child", "other", "parent"]
    (folder / "catalog.sqlite").unlink()
    async with host_of(folder, key=key) as host:
        assert [row.id for row in host.sessions(deleted=True)] == ["child", "other", "parent"]
        report = await host.verify()
        assert report.sound, report.troubles
