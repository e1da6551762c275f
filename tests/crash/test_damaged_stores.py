"""Damaged stores as the commands see them: `keeve verify` finds each damage and calls it by its name, and `keeve dump`
shows where it is.
"""

from __future__ import annotations

import shutil
from json import loads
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from dataspace.log.frames import Type, record_head
from dataspace.log.verdicts import LogCorrupt
from dataspace.records import STORE_UID
from tests.cli_runner import keeve
from tests.crash.crash_suites import FULL
from tests.crash.damages import DAMAGES, KEY, fill, frames, segments, state_of
from tests.crash.harms import flip_body, opened
from tests.vat.hosts import store_of

pytestmark = pytest.mark.crash
SEEDS = range(6 if FULL else 2)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "store"
    trio.run(fill, folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, reference: Path) -> Path:
    shutil.copytree(reference, tmp_path / "store")
    return tmp_path / "store"


def verified(folder: Path, *words: str | Path) -> Any:
    said = keeve("verify", "--store", folder, "--json", *words)
    assert said.code in (0, 1, 2), said.err
    found = said.json
    assert (said.code == 0) is found["sound"]
    return found


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_verify_finds_each_damage_and_changes_nothing(folder: Path, name: str, seed: int) -> None:
    """Invariants 4 and 22."""
    DAMAGES[name](folder, Random(seed))
    before = list(state_of(folder))
    found = verified(folder)
    assert list(state_of(folder)) == before
    if name.endswith("CHECKPOINT") and found["sound"]:
        # The last batch, which has no records: nothing that was acknowledged is lost with it.
        assert [trouble["harmless"] for trouble in found["troubles"]] == [True]
        return
    assert not found["sound"]
    missing = found["completeness"]["verdict"] == "missing"
    assert found["integrity"]["verdict"] == "damaged" or missing
    assert found["integrity"]["verdict"] != "altered"


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_dump_shows_every_byte_and_where_the_damage_is(folder: Path, name: str, seed: int) -> None:
    """Invariants 4 and 42."""
    whole = {path.name: path.read_bytes() for path in segments(folder)}
    DAMAGES[name](folder, Random(seed))
    before = list(state_of(folder))
    wrong = False
    for path in segments(folder):
        said = keeve("dump", path, "--json")
        assert said.code in (0, 1, 2), said.err
        pieces = said.lines
        assert [piece["offset"] for piece in pieces] == [
            sum(piece["size"] for piece in pieces[:nth]) for nth in range(len(pieces))
        ]
        assert sum(piece["size"] for piece in pieces) == path.stat().st_size
        assert (said.code == 1) is any("wrong" in piece for piece in pieces)
        wrong = wrong or said.code == 1
        old, new = whole.get(path.name, b""), path.read_bytes()
        differing = [at for at in range(min(len(old), len(new))) if old[at] != new[at]]
        if differing and said.code == 1 and len(old) == len(new) and "segment" not in name:
            bad = [piece for piece in pieces if "wrong" in piece or piece["type"] == "zeros"]
            for at in (differing[0], differing[-1]):
                assert any(piece["offset"] <= at < piece["offset"] + piece["size"] for piece in bad)
    assert wrong or "segment" in name or "cut" in name
    assert keeve("dump", folder).code in (0, 1)
    assert list(state_of(folder)) == before


@pytest.mark.parametrize("kind", [Type.RECORD, Type.CELL])
def test_the_sessions_that_are_touched_are_named_from_their_first_seq_on(folder: Path, kind: Type) -> None:
    """Invariant 23."""
    path, frame = [
        each
        for each in frames(folder)
        if each.frame.type == kind and int.from_bytes(each.frame.head[:8], "little") < 40
    ][-1]
    record = [each for each in frames(folder) if each.frame.type == Type.RECORD and each.frame.offset <= frame.offset]
    header, _ = record_head([each for each in record if each.path == path][-1].frame.head)
    assert header.uid != STORE_UID
    flip_body(path, frame)
    found = verified(folder)
    assert found["integrity"]["verdict"] == "damaged"
    (first, *_) = found["integrity"]["sessions"]
    assert first["seq"] == header.seq
    assert first["session"] in {"a", "b", "c", "twin", "again"}


def test_of_a_sound_store_nothing_is_known_to_be_complete(folder: Path) -> None:
    found = verified(folder)
    assert (found["integrity"]["verdict"], found["completeness"]["verdict"]) == ("sound", "not known")
    assert "the store's own checkpoints" in found["completeness"]["what"]


async def _more(folder: Path) -> tuple[str, str]:
    """A checkpoint and a receipt of after the store has gone on."""
    async with opened(folder, signer=KEY) as host:
        session = await host.get("b")
        await session.add("more")
        return host.checkpoint(), str(host.receipt("b", 3))


@pytest.mark.parametrize("kept", [0, 1])
def test_an_older_copy_is_missing_what_was_seen(tmp_path: Path, folder: Path, kept: int) -> None:
    older = tmp_path / "older"
    shutil.copytree(folder, older)
    seen = tmp_path / "seen"
    seen.write_text(trio.run(_more, folder)[kept])
    size = loads(keeve("checkpoint", "--store", folder, "--json").out)["size"]
    now, before = verified(folder, "--expect", seen), verified(older, "--expect", seen)
    assert (now["sound"], now["completeness"]["verdict"]) == (True, "proved")
    complete = before["completeness"]
    assert (before["sound"], complete["verdict"], before["integrity"]["verdict"]) == (False, "missing", "sound")
    assert complete["position"] > complete["end"]
    assert now["completeness"]["position"] in (complete["position"], size)
    assert complete["testimonies"][0]["kind"] == ("checkpoint", "receipt")[kept]
    text = keeve("verify", "--store", older, "--expect", seen).out
    assert f"completeness: missing (position {complete['position']} was seen" in text


def test_an_older_copy_that_went_on_contradicts_what_was_seen(tmp_path: Path, folder: Path) -> None:
    older, seen = tmp_path / "older", tmp_path / "seen"
    shutil.copytree(folder, older)
    seen.write_text(trio.run(_more, folder)[0])

    async def otherwise() -> None:
        async with opened(older, signer=KEY) as host:
            for number in range(9):
                await (await host.get("c")).add(f"otherwise {number}")

    trio.run(otherwise)
    found = verified(older, "--expect", seen)
    assert (found["completeness"]["verdict"], found["integrity"]["verdict"]) == ("contradicted", "altered")


def test_what_comes_after_the_newest_testimony_is_said_to_be_unknown(tmp_path: Path, folder: Path) -> None:
    seen = tmp_path / "seen"
    seen.write_text(trio.run(_more, folder)[0])
    trio.run(_more, folder)
    complete = verified(folder, "--expect", seen)["completeness"]
    assert complete["verdict"] == "proved"
    assert complete["position"] < complete["end"]
    assert "after it, nothing from outside says how many" in complete["what"]


def test_what_was_seen_of_a_damaged_log_is_held_against_what_comes_before_the_damage(
    tmp_path: Path, folder: Path
) -> None:
    seen = tmp_path / "seen"
    seen.write_text(trio.run(_more, folder)[0])
    DAMAGES["a segment that is gone"](folder, Random(5))
    complete = verified(folder, "--expect", seen)["completeness"]
    assert complete["verdict"] in ("not known", "missing")
    assert complete["testimonies"][0]["outcome"] in ("not held", "missing")


def test_a_file_that_proves_nothing_makes_nothing_sound(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "seen").write_text("nonsense")
    found = verified(folder, "--expect", tmp_path / "seen")
    assert (found["sound"], found["completeness"]["verdict"]) == (False, "not known")
    assert found["troubles"][0]["nature"] == "unread"


async def test_a_log_that_is_damaged_before_what_was_published_is_read_up_to_there(folder: Path) -> None:
    """Invariant 22: also when nothing but the log is there to go by."""
    (folder / "catalog.sqlite").unlink()
    path, frame = [each for each in frames(folder) if each.frame.type == Type.RECORD][-9]
    with path.open("r+b") as file:
        file.seek(frame.offset)
        file.write(b"nothing!")
    async with opened(folder, readonly=True) as host:
        assert isinstance(store_of(host).fault, LogCorrupt)
        assert {row.id for row in host.sessions()} >= {"a", "b", "c"}
        report = await host.verify()
        assert report.integrity.verdict == "damaged"
    assert verified(folder)["integrity"]["verdict"] == "damaged"
