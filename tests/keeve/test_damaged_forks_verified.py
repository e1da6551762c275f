"""What is wrong with a fork, and with what it shares with its parent: each is told once, and nothing for another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from dataspace.catalog.lookups import SnapshotRow
from dataspace.log.frames import Type
from dataspace.records import Kind
from tests.cli_runner import keeve
from tests.crash.damages import Lying, frames
from tests.keeve.canaries import LONG, Keeper
from tests.keeve.test_forged_erasures import opened
from tests.keeve.test_verified_once import copied, flip_body, one, records, report
from vat.heap import checking
from vat.heap.checking import Unfit
from vat.heap.heap import Heap
from vat.host.causes import Causes


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with a snapshot of many pages, and a fork with one that shares most of them."""
    path = tmp_path_factory.mktemp("forked") / "data"

    async def make() -> None:
        async with opened(path) as host:
            parent = await host.spawn(Keeper, "parent")
            for n in range(9):
                await parent.keep(f"{n}{LONG}", 8)
            await parent.snapshot()
            fork = await parent.fork(into="fork")
            await fork.keep("little")
            await fork.snapshot()
            await fork.keep("less")

    trio.run(make)
    return path


def pages(folder: Path) -> list[Lying]:
    return [each for each in frames(folder) if each.frame.type == Type.PAGE]


def spoil(folder: Path, *those: Lying) -> None:
    for each in those:
        flip_body(folder, each._replace(path=folder / "log" / each.path.name))


def test_pages_that_a_fork_shares_with_a_parent_which_nobody_knows_are_no_trouble_of_their_own(
    tmp_path: Path, forked: Path
) -> None:
    harmed = copied(forked, tmp_path)
    spoil(harmed, *records(forked, Kind.FORKED))
    assert one(report(harmed))["session"] == "fork"


def test_a_page_of_a_fork_is_told_with_its_snapshot_beside_its_beginning_that_cannot_be_read(
    tmp_path: Path, forked: Path
) -> None:
    harmed = copied(forked, tmp_path)
    spoil(harmed, *records(forked, Kind.FORKED), pages(forked)[-1])
    first, page = report(harmed).json["troubles"]
    assert (first["session"], page["session"], page["look"]) == ("fork", "fork", "snapshots")
    assert "snapshot at seq" in page["what"]


def test_a_snapshot_that_is_not_the_heap_of_its_records_is_told_once_with_all_its_forks(
    forked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, seen = checking.fingerprint, list[bytes]()

    def other(heap: Heap) -> bytes:
        seen.append(truth(heap) + bytes([len(seen)]))
        return seen[-1]

    monkeypatch.setattr(checking, "fingerprint", other)
    told = keeve("verify", "--store", forked, "--json").json["troubles"]
    assert {each["session"] for each in told} == {"fork", "parent"}
    assert all("it is not the heap that the records give" in each["what"] for each in told)
    assert (
        len({(each["session"], each["what"]) for each in told}) == len(told) == len([*records(forked, Kind.SNAPSHOT)])
    )


@pytest.mark.parametrize(
    ("torn", "there", "told"), [(False, False, True), (True, False, False), (True, True, True), (False, True, True)]
)
@pytest.mark.parametrize("what", ["page", "record"])
def test_what_is_missing_follows_from_a_fork_that_does_not_say_what_it_is_and_from_nothing_else(
    torn: bool, there: bool, told: bool, what: str
) -> None:
    uid, causes = b"u" * 16, Causes()
    catalog = SimpleNamespace(
        locate=lambda uid, seq: 7 if there else None, by_uid=lambda uid: None, lineage=lambda uid: []
    )
    right: Any = SimpleNamespace(catalog=catalog, torn=lambda uid: torn)
    lineage: Any = SimpleNamespace(uid=uid, owner=lambda seq: uid)
    row = SnapshotRow(uid, 5, base=False)
    unfit = Unfit("it is not there", row, (3, 1)) if what == "page" else Unfit("it is not there", row, None, ("u", 3))
    found = causes.unfit(right, lineage, unfit)
    assert bool(causes.pages([] if found is None else [found])) is told
