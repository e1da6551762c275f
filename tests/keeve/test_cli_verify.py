"""`keeve verify`: what was written is there; what is not is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from apsw import Connection

from actors.session import Session
from keeve import open_host
from keeve.api import CATALOG
from tests.cli_runner import keeve
from vat.heap import checking


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    chat(path, "s1", *(f"line {number} of the first one" for number in range(20)))
    chat(path, "s2", "hello")
    keeve("fork", "s1", "--at", "10", "--into", "s3", "--store", path)
    chat(path, "s3", "elsewhere")
    return path


def chat(store: Path, id: str, *lines: str) -> None:
    assert keeve("chat", id, "--store", store, input="".join(f"{line}\n" for line in lines)).code == 0


def flip(store: Path, content: bytes) -> None:
    """Damage the last place in the log that holds `content`."""
    [segment] = (store / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.rindex(content)] ^= 1
    segment.write_bytes(data)


def looks(found: Any) -> set[str]:
    return {trouble["look"] for trouble in found["troubles"]}


def test_a_store_that_is_sound_is_said_to_be(store: Path) -> None:
    said = keeve("verify", "--store", store)
    assert said.code == 0, said.out
    assert said.out.startswith("sound: ")
    found = keeve("verify", "--store", store, "--json").json
    assert (found["sound"], found["troubles"], found["sessions"]) == (True, [], 3)
    assert found["snapshots"] >= 1
    assert found["counts"]["records"] > 40


def test_it_changes_nothing(store: Path) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    keeve("verify", "--store", store)
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


async def test_a_store_that_is_owned_is_verified_up_to_what_is_durable(store: Path) -> None:
    async with open_host(store) as host:
        session = await host.spawn(Session, "s9")
        for number in range(5):
            await session.turn(f"turn {number}")
        assert keeve("verify", "--store", store).code == 0
        # A write that is on its way: the segment has zeros ahead of it, into which it goes.
        with open(store / "log" / "00000001.seg", "r+b") as segment:  # noqa: ASYNC230  # nothing else runs here
            segment.seek(-64, 2)
            segment.write(b"half a write")
        said = keeve("verify", "--store", store, "--json")
        assert (said.code, said.json["troubles"]) == (0, [])


def test_content_that_is_not_what_was_written_is_found_with_its_session(store: Path) -> None:
    """Invariant 23: and the other sessions are said to be sound."""
    flip(store, b"line 7 of the first one")
    said = keeve("verify", "--store", store, "--json")
    assert said.code == 1
    assert not said.json["sound"]
    assert {trouble["session"] for trouble in said.json["troubles"] if trouble["look"] == "log"} == {"s1"}
    text = keeve("verify", "--store", store)
    assert (text.code, "NOT SOUND" in text.out, "log: session s1, seq" in text.out) == (1, True, True)


def test_a_frame_that_is_not_sound_is_found_with_its_place(store: Path) -> None:
    [segment] = (store / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[200] ^= 0xFF
    segment.write_bytes(data)
    said = keeve("verify", "--store", store, "--json")
    assert said.code == 1
    assert "segment 1, offset" in said.json["troubles"][0]["place"]


def test_a_torn_tail_is_named_and_is_no_damage(store: Path) -> None:
    [segment] = (store / "log").iterdir()
    segment.write_bytes(segment.read_bytes() + b"half a write that a crash has left")
    said = keeve("verify", "--store", store, "--json")
    assert said.code == 0
    [torn] = said.json["troubles"]
    assert torn["harmless"]
    assert "never acknowledged" in torn["what"]


def test_a_snapshot_that_is_not_the_heap_of_its_records_is_found(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages with sound digests and a wrong content: only the records can tell."""
    truth = checking.fingerprint
    seen: list[bytes] = []

    def other(heap: Any) -> bytes:
        seen.append(truth(heap) + bytes([len(seen)]))
        return seen[-1]

    monkeypatch.setattr(checking, "fingerprint", other)
    said = keeve("verify", "--store", store, "--json")
    assert said.code == 1
    assert looks(said.json) == {"snapshots"}
    assert "it is not the heap that the records give" in said.json["troubles"][0]["what"]


async def test_a_snapshot_with_a_page_that_is_not_what_was_written_is_found(tmp_path: Path) -> None:
    store = tmp_path / "data"
    async with open_host(store) as host:
        session = await host.spawn(Session, "s1")
        await session.turn("hello")
        await session.snapshot()
    flip(store, b"keeve.session")
    said = keeve("verify", "--store", store, "--json")
    assert said.code == 1
    assert "snapshots" in looks(said.json)


def test_a_catalog_that_says_something_else_than_the_log_is_found(store: Path) -> None:
    with Connection(str(store / CATALOG)) as db:
        db.execute("UPDATE sessions SET pending = 7 WHERE id = 's2'")
    said = keeve("verify", "--store", store, "--json")
    assert said.code == 1
    assert looks(said.json) == {"catalog"}
    assert "pending for session 's2'" in said.json["troubles"][0]["what"]


def test_a_catalog_that_is_not_there_or_no_catalog_is_no_damage(store: Path) -> None:
    (store / CATALOG).write_bytes(b"no catalog")
    assert keeve("verify", "--store", store).code == 0
    (store / CATALOG).unlink()
    assert keeve("verify", "--store", store).code == 0
