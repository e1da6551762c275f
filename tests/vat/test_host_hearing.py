"""Who hears what running effects tell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vat.hosts import Worker, World, store_of
from vat.host import hearing
from vat.host.pieces import Piece


async def test_progress_reaches_who_listens_and_nobody_else(world: World) -> None:
    async with world.host() as host:
        heard: list[Any] = []
        stop = host.on_progress(heard.append)
        s = await host.spawn(Worker, "s1")
        head = store_of(host).head.position
        await s.work("again", 1)
        stop()
        await s.work("again", 2)
        [told] = heard
        assert (told.session, told.device, told.method, told.value) == ("s1", "tool", "again", "at 1")
        assert head < told.after <= head + 2  # what it tells comes after the record that wanted it
        assert store_of(host).head.position == head + 4


@pytest.mark.parametrize("named", ["by its id", "by a ref"])
async def test_who_hears_one_session_costs_nothing_where_others_tell(
    world: World, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(session: str, *rest: Any) -> Piece:
        made.append(session)
        return Piece(session, *rest)

    monkeypatch.setattr(hearing, "Piece", counted)
    async with world.host() as host:
        s, other = await host.spawn(Worker, "s1"), await host.spawn(Worker, "s2")
        heard: list[Any] = []
        stops = [host.on_progress(heard.append, "s1" if named == "by its id" else s) for _ in range(3)]
        with host.watch(s):
            await other.work("again", 1)
            assert made == []
            await s.work("again", 2)
        assert made == ["s1"]  # one for all who hear it
        for stop in stops:
            stop()
            stop()
        await s.work("again", 3)
        assert [piece.value for piece in heard] == ["at 2"] * 3
        assert len(host._engine.errands.hearing) == 0
