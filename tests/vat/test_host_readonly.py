"""Hosts that only read: beside an owner, and of what nobody owns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import ReadFailed
from dataspace.log.store import StoreMoved, StoreReadOnly
from dataspace.records import Kind
from tests.vat.hosts import Caller, Counter, Worker, World, carry_no_messages, catalog_of, settled, store_of
from vat.crank.vat import Vat
from vat.host.following import Outrun
from vat.host.host import Host
from vat.host.outside import HostRef
from vat.host.watching import HeardElsewhere
from vat.objects.actor import Actor, actor
from vat.objects.types import read

Both = tuple[Host, Host]


@actor("readonly.shelf", version=1)
class Shelf(Actor):
    """Has another actor in it, of which it gives a ref."""

    inner: Any = None

    def fill(self) -> None:
        self.inner = self.spawn(Counter, count=7)

    @read
    def lend(self) -> Any:
        return self.inner


@pytest.fixture
async def both(either: World) -> AsyncIterator[Both]:
    """An owner, and one who reads beside it."""
    async with either.host() as owner:
        await owner.spawn(Counter, "s", count=5)
        async with either.host(readonly=True, follow=0.01) as reader:
            yield owner, reader


async def test_a_reader_sees_what_is_there(both: Both) -> None:
    _, reader = both
    s = await reader.get("s")
    assert await s.count == 5
    assert await s.total() == 5
    assert [row.id for row in reader.sessions()] == ["s"]
    assert (await s.describe())["id"] == "s"


async def test_a_reader_follows_the_owner(both: Both) -> None:
    owner, reader = both
    seen = await reader.get("s")
    s = await owner.get("s")
    for number in range(6, 10):
        assert await s.add("x") == number
        assert await seen.count == number
    await owner.spawn(Counter, "t")
    assert await (await reader.get("t")).count == 0


async def test_a_vat_that_a_reader_loads_again_is_closed_before(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, reader = both
    seen, s = await reader.get("s"), await owner.get("s")
    assert await seen.count == 5
    close, closed = Vat.close, []

    def noted(self: Vat) -> None:
        closed.append((self.id, self.seq))
        close(self)

    monkeypatch.setattr(Vat, "close", noted)
    await s.add("x")
    assert await seen.count == 6
    assert closed == [("s", 1)]


async def test_an_observer_of_a_reader_hears_what_the_owner_does(both: Both) -> None:
    owner, reader = both
    s = await owner.get("s")
    for word in ("a", "b"):
        await s.state(word)
    heard: list[str] = []
    async for event in reader.observe("(test.said . _)"):
        heard.append(event.value.fields[1])
        if len(heard) == 2:
            await s.state("c")
        if len(heard) == 3:
            break
    assert heard == ["a", "b", "c"]


async def test_a_reader_refuses_whatever_would_write(both: Both) -> None:
    _, reader = both
    s: HostRef[Any] = await reader.get("s")
    head = store_of(reader).head
    for attempt in (
        s.add,
        s.fork,
        s.snapshot,
        lambda: reader.spawn(Counter, "t"),
        lambda: reader.delete("s"),
        lambda: reader.resolve("x", value=1),
        lambda: s.add(request="r"),
    ):
        with pytest.raises(StoreReadOnly):
            await attempt()
        assert await s.count == 5  # and it is as it was
    assert store_of(reader).head == head
    assert await reader.restore_latest("s") == s


async def test_a_reader_takes_up_no_work(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        w, c = await host.spawn(Worker, "w"), await host.spawn(Caller, "c")
        nursery.start_soon(w.work, "again", 1)
        await settled(host)
        carry_no_messages(host)
        await c.burst(w, "ask", 1)
        post = host._engine.turns.post
        host._engine.turns.post = lambda uid, job: post(uid, job) if uid == w._uid else None
        await w.fork(into="twin")  # it does not come to let go of what is its parent's
        nursery.cancel_scope.cancel()
    calls = list(either.tool.calls)
    async with either.host(readonly=True) as reader:
        await trio.testing.wait_all_tasks_blocked()
        assert await (await reader.get("w")).results == []
        assert await (await reader.get("twin")).results == []
        assert [effect.state for effect in reader.effects()] == ["wanted"]
        assert either.tool.calls == calls


async def test_a_reader_learns_that_a_session_was_deleted(both: Both) -> None:
    owner, reader = both
    s = await reader.get("s")
    assert await s.count == 5
    await owner.delete("s")
    with pytest.raises(Exception, match="never comes back"):
        await s.count
    with pytest.raises(Exception, match="never comes back"):
        await reader.get("s")


async def test_a_call_that_was_answered_before_is_answered_by_a_reader_too(both: Both) -> None:
    owner, reader = both
    assert await (await owner.get("s")).add("x", request="r") == 6
    assert await (await reader.get("s")).add("x", request="r") == 6


async def test_a_reader_whose_store_was_replaced_says_so_and_goes_on_reading_what_it_knows(both: Both) -> None:
    _, reader = both
    s = await reader.get("s")
    assert await s.count == 5
    store = store_of(reader)

    def moved() -> Any:
        raise StoreMoved("store", "another store is there now")

    store.refresh = moved
    with pytest.raises(StoreMoved):
        await s.count
    await trio.sleep(0.05)  # the look by itself ends nothing else
    assert [row.id for row in reader.sessions()] == ["s"]


async def test_a_reader_goes_on_following_when_the_disk_gives_again_what_is_there(
    both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    owner, reader = both
    store = store_of(reader)
    refresh, failed = store.refresh, 0

    def fails() -> Any:
        nonlocal failed
        failed += 1
        if failed <= 3:
            raise ReadFailed("00000001.seg", "Input/output error")
        return refresh()

    heard = trio.Event()

    async def hear() -> None:
        async for event in reader.observe("(spawn _ . _)", after="head"):
            assert event.value.fields[0] == "u"
            heard.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear)
        await trio.testing.wait_all_tasks_blocked()
        store.refresh = fails
        await owner.spawn(Counter, "u")
        await heard.wait()
        nursery.cancel_scope.cancel()
    assert failed > 3
    assert caplog.text.count("is looked for again and again") == 1


def failing(what: Any, times: int) -> Any:
    """The same, that cannot be read so many times."""
    failures = iter(range(times))

    def fails(*arguments: Any) -> Any:
        if next(failures, None) is not None:
            raise ReadFailed("00000001.seg", "Input/output error")
        return what(*arguments)

    return fails


@pytest.mark.parametrize("times", range(4))
async def test_what_a_reader_has_in_memory_is_not_stale_after_reads_that_failed(either: World, times: int) -> None:
    """Whoever asks the catalog has it note what could not be noted, and then it is at the head of the log."""
    async with either.host() as owner, either.host(readonly=True, follow=3600) as reader:
        s = await owner.spawn(Counter, "s", count=5)
        seen = await reader.get("s")
        assert await seen.total() == 5
        catalog = catalog_of(reader)
        catalog._note = failing(catalog._note, times)
        await s.add("x")
        for _ in range(times):
            with suppress(ReadFailed):
                reader.row("s")
        assert (reader.row("s").seq, await seen.total()) == (owner.row("s").seq, 6)


async def test_a_reader_tells_of_all_that_the_owner_has_done_after_reads_that_failed(either: World) -> None:
    async with either.host() as owner, either.host(readonly=True, follow=3600) as reader:
        await owner.spawn(Counter, "s")
        told: list[str] = []
        assert reader.row("s").id == "s"
        reader._engine.dataspace.on_record((Kind.SPAWN,), lambda record: told.append(record.message["id"]))
        for id in ("t", "u", "v"):
            await owner.spawn(Counter, id)
        store, catalog = store_of(reader), catalog_of(reader)
        scan, catalog._note = store.scan, failing(catalog._note, 1)

        def torn(start: Any = None) -> Any:
            stored = list(scan(start))
            yield from stored[: len(stored) - 2]
            raise ReadFailed("00000001.seg", "Input/output error")

        store.scan = torn
        with pytest.raises(ReadFailed):
            reader.row("s")
        store.scan = scan
        assert catalog.head == store.head  # it has noted what was owed, and with it all that there is
        assert reader.row("v").id == "v"
        assert told == ["t", "u", "v"]


async def test_who_waits_for_a_promise_in_a_reader_is_told_when_the_owner_goes_on(either: World) -> None:
    @actor("test.promising", version=1)
    class Promising(Actor):
        promise: Any = None

        def begin(self) -> None:
            self.promise = self.device("tool").again(1)

        @read
        def answer(self) -> Any:
            return self.promise

    either.actors = (Promising, Counter)
    either.tool.open = False
    async with either.host() as owner:
        s = await owner.spawn(Promising, "s")
        await s.begin()
        async with either.host(readonly=True, follow=0.01) as reader:
            seen = await reader.get("s")
            outcomes: list[str] = []

            async def ask() -> None:
                try:
                    outcomes.append(await seen.answer())
                except Outrun:
                    outcomes.append("outrun")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
                either.tool.gate.set()
            assert outcomes == ["outrun"]
            assert await seen.answer() == "again 1"


async def test_what_is_open_is_listed_without_knowing_whether_it_runs(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        nursery.start_soon((await host.spawn(Worker, "s1")).work, "once", 1)
        await settled(host)
        nursery.cancel_scope.cancel()
    async with either.host(readonly=True) as reader:
        (effect,) = reader.effects()
        assert (effect.session, effect.device, effect.method, list(effect.args)) == ("s1", "tool", "once", [1])
        assert effect.state == "started"


async def test_a_reader_is_given_a_ref_that_nobody_was_given_before(either: World) -> None:
    """As the owner would be, who writes it down, since from then on the actor stays."""
    either.actors = (Counter, Shelf)
    async with either.host() as owner:
        await (await owner.spawn(Shelf, "s")).fill()
        async with either.host(readonly=True) as reader:
            head = store_of(reader).head
            s: HostRef[Any] = await reader.get("s")
            for lent in (await s.lend(), await s.inner):
                assert await lent.count == 7
                with pytest.raises(StoreReadOnly):
                    await lent.add()
            assert store_of(reader).head == head


async def test_what_effects_tell_is_not_waited_for_in_silence_where_none_runs(both: Both) -> None:
    owner, reader = both
    for heard in (reader.watch, lambda: reader.watch("s"), lambda: reader.on_progress(print, "s")):
        with pytest.raises(HeardElsewhere, match="watch with the host that owns the store, or a client of its server"):
            heard()
    seen: list[str] = []
    reader.on_session(lambda row, by: seen.append(row.id))  # what is recorded is heard
    await owner.spawn(Counter, "t")
    await (await reader.get("t")).count
    assert seen == ["t"]
    with owner.watch("s"):
        pass
