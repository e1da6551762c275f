"""Encrypted stores on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataspace.encryption.key_file import unpacked
from keeve import Session, blocking, host_key
from tests.cli_runner import keeve


class World:
    """An encrypted store with a session, the file of its key, and commands that are given it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self.key = folder / "host.key"
        host_key(self.key, make=True)
        with blocking.open_host(self.folder, key=self.key) as host:
            s = host.spawn(Session, "s1")
            s.turn("hello")
            s.fork(into="s2").turn("twin")

    def keeve(self, *words: str | Path, key: Path | None = None, **options: object):  # type: ignore[no-untyped-def] # what `keeve` gives
        env = {"KEEVE_KEY_FILE": str(self.key if key is None else key)}
        return keeve(*words, "--store", self.folder, env=env, **options)  # type: ignore[arg-type] # as the tests say

    def without(self, *words: str):  # type: ignore[no-untyped-def] # what `keeve` gives
        return keeve(*words, "--store", self.folder)


@pytest.fixture
def world(store_folder: Path) -> World:
    return World(store_folder)


@pytest.mark.parametrize(
    "words",
    [
        ("ls",),
        ("show", "s1"),
        ("log", "(turn . _)"),
        ("fork", "s1", "--into", "s3"),
        ("effects",),
        ("delete", "s2"),
        ("gc",),
        ("verify",),
        ("doctor",),
    ],
    ids=lambda words: words[0],
)
def test_every_command_takes_the_key_from_the_environment(world: World, words: tuple[str, ...]) -> None:
    with_key = world.keeve(*words)
    assert with_key.code == 0, with_key.err
    assert keeve(*("ls",), "--store", world.folder, env={"KEEVE_KEY": host_key(world.key).hex()}).code == 0


@pytest.mark.parametrize("words", [("ls",), ("show", "s1"), ("log", "(turn . _)"), ("fork", "s1"), ("delete", "s1")])
def test_without_the_key_a_command_ends_with_2_and_says_what_to_do(world: World, words: tuple[str, ...]) -> None:
    said = world.without(*words)
    assert said.code == 2
    assert "KEEVE_KEY_FILE" in said.err
    assert said.out == ""


def test_with_another_key_too(world: World, tmp_path: Path) -> None:
    host_key(tmp_path / "other.key", make=True)
    said = world.keeve("ls", key=tmp_path / "other.key")
    assert said.code == 2
    assert f"another host key than the one in {tmp_path / 'other.key'}:" in said.err


def test_what_there_is_to_do_is_said_in_commands_and_variables(world: World, tmp_path: Path) -> None:
    assert "name the file with the key of its host in KEEVE_KEY_FILE" in world.without("ls").err
    assert "keeve new-key makes one" in world.keeve("ls", key=tmp_path / "none.key").err
    (tmp_path / "plain").mkdir()
    with blocking.open_host(tmp_path / "plain" / "data"):
        pass
    said = keeve("ls", "--store", tmp_path / "plain" / "data", env={"KEEVE_KEY_FILE": str(world.key)})
    assert "open it with KEEVE_KEY_FILE and KEEVE_KEY unset" in said.err


def test_a_key_file_of_the_store_that_is_gone_is_a_failure(world: World) -> None:
    (world.folder / "keys").unlink()
    said = world.keeve("ls")
    assert said.code == 1
    assert "keys is missing" in said.err


def test_a_file_that_others_may_read_is_refused(world: World) -> None:
    world.key.chmod(0o644)
    said = world.keeve("ls")
    assert said.code == 2
    assert "chmod 600" in said.err


def test_chat_makes_an_encrypted_store(store_folder: Path) -> None:
    key = store_folder / "host.key"
    host_key(key, make=True)
    said = keeve("chat", "s1", "--store", store_folder / "new", input="hello\n", env={"KEEVE_KEY_FILE": str(key)})
    assert said.code == 0
    assert "hello" in said.out
    assert (store_folder / "new" / "keys").exists()
    assert all(b"hello" not in path.read_bytes() for path in (store_folder / "new").rglob("*") if path.is_file())


def test_verify_without_the_key_says_what_nobody_looked_at(world: World) -> None:
    said = world.without("verify", "--json")
    assert said.code == 2  # nothing is wrong, and not everything is known
    report = said.json
    assert report["integrity"]["verdict"] == "not looked at"
    assert report["counts"]["sealed"] > 10
    assert report["counts"]["records"] > 5
    (trouble,) = report["troubles"]
    assert trouble["nature"] == "unread"
    assert f"{report['counts']['sealed']} bodies are sealed" in trouble["what"]
    text = world.without("verify").out
    assert "KEEVE_KEY_FILE" in text
    assert "NOT ALL LOOKED AT: " in text
    assert "NOT SOUND" not in text


def test_verify_without_the_key_finds_what_a_disk_has_done(world: World) -> None:
    segment = world.folder / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[1000] ^= 1
    segment.write_bytes(data)
    said = world.without("verify", "--json")
    assert (said.code, said.json["integrity"]["verdict"]) == (1, "damaged")
    assert world.keeve("verify", "--json").json["integrity"]["verdict"] == "damaged"


def test_doctor_says_that_a_key_is_wanted(world: World) -> None:
    said = world.without("doctor")
    assert said.code == 2  # nothing is wrong, and not everything is known
    assert "KEEVE_KEY_FILE" in said.out
    assert said.out.splitlines()[-1] == "nothing is wrong as far as one can look without the key"
    assert not world.without("doctor", "--json").json["healthy"]


def test_a_key_is_made_in_a_new_file_for_its_owner_alone(tmp_path: Path) -> None:
    key, store = tmp_path / "host.key", tmp_path / "data"
    said = keeve("new-key", key)
    assert (said.code, said.out) == (0, f"{key}\n")
    assert key.stat().st_mode & 0o777 == 0o600
    assert keeve("chat", "s1", "--store", store, input="hello\n", env={"KEEVE_KEY_FILE": str(key)}).code == 0
    assert keeve("ls", "--store", store).code == 2


def test_no_key_is_made_in_the_place_of_a_file(tmp_path: Path) -> None:
    """Invariant 43: a refusal leaves everything as it is."""
    key = tmp_path / "host.key"
    key.write_text("something else")
    said = keeve("new-key", key)
    assert (said.code, "is there already" in said.err) == (2, True)
    assert key.read_text() == "something else"


def test_rekey(world: World, tmp_path: Path) -> None:
    said = world.keeve("rekey", "--to", tmp_path / "new.key", "--make")
    assert said.code == 0, said.err
    assert (tmp_path / "new.key").stat().st_mode & 0o777 == 0o600
    assert world.keeve("ls").code == 2
    assert world.keeve("ls", key=tmp_path / "new.key").code == 0
    assert unpacked((world.folder / "keys").read_bytes(), host_key(tmp_path / "new.key"), "keys")


def test_rekey_makes_no_key_where_it_is_refused(world: World, tmp_path: Path, store_folder: Path) -> None:
    """Invariant 43: a refusal leaves nothing behind."""
    new = tmp_path / "new.key"
    assert world.without("rekey", "--to", str(new), "--make").code == 2
    host_key(tmp_path / "other.key", make=True)
    assert world.keeve("rekey", "--to", new, "--make", key=tmp_path / "other.key").code == 2
    with blocking.open_host(world.folder, key=world.key):
        assert world.keeve("rekey", "--to", new, "--make").code == 2
    assert not new.exists()
    assert world.keeve("ls").code == 0
    assert world.keeve("rekey", "--to", new).code == 2


def test_salvage_takes_the_key_and_keeps_it(world: World, store_folder: Path) -> None:
    said = world.keeve("salvage", world.folder, store_folder / "copy")
    assert said.code == 0, said.err
    listed = keeve("ls", "--json", "--store", store_folder / "copy", env={"KEEVE_KEY_FILE": str(world.key)})
    assert [row["id"] for row in listed.json["sessions"]] == ["s1", "s2"]
