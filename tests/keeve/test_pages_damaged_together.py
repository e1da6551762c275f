"""Several damaged heap pages: of none is it said that nobody needs it unless that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.frames import Type
from dataspace.records import Kind
from tests.crash.damages import Lying, frames
from tests.keeve.canaries import LONG, Keeper
from tests.keeve.test_forged_erasures import opened
from tests.keeve.test_verified_once import copied, flip_body, records, report

UNNEEDED = "no session is restored from it"
UNKNOWN = "whether a snapshot needs it nobody can tell"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with more snapshots than a restore looks at, and another one with a snapshot of several pages."""
    path = tmp_path_factory.mktemp("kept") / "data"

    async def make() -> None:
        async with opened(path) as host:
            for id, snapshots in (("old", 12), ("other", 1)):
                keeper = await host.spawn(Keeper, id)
                for n in range(snapshots):
                    await keeper.keep(f"{n}{LONG}", 8)
                    await keeper.snapshot()

    trio.run(make)
    return path


def pages(folder: Path) -> list[Lying]:
    return [each for each in frames(folder) if each.frame.type == Type.PAGE]


def told(folder: Path, *damaged: Lying) -> list[Any]:
    for each in damaged:
        flip_body(folder, each._replace(path=folder / "log" / each.path.name))
    said = report(folder).json
    assert len(said["troubles"]) == len(damaged)
    assert said["integrity"]["verdict"] == "damaged"
    return list(said["troubles"])


def test_pages_of_one_snapshot_are_each_told_and_none_as_one_that_nobody_needs(tmp_path: Path, kept: Path) -> None:
    newest = pages(kept)[-3:]
    troubles = told(copied(kept, tmp_path), *newest)
    print(*troubles, sep="\n")
    assert {each["place"].split()[-1] for each in troubles} == {str(each.frame.offset) for each in newest}
    assert not [each for each in troubles if UNNEEDED in each["what"]]
    assert len([each for each in troubles if UNKNOWN in each["what"]]) == len(newest) - 1


def test_a_page_that_no_snapshot_needs_is_told_as_that_whatever_is_damaged_of_another_session(
    tmp_path: Path, kept: Path
) -> None:
    first, *_, last = pages(kept)
    troubles = told(copied(kept, tmp_path), first, last)
    print(*troubles, sep="\n")
    assert [UNNEEDED in each["what"] for each in troubles] == [True, False]
    assert [each["spared"] for each in troubles] == [True, True]


@pytest.mark.parametrize("kind", [Kind.SNAPSHOT, Kind.CRANK])
def test_no_page_is_spared_of_a_session_that_is_lost_with_a_record(tmp_path: Path, kept: Path, kind: Kind) -> None:
    """Nor can anybody tell what a snapshot needs whose record cannot be read."""
    *_, last = records(kept, kind)
    troubles = told(copied(kept, tmp_path), last, *pages(kept)[-2:])
    print(*troubles, sep="\n")
    assert not [each for each in troubles if UNNEEDED in each["what"]]
    assert not [each for each in troubles if each["spared"]]
