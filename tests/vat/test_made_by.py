"""Who had a session made: kept in its first record, and asked of the host."""

from __future__ import annotations

import pytest

from keeve import Session
from keeve.errors import Deleted, NoSuchSession
from keeve.testing import memory_host


async def test_who_spawned_a_session_and_how_is_known() -> None:
    async with memory_host() as host:
        await host.asking("ann", "http").spawn(Session, "s1")
        assert host.made_by("s1") == ("ann", "http")


async def test_a_fork_belongs_to_who_forked() -> None:
    async with memory_host() as host:
        await host.asking("ann", "http").spawn(Session, "s1")
        await (await host.asking("bob", "wire").get("s1")).fork(into="s2")
        assert host.made_by("s2") == ("bob", "wire")
        assert host.made_by("s1") == ("ann", "http")


async def test_the_row_of_a_session_is_had_by_its_id() -> None:
    async with memory_host() as host:
        await host.spawn(Session, "s1")
        assert host.row("s1") == host.sessions()[0]
        with pytest.raises(NoSuchSession):
            host.row("s2")
        await host.delete("s1")
        with pytest.raises(Deleted):
            host.row("s1")
