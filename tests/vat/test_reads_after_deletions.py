"""What else follows a record that is durable, while something cannot be read: who waits for a session that is
deleted, who is to be woken, and what is left to be reclaimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import ReadFailed
from tests.vat.hosts import Caller, Counter, Worker, World, settled
from vat.host.mail import Mail
from vat.host.reclaiming import Reclaiming
from vat.host.waking import Waking


@pytest.fixture
def disk(tmp_path: Path) -> World:
    return World(tmp_path / "store")


async def test_whoever_waits_for_a_session_that_is_deleted_is_told_though_it_cannot_be_read(
    disk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 15."""
    disk.tool.open = False
    async with disk.host() as host, trio.open_nursery() as nursery:
        s, c = await host.spawn(Worker, "s"), await host.spawn(Caller, "c")
        nursery.start_soon(c.send, s, "ask", "once", 1)
        await settled(host)
        bury = Mail.bury

        def unread(mail: Mail, vat: Any) -> None:
            promises = vat.heap.system["promises"]
            items = type(promises).items

            def some(tree: Any, *args: Any, **options: Any) -> Any:
                if tree is promises:
                    raise ReadFailed("00000001.seg", "Input/output error")
                return items(tree, *args, **options)

            with monkeypatch.context() as patched:
                patched.setattr(type(promises), "items", some)
                bury(mail, vat)

        with monkeypatch.context() as patched:
            patched.setattr(Mail, "bury", unread)
            await host.delete("s", force=True)
        await settled(host)
        assert await c.answers == ["Deleted"]


async def test_what_cannot_be_looked_for_at_a_start_ends_no_host(disk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a deletion has left is looked for again, and goes."""
    async with disk.host(reclaim=None) as host:
        await host.spawn(Counter, "s")
        await host.delete("s")
    times, reclaimed = 0, []

    async def reclaim(reclaiming: Reclaiming, **how: Any) -> None:
        reclaimed.append(how)

    def unread(reclaiming: Reclaiming) -> bool:
        nonlocal times
        times += 1
        raise ReadFailed("00000001.seg", "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Reclaiming, "pending", property(unread))
        patched.setattr(Reclaiming, "reclaim", reclaim)
        async with disk.host(reclaim=0.0) as host:
            await settled(host)
            assert times == 1
            assert reclaimed
            assert await (await host.spawn(Counter)).add() == 1


async def test_who_is_to_be_woken_and_cannot_be_looked_up_is_looked_up_again() -> None:
    asked: list[bytes] = []

    def wake(uid: bytes) -> None:
        asked.append(uid)
        if len(asked) == 1:
            raise ReadFailed("00000001.seg", "Input/output error")

    waking = Waking(wake, 5.0)
    async with trio.open_nursery() as nursery:
        await waking.all([b"a", b"b"])
        assert asked == [b"a", b"b"]
        nursery.start_soon(waking.run)
        await trio.testing.wait_all_tasks_blocked()
        waking.written()
        await trio.testing.wait_all_tasks_blocked()
        assert asked == [b"a", b"b", b"a"]
        nursery.cancel_scope.cancel()
