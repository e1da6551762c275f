"""Who begins to follow an answer in the middle of it; and what is held in memory for them, and how long."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from keeve.server import heard
from tests.keeve.server.test_openai_streams import TEXT, deltas, kinds
from tests.keeve.server.test_own_agents import Agent
from tests.openai_clients import Streams, client_of
from tests.server_worlds import world


async def from_the_middle_on(*rest: str) -> list[Any]:
    """The events that one is told who follows an answer of which `one ` was said; it goes on with the rest."""
    gate = trio.Event()
    async with world(devices={"model": Streams(["one ", gate, *rest])}) as w:
        client = client_of(w)
        made = await client.responses.create(input="a", background=True)
        await w.settled()
        events: list[Any] = []

        async def listen() -> None:
            stream = await client.responses.retrieve(made.id, stream=True)
            events.extend([event async for event in stream])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await w.settled()
            gate.set()
    return events


async def test_who_comes_in_the_middle_misses_nothing() -> None:
    events = await from_the_middle_on("two")
    assert deltas(events) == ["one ", "two"]
    assert [kind for kind in kinds(events) if kind != "output_text.delta"] == TEXT


async def test_who_has_not_heard_the_beginning_of_an_answer_is_told_it_when_it_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heard, "ROOM", 0)
    assert deltas(await from_the_middle_on("two ", "three")) == ["one two three"]


@pytest.mark.parametrize("end", ["answered", "failed", "cancelled", "deleted", "erased"])
async def test_what_a_model_says_is_held_while_it_says_it_and_no_longer(end: str) -> None:
    gate = trio.Event()
    rest = 5 if end == "failed" else "words"  # which is no piece
    async with world(devices={"model": Streams(["precious ", gate, rest])}) as w:
        held, client = w.serving.heard, client_of(w)
        made = await client.responses.create(input="a", background=True)
        await w.settled()
        [session] = w.host.sessions()
        assert held.size > 0
        if end == "cancelled":
            await client.responses.cancel(made.id)
        elif end == "deleted":
            await w.host.delete(session.id, force=True)
        elif end == "erased":
            await w.host.erase(session.id, turn=1, force=True)
            assert held.size == 0
        gate.set()
        await w.settled()
        assert held.size == 0


async def test_of_sessions_that_do_not_state_how_their_turns_end_nothing_is_held() -> None:
    gate = trio.Event()
    devices = {"model": Streams(["precious ", gate, "words"])}
    async with world(devices=devices, actors=[Agent]) as w, trio.open_nursery() as nursery:
        nursery.start_soon((await w.host.spawn(Agent, "elsewhere")).turn, "a")
        await w.settled()
        assert w.serving.heard.size == 0
        gate.set()
