"""Damage in one place hides nothing that somebody did in another: `keeve verify` names both."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.frames import Frame, Type, record_head
from dataspace.records import STORE_UID, Kind
from keeve.errors import ErasureUnfinished
from tests.cli_runner import keeve
from tests.crash.damages import Lying, frames
from tests.full_disks import TightDisk
from tests.keeve.canaries import LONG, converse
from tests.keeve.test_forged_erasures import forge, is_record, opened, says
from tests.keeve.test_verified_once import copied, flip_body, records


@pytest.fixture(scope="module")
def back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store into which older files of segments were put back. Of `talk` a turn was erased; deleted were `gone`,
    `parent`, whose fork `child` lives, and `twig`, a fork of `talk`."""
    path, old = tmp_path_factory.mktemp("back") / "data", tmp_path_factory.mktemp("old") / "log"

    async def make() -> None:
        async with opened(path) as host:
            for id in ("talk", "gone", "parent"):
                await converse(host, id, f"ONE is said to {id}", f"TWO is said to {id}")
            await (await (await host.get("parent")).fork(into="child")).turn("and on")
            await (await (await host.get("talk")).fork(into="twig")).turn("and on")
            await converse(host, "other", *[f"{n}{LONG}" * 9 for n in range(9)])
        shutil.copytree(path / "log", old)
        async with opened(path) as host:
            for id in ("gone", "parent", "twig"):
                await host.delete(id)
            await host.erase("talk", turn=1)
            await host.reclaim()
            await (await host.get("other")).turn("the end, which no crash may have cut")

    trio.run(make)
    for each in sorted(old.iterdir())[:-1]:
        shutil.copy(each, path / "log" / each.name)
    return path


def told(folder: Path, verdict: str = "altered") -> list[Any]:
    said = keeve("verify", "--store", folder, "--json")
    assert (said.code, said.json["integrity"]["verdict"]) == (1, verdict)
    return list(said.json["troubles"])


def spoil(folder: Path, *those: Lying) -> None:
    """Have none of these records be what was written."""
    for each in those:
        flip_body(folder, each._replace(path=folder / "log" / each.path.name))


def returned(troubles: list[Any]) -> set[tuple[str, int, str]]:
    """What is told to be there again, and of which record."""
    return {(each["session"], each["seq"], each["what"]) for each in troubles if "put back" in each["what"]}


def one_of_each(folder: Path) -> list[Lying]:
    """A record of each kind of each session."""
    found = {}
    for each in frames(folder):
        if each.frame.type == Type.RECORD:
            header = record_head(each.frame.head)[0]
            found.setdefault((header.kind, header.uid), each)
    return list(found.values())


def test_what_came_back_is_told_whatever_record_cannot_be_read(tmp_path: Path, back: Path) -> None:
    """Invariant 25: Whoever flips a bit elsewhere hides nothing by it."""
    there = returned(told(back))
    assert {session for session, _, _ in there} == {"talk", "gone", "parent", "twig"}
    met = set()
    for nth, each in enumerate(one_of_each(back)):
        header = record_head(each.frame.head)[0]
        if header.uid == STORE_UID and header.kind in (Kind.ERASE, Kind.RECLAIMED):
            continue  # these say what is to be gone
        met.add(header.kind)
        harmed = copied(back, tmp_path / str(nth))
        flip_body(harmed, each)
        troubles = told(harmed)
        assert returned(troubles) == there, Kind(header.kind).name
        assert any(
            each["seq"] == header.seq and "its record's body is not what was written" in each["what"]
            for each in troubles
        )
    assert met >= {Kind.SPAWN, Kind.FORK, Kind.FORKED, Kind.SNAPSHOT, Kind.DELETE}


def test_what_came_back_is_told_beside_a_fork_of_which_neither_its_beginning_nor_its_end_can_be_read(
    tmp_path: Path, back: Path
) -> None:
    there, harmed = returned(told(back)), copied(back, tmp_path)
    tombstone = list(records(back, Kind.DELETE))[-1]
    uid = record_head(tombstone.frame.head)[0].uid
    spoil(harmed, *records(back, Kind.FORKED, uid), tombstone)
    found = returned(told(harmed))
    assert [(session, seq) for session, seq, _ in sorted(found - there)] == []
    assert {session for session, _, _ in found} == {"talk", "gone", "parent", "twig"}


@pytest.mark.parametrize("kind", [None, Kind.FORKED, Kind.FORK, Kind.DELETE])
def test_what_a_living_fork_needs_may_not_go_whatever_record_cannot_be_read(
    tmp_path: Path, back: Path, kind: Kind | None
) -> None:
    harmed = copied(back, tmp_path)
    spoil(harmed, *(records(back, kind) if kind is not None else ()))
    assert forge(harmed, says(b"ONE is said to parent"))
    taken = [each for each in told(harmed) if "somebody took it out" in each["what"]]
    assert [each["session"] for each in taken] == ["parent"]


def test_deleted_sessions_that_came_back_are_told_whatever_erasure_cannot_be_read(tmp_path: Path, back: Path) -> None:
    there, harmed = returned(told(back)), copied(back, tmp_path)
    spoil(harmed, *records(back, Kind.ERASE))
    assert returned(told(harmed)) == {each for each in there if each[0] != "talk"}


def test_where_nobody_can_tell_whether_deleted_records_may_be_there_that_is_said(tmp_path: Path, back: Path) -> None:
    """With the record that says how far the log was reclaimed."""
    there, harmed = returned(told(back)), copied(back, tmp_path)
    *_, last = records(back, Kind.RECLAIMED)
    spoil(harmed, last)
    damaged, *troubles = told(harmed)
    assert damaged["seq"] == record_head(last.frame.head)[0].seq
    assert "its record's body is not what was written; 21 records of deleted sessions are there" in damaged["what"]
    assert returned(troubles) == {each for each in there if each[0] == "talk"}


async def test_an_unfinished_erasure_that_cannot_be_read_says_nothing_of_deleted_sessions(tmp_path: Path) -> None:
    disk = TightDisk()
    async with opened(tmp_path, files=disk) as host:
        for id in ("gone", "late", "talk"):
            await converse(host, id, "ONE is said")
        await host.delete("gone")
        await host.reclaim()
        await host.delete("late")
        disk.full = True
        with pytest.raises(ErasureUnfinished):
            await host.erase("talk", turn=1)
        disk.full = False
        await (await host.get("talk")).turn("the end, which no crash may have cut")
    spoil(tmp_path, list(records(tmp_path, Kind.ERASE))[-1])
    assert [each["what"] for each in told(tmp_path, "damaged")] == ["its record's body is not what was written"]


async def later(folder: Path) -> None:
    """A store in which a turn is erased, and more is said after that."""
    async with opened(folder) as host:
        await converse(host, "talk", "ONE is said", "TWO is said")
        await host.erase("talk", turn=1)
        await host.reclaim()
        await converse(host, "since", "THREE is said", "FOUR is said")
        await (await host.get("talk")).turn("the end, which no crash may have cut")


@pytest.mark.parametrize("kinds", [(), (Kind.ERASE,), (Kind.RECLAIMED,), (Kind.ERASE, Kind.RECLAIMED)])
async def test_what_goes_after_an_erasure_that_cannot_be_read_is_not_allowed_by_it(
    tmp_path: Path, kinds: tuple[Kind, ...]
) -> None:
    await later(tmp_path)
    assert forge(tmp_path, says(b"FOUR is said"))
    spoil(tmp_path, *(each for kind in kinds for each in records(tmp_path, kind, STORE_UID)))
    taken = [each for each in told(tmp_path) if "somebody took it out" in each["what"]]
    assert [(each["session"], each["nature"]) for each in taken] == [("since", "altered")]


@pytest.mark.parametrize(
    ("kind", "which"),
    [
        (Kind.RECLAIMED, says(b"TWO is said")),  # says how far, and allows nothing
        (Kind.ERASE, is_record(Kind.CRANK)),  # no erasure takes more than cells
    ],
)
async def test_a_record_that_cannot_be_read_excuses_nothing_that_its_kind_does_not_allow(
    tmp_path: Path, kind: Kind, which: Callable[[Frame, bytes], bool]
) -> None:
    await later(tmp_path)
    assert forge(tmp_path, which)
    spoil(tmp_path, *records(tmp_path, kind, STORE_UID))
    taken = [each for each in told(tmp_path) if "somebody took it out" in each["what"]]
    assert [(each["session"], each["nature"]) for each in taken] == [("talk", "altered")]


async def test_no_erasure_that_cannot_be_read_allows_a_page_of_the_newest_snapshot_to_go(tmp_path: Path) -> None:
    await later(tmp_path)
    *_, newest = [each.frame for each in frames(tmp_path) if each.frame.type == Type.PAGE]
    assert forge(tmp_path, lambda frame, body: frame == newest)
    spoil(tmp_path, *records(tmp_path, Kind.ERASE, STORE_UID))
    assert any("page" in each["what"] and "somebody took it out" in each["what"] for each in told(tmp_path))


async def test_what_may_be_allowed_by_a_record_that_cannot_be_read_is_named_with_it(tmp_path: Path) -> None:
    await later(tmp_path)
    assert forge(tmp_path, says(b"TWO is said"))
    spoil(tmp_path, *records(tmp_path, Kind.ERASE, STORE_UID))
    [trouble] = told(tmp_path, "damaged")
    assert "records something is gone (talk seq 2, talk seq " in trouble["what"]
    assert "whether this one allows that nobody can tell" in trouble["what"]
