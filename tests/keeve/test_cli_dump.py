"""`keeve dump`: every file of a store is shown, in whatever state it is, and nothing of it is obeyed or changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runner import keeve


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    store = folder / "data"
    for id, lines in (("s1", "hello\nred \x1b[31mand \x07 bell\n" + "long " * 200 + "\n"), ("s2", "of s2\n")):
        assert keeve("chat", id, "--store", store, input=lines).code == 0
    assert keeve("checkpoint", "--signer", folder / "log.pem", "--make", "--store", store).code == 0
    (folder / "receipt").write_text(keeve("prove", "s1", "2", "--store", store).out)
    return folder


@pytest.fixture
def folder(tmp_path: Path, reference: Path) -> Path:
    shutil.copytree(reference, tmp_path / "it")
    return tmp_path / "it"


def dumped(*words: str | Path) -> list[Any]:
    said = keeve("dump", *words, "--json")
    assert said.code == 0, said.out + said.err
    return said.lines


def test_all_files_of_a_store_are_shown(folder: Path) -> None:
    found = dumped(folder / "data")
    assert {Path(each["file"]).name for each in found} == {
        *("format", "lock", "head", "checkpoint", "00000001.seg", "catalog.sqlite")
    }
    assert {each["type"] for each in found} >= {
        *("format", "lock", "head", "checkpoint", "catalog", "segment", "record", "cell", "commit")
    }
    assert keeve("dump", "--store", folder / "data", "--json").out == keeve("dump", folder / "data", "--json").out


def test_a_file_that_was_copied_away_is_shown_alone(folder: Path) -> None:
    for name in ("head", "checkpoint", "lock", "format", "log/00000001.seg"):
        alone = folder / "alone" / "some.file"
        alone.parent.mkdir(exist_ok=True)
        shutil.copy(folder / "data" / name, alone)
        assert "wrong" not in dumped(alone)[0]


def test_a_receipt_and_a_checkpoint_are_shown(folder: Path) -> None:
    (receipt,) = dumped(folder / "receipt")
    assert (receipt["type"], receipt["seq"], receipt["kind"]) == ("receipt", 2, "crank")
    (checkpoint,) = dumped(folder / "data" / "checkpoint")
    assert checkpoint["origin"].startswith("keeve/")
    assert checkpoint["records"] > 5


def test_what_was_cut_off_is_shown_at_its_own_offsets(folder: Path) -> None:
    segment = folder / "data" / "log" / "00000001.seg"
    last = dumped(segment)[-1]
    data = segment.read_bytes()
    cut = folder / f"00000001-{last['offset']}.bin"
    cut.write_bytes(data[last["offset"] :])
    assert [(each["offset"], each["type"]) for each in dumped(cut)] == [(last["offset"], last["type"])]


def test_one_session_is_shown_by_its_id_or_its_uid(folder: Path) -> None:
    by_id = dumped(folder / "data" / "log" / "00000001.seg", "--session", "s2")
    uid = by_id[0]["session"]
    assert {each["session"] for each in by_id if each["type"] == "record"} == {uid}
    assert dumped(folder / "data" / "log" / "00000001.seg", "--session", uid) == by_id
    assert any("of s2" in str(each.get("content")) for each in by_id)
    assert not any("hello" in str(each) for each in by_id)
    said = keeve("dump", folder / "data", "--session", "nobody")
    assert (said.code, "no first record of a session with that id" in said.err) == (2, True)


def test_from_begins_with_a_position_and_records_leaves_out_the_rest(folder: Path) -> None:
    segment = folder / "data" / "log" / "00000001.seg"
    late = dumped(segment, "--from", "4")
    assert late[0]["position"] == 4
    assert {each["type"] for each in dumped(segment, "--records")} <= {"record", "cell", "page"}
    assert dumped(segment, "--frames") == dumped(segment)


def test_long_values_are_cut_unless_all_is_to_be_shown(folder: Path) -> None:
    segment = folder / "data" / "log" / "00000001.seg"
    [short] = {each["content"] for each in dumped(segment) if "long long" in str(each.get("content"))}
    [full] = {each["content"] for each in dumped(segment, "--full") if "long long" in str(each.get("content"))}
    assert "characters)" in short
    assert len(full) > 1000 > len(short)


def test_what_a_terminal_would_obey_is_escaped(folder: Path) -> None:
    said = keeve("dump", folder / "data")
    assert "\x1b" not in said.out
    assert "\x07" not in said.out
    assert "red" in said.out
    assert "\x1b" not in keeve("dump", folder / "data", "--json").out


def test_a_damaged_frame_is_shown_as_such_and_those_after_it_as_well(folder: Path) -> None:
    segment = folder / "data" / "log" / "00000001.seg"
    pieces = dumped(segment)
    nth = next(nth for nth, each in enumerate(pieces) if each["type"] == "cell")
    data = bytearray(segment.read_bytes())
    data[pieces[nth]["offset"]] ^= 1
    data[pieces[nth + 3]["offset"] + pieces[nth + 3]["size"] - 9] ^= 1
    segment.write_bytes(data)
    said = keeve("dump", segment, "--json")
    found = said.lines
    assert said.code == 1
    assert found[nth]["type"] == "damaged"
    assert (found[nth]["offset"], found[nth]["size"]) == (pieces[nth]["offset"], pieces[nth]["size"])
    assert found[nth + 1] == pieces[nth + 1]
    assert found[nth + 4 :] == pieces[nth + 4 :]
    text = keeve("dump", segment)
    assert (text.code, "no sound frame begins here" in text.out) == (1, True)


@pytest.mark.parametrize("content", [b"", b"nonsense", os.urandom(5000), bytes(5000), b"KEEVEHED", b"KEEVEKEY"])
def test_any_file_is_shown(tmp_path: Path, content: bytes) -> None:
    """Invariant 42."""
    for name in ("anything", "00000003.seg", "00000002-4096.bin", "head", "catalog.sqlite"):
        (tmp_path / name).write_bytes(content)
        said = keeve("dump", tmp_path / name)
        assert said.code in (0, 1), said.err
        assert (tmp_path / name).read_bytes() == content
    (tmp_path / "sqlite").write_bytes(b"SQLite format 3\0" + content)
    assert keeve("dump", tmp_path / "sqlite").code == 1


@pytest.mark.parametrize("path", ["nothing", "empty", "/dev/null"])
def test_what_is_no_file_of_a_store_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    assert keeve("dump", tmp_path / path).code == 2


def test_nothing_is_changed_and_no_file_is_made(folder: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.rglob("*"))}
    keeve("dump", folder / "data")
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.rglob("*"))} == before
