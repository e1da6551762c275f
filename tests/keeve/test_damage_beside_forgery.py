"""Damage in one place hides nothing that somebody did in another: `keeve verify` names both."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.frames import Type, record_head
from dataspace.records import STORE_UID, Kind
from tests.cli_runner import keeve
from tests.crash.damages import Lying, frames
from tests.keeve.canaries import LONG, converse
from tests.keeve.test_forged_erasures import forge, opened, says
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
            continue
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
