"""Bad input on the command line: a message that says what to do, an exit code, nothing left behind, no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.models.failures import ModelRefused
from actors.session import Session
from dataspace.log.files import NotWritable
from dataspace.log.store import StoreOwned
from keeve import cli, open_host, signing_key
from keeve.cli import run
from keeve.remedies import worded
from keeve.testing import folder_for_stores
from keeve.wire.desk import NAME_SESSION
from tests.cli_runner import Said, environment, keeve, keeve_process
from tests.cli_worlds import leave_waiting


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    assert keeve("chat", "s1", "--store", path, input="hello\n").code == 0
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """What is in a folder, but for what says who was there last."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("lock", "head") and not path.name.startswith("catalog")
    }


def refused(said: Said, code: int, *parts: str) -> None:
    """It ended with that code, said those things on the standard error, and nothing on the standard output."""
    assert said.code == code, said
    assert said.out == ""
    assert said.err.startswith("keeve: ")
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err


# Ids.


@pytest.mark.parametrize("words", [("show", "nobody"), ("fork", "nobody"), ("log", "(_ . _)", "--session", "nobody")])
def test_an_unknown_session_is_refused(store: Path, words: tuple[str, ...]) -> None:
    before = contents(store)
    refused(keeve(*words, "--store", store), 2, "there is no session 'nobody'", "keeve ls")
    assert contents(store) == before


async def test_a_deleted_session_is_refused_and_its_id_is_not_given_again(store: Path) -> None:
    """Invariant 25: on the command line too."""
    async with open_host(store) as host:
        await host.delete("s1")
    for words in (("show", "s1"), ("fork", "s1"), ("chat", "s1"), ("log", "(_ . _)", "--session", "s1")):
        said = keeve(*words, "--store", store, input="hello\n")
        assert said.code == 2, words
        assert "session 's1' has been deleted, and its id never comes back: use another" in said.err
        assert said.out == ""
    keeve("chat", "s2", "--store", store, input="hello\n")
    refused(keeve("fork", "s2", "--into", "s1", "--store", store), 2, "never comes back")


def test_an_id_in_use_is_refused(store: Path) -> None:
    keeve("chat", "s2", "--store", store, input="hello\n")
    before = contents(store)
    refused(keeve("fork", "s1", "--into", "s2", "--store", store), 2, "there is a session 's2' already", "another id")
    refused(keeve("fork", "s1", "--into", "s2", "--store", store), 2, f"`keeve chat --store {store} s2`")
    assert contents(store) == before


@pytest.mark.parametrize("id", ["", "a\nb", "x" * 201, "\x1b[31m"])
def test_an_id_that_cannot_be_one_is_refused_and_makes_no_store(tmp_path: Path, id: str) -> None:
    said = keeve("chat", id, "--store", tmp_path / "new", input="hello\n")
    refused(said, 2, "cannot be the id of a session", "1 to 200 characters")
    assert "\x1b" not in said.err
    assert not (tmp_path / "new").exists()


def test_a_seq_that_a_session_does_not_have_is_refused(store: Path) -> None:
    before = contents(store)
    refused(keeve("fork", "s1", "--at", "99", "--store", store), 2, "has no seq 99", "from 1 to 3")
    assert contents(store) == before


# Patterns, cursors, words.


def test_a_bad_pattern_is_shown_with_a_caret_under_the_place(store: Path) -> None:
    said = keeve("log", "(turn ?n #:input)", "--store", store)
    refused(said, 2)
    line, caret = said.err.splitlines()[1:]
    assert line.strip() == "(turn ?n #:input)"
    assert caret.strip() == "^"
    assert line[caret.index("^")] == ")"


def test_a_bad_pattern_is_refused_before_a_store_is_looked_at(tmp_path: Path) -> None:
    refused(keeve("log", "(turn", "--store", tmp_path / "absent"), 2, "expected `)`")


def test_a_cursor_that_is_none_is_refused(store: Path) -> None:
    refused(keeve("log", "(_ . _)", "--after", "yesterday", "--store", store), 2, "'yesterday' is no cursor")


def test_a_cursor_of_another_log_is_refused(store: Path, tmp_path: Path) -> None:
    """Invariant 33: on the command line too."""
    keeve("chat", "s1", "--store", tmp_path / "other", input="hello\n")
    cursor = keeve("log", "(turn . _)", "--store", tmp_path / "other", "--json").lines[0]["cursor"]
    refused(keeve("log", "(_ . _)", "--after", cursor, "--store", store), 2, "of another log", "its own store")


def test_a_cursor_ahead_of_the_log_or_on_another_history_is_refused(store: Path) -> None:
    """Invariant 33."""
    log, position, hash = keeve("log", "(turn . _)", "--store", store, "--json").lines[0]["cursor"].split(":")
    ahead = keeve("log", "(_ . _)", "--after", f"{log}:99:{hash}", "--store", store)
    refused(ahead, 2, "ahead of the log, which ends at position 4")
    bare = keeve("log", "(_ . _)", "--after", "99", "--store", store)
    refused(bare, 2, "position 99: it is ahead of the log, which ends at position 4: give one up to that")
    changed = keeve("log", "(_ . _)", "--after", f"{log}:{position}:{'0' * 64}", "--store", store)
    refused(changed, 2, "the history is not the one that was read")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("lgo", "(_)"), 'Did you mean "log"'),
        (("log",), "PATTERN"),
        (("show",), "SESSION"),
        (("log", "(_)", "--falow"), "--falow"),
        (("fork", "s1", "--at", "soon"), "--at"),
        (("fork", "s1", "--at", "0"), "--at"),
        (("ls", "--limit", "-3"), "--limit"),
        (("verify", "s1"), "too many words: s1"),
    ],
)
def test_words_that_are_no_command_are_refused_and_lead_to_the_help(words: tuple[str, ...], part: str) -> None:
    refused(keeve(*words), 2, part, "Try: keeve", "--help")


@pytest.mark.parametrize("words", [("check", "{}"), ("verify", "--expect", "{}")])
def test_a_file_that_is_not_there_is_asked_for_by_what_it_should_be(store: Path, words: tuple[str, ...]) -> None:
    for there in (store / "absent", store):
        said = keeve(*(word.format(there) for word in words), "--store", store)
        refused(said, 2, f"{there}: ", "name the file of a receipt or of a checkpoint")


# Types and formats.


async def test_a_session_of_a_type_that_is_not_known_here_is_refused_untouched(tmp_path: Path) -> None:
    await leave_waiting(tmp_path / "data")
    before = contents(tmp_path / "data")
    said = keeve("chat", "c1", "--store", tmp_path / "data", input="hello\n")
    assert said.code == 2
    assert "unknown actor type 'test.caller'" in said.err
    assert "Traceback" not in said.err
    assert said.out == ""
    # The host that was opened may have said of itself that it was there; the session has nothing new.
    assert keeve("show", "c1", "--store", tmp_path / "data", "--json").json["seq"] > 0
    assert contents(tmp_path / "data").keys() == before.keys()


@pytest.mark.parametrize("command", ["chat", "ls", "verify"])
def test_a_newer_format_is_refused_by_its_number(store: Path, command: str) -> None:
    path = store / "format"
    path.write_text(path.read_text().replace("format 1", "format 99"))
    before = contents(store)
    refused(keeve(command, "--store", store, input="hello\n"), 1, "format 99", "that version or a later one")
    assert contents(store) == before


# Folders.

EVERY = [
    ("chat",),
    ("ls",),
    ("show", "s1"),
    ("log", "(_ . _)"),
    ("fork", "s1"),
    ("effects",),
    ("resolve", "abc", "--value", "1"),
    ("approve", "s1", "call_1"),
    ("refuse", "s1", "call_1", "no"),
    ("verify",),
]


@pytest.mark.parametrize("words", EVERY)
def test_a_folder_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    refused(keeve(*words, "--store", tmp_path, input="hello\n"), 2, "is not a store", "letters.txt")
    assert contents(tmp_path) == {"letters.txt": b"dear"}


@pytest.mark.parametrize("words", EVERY)
def test_a_file_in_the_place_of_a_store_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("dear")
    refused(keeve(*words, "--store", tmp_path / "file", input="hello\n"), 2, "is not a store: it is a file")


@pytest.mark.parametrize("words", EVERY[1:])
def test_a_store_that_is_not_there_is_not_made_by_looking_for_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    refused(
        keeve(*words, "--store", tmp_path / "absent"),
        2,
        "has no store in it yet",
        "keeve create and keeve chat make one",
    )
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("words", [("chat", "s1"), ("fork", "s1"), ("resolve", "abc", "--value", "1")])
async def test_a_store_that_this_process_owns_is_refused_by_any_path(store: Path, words: tuple[str, ...]) -> None:
    """Invariant 24: on the command line too."""
    other = store.parent / "other path"
    other.symlink_to(store)  # nothing else runs here
    async with open_host(store) as host:
        for path in (store, other):
            said = keeve(*words, "--store", path, input="hello\n")
            refused(said, 2, f"is owned by process {os.getpid()}", "close it there")
        await (await host.get("s1")).turn("and on")


def test_a_store_that_another_process_owns_is_refused(store: Path) -> None:
    """Invariant 24."""
    with keeve_process("chat", "s1", "--store", store, "--json") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"from the owner\n")
        process.stdin.flush()
        assert b"from the owner" in process.stdout.readline()
        refused(keeve("chat", "s1", "--store", store, input="hello\n"), 2, f"process {process.pid}")
        assert keeve("ls", "--store", store).code == 0
        process.stdin.close()
        assert process.wait() == 0


@pytest.fixture
def folder_of_root() -> Iterator[Path]:
    """A folder that others may read and not write: below `tmp_path` others may not even look."""
    if os.geteuid() != 0:
        folder = Path(tempfile.mkdtemp(prefix="keeve-tests-"))
    else:
        folder = Path(tempfile.mkdtemp(prefix="keeve-tests-", dir="/var/tmp"))
    folder_for_stores(folder)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    subprocess.run(["rm", "-r", str(folder)], check=True)


def test_a_folder_that_is_not_writable_is_refused_and_nothing_is_left(folder_of_root: Path) -> None:
    words = ["chat", "s1", "--store", str(folder_of_root / "data")]
    # Root may write anywhere, so this is somebody else.
    code = (
        "import os, sys, keeve.cli, keeve.cli.chat, keeve.cli.owning\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"sys.exit(keeve.cli.run({words!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="hello\n", capture_output=True, text=True, env=environment(), check=False
    )
    refused(Said(done.returncode, done.stdout, done.stderr), 1, "Permission denied", "may not write there")
    assert [path.name for path in folder_of_root.iterdir()] == [".keeve-test-stores"]


# Disks.


def test_a_full_disk_is_said_and_what_was_acknowledged_is_kept(store: Path) -> None:
    """Invariant 11: a limit on the size of files is a disk that is full; the log is not written to beyond it."""
    before = contents(store)
    code = (
        "import resource, sys, keeve.cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        f"sys.exit(keeve.cli.run({['chat', 's1', '--store', str(store)]!r}))"
    )
    long = "much " * 100_000
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=f"again\n{long}\n",
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == "again\n"
    assert "write failed (File too large)" in done.stderr
    assert "make space, then try again" in done.stderr
    assert "Traceback" not in done.stderr
    assert contents(store) != before
    turns = keeve("show", "s1", "--store", store, "--json").json["turns"]
    assert [turn["input"] for turn in turns] == ["hello", "again"]
    assert keeve("verify", "--store", store).code == 0
    assert keeve("chat", "s1", "--store", store, input=long + "\n").code == 0


# Ours.


def test_a_traceback_is_shown_when_it_is_asked_for(store: Path) -> None:
    said = keeve("show", "nobody", "--store", store, "--debug")
    assert said.code == 2
    assert "Traceback" in said.err
    assert "NoSuchSession" in said.err


def test_a_mistake_of_ours_is_not_taken_for_one_of_the_user(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> int:
        raise AssertionError("a mistake of ours")

    monkeypatch.setattr("keeve.cli.sessions.show_session", broken)
    with pytest.raises(AssertionError):
        run(["show", "s1", "--store", str(store)])


async def test_a_store_of_others_is_not_opened_by_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 44: nor is it by the command line, when a test runs it."""
    home = Path(tempfile.gettempdir()) / "keeve-not-for-tests"
    for words in EVERY:
        refused(keeve(*words, "--store", home), 2, "this is a test run")
    assert not home.exists()  # nothing else runs here


async def test_the_sessions_of_a_host_are_of_the_type_that_the_command_line_knows(store: Path) -> None:
    async with open_host(store) as host:
        await host.spawn(Session, "from-code")
    assert keeve("chat", "from-code", "--store", store, input="hello\n").out == "hello\n"


def test_a_folder_without_a_store_is_told_of_with_the_command_that_makes_one(tmp_path: Path) -> None:
    for command in (["ls"], ["delete", "s1"]):
        said = keeve(*command, "--store", tmp_path)
        refused(
            said,
            2,
            f"{tmp_path} has no store in it yet: keeve create and keeve chat make one, and --store names another "
            "folder",
        )


async def test_whoever_types_is_told_commands_and_not_calls(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each error that says what to do in Python, met as people meet it; and there is no other advice."""
    waiting, nothing = tmp_path / "waiting", tmp_path / "nothing"
    await leave_waiting(waiting)
    messages: list[str] = []
    monkeypatch.setattr(cli, "worded", lambda message, door: messages.append(message) or worded(message, door))
    told = [
        keeve("show", "nobody", "--store", store),
        keeve("create", "s1", "--store", store),
        keeve("resolve", "abc", "--value", "1", "--store", store),
        keeve("ls", "--store", nothing),
        keeve("delete", "s1", "--store", nothing),
        keeve("delete", "c1", "--store", waiting, "--actors", "tests.cli_worlds:Caller"),
        keeve("delete", "c1", "--store", waiting),
        keeve("checkpoint", "--store", store),
        keeve("checkpoint", "--store", store, "--signer", tmp_path / "log.pem"),
    ]
    for name in ("one", "other"):
        signing_key(tmp_path / name, make=True)
    assert keeve("checkpoint", "--store", store, "--signer", tmp_path / "one").code == 0
    told.append(keeve("checkpoint", "--store", store, "--signer", tmp_path / "other"))
    async with open_host(store):
        told.append(keeve("fork", "s1", "--store", store))
    told.append(keeve("log", "(_ . _)", "--after", "yesterday", "--store", store))
    messages.append(str(NotWritable("data", "Permission denied", True)))
    messages.append(str(StoreOwned("data", 17, served=True)))
    messages.append(f"observe of all sessions is for who may see all: {NAME_SESSION()}")
    messages += [str(ModelRefused(status, "no")) for status in (401, 403)]
    for said in told:
        refused(said, 2)
    for message in messages:
        said = worded(message, "commands")
        assert said != message
        assert not re.search(r"host\.|open_host|spawn\(|readonly=|list of (sessions|effects)|h force", said)


@pytest.mark.parametrize("command", [("ls",), ("log", "(spawn . _)")])
def test_a_limit_beyond_all_numbers_of_the_machine_is_no_limit(store: Path, command: tuple[str, ...]) -> None:
    assert keeve(*command, "--limit", str(1 << 80), "--store", store).out == keeve(*command, "--store", store).out
