"""What happens while records go to an archive: nobody who is born or wakes meanwhile loses what it needs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log import sealed
from dataspace.log.archives import Archived
from keeve import Text
from tests.keeve.test_archived_records import world
from tests.keeve.test_archives import LONG, OLD, take_away, talked, without_catalog, written
from vat.host import basing
from vat.host.residents import Job


@pytest.fixture(autouse=True)
def _worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases are written for the little that these sessions do."""
    monkeypatch.setattr(basing, "WORTH", 1)


async def test_a_fork_that_is_born_while_bases_are_written_keeps_what_it_goes_back_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 26."""
    async with world(tmp_path) as host:
        note = await written(host)
        real = basing.Basing._written

        async def beside(self: Any, *arguments: Any) -> Any:
            await note.fork(into="born")
            return await real(self, *arguments)

        monkeypatch.setattr(basing.Basing, "_written", beside)
        assert (await host.archive(tmp_path / "archive", records=True)).bases == 1
    take_away(tmp_path)
    async with world(tmp_path) as host:
        assert host.look("born", lambda seen: seen.seq, at=4) == 4
        assert await (await host.get("born")).count == 13


async def test_a_fork_behind_a_base_that_is_born_before_a_segment_is_exchanged_keeps_what_it_goes_back_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 26: However late that is."""
    async with world(tmp_path) as host:
        note = await written(host)
        real, born = sealed.hollow, list[str]()

        def beside(*arguments: Any) -> None:
            if not born:
                born.append("born")
                trio.from_thread.run(partial(note.fork, at=4, into="born"))
            real(*arguments)

        monkeypatch.setattr(sealed, "hollow", beside)
        assert (await host.archive(tmp_path / "archive", records=True)).records > 0
        monkeypatch.undo()
        report = await host.verify()
        assert report.sound, report.troubles
    take_away(tmp_path)
    async with world(tmp_path) as host:
        assert await (await host.get("born")).text == f"{OLD} 2{LONG}"
        with pytest.raises(Archived):
            host.look("n", lambda seen: seen.seq, at=8)


async def test_who_is_no_longer_idle_when_it_writes_its_base_keeps_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as host:
        await talked(host, "s")
        s = await host.get("s")
        real = basing.Basing._written

        async def beside(self: Any, *arguments: Any) -> Any:
            await s.turn("awake again")
            return await real(self, *arguments)

        monkeypatch.setattr(basing.Basing, "_written", beside)
        done = await host.archive(tmp_path / "archive", idle=True, records=True)
        assert (done.bases, done.idle, done.records > 0) == (1, 0, True)
    take_away(tmp_path)
    async with world(tmp_path) as host:
        assert len(list(await (await host.get("s")).history)) == 9


async def test_a_session_that_is_busy_when_its_base_is_made_leaves_its_older_pages_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vat is loaded again for what comes right behind: one that stayed would refer to pages before the base in its
    next snapshots; whatever is said of the base when it is read again."""
    async with world(tmp_path) as host:
        note = await written(host)
        turns, real, vats = host._engine.turns, basing.Basing._record, list[Any]()

        def then(vat: Any) -> tuple[()]:
            vats.append(vat)
            return ()

        def behind(self: Any, uid: bytes, draft: Any, last: bool, vat: Any) -> Any:
            vats.append(vat)
            turns.post(uid, Job(None, None, then))
            return real(self, uid, draft, last, vat)

        def made(*asked: Any) -> None:
            raise OSError("it cannot be read")

        monkeypatch.setattr(basing.Basing, "_record", behind)
        monkeypatch.setattr(basing.Basing, "_made", made)
        assert (await host.archive(tmp_path / "archive", records=True)).bases == 0
        assert await note.count == 13
    assert len(vats) == 2
    assert vats[1] is not vats[0]


async def test_what_a_session_does_while_its_base_is_made_is_replayed_beside_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as host:
        note = await written(host)
        given, go_on, waited = basing.Basing._given, basing.go_on, list[str]()

        async def busy() -> None:
            for n in range(9):
                await note.write(Text(f"{n}"))

        def beside(self: Any, *arguments: Any) -> Any:
            found = given(self, *arguments)
            trio.from_thread.run(busy)
            return found

        def seen(lineage: Any, found: Any, upto: int) -> Any:
            waited.append(current_thread().name)
            return go_on(lineage, found, upto)

        monkeypatch.setattr(basing.Basing, "_given", beside)
        monkeypatch.setattr(basing, "go_on", seen)
        assert (await host.archive(tmp_path / "archive", records=True)).bases == 1
        assert waited
        assert main_thread().name not in waited
        report = await host.verify()
        assert report.sound, report.troubles


@pytest.mark.parametrize("times", [1, basing.TRIES])
async def test_a_heap_is_written_beside_the_host_which_waits_only_for_a_session_that_never_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """A base is one consistent heap, however often its session goes on while it is written."""
    async with world(tmp_path) as host:
        note = await written(host)
        whole, where = basing.whole, list[bool]()

        def beside(heap: Any, seq: int, salts: Any) -> Any:
            found = whole(heap, seq, salts)
            where.append(current_thread() is main_thread())
            if not where[-1] and len(where) <= times:
                trio.from_thread.run(note.write, Text(f"{len(where)}"))
            return found

        monkeypatch.setattr(basing, "whole", beside)
        assert (await host.archive(tmp_path / "archive", records=True)).bases == 1
        assert where == ([False, False] if times == 1 else [False] * basing.TRIES + [True])
        report = await host.verify()
        assert report.sound, report.troubles
        assert await note.count == 13 + times
    take_away(tmp_path)
    without_catalog(tmp_path)
    async with world(tmp_path) as host:
        assert await (await host.get("n")).text == f"{times}"
