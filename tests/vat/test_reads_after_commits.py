"""What is done with a record that is durable, while the disk does not give what that reads: no host ends by it, and
nothing is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
import trio.testing

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.tables import Tables
from dataspace.log.files import ReadFailed
from dataspace.log.reading import SegmentReader
from dataspace.records import Kind
from keeve import ERASED, Settings, Text, open_host
from tests.vat.hosts import World, catalog_of, store_of
from vat.host.host import Host
from vat.objects.actor import Actor, actor
from vat.objects.collections import List


@actor("test.reads.says", version=1)
class Says(Actor):
    said: List[Any]

    def say(self, what: Any = None, label: str = "test.reads.said") -> int:
        self.said.append(self.assert_fact(label, len(self.said) if what is None else what))
        return len(self.said)

    def write(self, text: Text) -> None:
        self.said.append(self.assert_fact("test.reads.said", text))

    def take_back(self, n: int) -> None:
        self.retract(self.said[n])


@pytest.fixture
def disk(tmp_path: Path) -> World:
    world = World(tmp_path / "store")
    world.actors = (*world.actors, Says)
    return world


Failing = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """A block in which nothing can be read from the disk."""

    def fails(*_: Any) -> bytes:
        raise ReadFailed("00000001.seg", "Input/output error")

    @contextmanager
    def block() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(SegmentReader, "pread", fails)
            yield

    return block


async def talkative(host: Host, many: int = 80) -> Any:
    """A session whose facts have left memory."""
    s = await host.spawn(Says, "s")
    for _ in range(many):
        await s.say()
    for _ in range(70):
        await s.say(label="test.reads.other")  # so that the newest decoded records are none of the others
    for _ in host.query("(test.reads.other . _)"):
        pass
    catalog_of(host).flush()
    return s


def standing(host: Host) -> list[Any]:
    return [held.fact.fields[0] for held in host.facts("(test.reads.said _)")]


async def test_what_is_taken_back_while_the_disk_fails_is_gone_and_the_host_goes_on(
    disk: World, failing: Failing
) -> None:
    left = [n for n in range(80) if n != 3]
    async with disk.host() as host:
        s, other = await talkative(host), await host.spawn(Says, "other")
        with failing():
            await s.take_back(3)
            assert await other.say(label="test.reads.other") == 1
        assert standing(host) == left
        events = [(event.kind, event.value.fields[0]) for event in host.query("(test.reads.said _)", session="s")]
        assert events[-1] == ("retract", 3)
        assert len(events) == 81
        assert [event.kind for event in host.query("(test.reads.other _)")] == ["assert"] * 71
        assert (await host.verify()).sound
        catalog_of(host).flush()
        assert standing(host) == left
    async with disk.host() as host:
        assert standing(host) == left
        assert len(host.facts("(test.reads.other _)")) == 71
        assert (await host.verify()).sound


async def test_who_waits_for_it_is_told_that_it_cannot_be_read_or_what_it_was(disk: World, failing: Failing) -> None:
    heard: list[Any] = []
    async with disk.host() as host, trio.open_nursery() as nursery:
        s = await talkative(host)

        async def listen() -> None:
            async for event in host.observe("(test.reads.said ?n)", after="head"):
                heard.append((event.kind, event.captures["n"]))

        observer = host.observe("(test.reads.said _)", lambda event: None, after="head")
        await trio.testing.wait_all_tasks_blocked()
        with failing():
            await s.take_back(3)
            with pytest.raises(ReadFailed):
                await observer.wait()
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        forgetful = catalog_of(host).recall
        asserted = host._engine.dataspace.waiting._asserted

        def once(*_: Any) -> Any:
            host._engine.dataspace.waiting._asserted = asserted
            raise ReadFailed("00000001.seg", "Input/output error")

        host._engine.dataspace.waiting._asserted = once
        forgetful.forget()
        await s.take_back(4)
        await trio.testing.wait_all_tasks_blocked()
        assert heard == [("retract", 4)]
        nursery.cancel_scope.cancel()


async def test_a_fact_whose_words_are_in_an_archive_that_is_away_is_taken_back(tmp_path: Path) -> None:
    """Invariant 23: nobody else is concerned, now or at the next start."""
    settings = Settings(reclaim=None, snapshot_records=6, first_snapshot=4, closing_records=1)

    def opened() -> Any:
        return open_host(tmp_path / "store", actors=[Says], settings=settings, segment_bytes=10_000)

    async with opened() as host:
        s = await host.spawn(Says, "s")
        for n in range(40):
            await s.write(Text(f"{n}" + " and so on" * 60))
        await host.archive(tmp_path / "archive")
    (tmp_path / "archive").rename(tmp_path / "away")
    for n in range(2):
        async with opened() as host:
            s = await host.get("s")
            await s.take_back(n)
            await s.say(label="test.reads.other")
            assert len(host.facts("(test.reads.other _)")) == n + 1
            assert [event.kind for event in host.query("(test.reads.other _)")] == ["assert"] * (n + 1)
        (tmp_path / "store" / "catalog.sqlite").unlink()
    (tmp_path / "away").rename(tmp_path / "archive")
    async with opened() as host:
        assert len(host.facts("(test.reads.said _)")) == 38


async def test_what_is_erased_while_the_disk_fails_reads_as_erased(disk: World, failing: Failing) -> None:
    """Invariant 22: what the record says is at hand, and not read again."""
    async with disk.host() as host:
        s = await talkative(host, 2)
        await s.write(Text("a secret" * 40))
        row = catalog_of(host).session("s")
        assert row is not None
        note = Catalog.note

        def noted(catalog: Catalog, records: Any) -> None:
            with failing():
                note(catalog, records)
            told.append(store_of(host).withheld.has(row.position, 0))

        told: list[bool] = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Catalog, "note", noted)
            assert await host.erase("s", seq=row.seq) == 1
        assert told == [True, True]  # the record that says it, and the one that says that it is gone
        assert host.facts("(test.reads.said _)")[-1].fact.fields[0] == ERASED


async def test_a_store_of_which_nobody_can_tell_what_is_erased_is_not_opened(
    disk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with disk.host() as host:
        s = await host.spawn(Says, "s")
        await s.write(Text("a secret" * 40))
        assert await host.erase("s", seq=2) == 1

    def unread(*_: Any) -> None:
        raise ReadFailed("00000001.seg", "Input/output error")

    monkeypatch.setattr("dataspace.catalog.withholding.said_by", unread)
    with pytest.raises(ReadFailed):
        disk.store(readonly=True)


def fails(*_: object) -> None:
    raise apsw.CorruptError("database disk image is malformed")


async def test_a_catalog_that_cannot_be_made_anew_now_ends_no_host(
    disk: World, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 21: what was taken back where neither the catalog nor the log could tell what it was is found later."""
    async with disk.host() as host:
        s, catalog = await talkative(host), catalog_of(host)
        for number in (3, 4):
            with failing(), monkeypatch.context() as patched:
                for name in ("write", "position"):
                    patched.setattr(Tables, name, fails)
                await s.say(100)
                catalog.flush()
                await s.take_back(number)
                catalog.flush()
                with pytest.raises(ReadFailed):
                    standing(host)
            if number == 3:
                assert standing(host) == [*[n for n in range(80) if n != 3], 100]
        written = catalog.written
        with failing():
            catalog.flush()
        assert catalog.written > written
    async with disk.host() as host:
        assert standing(host) == [*[n for n in range(80) if n not in (3, 4)], 100, 100]
        assert (await host.verify()).sound


async def test_a_catalog_that_is_half_made_answers_nothing(
    disk: World, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 22: it is made to its end before it answers, and whoever asks meanwhile is told what keeps it."""
    async with disk.host() as host:
        s, catalog, other = await talkative(host), catalog_of(host), await host.spawn(Says, "other")
        scan, scans = SegmentReader.scan, 0

        def ends(reader: SegmentReader, start: Any = None) -> Iterator[Any]:
            nonlocal scans
            scans += 1
            for n, stored in enumerate(scan(reader, start)):
                if scans > 1 and n == 5:  # not the first, which only looks whether there is all of it
                    raise ReadFailed("00000001.seg", "Input/output error")
                yield stored

        with monkeypatch.context() as patched:
            patched.setattr(SegmentReader, "scan", ends)
            with pytest.raises(ReadFailed):
                catalog.rebuild()
            observer = host.observe("(test.reads.said _)", lambda event: None, after="start")
            with pytest.raises(ReadFailed):
                await observer.wait()
            with pytest.raises(ReadFailed):
                await host.get("other")
            with pytest.raises(ReadFailed):
                host.sessions()
            await s.take_back(3)  # what is in memory goes on
            assert await other.say(100) == 1
            for _ in range(3):
                with pytest.raises(ReadFailed):
                    catalog.doubt()
        assert catalog.doubt()
        assert standing(host) == [*[n for n in range(80) if n != 3], 100]
        assert (await host.verify()).sound


async def test_a_record_that_could_be_noted_in_part_is_noted_again(
    disk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with disk.host() as host:
        s, catalog = await talkative(host), catalog_of(host)
        await (await s.fork(into="twin")).say()
        everywhere = range(1, catalog.head.position + 1)
        places = [catalog.at(position) for position in everywhere]

        def unread(*_: Any) -> None:
            raise ReadFailed("00000001.seg", "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(catalog, "adopt", unread)
            with pytest.raises(ReadFailed):
                catalog.rebuild()
        assert [catalog.at(position) for position in everywhere] == places


async def test_who_waits_while_nothing_can_be_noted_is_told(disk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with disk.host() as host:
        s, catalog = await talkative(host), catalog_of(host)
        observer = host.observe("(test.reads.never _)", lambda event: None, after="head")
        await trio.testing.wait_all_tasks_blocked()

        def unread(*_: Any) -> None:
            raise ReadFailed("00000001.seg", "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(catalog, "take_in", unread)
            assert await s.say(100) == 151
            with pytest.raises(ReadFailed):
                await observer.wait()
            assert await s.say(101) == 152
        assert standing(host)[-2:] == [100, 101]


async def test_a_fork_is_made_while_the_catalog_fails(
    disk: World, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with disk.host() as host:
        s = await talkative(host)
        whole = Tables.session

        def gone(tables: Tables, uid: bytes) -> Any:
            return fails() if uid == s._uid and noting else whole(tables, uid)

        noting, note = False, Catalog.note

        def noted(catalog: Catalog, records: Any) -> None:
            nonlocal noting
            noting = any(record.kind == Kind.FORKED for record in records)
            with failing():
                note(catalog, records)
            if noting:
                reached.append(catalog.reached.position == records[-1].position)
            noting = False

        reached: list[bool] = []

        with monkeypatch.context() as patched:
            patched.setattr(Tables, "session", gone)
            patched.setattr(Catalog, "note", noted)
            twin = await s.fork(into="twin")
        assert reached == [True]
        row = catalog_of(host).session("twin")
        assert row is not None
        assert row.parent == s._uid
        assert len(await twin.said) == 150
