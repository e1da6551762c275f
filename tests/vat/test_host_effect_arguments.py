"""Effects whose arguments cannot be read: they break, or are carried out later, and keep nobody waiting for ever."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import ReadFailed
from dataspace.log.store import BodyErased
from tests.vat.hosts import Worker, World, settled
from vat.host import errands


@pytest.mark.parametrize(
    ("begun", "told"), [(False, "BodyErased"), (True, "OutcomeUnknown")], ids=["wanted", "may have happened"]
)
async def test_an_effect_whose_arguments_are_gone_breaks(
    world: World, begun: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tool.open = False

    def gone(*_: Any) -> Any:
        raise BodyErased(7)

    def wanted_only(*_: Any) -> None:
        """As if the host had ended here."""

    async with world.host(dies=True) as host:
        if not begun:
            monkeypatch.setattr("vat.devices.runner.EffectRunner.want", wanted_only)
        s = await host.spawn(Worker, "s1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(s.work, "once", 1)
            await settled(host)
            nursery.cancel_scope.cancel()
        monkeypatch.undo()
    monkeypatch.setattr("vat.host.errands._wanted", gone)
    async with world.host() as host:
        await settled(host)
        assert await (await host.get("s1")).results == [told]


async def test_an_effect_whose_arguments_cannot_be_read_now_is_carried_out_later(
    world: World, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Invariant 22: a read that failed for now is no loss."""
    read = errands._wanted
    failing = [ReadFailed("log", "I/O error")] * 3

    def fails(*given: Any) -> Any:
        if failing:
            raise failing.pop()
        return read(*given)

    monkeypatch.setattr(errands, "_wanted", fails)
    async with world.host() as host:
        assert await (await host.spawn(Worker, "s1")).work("once", 1) == "once 1"
    assert not failing
