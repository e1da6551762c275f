"""A call that a person approves of is never made when the time of what waits for it is over: not by who comes late, not
by a host that opens late, not in a fork. Each call is written to a file, with the time at which it was made."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
import trio

from actors.approvals import NothingWaits
from dataspace.log.memory import MemoryStore
from dataspace.records import Kind, Record
from keeve import Actor, Session, Toolbox, Tools, actor, gather, tool, within
from keeve.errors import KeeveError
from keeve.faces import utc_time
from keeve.looking.doing import say_word
from keeve.testing import FakeClock, MemoryLog, memory_host
from tests.actors.scenes import Says, calls, says
from tests.vat.hosts import settled
from vat.devices.devices import Policy
from vat.host.settings import Settings

SECONDS = 10
CALL = calls("c1", "pay")


@actor("late.single", version=1)
class Single(Actor):
    tools: Toolbox

    async def turn(self, text: str) -> Any:
        return await within(SECONDS, self.tools.call(CALL))


@actor("late.all", version=1)
class Several(Actor):
    tools: Toolbox

    async def turn(self, text: str) -> Any:
        return str(await within(SECONDS, self.tools.run_all([CALL])))


@actor("late.cancels", version=1)
class Gathers(Actor):
    """The limit is that of another method."""

    tools: Toolbox

    async def turn(self, text: str) -> Any:
        return await within(SECONDS, gather(self.tools.call(CALL), self.sleep(1)))


KINDS = [Session, Single, Several, Gathers]


@attrs.define
class Till:
    """Where the money goes: a file, which is durable before anybody is told."""

    path: Path
    clock: FakeClock = attrs.field(factory=FakeClock)
    log: MemoryLog = attrs.field(factory=MemoryLog)
    on_crash: Literal["unknown", "retry"] = "unknown"
    began: int = 0

    def __attrs_post_init__(self) -> None:
        self.began = self.clock()

    @property
    def tools(self) -> Tools:
        @tool(approval=True)
        async def pay() -> str:
            """Pay."""
            with self.path.open("a") as till:
                till.write(f"{(self.clock() - self.began) / 1_000_000}\n")
                till.flush()
                os.fsync(till.fileno())
            return "paid"

        return Tools(pay, policies={"pay": Policy(on_crash=self.on_crash)})

    def paid(self) -> list[float]:
        """When, in seconds after the limit began to run."""
        return [float(line) for line in self.path.read_text().split()] if self.path.exists() else []

    @asynccontextmanager
    async def host(self, **options: Any) -> AsyncIterator[Any]:
        devices = {"model": Says(says("well", CALL), *[says("done")] * 5), "tools": self.tools}
        options = {"devices": devices, **options}
        async with memory_host(self.log, actors=KINDS, clock=self.clock, **options) as host:
            yield host

    async def waits(self, kind: type, host: Any, nursery: trio.Nursery) -> Any:
        """A session whose call waits for a person."""
        limits = {"max_seconds": SECONDS} if kind is Session else {}
        s = await host.spawn(kind, "s1", tools=self.tools, **limits)

        async def take() -> None:
            with suppress(KeeveError):
                await s.turn("pay")

        nursery.start_soon(take)
        async for _ in host.observe("(approval-wanted . _)"):
            break
        return s

    async def left_waiting(self, kind: type) -> None:
        async with self.host() as host, trio.open_nursery() as nursery:
            await self.waits(kind, host, nursery)
            nursery.cancel_scope.cancel()

    async def carried_out(self) -> None:
        """A host opens that has all that is needed."""
        async with self.host() as host:
            await settled(host)


@pytest.fixture(params=["unknown", "retry"])
def till(request: pytest.FixtureRequest, tmp_path: Path) -> Till:
    return Till(tmp_path / "till", on_crash=request.param)


def stated(host: Any, label: str, session: str = "s1") -> list[Mapping[str, Any]]:
    return [event.value.keywords for event in host.query(f"({label} . _)", session=session)]


CARRIES: dict[str, dict[str, Any]] = {"carries": {}, "no more than a word": {"settings": Settings(takes_up="nothing")}}


@pytest.mark.parametrize("how", CARRIES.values(), ids=CARRIES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_yes_that_comes_late_finds_nothing_that_waits(till: Till, kind: type, how: dict[str, Any]) -> None:
    await till.left_waiting(kind)
    till.clock.move(SECONDS + 1)
    async with till.host(**how) as host:
        over = utc_time(till.began + SECONDS * 1_000_000)
        with pytest.raises(NothingWaits, match=rf"withdrawn, and not made, on .*, since its time was over on {over}"):
            await say_word(host, "s1", "c1", None)
        assert stated(host, "approval-given") == []
        [withdrawn] = stated(host, "approval-withdrawn")
        assert withdrawn["due"] == till.began / 1_000_000 + SECONDS
    await till.carried_out()
    assert till.paid() == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_yes_in_time_is_too_late_when_the_host_is(till: Till, kind: type) -> None:
    await till.left_waiting(kind)
    till.clock.move(SECONDS - 1)
    async with till.host(settings=Settings(takes_up="nothing")) as host:
        await say_word(host, "s1", "c1", None)
    till.clock.move(2)
    await till.carried_out()
    assert till.paid() == []
    async with till.host() as host:  # it is known that it was not made, where it would be on record
        known = till.on_crash == "unknown"
        assert len(stated(host, "approval-withdrawn")) == known
        assert len(stated(host, "tool-unknown")) == (not known)
        if known:
            with pytest.raises(NothingWaits, match=r"withdrawn, and not made, on .*, since its time was over on"):
                await say_word(host, "s1", "c1", None)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_yes_in_time_is_carried_out_by_a_host_that_is(till: Till, kind: type) -> None:
    await till.left_waiting(kind)
    till.clock.move(SECONDS - 2)
    async with till.host(settings=Settings(takes_up="nothing")) as host:
        await say_word(host, "s1", "c1", None)
    till.clock.move(1)
    await till.carried_out()
    assert till.paid() == [SECONDS - 1]


@pytest.mark.parametrize("after", [-0.001, 0, 0.001])
@pytest.mark.parametrize("kind", KINDS)
async def test_at_the_moment_itself_the_limit_is_first(till: Till, kind: type, after: float) -> None:
    async with till.host() as host, trio.open_nursery() as nursery:
        s = await till.waits(kind, host, nursery)
        approvals = await (s.approvals if kind is Session else s.tools)
        till.clock.move(SECONDS + after)
        with suppress(NothingWaits):
            await approvals.approve("c1")
        await settled(host)
        nursery.cancel_scope.cancel()
    assert till.paid() == ([SECONDS + after] if after < 0 else [])


WRITES: dict[str, Callable[[Record], bool]] = {
    "the yes": lambda record: "approval-given" in str(record.statements),
    "the start": lambda record: record.kind == Kind.STARTED,
}


@pytest.mark.parametrize("slow", WRITES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_limit_that_comes_while_something_is_written_is_first(
    till: Till, kind: type, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a yes and the call lie writes, which may take as long as they like."""
    appended = MemoryStore.append
    written: list[str] = []

    def append(store: MemoryStore, records: Sequence[Record]) -> None:
        if any(WRITES[slow](record) for record in records) and not written:
            till.clock.time += (SECONDS + 1) * 1_000_000  # no timer is told: a real clock tells nobody either
            written.append(slow)
        appended(store, records)

    monkeypatch.setattr(MemoryStore, "append", append)
    async with till.host() as host, trio.open_nursery() as nursery:
        s = await till.waits(kind, host, nursery)
        await (await (s.approvals if kind is Session else s.tools)).approve("c1")
        await settled(host)
        nursery.cancel_scope.cancel()
    await till.carried_out()
    starts = till.on_crash == "unknown"
    assert written == ([slow] if slow == "the yes" or starts else [])
    assert till.paid() == ([] if written else [0])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_fork_has_the_limit_as_well(till: Till, kind: type) -> None:
    await till.left_waiting(kind)
    till.clock.move(SECONDS - 1)
    async with till.host() as host:
        s = await host.get("s1")
        await settled(host)
        await s.fork(into="in time")
        await s.fork(into="late")
        await say_word(host, "in time", "c1", None)
        await settled(host)
    till.clock.move(2)
    async with till.host(settings=Settings(takes_up="nothing")) as host:
        for session in ("s1", "late"):
            with pytest.raises(NothingWaits):
                await say_word(host, session, "c1", None)
        s = await host.get("s1")
    await till.carried_out()
    assert till.paid() == [SECONDS - 1]


async def test_a_fork_of_what_is_over_waits_for_nobody(till: Till) -> None:
    """Its first record is not durable yet when the word comes."""
    await till.left_waiting(Single)
    till.clock.move(SECONDS + 1)
    async with till.host(settings=Settings(takes_up="nothing")) as host:
        await (await host.get("s1")).fork(into="twin")
        with pytest.raises(NothingWaits):
            await say_word(host, "twin", "c1", None)
    await till.carried_out()
    assert till.paid() == []
