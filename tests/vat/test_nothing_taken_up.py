"""What is asked of a host that carries out nothing: done where nothing has to be waited for, refused at once else."""

from __future__ import annotations

import pytest

from actors.session import Session
from dataspace.log.memory import MemoryLog
from keeve.testing import memory_host
from vat.errors import NothingTakenUp
from vat.host.settings import Settings


async def test_a_call_that_would_wait_for_a_device_is_refused_and_has_not_happened() -> None:
    log = MemoryLog()
    async with memory_host(log, settings=Settings(takes_up="nothing")) as host:
        s = await host.spawn(Session, "s1")
        with pytest.raises(NothingTakenUp, match="takes_up"):
            await s.turn("hello")
        with pytest.raises(NothingTakenUp):
            await s.turn("hello", request="r1")
        assert (await s.history, host.effects()) == ([], [])
        await s.configure(system="Be brief.")
    async with memory_host(log) as host:
        assert await (await host.get("s1")).turn("hello", request="r1") == "hello"
