"""`keeve doctor`: what is wrong, and what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import attrs
import pytest

from dataspace.log.ownership import owner_of
from keeve import open_host
from keeve.api import CATALOG
from keeve.cli import machine_signs, store_signs
from keeve.cli.machine import Access, Mount, Space, command_of, mount_of, sync_time
from tests.cli_runner import keeve
from tests.cli_worlds import leave_waiting


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    chat(path, "s1", "the first line", "the second line")
    return path


def chat(store: Path, id: str, *lines: str) -> None:
    assert keeve("chat", id, "--store", store, input="".join(f"{line}\n" for line in lines)).code == 0


def signs(store: Path, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """The signs by what was looked at; the worst of those with one name."""
    order = ["ok", "note", "warn", "bad"]
    found = keeve("doctor", "--store", store, "--json", env=env).json["signs"]
    return {sign["of"]: sign for sign in sorted(found, key=lambda sign: order.index(sign["state"]))}


def test_a_healthy_store_is_said_to_be(store: Path) -> None:
    said = keeve("doctor", "--store", store)
    assert said.code == 0
    assert said.out.endswith("healthy\n")
    found = signs(store)
    for of in ("Python", "SQLite", "model", "file system", "disk space", "permissions", "owner", "log", "catalog"):
        assert of in found
    assert {sign["state"] for sign in found.values()} <= {"ok", "note", "warn"}


def test_it_changes_nothing(store: Path) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    keeve("doctor", "--store", store)
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_where_there_is_no_store_it_says_how_to_make_one_and_makes_none(tmp_path: Path) -> None:
    said = keeve("doctor", "--store", tmp_path / "new")
    assert said.code == 0
    assert "there is none at" in said.out
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_no_store_is_bad(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    said = keeve("doctor", "--store", tmp_path)
    assert said.code == 1
    assert "it holds 'letters.txt' and no log" in said.out


def test_a_newer_format_is_bad(store: Path) -> None:
    text = (store / "format").read_text()
    (store / "format").write_text(text.replace("format 1", "format 99"))
    said = keeve("doctor", "--store", store)
    assert said.code == 1
    assert "newer version" in said.out


async def test_the_owner_is_named(store: Path) -> None:
    async with open_host(store):
        sign = signs(store)["owner"]
    assert sign["state"] == "note"
    assert str(os.getpid()) in sign["seen"]


def test_a_folder_that_others_may_read_is_worth_a_warning(store: Path) -> None:
    store.chmod(0o755)
    sign = signs(store)["permissions"]
    assert (sign["state"], sign["remedy"]) == ("warn", f"chmod 700 {store}")


def test_who_owns_what_may_not_be_written_is_not_told_to_become_its_owner(tmp_path: Path) -> None:
    own = Access(readable=True, writable=False, foreign=(), open_to_others=())
    assert own.remedy(tmp_path).startswith(f"chmod -R u+rwX {tmp_path}")
    assert "chown" in attrs.evolve(own, foreign=("lock",)).remedy(tmp_path)


def test_damage_is_bad_and_names_the_session(store: Path) -> None:
    [segment] = (store / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.rindex(b"the first line")] ^= 1
    segment.write_bytes(data)
    said = keeve("doctor", "--store", store)
    assert said.code == 1
    assert "session s1 is damaged at seq" in said.out
    assert "keeve fork s1 --at" in said.out


def test_a_log_that_is_corrupt_is_bad(store: Path) -> None:
    [segment] = (store / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[200] ^= 0xFF
    segment.write_bytes(data)
    assert signs(store)["log"]["state"] == "bad"


def test_a_torn_tail_is_a_note_before_it_is_cut_and_after(store: Path) -> None:
    [segment] = (store / "log").iterdir()
    segment.write_bytes(segment.read_bytes() + b"half a write that a crash has left")
    assert signs(store)["log"]["state"] == "note"
    chat(store, "s1", "and on")
    sign = signs(store)["crashes"]
    assert sign["state"] == "note"
    assert "1 torn tail cut off (34 bytes)" in sign["seen"]
    assert str(store / "cut") in sign["remedy"]


def _gone(path: Path) -> None:
    path.unlink()


def _garbage(path: Path) -> None:
    path.write_bytes(b"no catalog")


def _unwritten(path: Path) -> None:
    """As a host leaves it that died before it had written any."""
    db = apsw.Connection(str(path))
    db.execute("UPDATE about SET segment = NULL, offset = NULL, committed = NULL")
    db.close()


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (_gone, "there is none"),
        (_garbage, "it cannot be read"),
        (_unwritten, "it names no place in the log, as one whose host has died"),
    ],
)
def test_a_catalog_that_is_missing_or_garbage_is_a_note(store: Path, spoil: Callable[[Path], None], seen: str) -> None:
    spoil(store / CATALOG)
    sign = signs(store)["catalog"]
    assert (sign["state"], sign["seen"]) == ("note", seen)


def test_a_catalog_that_is_behind_is_a_note_with_how_far(store: Path, tmp_path: Path) -> None:
    shutil.copy(store / CATALOG, tmp_path / "old")
    chat(store, "s1", "and on")
    shutil.copy(tmp_path / "old", store / CATALOG)
    assert signs(store)["catalog"]["seen"] == "it is 2 records behind"


def test_the_catalog_of_another_store_is_worth_a_warning(store: Path, tmp_path: Path) -> None:
    chat(tmp_path / "other", "s1", "hello")
    shutil.copy(tmp_path / "other" / CATALOG, store / CATALOG)
    assert signs(store)["catalog"]["seen"] == "it is of another log"


async def test_effects_of_unknown_outcome_are_named_with_what_to_do(store: Path) -> None:
    await leave_waiting(store)
    found = signs(store)
    assert "tool.call of session c1 has started" in found["effects"]["seen"]
    [waiting] = keeve("effects", "--store", store, "--json").json["effects"]
    assert f"keeve resolve {waiting['id']}" in found["effects"]["remedy"]
    assert found["pending"]["seen"] == "work of 1 session"


def test_a_setting_of_the_model_that_cannot_be_meant_is_bad(store: Path) -> None:
    sign = signs(store, {"KEEVE_MODEL_URL": "http://127.0.0.1:9"})["model"]
    assert sign["state"] == "bad"


def test_records_of_a_time_to_come_are_worth_a_warning(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_signs, "now", lambda: 1_700_000_000_000_000)
    assert signs(store)["clock"]["state"] == "warn"


# The machine.


@pytest.mark.parametrize(
    ("type", "state"),
    [("ext4", "ok"), ("nfs4", "bad"), ("cifs", "bad"), ("fuse.sshfs", "bad"), ("tmpfs", "warn"), ("xfs", "ok")],
)
def test_a_file_system_is_named_and_judged(store: Path, monkeypatch: pytest.MonkeyPatch, type: str, state: str) -> None:
    monkeypatch.setattr(machine_signs, "mount_of", lambda path: Mount("/", type, "box:/home", False))
    sign = signs(store)["file system"]
    assert sign["state"] == state
    assert type in sign["seen"]


def test_a_file_system_that_is_mounted_read_only_is_bad(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_signs, "mount_of", lambda path: Mount("/", "ext4", "/dev/sda1", True))
    assert signs(store)["file system"]["state"] == "bad"


GIB = 1 << 30


@pytest.mark.parametrize(
    ("space", "of", "state"),
    [
        (Space(100 * GIB, 200 * GIB, 10_000), "disk space", "ok"),
        (Space(GIB // 10, 200 * GIB, 10_000), "disk space", "warn"),
        (Space(1000, 200 * GIB, 10_000), "disk space", "bad"),
        (Space(100 * GIB, 200 * GIB, 100), "free inodes", "warn"),
        (Space(100 * GIB, 200 * GIB, 0), "free inodes", "bad"),
    ],
)
def test_what_is_left_on_the_disk_is_judged(
    store: Path, monkeypatch: pytest.MonkeyPatch, space: Space, of: str, state: str
) -> None:
    monkeypatch.setattr(machine_signs, "space_of", lambda path: space)
    assert signs(store)[of]["state"] == state


@pytest.mark.parametrize(("seconds", "state"), [(0.002, "ok"), (0.2, "warn"), (0.000001, "warn")])
def test_the_time_of_a_sync_is_judged(store: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, state: str) -> None:
    monkeypatch.setattr(machine_signs, "sync_time", lambda place: seconds)
    monkeypatch.setattr(machine_signs, "mount_of", lambda path: Mount("/", "ext4", "/dev/sda1", False))
    assert signs(store)["sync"]["state"] == state


def test_timing_the_disk_leaves_nothing_and_needs_a_folder_to_write_in(tmp_path: Path) -> None:
    assert sync_time(tmp_path) is not None
    assert list(tmp_path.iterdir()) == []
    assert sync_time(tmp_path / "absent") is None


def test_the_mount_that_covers_a_path_is_found() -> None:
    text = "\n".join(
        [
            "22 1 0:21 / / rw,relatime - ext4 /dev/sda1 rw",
            "40 22 0:35 / /srv rw - xfs /dev/sdb1 rw",
            r"41 22 0:36 / /srv/my\040data ro - nfs box:/x rw",
            "42 22 0:37 / /srv/data rw - btrfs /dev/sdc1 ro",
            "not a line of that file",
        ]
    )
    found = {path: mount_of(Path(path), text) for path in ("/home", "/srv/x", "/srv/my data/s", "/srv/data/a")}
    assert [(mount.type, mount.readonly) for mount in found.values() if mount is not None] == [
        ("ext4", False),
        ("xfs", False),
        ("nfs", True),
        ("btrfs", True),
    ]


def test_a_lock_that_nobody_holds_has_no_owner(store: Path) -> None:
    assert owner_of(store / "lock") is None
    assert owner_of(store / "absent") is None


def test_a_process_is_named_by_its_command() -> None:
    assert "python" in command_of(os.getpid())
    assert command_of(1 << 30) == ""
