"""`keeve salvage`: what is sound goes into a new store, what is not is named, and the old one is not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataspace.log import erasures
from dataspace.log.frames import Type, part_head, record_head
from dataspace.records import Kind
from keeve import open_host
from tests.cli_runner import keeve
from tests.crash.damages import Lying, frames
from tests.crash.harms import flip_body


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    for id, lines in (("s1", "hello\nto be damaged\nand on\n"), ("s2", "of s2\n")):
        assert keeve("chat", id, "--store", path, input=lines).code == 0
    return path


def damage(store: Path, content: bytes = b"to be damaged") -> None:
    """Spoil a cell of s1."""
    segment = store / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[data.index(content)] ^= 1
    segment.write_bytes(data)


def record(store: Path, kind: Kind, nth: int = 0) -> Lying:
    """Where the record of a kind lies, of several the nth."""
    found = [each for each in frames(store) if each.frame.type == Type.RECORD]
    return [each for each in found if record_head(each.frame.head)[0].kind == kind][nth]


def test_a_sound_store_is_salvaged_whole(store: Path, tmp_path: Path) -> None:
    said = keeve("salvage", store, tmp_path / "new", "--json")
    assert (said.code, said.json["whole"], said.json["lost"], said.json["sessions"]) == (0, True, [], 2)
    assert keeve("verify", "--store", tmp_path / "new").code == 0
    old, new = (keeve("log", "(_ . _)", "--store", path, "--json").lines for path in (store, tmp_path / "new"))
    assert [event["hash"] for event in new[: len(old)]] == [event["hash"] for event in old]


def test_what_is_lost_is_named(store: Path, tmp_path: Path) -> None:
    flip_body(*record(store, Kind.CRANK, 2))
    said = keeve("salvage", store, tmp_path / "new")
    assert said.code == 1
    assert "session s1: kept up to seq 3; lost: seq 4" in said.out
    assert keeve("show", "s2", "--store", tmp_path / "new", "--json").json["turns"][0]["input"] == "of s2"
    assert len(keeve("show", "s1", "--store", tmp_path / "new", "--json").json["turns"]) == 1


def test_what_was_said_after_the_disk_had_lost_a_word_is_kept(store: Path, tmp_path: Path) -> None:
    damage(store)
    assert keeve("turn", "s1", "acknowledged since", "--store", store).code == 0
    said = keeve("salvage", store, tmp_path / "new")
    assert said.code == 1
    assert "session s1, seq 4 (position 5): cell 0 is not what was written: it reads as erased" in said.out
    assert "lost: seq" not in said.out
    shown = keeve("messages", "s1", "--store", tmp_path / "new")
    assert "acknowledged since" in shown.out
    assert keeve("verify", "--store", tmp_path / "new").code == 0
    assert keeve("turn", "s1", "and on", "--store", tmp_path / "new").code == 0


async def test_a_store_that_somebody_owns_is_left_alone(store: Path, tmp_path: Path) -> None:
    async with open_host(store):
        said = keeve("salvage", store, tmp_path / "new")
    assert (said.code, "is owned by" in said.err) == (2, True)
    assert not (tmp_path / "new").exists()


def test_what_is_there_is_not_written_over(store: Path, tmp_path: Path) -> None:
    assert keeve("salvage", store, store).code == 2
    assert keeve("salvage", tmp_path / "nothing", tmp_path / "new").code == 2
    (tmp_path / "new.salvaging").mkdir()
    said = keeve("salvage", store, tmp_path / "new")
    assert (said.code, "remove it" in said.err) == (2, True)


def test_what_the_damaged_session_says_next_is_in_the_new_store_alone(store: Path, tmp_path: Path) -> None:
    damage(store)
    before = (store / "log" / "00000001.seg").read_bytes()
    keeve("salvage", store, tmp_path / "new")
    assert keeve("chat", "s1", "--store", tmp_path / "new", input="something else\n").code == 0
    assert keeve("verify", "--store", tmp_path / "new").code == 0
    assert (store / "log" / "00000001.seg").read_bytes() == before


def test_sessions_are_counted_by_what_became_of_them(store: Path, tmp_path: Path) -> None:
    for id in ("s3", "s4"):
        assert keeve("chat", id, "--store", store, input="for a while\n").code == 0
    assert keeve("delete", "s3", "--store", store).code == 0
    flip_body(*record(store, Kind.SPAWN, 3))
    said = keeve("salvage", store, tmp_path / "new")
    assert " of 2 sessions, and of 1 that was deleted before; 1 session lost" in said.out
    told = keeve("salvage", store, tmp_path / "again", "--json").json
    assert [told[each] for each in ("sessions", "living", "deleted", "gone")] == [3, 2, 1, 1]


def test_what_reads_as_erased_and_no_record_says_so_is_named(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 4: What a record that is lost has erased is told, each piece of it."""
    assert keeve("erase", "s1", "--turn", "1", "--store", store).code == 0
    first = keeve("salvage", store, tmp_path / "first", "--json").json
    assert (first["whole"], first["taken"], first["taken_in_all"]) == (True, [], 0)
    flip_body(*record(store, Kind.ERASE))
    told = keeve("salvage", store, tmp_path / "second", "--json").json
    erased = [part_head(each.frame.head) for each in frames(store) if each.frame.type == Type.ERASED]
    assert [(each["position"], each["number"]) for each in told["taken"]] == erased
    assert {each["session"] for each in told["taken"]} == {"s1"}
    assert (told["whole"], told["taken_in_all"]) == (False, len(erased))
    assert told["unerased"] == 0  # a later record says that all of it had gone
    monkeypatch.setattr(erasures, "MOST", 1)
    said = keeve("salvage", store, tmp_path / "third")
    assert said.code == 1
    assert "session s1, seq 2 (position " in said.out
    assert f"cell {erased[0][1]} reads as erased, and no record says that it is" in said.out
    assert f"{len(erased) - 1} more of that kind" in said.out
    again = keeve("salvage", tmp_path / "second", tmp_path / "fourth", "--json").json
    assert (again["whole"], again["taken"]) == (True, [])  # the salvage before has said that they are not there
