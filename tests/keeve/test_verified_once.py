"""One damage is one trouble: `keeve verify` says what is wrong, and not what only follows from it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from apsw import Connection

from dataspace.log.frames import Type, record_head
from dataspace.log.gaps import Gaps
from dataspace.log.scan import Misfit, Missing, missing_before
from dataspace.records import STORE_UID, Kind
from keeve.api import CATALOG
from tests.cli_runner import Said, keeve
from tests.crash.damages import KEY, Lying, fill, frames
from tests.crash.harms import lying, opened
from tests.dataspace.test_packed import index
from tests.keeve.test_forged_erasures import forge, lived, says

FLIPS = 12
"""Of each seed."""


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions, forks of forks, snapshots, a deleted one, checkpoints, several segments."""
    path = tmp_path_factory.mktemp("signed") / "data"

    async def make() -> None:
        await fill(path)
        async with opened(path, signer=KEY) as host:
            await (await host.get("c")).claim("held")
            await (await host.get("c")).drop("held")
            await (await host.get("a")).add("the end, so that no flipped bit is in a write that a crash may have cut")

    trio.run(make)
    return path


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which turns, sessions and old pages are gone, as records say."""
    path = tmp_path_factory.mktemp("erased") / "data"
    trio.run(lived, path)
    return path


def flip(folder: Path, where: Lying, at: int, bit: int = 0) -> None:
    """Flip a bit of a segment; it lies unpacked then."""
    data = bytearray(lying(where.path))
    data[at] ^= 1 << bit
    (folder / "log" / where.path.name).write_bytes(data)


def flip_body(folder: Path, where: Lying) -> None:
    flip(folder, where, where.frame.body_offset + where.frame.body_length // 2)


def records(folder: Path, kind: Kind, uid: bytes | None = None) -> Iterator[Lying]:
    for each in frames(folder):
        if each.frame.type == Type.RECORD:
            header = record_head(each.frame.head)[0]
            if header.kind == kind and uid in (None, header.uid):
                yield each


def copied(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "data")
    return tmp_path / "data"


def report(folder: Path) -> Said:
    return keeve("verify", "--store", folder, "--json")


def one(said: Said) -> Any:
    """The one trouble of a report, of what is not as it must be."""
    [trouble] = said.json["troubles"]
    assert said.code == (0 if trouble["harmless"] else 1)
    assert bool(said.json["todo"]) != trouble["harmless"]
    assert trouble["look"] != "catalog"
    assert trouble["nature"] != "altered"
    return trouble


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["signed", "erased"])
def test_one_flipped_bit_is_one_trouble(tmp_path: Path, kind: str, seed: int, request: pytest.FixtureRequest) -> None:
    """Invariant 23: Headers and bodies of every kind of frame, whatever follows from it."""
    print("seed", seed)
    folder, chance = request.getfixturevalue(kind), Random(seed)
    there = [each for each in frames(folder) if each.frame.type == each.frame.was]
    for nth in range(FLIPS):
        harmed = copied(folder, tmp_path / str(nth))
        where = chance.choice(there)
        frame = where.frame
        if frame.body_length and chance.random() < 0.5:
            at = frame.body_offset + chance.randrange(frame.body_length)
        else:
            at = chance.randrange(frame.offset, frame.body_offset)
        flip(harmed, where, at, chance.randrange(8))
        print(f"{Type(frame.type).name} of {where.path.name}, at {at}")
        one(report(harmed))


@pytest.mark.parametrize("kind", ["signed", "erased"])
def test_a_record_of_the_stores_own_without_a_sound_frame_is_one_trouble(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """What is erased and deleted follows from these, and is asked before anything else is looked at."""
    folder = request.getfixturevalue(kind)
    there = [
        each
        for each in frames(folder)
        if each.frame.type == Type.RECORD and record_head(each.frame.head)[0].uid == STORE_UID
    ]
    assert there
    for nth, where in enumerate(there):
        harmed = copied(folder, tmp_path / str(nth))
        flip(harmed, where, where.frame.body_offset - 5)
        one(report(harmed))


def test_one_flipped_bit_in_what_says_how_a_segment_is_packed_is_one_trouble(tmp_path: Path, erased: Path) -> None:
    packed = sorted((erased / "log").iterdir())[1]
    data = packed.read_bytes()
    for at in (index(data), index(data) + 7, 30, 100):
        harmed = copied(erased, tmp_path / str(at))
        (harmed / "log" / packed.name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        trouble = one(report(harmed))
        assert trouble["place"] == "segment 2, offset 0"
        assert "were passed over" in trouble["what"]


def test_segments_of_which_the_index_is_damaged_are_each_told_with_what_was_passed_over(
    tmp_path: Path, erased: Path
) -> None:
    harmed = copied(erased, tmp_path)
    for packed in sorted((harmed / "log").iterdir())[1:3]:
        data = bytearray(packed.read_bytes())
        data[index(data)] ^= 1
        packed.write_bytes(data)
    troubles = report(harmed).json["troubles"]
    assert [each["place"] for each in troubles] == ["segment 2, offset 0", "segment 3, offset 0"]
    assert all("were passed over" in each["what"] for each in troubles)


def test_a_record_of_any_kind_that_cannot_be_read_is_one_trouble(tmp_path: Path, signed: Path, erased: Path) -> None:
    """Among them those that say what sessions are, what of them is gone, and what the log is signed with."""
    met = set()
    for folder in (signed, erased):
        for nth, each in enumerate(frames(folder)):
            if each.frame.type != Type.RECORD:
                continue
            header = record_head(each.frame.head)[0]
            if header.kind in met:
                continue
            met.add(header.kind)
            harmed = copied(folder, tmp_path / f"{folder.parent.name}{nth}")
            flip_body(harmed, each)
            trouble = one(report(harmed))
            assert trouble["seq"] == header.seq, Kind(header.kind).name
            assert "its record's body is not what was written" in trouble["what"]
    assert met >= {Kind.SPAWN, Kind.FORK, Kind.FORKED, Kind.SNAPSHOT, Kind.DELETE, Kind.ERASE, Kind.RECLAIMED, Kind.KEY}


def test_a_session_of_which_nothing_says_what_it_is_called_has_the_name_that_the_catalog_has(
    tmp_path: Path, signed: Path
) -> None:
    harmed = copied(signed, tmp_path)
    flip_body(harmed, next(records(signed, Kind.FORKED)))
    said = report(harmed)
    assert one(said)["session"] == "twin"
    [touched] = said.json["integrity"]["sessions"]
    assert (touched["session"], touched["forks"]) == ("twin", ["again"])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("UPDATE sessions SET pending = 7 WHERE id = 'b'", "pending for session 'b'"),
        ("UPDATE sessions SET pending = 7 WHERE id = 'a'", "pending for session 'a'"),
        ("UPDATE sessions SET type = 'other' WHERE id = 'twin'", "type for session 'twin'"),
        ("DELETE FROM sessions WHERE id = 'c'", "other sessions than the log"),
    ],
)
@pytest.mark.parametrize("kind", [Kind.CRANK, Kind.SPAWN])
def test_a_fault_of_the_catalog_is_found_beside_a_record_that_cannot_be_read(
    tmp_path: Path, signed: Path, change: str, what: str, kind: Kind
) -> None:
    harmed = copied(signed, tmp_path)
    flip_body(harmed, next(records(signed, kind)))
    with Connection(str(harmed / CATALOG)) as db:
        db.execute(change)
    said = report(harmed).json
    assert {each["look"] for each in said["troubles"]} == {"log", "catalog"}
    assert any(what in each["what"] for each in said["troubles"])
    assert any("catalog.sqlite" in each for each in said["todo"])


def test_facts_that_a_catalog_does_not_find_are_found_beside_a_record_that_cannot_be_read(
    tmp_path: Path, signed: Path
) -> None:
    harmed = copied(signed, tmp_path)
    flip_body(harmed, next(records(signed, Kind.CRANK)))
    with Connection(str(harmed / CATALOG)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert "postings" in tables, tables
        db.execute("DELETE FROM postings")
    said = report(harmed).json["troubles"]
    assert any("does not find all facts with the label 'crash.added'" in each["what"] for each in said)


def test_a_record_that_takes_back_what_cannot_be_read_any_more_is_no_fault_of_the_catalog(
    tmp_path: Path, signed: Path
) -> None:
    harmed = copied(signed, tmp_path)
    claim = list(records(signed, Kind.CRANK))[-3]  # dropped by the one after it, which states nothing else
    flip_body(harmed, claim)
    assert one(report(harmed))["session"] == "c"


def test_a_damaged_page_is_told_once_with_the_snapshots_that_share_it_and_touches_nobody(
    tmp_path: Path, signed: Path
) -> None:
    """Invariant 21."""
    harmed = copied(signed, tmp_path)
    pages = [each for each in frames(signed) if each.frame.type == Type.PAGE]
    flip_body(harmed, pages[-1])
    said = report(harmed)
    trouble = one(said)
    assert (trouble["look"], trouble["spared"]) == ("snapshots", True)
    assert trouble["place"] == f"segment {int(pages[-1].path.stem)}, offset {pages[-1].frame.offset}"
    assert "the session is restored without it" in trouble["what"]
    assert (said.json["integrity"]["verdict"], said.json["integrity"]["sessions"]) == ("damaged", [])
    assert not any("fork" in each for each in said.json["todo"])


def test_where_frames_do_not_parse_it_is_said_whose_records_were_passed_over(tmp_path: Path, signed: Path) -> None:
    harmed = copied(signed, tmp_path)
    where = [each for each in records(signed, Kind.CRANK) if each.path.name == "00000002.seg"][3]
    header = record_head(where.frame.head)[0]
    flip(harmed, where, where.frame.offset + 4)
    said = report(harmed)
    trouble = one(said)
    assert f"position {header.position} was passed over" in trouble["what"]
    [touched] = said.json["integrity"]["sessions"]
    assert touched["seq"] == header.seq
    text = keeve("verify", "--store", harmed).out
    assert "→ copy the folder before anything else" in text
    assert "keeve fork" not in text  # nothing is written to such a log


def test_what_is_gone_is_told_with_the_record_that_may_have_allowed_it(tmp_path: Path, erased: Path) -> None:
    """Invariant 25: and as what somebody took out where every such record can be read."""
    harmed = copied(erased, tmp_path)
    assert forge(harmed, says(b"TWO is said"))
    [trouble] = report(harmed).json["troubles"]
    assert trouble["nature"] == "altered"
    flip_body(harmed, next(records(harmed, Kind.ERASE, STORE_UID)))
    assert "whether this one allows that nobody can tell" in one(report(harmed))["what"]


def test_a_gap_accounts_for_no_more_records_than_were_passed_over() -> None:
    gaps = Gaps()
    assert "positions 11 to 12 were" in gaps.passed(1, 104, 10, 400, 12)
    assert not gaps.explain(Misfit(500, "three are missing", missing=Missing(b"a", 1, 3, 1)))
    assert gaps.explain(Misfit(500, "two are missing", missing=Missing(b"a", 4, 5, 4)))
    assert not gaps.explain(Misfit(600, "one is missing", missing=Missing(b"b", 4, 4, 4)))
    assert not gaps.explain(Misfit(600, "a hash that does not fit"))
    assert {uid: each.first for uid, each in gaps.missing.items()} == {b"a": 4}
    assert (gaps.cover(10), gaps.cover(11)) == (False, True)


def test_of_a_chain_that_nobody_has_met_no_more_is_missing_than_was_passed_over() -> None:
    """It may be a fork, and begin anywhere; who knows where says it."""
    missing = missing_before(b"a", 15, 0)
    assert missing is not None
    assert (missing.first, missing.last, missing.many) == (14, 14, 1)
    assert [missing.among(1).since(begins) for begins in (0, 1, 13, 14)] == [14, 14, 14, 14]
    assert [missing.among(3).since(begins) for begins in (0, 1, 13, 14, 20)] == [14, 12, 13, 14, 14]
    met = missing_before(b"a", 15, 11)
    assert met is not None
    assert (met.first, met.last, met.many, met.among(3).since(1)) == (12, 14, 3, 12)
    gaps = Gaps()
    gaps.passed(1, 104, 10, 400, 13)
    assert gaps.explain(Misfit(500, "some are missing", missing=missing))
    assert gaps.missing[b"a"].since(1) == 12
    assert missing_before(b"a", 15, 14) is missing_before(b"a", 1, 0) is None
