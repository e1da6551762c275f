"""`keeve salvage`: what is sound goes into a new store, what is not is named, and the old one is not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from keeve import open_host
from tests.cli_runner import keeve


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    for id, lines in (("s1", "hello\nto be damaged\nand on\n"), ("s2", "of s2\n")):
        assert keeve("chat", id, "--store", path, input=lines).code == 0
    return path


def damage(store: Path, content: bytes = b"to be damaged") -> None:
    segment = store / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[data.index(content)] ^= 1
    segment.write_bytes(data)


def test_a_sound_store_is_salvaged_whole(store: Path, tmp_path: Path) -> None:
    said = keeve("salvage", store, tmp_path / "new", "--json")
    assert (said.code, said.json["whole"], said.json["lost"], said.json["sessions"]) == (0, True, [], 2)
    assert keeve("verify", "--store", tmp_path / "new").code == 0
    old, new = (keeve("log", "(_ . _)", "--store", path, "--json").lines for path in (store, tmp_path / "new"))
    assert [event["hash"] for event in new[: len(old)]] == [event["hash"] for event in old]


def test_what_is_lost_is_named(store: Path, tmp_path: Path) -> None:
    damage(store)
    said = keeve("salvage", store, tmp_path / "new")
    assert said.code == 1
    assert "session s1: kept up to seq 3; lost: seq 4" in said.out
    assert keeve("show", "s2", "--store", tmp_path / "new", "--json").json["turns"][0]["input"] == "of s2"
    assert len(keeve("show", "s1", "--store", tmp_path / "new", "--json").json["turns"]) == 1


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
