"""A session is deleted while a client waits for something of it over a connection: it is told, whatever that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from wires import world

from keeve import Session
from keeve.client.client import Client
from tests.actors.test_session_on_host import Waits
from tests.server_worlds import MemoryLog, memory_host
from vat.errors import Deleted


async def calls(client: Client) -> Any:
    return await client.get("s1").turn("hello")


async def observes(client: Client) -> Any:
    return [item async for item in client.observe("(nothing)", session="s1")]


async def watches(client: Client) -> Any:
    return [piece async for piece in client.watch("s1")]


async def test_whoever_waits_is_told_and_the_connection_holds_nothing_of_it() -> None:
    told: list[str] = []
    async with (
        memory_host(MemoryLog(), devices={"model": Waits()}) as host,
        world(host=host) as there,
        there.client() as client,
    ):
        await client.spawn(Session, "s1")

        async def waits(waiter: Callable[[Client], Any]) -> None:
            with pytest.raises(Deleted):
                await waiter(client)
            told.append(waiter.__name__)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for waiter in (calls, observes, watches):
                    nursery.start_soon(waits, waiter)
                await trio.testing.wait_all_tasks_blocked()
                assert told == []
                await host.delete("s1", force=True)
    assert sorted(told) == ["calls", "observes", "watches"]
