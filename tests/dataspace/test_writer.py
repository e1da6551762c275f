"""Group commit: what becomes one batch, what is told and in which order, and what a failure takes with it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import trio
import trio.testing

from dataspace.errors import KeeveError
from dataspace.log.files import DiskFull, SyncFailed
from dataspace.log.marks import Certificate
from dataspace.log.memory import MemoryStore
from dataspace.log.store import RecordTooLarge, StoreFailed
from dataspace.log.writer import Writer
from dataspace.records import Record
from keeve.testing.stores import Chain, texts


class SlowStore(MemoryStore):
    """A store whose appends wait for a permit; counts its batches."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.settled = 0
        self.permits = threading.Semaphore(0)
        self.slow = False
        self.threads: set[int] = set()
        super().__init__()

    def append(self, records: Sequence[Record]) -> None:
        if self.slow:
            self.permits.acquire()
        super().append(records)
        self.batches.append(len(records))
        self.threads.add(threading.get_ident())

    def settle(self, certificate: Certificate | None = None) -> None:
        self.settled += 1


class Desk:
    """A writer, and what it told."""

    def __init__(self, store: SlowStore, **options: float) -> None:
        self.store = store
        self.durable: list[int] = []
        self.told = trio.Event()
        """Set when there is more."""
        self.failed: list[tuple[list[int], KeeveError]] = []
        self.writer = Writer(store, on_durable=self._durable, on_failed=self._failed, **options)  # type: ignore[arg-type] # one option is an int

    def _durable(self, records: Sequence[Record]) -> None:
        self.durable += [record.position for record in records]
        told, self.told = self.told, trio.Event()
        told.set()

    def _failed(self, records: Sequence[Record], error: KeeveError) -> None:
        self.failed.append(([record.seq for record in records], error))


@pytest.fixture
def store() -> SlowStore:
    made = SlowStore()
    made.batches.clear()
    return made


@pytest.fixture
def desk(store: SlowStore) -> Desk:
    return Desk(store)


async def test_what_gathers_while_a_batch_is_in_flight_becomes_the_next_one(
    desk: Desk, store: SlowStore, nursery: trio.Nursery
) -> None:
    store.slow = True
    nursery.start_soon(desk.writer.run)
    chain = Chain()
    desk.writer.enqueue(chain.record())
    await trio.testing.wait_all_tasks_blocked()
    for record in chain.records(5):
        desk.writer.enqueue(record)
    store.permits.release(2)
    await desk.writer.drain()
    assert store.batches == [1, 5]
    assert desk.durable == [2, 3, 4, 5, 6, 7]


async def test_nothing_is_told_before_it_is_durable(desk: Desk, store: SlowStore, nursery: trio.Nursery) -> None:
    store.slow = True
    nursery.start_soon(desk.writer.run)
    desk.writer.enqueue(Chain().record())
    await trio.testing.wait_all_tasks_blocked()
    assert desk.durable == []
    store.permits.release()
    await desk.writer.drain()
    assert desk.durable == [2]


async def test_a_lone_record_is_committed_in_line(desk: Desk, store: SlowStore) -> None:
    desk.writer.enqueue(Chain().record(), wake=False)
    assert desk.writer.commit_now() == 1
    assert desk.durable == [2]
    assert store.threads == {threading.get_ident()}


async def test_nothing_is_committed_in_line_while_a_batch_is_in_flight(
    desk: Desk, store: SlowStore, nursery: trio.Nursery
) -> None:
    store.slow = True
    nursery.start_soon(desk.writer.run)
    chain = Chain()
    desk.writer.enqueue(chain.record())
    await trio.testing.wait_all_tasks_blocked()
    desk.writer.enqueue(chain.record(), wake=False)
    assert desk.writer.commit_now() == 0
    store.permits.release(2)
    with trio.fail_after(60):
        while desk.durable != [2, 3]:
            await desk.told.wait()


async def test_a_record_in_line_wakes_nobody_while_the_log_waits_to_be_settled(
    store: SlowStore, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    desk = Desk(store)
    nursery.start_soon(desk.writer.run)
    chain = Chain()
    for _ in range(2):
        desk.writer.enqueue(chain.record(), wake=False)
        desk.writer.commit_now()
        await trio.testing.wait_all_tasks_blocked()
    desk.writer.enqueue(chain.record(), wake=False)
    desk.writer.commit_now()
    assert trio.lowlevel.current_statistics().tasks_runnable == 0


async def test_what_is_held_waits_until_somebody_says_so(
    desk: Desk, store: SlowStore, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However long it takes: also when the log is to be settled meanwhile, or something else was just written."""
    nursery.start_soon(desk.writer.run)
    chain = Chain()
    desk.writer.enqueue(chain.record())
    await desk.writer.drain()
    desk.writer.enqueue(chain.record(), wake=False)
    desk.writer.settle_soon()
    await trio.sleep(10)
    assert store.batches == [1]
    desk.writer.wake()
    await desk.writer.drain()
    assert store.batches == [1, 1]


async def test_what_is_to_be_written_in_line_while_the_log_is_settled_is_written_after_that(
    store: SlowStore, nursery: trio.Nursery
) -> None:
    desk = Desk(store, idle=0.01)
    settling, written, over = trio.Event(), trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def settle(certificate: Certificate | None = None) -> None:
        token.run_sync_soon(settling.set)
        over.wait()

    def append(records: Sequence[Record]) -> None:
        SlowStore.append(store, records)
        token.run_sync_soon(written.set)

    store.settle = settle  # type: ignore[method-assign]  # one that takes its time
    nursery.start_soon(desk.writer.run)
    chain = Chain()
    desk.writer.enqueue(chain.record())
    await settling.wait()
    store.append = append  # type: ignore[method-assign]  # from here on it says so
    desk.writer.enqueue(chain.record(), wake=False)
    assert desk.writer.commit_now() == 0
    over.set()
    with trio.fail_after(20):
        await written.wait()
    assert store.batches == [1, 1]


async def test_the_log_is_settled_once_after_a_while_without_work(
    store: SlowStore, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    desk = Desk(store, idle=1.0)
    nursery.start_soon(desk.writer.run)
    chain = Chain()
    for _ in range(3):
        desk.writer.enqueue(chain.record(), wake=False)
        desk.writer.commit_now()
        await trio.sleep(0.9)
        assert store.settled == 0
    for _ in range(2):
        await trio.sleep(20)
        await desk.writer.drain()
    assert store.settled == 1
    desk.writer.enqueue(chain.record())
    for _ in range(3):
        await desk.writer.drain()
        await trio.sleep(20)
    assert store.settled == 2


async def test_a_failed_batch_takes_all_that_is_queued_behind_it(
    desk: Desk, store: SlowStore, nursery: trio.Nursery
) -> None:
    """Invariant 5: a failed batch leaves no trace. Invariant 11: work goes on when there is space."""
    store.slow = True
    nursery.start_soon(desk.writer.run)
    chain = Chain()
    first = chain.record()
    desk.writer.enqueue(first)
    await trio.testing.wait_all_tasks_blocked()
    for record in chain.records(2):
        desk.writer.enqueue(record)
    full = DiskFull("/disk", "no space", undone=True)
    store.failing.append(full)
    store.permits.release(9)
    await desk.writer.drain()
    assert desk.failed == [([1, 2, 3], full)]
    assert desk.durable == []
    assert desk.writer.stopped is None
    chain.back(first)
    desk.writer.enqueue(chain.record())
    await desk.writer.drain()
    assert desk.durable == [2]
    assert texts(store) == ["hello"]


async def test_a_failed_sync_stops_the_writer(desk: Desk, store: SlowStore) -> None:
    """Invariant 12: a failed fsync is not retried and nothing after it is acknowledged."""
    chain = Chain()
    for record in chain.records(3):
        desk.writer.enqueue(record)
    store.failing.append(SyncFailed("/disk", "I/O error"))
    await desk.writer.run()
    ((failed, error),) = desk.failed
    assert failed == [1, 2, 3]
    assert isinstance(error, StoreFailed)
    with pytest.raises(StoreFailed):
        desk.writer.enqueue(chain.record())
    assert desk.durable == []
    await desk.writer.drain()


async def test_a_failure_in_line_is_told_in_the_same_way(desk: Desk, store: SlowStore) -> None:
    store.failing.append(DiskFull("/disk", "no space", undone=True))
    for record in Chain().records(2):
        desk.writer.enqueue(record, wake=False)
    assert desk.writer.commit_now() == 2
    assert [failed for failed, _ in desk.failed] == [[1, 2]]


async def test_batches_stay_below_their_limit(store: SlowStore, nursery: trio.Nursery) -> None:
    desk = Desk(store, batch_bytes=1000)
    chain = Chain()
    for size in (400, 400, 400, 5000, 10):
        desk.writer.enqueue(chain.record("x" * size))
    nursery.start_soon(desk.writer.run)
    await desk.writer.drain()
    assert store.batches == [2, 1, 1, 1]
    assert desk.durable == [2, 3, 4, 5, 6]


async def test_a_cancelled_writer_waits_for_the_batch_in_flight(desk: Desk, store: SlowStore) -> None:
    store.slow = True
    desk.writer.enqueue(Chain().record())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.writer.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        store.permits.release()
    assert desk.durable == [2]


async def test_a_writer_that_is_cancelled_before_it_begins_loses_nothing(desk: Desk) -> None:
    desk.writer.enqueue(Chain().record())
    with trio.CancelScope() as scope:
        scope.cancel()
        await desk.writer.run()
    desk.writer.commit_now()
    assert desk.durable == [2]


async def test_draining_an_idle_writer_returns_at_once(
    desk: Desk, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    nursery.start_soon(desk.writer.run)
    with trio.fail_after(60):  # of a clock that jumps there when everybody waits
        await desk.writer.drain()
    assert not desk.writer.busy
    assert desk.durable == []


async def test_a_group_is_never_cut_by_a_batchs_limits(store: SlowStore) -> None:
    desk = Desk(store, batch_bytes=1)
    one, other = Chain(), Chain("other")
    desk.writer.enqueue(one.record(), wake=False)
    desk.writer.enqueue(one.record(), other.record(), wake=False)
    assert desk.writer.commit_now() == 3
    assert store.batches == [1, 2]


async def test_a_group_that_holds_too_large_a_record_fails_alone(
    desk: Desk, store: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain()
    desk.writer.enqueue(chain.record(), wake=False)
    monkeypatch.setattr("dataspace.log.store.MAX_RECORD", 1)
    with pytest.raises(RecordTooLarge):
        desk.writer.enqueue(Chain("other").record(), wake=False)
    monkeypatch.undo()
    assert desk.writer.commit_now() == 1
