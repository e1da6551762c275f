"""Archives of hosts: what goes there, who notices, and how it is read and comes back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.archives import Archived
from keeve import ERASED, Actor, Session, Settings, Text, actor, open_host, signing_key
from keeve.testing.hosts import FakeClock
from tests.keeve.canaries import found
from tests.vat.hosts import settled
from vat.host.archiving import NothingToArchive
from vat.host.host import Host

LONG = " and so on" * 60
OLD, NEW, SAID = "CANARYOLD", "CANARYNEW", "CANARYSAID"


@actor("test.archives.note", version=1)
class Note(Actor):
    """Keeps the newest text alone."""

    text: Text = Text("")
    count: int = 0

    def write(self, text: Text) -> int:
        self.text = text
        self.count += 1
        self.assert_fact("test.wrote", self.session_id, text)
        return self.count

    async def wait(self) -> str:
        mine = self.text
        await self.sleep(1e9)
        return mine


def host_of(folder: Path, **options: Any) -> Any:
    settings = Settings(reclaim=None, snapshot_records=6, first_snapshot=4, closing_records=1)
    return open_host(folder / "store", actors=[Note], settings=settings, segment_bytes=10_000, **options)


async def written(host: Host, id: str = "n", times: int = 12) -> Any:
    """A note that was written over many times."""
    note = await host.spawn(Note, id)
    for n in range(times):
        await note.write(Text(f"{OLD} {n}{LONG}"))
    await note.write(Text(f"{NEW}{LONG}"))
    return note


async def talked(host: Host, id: str, turns: int = 8) -> list[Any]:
    """A conversation, and what was said in it."""
    s = await host.spawn(Session, id)
    for n in range(turns):
        await s.turn(f"{SAID} {id} {n}{LONG}")
    return list(await s.messages)


def take_away(folder: Path) -> None:
    (folder / "archive").rename(folder / "elsewhere")


def without_catalog(folder: Path) -> None:
    for path in (folder / "store").glob("catalog.sqlite*"):
        path.unlink()


def in_log(folder: Path, said: str) -> bool:
    return bool(found(folder / "store" / "log", said))


async def heard(host: Host, pattern: str) -> list[Any]:
    return [event.value async for event in host.observe(pattern, after="start", until="head")]


async def test_what_no_session_needs_goes_and_nobody_notices(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        note = await written(host)
        said = await talked(host, "s")
        wrote = await heard(host, "(test.wrote . _)")
        done = await host.archive(tmp_path / "archive")
        assert done.pieces == 12
        assert done.whole == ()
        assert not in_log(tmp_path, OLD)
        assert in_log(tmp_path, NEW)
        assert in_log(tmp_path, SAID)
        assert await heard(host, "(test.wrote . _)") == wrote
        assert await note.write(Text("and on")) == 14
    async with host_of(tmp_path) as host:
        assert list(await (await host.get("s")).messages) == said
        assert await heard(host, "(test.wrote . _)") == [*wrote, (await heard(host, "(test.wrote . _)"))[-1]]
        (archived,) = await heard(host, "(archived . _)")
        assert archived.keywords["pieces"] == done.pieces
        report = await host.verify()
        assert report.sound, report.troubles
        assert (report.counts.archived, report.counts.away) == (done.pieces, 0)


async def test_sessions_go_on_without_the_archive_and_who_reads_what_went_is_told(tmp_path: Path) -> None:
    """Invariants 21 and 22: No restore, no catalog and no verification needs an archive; what does names it."""
    async with host_of(tmp_path) as host:
        await written(host)
        said = await talked(host, "s")
        await host.archive(tmp_path / "archive")
    take_away(tmp_path)
    without_catalog(tmp_path)
    async with host_of(tmp_path) as host:
        assert {row.id for row in host.sessions()} == {"n", "s"}
        note = await host.get("n")
        assert await note.text == f"{NEW}{LONG}"
        assert await note.write(Text("and on")) == 14
        s = await host.get("s")
        assert list(await s.messages) == said
        await s.turn("going on")
        with pytest.raises(Archived, match=str(tmp_path / "archive")):
            await heard(host, "(test.wrote . _)")
        assert len(await heard(host, '(turn ?n "s" . _)')) == 9
        report = await host.verify()
        assert report.sound, report.troubles
        assert report.counts.away == report.counts.archived > 0
        with pytest.raises(Archived):
            await host.bring_back()
        await host.bring_back(tmp_path / "elsewhere")
        shutil.rmtree(tmp_path / "elsewhere")
        assert len(await heard(host, "(test.wrote . _)")) == 14
        with pytest.raises(NothingToArchive):
            await host.bring_back()


async def test_idle_sessions_keep_nothing_when_that_is_asked_for(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        said = await talked(host, "s")
        await talked(host, "busy", 24)
        await host.archive(tmp_path / "archive", keep=1)
        assert in_log(tmp_path, f"{SAID} s 3")
        done = await host.archive(tmp_path / "archive", keep=1, idle=True)
        assert done.idle == 1
        assert not in_log(tmp_path, f"{SAID} s 3")
        assert in_log(tmp_path, f"{SAID} busy 20")
        assert list(await (await host.get("s")).messages) == said
    take_away(tmp_path)
    async with host_of(tmp_path) as host:
        s = await host.get("s")
        with pytest.raises(Archived):
            await s.messages
        await (await host.get("busy")).turn("still here")
        (tmp_path / "elsewhere").rename(tmp_path / "archive")
        assert list(await s.messages) == said
        await s.turn("hello again")


async def test_a_fork_keeps_what_it_shares_and_its_parent_has_given_up(tmp_path: Path) -> None:
    """Invariant 26."""
    async with host_of(tmp_path) as host:
        note = await host.spawn(Note, "n")
        await note.write(Text(f"{SAID}{LONG}"))
        await note.fork(into="twin")
        for n in range(12):
            await note.write(Text(f"{OLD} {n}{LONG}"))
        await host.archive(tmp_path / "archive")
        assert in_log(tmp_path, SAID)
        assert not in_log(tmp_path, f"{OLD} 3")
    take_away(tmp_path)
    async with host_of(tmp_path) as host:
        assert await (await host.get("twin")).text == f"{SAID}{LONG}"


async def test_a_session_with_a_fiber_that_waits_keeps_all_and_is_named(tmp_path: Path) -> None:
    """Invariant 16: A fiber comes back without an archive."""
    async with host_of(tmp_path, clock=FakeClock()) as host:
        note = await written(host, times=3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note.wait)
            await settled(host)
            await written(host, "other")
            for n in range(12):
                await note.write(Text(f"{SAID} {n}{LONG}"))
            done = await host.archive(tmp_path / "archive")
            assert done.whole == ("n",)
            assert in_log(tmp_path, f"{SAID} 3")
            nursery.cancel_scope.cancel()


async def test_what_is_deleted_or_erased_goes_from_the_archive_as_well(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        await talked(host, "s")
        await talked(host, "t")
        await host.archive(tmp_path / "archive", idle=True)
        assert found(tmp_path / "archive", f"{SAID} s 2")
        assert await host.erase("s", turn=3) > 0
        assert not found(tmp_path, f"{SAID} s 2")
        await host.delete("t")
        gone = await host.reclaim()
        assert gone.bodies > 0
        assert not found(tmp_path, f"{SAID} t")
        assert (await (await host.get("s")).history)[2] is ERASED


async def test_what_came_back_goes_from_the_archive_with_erasures_and_deletions(tmp_path: Path) -> None:
    """Invariant 26: A copy that nothing in the store leads to any more is a copy."""
    async with host_of(tmp_path) as host:
        await talked(host, "s")
        await talked(host, "t")
        await host.archive(tmp_path / "archive", idle=True)
        await host.bring_back()
        assert found(tmp_path / "archive", f"{SAID} s 2")
        assert await host.erase("s", turn=3) > 0
        assert not found(tmp_path, f"{SAID} s 2")
        await host.delete("t")
        await host.reclaim()
        assert not found(tmp_path, f"{SAID} t")
        assert found(tmp_path / "archive", f"{SAID} s 3")


async def test_an_archive_that_is_away_is_weeded_when_it_is_back(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        await talked(host, "s")
        await host.archive(tmp_path / "archive", idle=True)
    take_away(tmp_path)
    async with host_of(tmp_path) as host:
        with pytest.raises(Archived):
            await host.erase("s", turn=3)
        await host.delete("s")
        await host.reclaim()
        assert not in_log(tmp_path, SAID)
        assert found(tmp_path / "elsewhere", SAID)
        (tmp_path / "elsewhere").rename(tmp_path / "archive")
        assert (await host.reclaim()).archived > 0
        assert not found(tmp_path, SAID)


async def test_an_encrypted_store_is_archived_as_it_lies(tmp_path: Path) -> None:
    async with host_of(tmp_path, key=b"k" * 32) as host:
        await written(host)
        wrote = await heard(host, "(test.wrote . _)")
        done = await host.archive(tmp_path / "archive")
        assert done.pieces > 10
        assert not found(tmp_path, OLD)
        assert await heard(host, "(test.wrote . _)") == wrote
        report = await host.verify()
        assert report.sound, report.troubles
        await host.bring_back()
        shutil.rmtree(tmp_path / "archive")
        assert await heard(host, "(test.wrote . _)") == wrote


async def test_checkpoints_and_receipts_hold_whatever_is_archived(tmp_path: Path) -> None:
    async with host_of(tmp_path, signer=signing_key(tmp_path / "key", make=True)) as host:
        await written(host)
        kept = host.checkpoint()
        await host.archive(tmp_path / "archive")
    take_away(tmp_path)
    async with host_of(tmp_path, expect=kept) as host:
        report = await host.verify(expect=kept)
        assert report.sound, report.troubles
        assert report.completeness.verdict == "proved"


async def test_who_reads_beside_the_owner_reads_from_the_archive(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        await written(host)
        async with host_of(tmp_path, readonly=True) as reader:
            wrote = await heard(reader, "(test.wrote . _)")
            await host.archive(tmp_path / "archive")
            assert await heard(reader, "(test.wrote . _)") == wrote


async def test_nothing_old_is_nothing_to_archive(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        with pytest.raises(NothingToArchive):
            await host.archive(tmp_path / "archive", keep=3)
        assert not (tmp_path / "archive").exists()
