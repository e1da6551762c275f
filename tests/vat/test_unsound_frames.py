"""Records whose frame has a damaged header: nothing begins where the catalog says that they are. That is damage of the
session, if the log says so, and else the catalog is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from dataspace.catalog.connections import connect, rows
from dataspace.catalog.packing import pack, unpack
from dataspace.catalog.tables import Tables
from dataspace.errors import KeeveError
from dataspace.log.reading import SegmentReader
from dataspace.log.store import StoreDamaged
from dataspace.log.unsound import Look, NoFrame
from dataspace.log.verdicts import LogCorrupt, SessionDamaged
from keeve import open_host
from tests.vat.hosts import Counter, World, catalog_of, flip, store_of
from vat.host.host import Host
from vat.objects.actor import Actor, actor


@pytest.fixture
def disk(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def behead(disk: World, host: Host, id: str, seq: int) -> None:
    """Flip a bit in the header of a record's frame."""
    catalog = catalog_of(host)
    row = catalog.session(id)
    assert row is not None
    address = catalog.locate(row.uid, seq)
    assert address is not None
    header = store_of(host).read(address).header
    flip(disk, host, id, seq, header.previous if seq > 1 else header.uid)


async def filled(host: Host) -> None:
    for id in ("s1", "s2"):
        await host.spawn(Counter, id)
    for number in range(6):
        for id in ("s1", "s2"):
            s = await host.get(id)
            await s.add(f"word {number}")
            await s.state(f"fact {number}")


async def others_go_on(host: Host) -> None:
    s = await host.get("s2")
    assert [word for word in await s.seen if word] == [f"word {number}" for number in range(6)]
    await s.add()
    await host.spawn(Counter)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("seq", [2, 6, 13])
async def test_a_record_whose_frame_is_not_sound_is_damage_of_its_session(
    disk: World, seq: int, restarted: bool
) -> None:
    """Invariant 4 and 23: it is named, to the session and seq, and refuses input; the head's as well."""
    async with disk.host(vats=1, snapshot_records=10_000, first_snapshot=10_000) as host:
        await filled(host)
        if not restarted:
            behead(disk, host, "s1", seq)
            await others_go_on(host)  # and s1 leaves memory
            await told_and_refused(host, seq)
    if restarted:
        async with disk.host(first_snapshot=10_000) as host:
            behead(disk, host, "s1", seq)
        async with disk.host() as host:
            assert store_of(host).fault is None
            await told_and_refused(host, seq)


async def told_and_refused(host: Host, seq: int) -> None:
    s = await host.get("s1")
    for _ in range(2):
        with pytest.raises(SessionDamaged, match=rf"session s1 is damaged at seq {seq} .*no sound frame"):
            await s.add("more")
    assert await s.seen == [f"word {number}" for number in range((seq - 1) // 2)]
    assert store_of(host).damaged[s._uid].seq == seq
    assert len(store_of(host).damaged) == 1
    with pytest.raises(SessionDamaged, match="seq"):
        await s.fork(at=seq)
    assert len(await (await s.fork(at=seq - 1)).seen) == (seq - 1) // 2
    await others_go_on(host)


async def test_a_first_record_without_a_sound_frame_is_damage(disk: World) -> None:
    async with disk.host(vats=1, first_snapshot=10_000) as host:
        await filled(host)
        behead(disk, host, "s1", 1)
        await others_go_on(host)
        with pytest.raises(SessionDamaged, match="session s1 is damaged at seq 1 "):
            await (await host.get("s1")).add()
        await others_go_on(host)


async def with_fork(host: Host) -> None:
    """A fork of s1 from seq 13 on, with four records of its own after the first; and what others have done since."""
    await filled(host)
    child = await (await host.get("s1")).fork(into="child")
    for number in range(4):
        await child.add(f"mine {number}")
        await (await host.get("s2")).state("more")
    await host.spawn(Counter, "s3")  # and the fork leaves memory


@pytest.mark.parametrize("verified", [False, True])
@pytest.mark.parametrize("lost", [0, 1, 3])
async def test_a_fork_has_its_past_whichever_of_its_own_frames_is_not_sound(
    disk: World, lost: int, verified: bool
) -> None:
    """Invariant 26: what is the parent's is sound. `lost`: how many records of the fork are before the damaged one."""
    first = 14 + lost
    async with disk.host(vats=1, snapshot_records=10_000, first_snapshot=10_000) as host:
        await with_fork(host)
        behead(disk, host, "child", first)
        if verified:
            [touched] = (await host.verify()).integrity.sessions
            assert (touched.session, touched.seq) == ("child", first)
        for _ in range(2):
            with pytest.raises(SessionDamaged, match=rf"session child is damaged at seq {first} .*--at {first - 1}"):
                await (await host.get("child")).add("more")
        said = [f"word {number}" for number in range(6)] + [f"mine {number}" for number in range(max(0, lost - 2))]
        child = await host.get("child")
        assert await child.seen == said
        assert await (await child.fork(at=first - 1)).seen == said
        assert await (await host.get("s1")).seen == said[:6]


async def test_no_more_records_of_a_fork_are_lacked_than_lay_where_none_are(disk: World) -> None:
    async with disk.host(vats=1, first_snapshot=10_000) as host:
        await with_fork(host)
        row = catalog_of(host).session("child")
        assert row is not None
        behead(disk, host, "child", 14)
        look = Look(store_of(host)._reader)
        assert [seq for seq in range(1, row.seq + 1) if look.lacks_record(row.uid, seq)] == [14]


async def test_frames_of_a_fork_and_of_its_parent_that_are_not_sound_touch_the_past_of_neither(disk: World) -> None:
    """The two records of a fork lie side by side."""
    async with disk.host(vats=1, snapshot_records=10_000, first_snapshot=10_000) as host:
        await with_fork(host)
        behead(disk, host, "s1", 14)
        behead(disk, host, "child", 14)
        touched = {each.session: each.seq for each in (await host.verify()).integrity.sessions}
        assert touched["child"] == 14
        for id in ("child", "s1"):
            for _ in range(2):
                with pytest.raises(SessionDamaged, match=rf"session {id} is damaged at seq 14 "):
                    await (await host.get(id)).add("more")
            twin = await (await host.get(id)).fork(at=13)
            assert await twin.seen == [f"word {number}" for number in range(6)]


async def test_who_meets_it_while_it_is_in_memory_ends_its_input(disk: World) -> None:
    """Whatever is acknowledged after that would be lost with it."""
    async with disk.host() as host:
        await filled(host)
        s = await host.get("s1")
        behead(disk, host, "s1", 7)
        with pytest.raises(SessionDamaged, match="session s1 is damaged at seq 7 "):
            [event async for event in host.observe('(test.said "s1" . _)', after="start", until="head")]
        with pytest.raises(SessionDamaged, match="session s1 is damaged at seq 7 "):
            await s.add("more")
        await others_go_on(host)


@contextmanager
def reads(patch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """The reads of a block, one for each."""
    pread, found = SegmentReader.pread, list[None]()

    def noted(*args: Any) -> bytes:
        found.append(None)
        return pread(*args)

    with patch.context() as within:
        within.setattr(SegmentReader, "pread", noted)
        yield found


@pytest.mark.parametrize("lost", [("s1",), ("s1", "s2")])
async def test_what_is_known_of_a_frame_costs_no_walk_over_the_log(
    disk: World, monkeypatch: pytest.MonkeyPatch, lost: tuple[str, ...]
) -> None:
    """Invariant 36: each call to a session whose newest record it was, however much was said before and since."""
    async with disk.host(vats=1, snapshot_records=10_000, first_snapshot=10_000) as host:
        other = await host.spawn(Counter, "other")
        costs = []
        for id in lost:
            await host.spawn(Counter, id)
        for id in lost:
            await (await host.get(id)).add()
        for id in lost:
            behead(disk, host, id, 2)
        for many in (1, 1, 400, 1):
            for _ in range(many):
                await other.state("more")
            with reads(monkeypatch) as made:
                for id in lost:
                    with pytest.raises(SessionDamaged, match=f"session {id} is damaged at seq 2 "):
                        await (await host.get(id)).add("more")
            costs.append(len(made))
        assert costs[0] > costs[1] == costs[2] == costs[3]  # the first call walks


async def test_what_comes_after_a_walk_over_the_log_is_all_that_the_next_one_reads(
    disk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with disk.host(vats=1, snapshot_records=10_000, first_snapshot=10_000) as host:
        await filled(host)
        store, catalog, s2 = store_of(host), catalog_of(host), await host.get("s2")
        row = catalog.session("s1")
        assert row is not None
        address = catalog.locate(row.uid, 13)
        behead(disk, host, "s1", 13)
        costs = []
        for many in (0, 1, 400, 1):
            for _ in range(many):
                await s2.state("more")
            with reads(monkeypatch) as made, pytest.raises(NoFrame):  # nobody has said whose it was
                store.read(address)
            costs.append(len(made))
            whole = Look(store._reader)
            assert (whole.gaps, whole.lacks) == (store._looked.gaps, store._looked.lacks)
            assert whole._heads == store._looked._heads
        assert costs[1] == costs[3] < costs[0] < costs[2]


async def test_damaged_frames_side_by_side_are_damage_of_each_session(disk: World) -> None:
    async with disk.host(vats=1, first_snapshot=10_000) as host:
        await filled(host)
        for id in ("s1", "s2"):
            behead(disk, host, id, 6)
        for id in ("other", "s1", "s2"):
            if id == "other":
                await (await host.spawn(Counter, id)).add()
                continue
            with pytest.raises(SessionDamaged, match=f"session {id} is damaged at seq 6 "):
                await (await host.get(id)).add("more")
        assert await (await host.get("other")).add() == 2


@pytest.mark.parametrize("how", ["nowhere", "others", "head"])
@pytest.mark.parametrize("damaged", [(), (6,), (6, 7)])
async def test_a_wrong_catalog_makes_no_session_damaged(disk: World, how: str, damaged: tuple[int, ...]) -> None:
    """Invariant 21: it is made again; where the log cannot be followed it stays, and says so."""
    async with disk.host(first_snapshot=10_000) as host:
        await filled(host)
        catalog = catalog_of(host)
        s1, s2 = catalog.session("s1"), catalog.session("s2")
        assert s1 is not None
        assert s2 is not None
        for seq in damaged:
            behead(disk, host, "s1", seq)
        theirs, ours = catalog.position(s1.uid, 6), catalog.position(s2.uid, 4)
        assert theirs
        assert ours
    assert disk.folder is not None
    db = connect(disk.folder / "catalog.sqlite", 100, apsw.SQLITE_OPEN_READWRITE)
    if how == "head":
        db.execute("UPDATE sessions SET position = ? WHERE id = 's2'", (theirs,))
    for start, packed in () if how == "head" else rows(db, "SELECT start, addresses FROM spans WHERE start = start"):
        numbers = list(unpack(packed))
        at = ours - start
        if 0 <= at < len(numbers):
            numbers[at] = numbers[theirs - start] if how == "others" else numbers[at] + 8
            db.execute("UPDATE spans SET addresses = ? WHERE start = ?", (pack(numbers), start))
    db.close()
    async with disk.host() as host:
        s = await host.get("s2")
        if damaged:
            for _ in range(2):
                with pytest.raises(KeeveError) as caught:
                    await s.fork(at=4)
                assert not isinstance(caught.value, SessionDamaged)
            assert s2.uid not in store_of(host).damaged
            return
        assert await (await s.fork(at=4)).seen == ["word 0", "word 1"]
        await others_go_on(host)
        assert not store_of(host).damaged
        assert (await host.verify()).sound


async def test_who_verifies_the_store_ends_its_input_too(disk: World) -> None:
    async with disk.host() as host:
        await filled(host)
        behead(disk, host, "s1", 7)
        assert not (await host.verify()).sound
        with pytest.raises(SessionDamaged, match="session s1 is damaged at seq 7 "):
            await (await host.get("s1")).add("more")
        await others_go_on(host)


def spoil(disk: World) -> None:
    """Damage all pages of the catalog but those that say whose it is."""
    assert disk.folder is not None
    path = disk.folder / "catalog.sqlite"
    db = connect(path, 100, apsw.SQLITE_OPEN_READWRITE)
    kept = {1, *[page for (page,) in rows(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'about'")]}
    db.close()
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096 + 1):
            if page not in kept:
                file.seek((page - 1) * 4096 + 100)
                file.write(b"\xff" * 64)


@actor("unsound.says", version=1)
class Says(Actor):
    said: Any = None

    def say(self) -> None:
        self.said = self.assert_fact("unsound.said", 1)

    def take_back(self) -> None:
        self.retract(self.said)


async def test_a_catalog_that_fails_and_cannot_be_made_anew_ends_no_host(disk: World, monkeypatch: Any) -> None:
    """Invariant 21: work goes on; who needs what nobody can read any more is told what is wrong."""

    def fails(*_: object) -> None:
        raise apsw.CorruptError("database disk image is malformed")

    disk.actors = (*disk.actors, Says)
    async with disk.host(first_snapshot=10_000) as host:
        await filled(host)
        a = await host.spawn(Says, "a")
        await a.say()
        catalog, s = catalog_of(host), await host.get("s2")
        catalog.flush()
        behead(disk, host, "s1", 4)
        for name in ("write", "position", "address", "named"):
            monkeypatch.setattr(Tables, name, fails)
        await a.take_back()
        for number in range(3):
            assert await s.add() == 7 + number
            catalog.flush()
        with pytest.raises(LogCorrupt, match="no frame begins here"):
            await host.get("s1")
        assert await s.count == 9
        monkeypatch.undo()
        assert await (await host.get("s2")).add() == 10


async def test_a_host_whose_catalog_is_gone_beside_a_damaged_log_opens_to_read(disk: World) -> None:
    async with disk.host(first_snapshot=10_000) as host:
        await filled(host)
        behead(disk, host, "s1", 10)
    spoil(disk)
    assert disk.folder is not None
    async with open_host(disk.folder, actors=[Counter]) as host:
        assert isinstance(store_of(host).fault, LogCorrupt)
        s = await host.get("s2")
        assert await s.seen == ["word 0", "word 1", "word 2", "word 3"]
        with pytest.raises(StoreDamaged, match="corrupt"):
            await s.add("more")
