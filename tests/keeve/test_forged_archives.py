"""What is away from a store, and no record has named before it went: somebody took it out, wherever the archive is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.drafts import Draft
from dataspace.log import notices
from dataspace.log.archives import Archived
from dataspace.log.frames import Type
from dataspace.log.marks import ChainHead
from dataspace.records import STORE_UID, Kind, Record, Salts
from dataspace.values import FrozenDict
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from tests.dataspace.segment_folders import opened as store_at
from tests.keeve.canaries import converse, found
from tests.keeve.test_forged_erasures import forge, opened, report_of, says
from tests.vat.hosts import catalog_of, store_of
from vat.host import archiving, basing, verifying
from vat.host.host import Host
from vat.host.reports import Report

LONG = " and so on" * 90
WENT, STAYS = b"IDLE 0 is said", b"BUSY 0 is said"


async def archived(folder: Path, **options: Any) -> None:
    """A store with an idle session, which is archived, and a busy one, which is not."""
    async with opened(folder / "store", files=CrashFiles(), segment_bytes=12_000) as host:
        await converse(host, "idle", *[f"IDLE {n} is said{LONG}" for n in range(3)])
        await converse(host, "busy", *[f"BUSY {n} is said{LONG}" for n in range(3)])
        assert (await host.archive(folder / "cold", idle=True, keep=1, **options)).pieces
    assert found(folder / "store", STAYS.decode())
    assert not found(folder / "store", WENT.decode())


async def judged(folder: Path, *, away: bool = False) -> Report:
    """What `verify` says, with the archive in its place or not."""
    if away:
        (folder / "cold").rename(folder / "elsewhere")
    try:
        return await report_of(folder / "store")
    finally:
        if away:
            (folder / "elsewhere").rename(folder / "cold")


async def forged(folder: Path, session: str, what: str, *, away: bool) -> bool:
    """Whether it is told that somebody took something out of a session, and of nothing else."""
    report = await judged(folder, away=away)
    told = [each for each in report.troubles if each.look == "log"]
    assert [(each.session, each.nature) for each in told] in ([], [(session, "altered")])
    assert all(what in each.what for each in told)
    assert report.integrity.verdict == ("altered" if told else "sound")
    return bool(told)


def without_a_word(folder: Path, which: Callable[[bytes, int], bool]) -> None:
    """Take the deeds of records to the archive with the store's own tools, and have no record say so."""
    store = store_at(folder / "store")
    store.seal(0)
    for each in store.sealed():
        store.archive(each.segment, folder / "cold", lambda *place: True, leaves=which)
    store.close()


@pytest.mark.parametrize("away", [False, True])
async def test_a_cell_that_no_record_has_named_is_told_and_what_was_named_is_not(tmp_path: Path, away: bool) -> None:
    await archived(tmp_path)
    report = await judged(tmp_path, away=away)
    assert report.troubles == ()
    assert report.counts.archived > 3
    assert forge(tmp_path / "store", says(STAYS), Type.ARCHIVED)
    assert await forged(tmp_path, "busy", "cell 0 (archived, it says)", away=away)


@pytest.mark.parametrize("away", [False, True])
async def test_deeds_of_records_are_named_as_well(tmp_path: Path, away: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basing, "WORTH", 1)
    await archived(tmp_path, records=True)
    assert (await judged(tmp_path, away=away)).troubles == ()
    async with opened(tmp_path / "store") as host:
        await converse(host, "late", *[f"LATE {n} is said{LONG}" for n in range(3)])
        row = catalog_of(host).session("late")
        assert row is not None
    without_a_word(tmp_path, lambda own, seq: (own, seq) == (row.uid, 2))
    report = await judged(tmp_path, away=away)
    (told,) = [each for each in report.troubles if each.look == "log"]
    assert (told.session, told.seq, told.nature) == ("late", 2, "altered")
    assert "its message and operations" in told.what


async def test_what_came_back_is_to_be_there_until_it_is_archived_again(tmp_path: Path) -> None:
    await archived(tmp_path)
    async with opened(tmp_path / "store") as host:
        await host.bring_back()
    assert (await judged(tmp_path)).troubles == ()
    assert forge(tmp_path / "store", says(WENT), Type.ARCHIVED)
    assert await forged(tmp_path, "idle", "cell 0", away=False)
    assert await forged(tmp_path, "idle", "cell 0", away=True)
    async with opened(tmp_path / "store") as host:
        await host.bring_back()
        assert (await host.verify()).troubles == ()
        assert (await host.archive(tmp_path / "cold", idle=True, keep=1)).pieces
    report = await judged(tmp_path, away=True)
    assert (report.troubles, report.counts.away > 3) == ((), True)


async def test_of_what_came_back_in_part_the_rest_may_be_away(tmp_path: Path) -> None:
    await archived(tmp_path)
    first, *_, last = sorted((tmp_path / "cold").glob("*.seg"))
    aside = last.rename(tmp_path / last.name)
    async with opened(tmp_path / "store") as host:
        with pytest.raises(Archived):
            await host.bring_back()
        assert (await host.verify()).counts.away
    aside.rename(last)
    assert (await judged(tmp_path, away=True)).troubles == ()
    segment = tmp_path / "store" / "log" / first.name
    assert forge(tmp_path / "store", says(WENT), Type.ARCHIVED)
    assert WENT not in segment.read_bytes()
    assert await forged(tmp_path, "idle", "cell 0", away=True)


async def test_a_host_that_dies_between_the_record_and_the_rename_has_named_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise SimulatedCrash(1, "write")

    with monkeypatch.context() as patch:
        patch.setattr("dataspace.log.sealed.hollow", dies)
        with pytest.raises(BaseExceptionGroup):
            await archived(tmp_path)
    report = await judged(tmp_path)
    assert (report.troubles, report.counts.archived) == ((), 0)
    async with opened(tmp_path / "store") as host:
        named = [event.value async for event in host.observe("(archiving . _)", after="start", until="head")]
        assert [each.keywords["segment"] for each in named] == [1]
        assert (await host.archive(tmp_path / "cold", idle=True, keep=1)).pieces
    assert (await judged(tmp_path, away=True)).troubles == ()
    assert forge(tmp_path / "store", says(STAYS), Type.ARCHIVED)
    assert await forged(tmp_path, "busy", "cell 0", away=True)


def _once_said(chain: ChainHead, into: str, *rest: Any) -> Record:
    """What archiving has said when it named nothing."""
    time, salts = rest[-2:]
    draft = Draft(STORE_UID, chain[0] + 1, Kind.ARCHIVED, time)
    draft.message = FrozenDict({"into": into})
    draft.stated(draft.operation(), "archiving", (), draft.message)
    return draft.seal(chain[1], salts)


def _once_summed(chain: ChainHead, into: str, segments: int, pieces: int, size: int, time: int, salts: Salts) -> Record:
    draft = Draft(STORE_UID, chain[0] + 1, Kind.ARCHIVED, time)
    draft.message = FrozenDict({"into": into, "segments": segments, "pieces": pieces, "bytes": size})
    draft.stated(draft.operation(), "archived", (), draft.message)
    return draft.seal(chain[1], salts)


async def test_what_was_archived_when_nothing_was_named_is_taken_for_archived_until_it_came_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(archiving, "archiving", _once_said)
        patch.setattr(archiving, "archived", _once_summed)
        await archived(tmp_path)
    for away in (False, True):
        assert (await judged(tmp_path, away=away)).troubles == ()
    shutil.copytree(tmp_path / "store" / "log", tmp_path / "log")
    assert forge(tmp_path / "store", says(STAYS), Type.ARCHIVED)
    assert not await forged(tmp_path, "busy", "cell 0", away=True)
    shutil.copytree(tmp_path / "log", tmp_path / "store" / "log", dirs_exist_ok=True)
    async with opened(tmp_path / "store") as host:
        await host.bring_back()
        assert (await host.archive(tmp_path / "cold", idle=True, keep=1)).pieces
    assert (await judged(tmp_path, away=True)).troubles == ()
    assert forge(tmp_path / "store", says(STAYS), Type.ARCHIVED)
    assert await forged(tmp_path, "busy", "cell 0", away=False)


async def test_what_comes_back_while_a_reader_verifies_was_away_when_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archived(tmp_path)
    async with opened(tmp_path / "store") as owner, opened(tmp_path / "store", readonly=True) as reader:
        report = await _meanwhile(owner, reader, monkeypatch)
    assert report.counts.archived > 3
    assert report.troubles == ()


async def _meanwhile(owner: Host, reader: Host, monkeypatch: pytest.MonkeyPatch) -> Report:
    class Later(verifying.Right):
        """It is known to it that all came back after the log was looked at."""

        def __init__(self, store: Any) -> None:
            trio.from_thread.run(owner.bring_back)
            store.refresh()
            super().__init__(store)

    monkeypatch.setattr(verifying, "Right", Later)
    return await trio.to_thread.run_sync(verifying.verify_at_once, store_of(reader), catalog_of(reader))


def test_the_old_records_are_not_what_is_written_now() -> None:
    """Else the test of them would show nothing."""
    assert notices.archiving is not _once_said
    assert "names" not in _once_said((1, bytes(32)), "/cold", 0, bytes).message
