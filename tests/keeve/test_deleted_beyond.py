"""Of a log that can be read in part, a session stays deleted whose tombstone cannot be read, if anything tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.files import ReadFailed
from dataspace.log.frames import Type, record_head
from dataspace.log.segments import SegmentStore
from dataspace.log.survey import Piece, Survey
from dataspace.log.verdicts import LogCorrupt
from dataspace.records import Kind
from keeve import Session, Settings, open_host
from keeve.errors import Deleted
from tests.cli_runner import keeve
from tests.crash.damages import frames, segments
from vat.host.host import Host

KEY = bytes(range(32))
SECRET = "the secret"


async def spoken(store: Path, key: bytes | None) -> None:
    async with open_host(store, key=key, segment_bytes=1 << 13, settings=Settings(reclaim=None)) as host:
        s, d = await host.spawn(Session, "s1"), await host.spawn(Session, "d")
        await d.turn(SECRET)
        await (await d.fork(into="f")).turn("of the fork")
        for n in range(20):
            await s.turn(f"{n} " * 100)
        await host.delete("d")
        for n in range(20):
            await s.turn(f"{n} " * 100)


def harmed(store: Path, told_by: str) -> None:
    """Have the tombstone be where nobody reads, and nothing but one thing tell of it."""
    at = next(each.path for each in frames(store) if is_tombstone(each.frame.type, each.frame.head))
    if told_by == "a tombstone":
        before = segments(store)[segments(store).index(at) - 1]
        spoilt = next(each.frame for each in frames(store) if each.path == before and each.frame.type == Type.RECORD)
        data = bytearray(before.read_bytes())
        data[spoilt.offset] ^= 1
        before.write_bytes(data)
    else:
        for path in segments(store)[segments(store).index(at) :]:
            path.unlink()
    if told_by != "the catalog":
        (store / "catalog.sqlite").unlink()


def is_tombstone(type: int, head: bytes) -> bool:
    return type == Type.RECORD and record_head(head)[0].kind == Kind.DELETE


async def check(host: Host, told: bool) -> None:
    assert [row.id for row in host.sessions()] == (["f", "s1"] if told else ["d", "f", "s1"])
    assert [row.id for row in host.sessions(deleted=True) if row.deleted] == (["d"] if told else [])
    if told:
        with pytest.raises(Deleted):
            await host.get("d")
    else:
        assert await (await host.get("d")).history == [SECRET]
    uid = host.row("f").parent
    assert uid is not None
    if told:
        with pytest.raises(Deleted):
            host._engine.loader.row(uid)
    assert bool(list(host.query("(turn . _)", session=uid))) is not told
    assert await (await host.get("f")).history == [SECRET, "of the fork"]


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("told_by", ["the catalog", "the key file", "a tombstone", "nobody"])
async def test_a_deleted_session_is_gone_for_every_reader_of_what_is_left(
    tmp_path: Path, told_by: str, readonly: bool
) -> None:
    """Invariant 25."""
    key = KEY if told_by == "the key file" else None
    await spoken(tmp_path / "s", key)
    harmed(tmp_path / "s", told_by)
    told = told_by != "nobody"
    async with open_host(tmp_path / "s", key=key, readonly=readonly) as host:
        await check(host, told)
        assert host._engine.dataspace.catalog.doubt()
        await check(host, told)


@pytest.mark.parametrize("lost", ["another segment", "its segment", "any", "the folder"])
async def test_a_disk_that_does_not_give_what_is_behind_the_damage_brings_nobody_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Invariant 22 and 25: there may be a tombstone in it, so the store is opened when it can be read."""
    await spoken(tmp_path / "s", None)
    tombstone = next(each.path for each in frames(tmp_path / "s") if is_tombstone(each.frame.type, each.frame.head))
    harmed(tmp_path / "s", "a tombstone")
    pieces, number = Survey.pieces, int(tombstone.stem)

    def refuse(*about: object) -> Any:
        if lost == "the folder":
            raise OSError(5, "Input/output error", str(tmp_path))
        raise ReadFailed(str(tombstone), "Input/output error")

    def read(survey: Survey, start: int = 0) -> Iterator[Piece]:
        fails = lost == "any" or (survey.number == number) is (lost == "its segment")
        yield from refuse() if fails else pieces(survey, start)

    with monkeypatch.context() as patched:
        patched.setattr(*((SegmentStore, "still", refuse) if lost == "the folder" else (Survey, "pieces", read)))
        with pytest.raises(ReadFailed, match="Input/output error"):
            async with open_host(tmp_path / "s"):
                pass
    async with open_host(tmp_path / "s") as host:
        await check(host, told=True)


@pytest.mark.parametrize("lost", ["another segment", "any"])
async def test_what_is_damaged_behind_the_damage_keeps_nobody_from_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, lost: str
) -> None:
    """It tells nothing any more; the host's log says behind which position that is so."""
    await spoken(tmp_path / "s", None)
    tombstone = next(each.path for each in frames(tmp_path / "s") if is_tombstone(each.frame.type, each.frame.head))
    harmed(tmp_path / "s", "a tombstone")
    pieces = Survey.pieces

    def damaged(survey: Survey, start: int = 0) -> Iterator[Piece]:
        if lost == "any" or survey.number != int(tombstone.stem):
            raise LogCorrupt(survey.number, start, "it is damaged")
        yield from pieces(survey, start)

    monkeypatch.setattr(Survey, "pieces", damaged)
    async with open_host(tmp_path / "s") as host:
        await check(host, told=lost != "any")
        assert f"who was deleted behind position {host._engine.store.head.position} is there again, if" in caplog.text
    said = keeve("verify", "--store", tmp_path / "s")
    assert "show nobody a session that was deleted behind position" in said.out


def test_no_command_gives_what_was_deleted(tmp_path: Path) -> None:
    trio.run(spoken, tmp_path / "s", None)
    harmed(tmp_path / "s", "the catalog")
    log = ("log", "(turn . _)", "--session", "d")
    for command in (("messages", "d"), ("show", "d"), ("state", "d"), log, ("chat", "d"), ("fork", "d")):
        said = keeve(*command, "--store", tmp_path / "s")
        assert SECRET not in f"{said.out}{said.err}", command
        assert "has been deleted" in said.err, command
    assert [each["id"] for each in keeve("ls", "--json", "--store", tmp_path / "s").json["sessions"]] == ["f", "s1"]
