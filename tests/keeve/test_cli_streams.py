"""Standard streams that are closed, full, broken, or in another encoding: the code says it, without a traceback."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from tests.cli_runner import PROGRAM, environment, keeve
from tests.forks import Fork

EVERY = [
    ("ls",),
    ("ls", "--json"),
    ("show", "s1"),
    ("log", "(_ . _)"),
    ("effects", "--json"),
    ("verify",),
    ("doctor", "--json"),
    ("--help",),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streams") / "data"
    assert keeve("chat", "s1", "--store", path, input="größer 漢字\nagain\n").code == 0
    return path


def program(store: Path, *words: str, redirect: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
    """The command line, run by a shell that redirects its streams so."""
    given = [*words] if words[0] == "--help" else [*words, "--store", str(store)]
    command = ["sh", "-c", f'"$@" {redirect}', "sh", *PROGRAM, *given]
    return subprocess.run(command, capture_output=True, env=environment(env), stdin=subprocess.DEVNULL, check=False)


def every(store: Path, output: int) -> dict[str, tuple[int, str]]:
    """How each command ends with that output, and what it says beside it."""
    found = {}
    for words in EVERY:
        given = [*words] if words[0] == "--help" else [*words, "--store", str(store)]
        with open(os.devnull, "rb") as nothing, TemporaryFile() as errors:
            code = Fork(given, (nothing.fileno(), output, errors.fileno()), environment()).wait(60)
            errors.seek(0)
            found[" ".join(words)] = code, errors.read().decode()
    return found


def test_a_pipe_that_nobody_reads_ends_any_command_with_141(store: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert every(store, writer) == {" ".join(words): (141, "") for words in EVERY}
    finally:
        os.close(writer)


def test_an_output_that_is_full_is_said_by_any_command(store: Path) -> None:
    full = "keeve: the output cannot be written: No space left on device\n"
    with open("/dev/full", "wb") as output:
        assert every(store, output.fileno()) == {" ".join(words): (1, full) for words in EVERY}


@pytest.mark.parametrize("words", [("ls",), ("show", "s1", "--json"), ("delete", "s1"), ("chat", "s1")])
def test_without_an_output_nothing_is_done(store: Path, words: tuple[str, ...]) -> None:
    said = program(store, *words, redirect=">&-")
    assert (said.returncode, said.stderr) == (1, b"keeve: the standard output is closed: open it, or use /dev/null\n")
    assert keeve("show", "s1", "--store", store).code == 0


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
@pytest.mark.parametrize("words", [("effects",), ("fork", "s1")])
def test_what_is_beside_the_answer_does_not_count(store: Path, words: tuple[str, ...], redirect: str) -> None:
    said = program(store, *words, redirect=redirect)
    assert (said.returncode, b"Traceback" in said.stderr) == (0, False)


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_a_refusal_that_cannot_be_said_has_its_code(store: Path, redirect: str) -> None:
    assert program(store, "show", "nobody", redirect=redirect).returncode == 2


def test_what_is_said_goes_into_no_file_of_the_store(tmp_path: Path) -> None:
    """A file that is opened gets the lowest number that is free: that of a stream that was closed."""
    path = tmp_path / "data"
    command = ["sh", "-c", 'echo hello | "$@" 2>&-', "sh", *PROGRAM, "chat", "s1", "--store", str(path), "--debug"]
    said = subprocess.run(command, capture_output=True, env=environment(), check=False)
    assert (said.returncode, said.stdout) == (0, b"hello\n")
    assert keeve("verify", "--store", path, "--json").json["sound"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_what_an_encoding_cannot_say_is_written_out(store: Path, encoding: str) -> None:
    env: dict[str, Any] = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    for words in (("show", "s1"), ("log", "(turn . _)", "--json")):
        said = program(store, *words, **env)
        assert (said.returncode, said.stderr) == (0, b"")
        text = said.stdout.decode(encoding)
        assert ("größer" if encoding != "ascii" else "gr\\xf6\\xdfer") in text
        assert ("漢字" if encoding == "utf-16" else "\\u6f22\\u5b57") in text


def test_ctrl_c_ends_any_command_with_130(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for name in ("sessions.list_sessions", "doctor.tell_signs", "verify.tell_verdict", "chat.hold_conversation"):
        monkeypatch.setattr(f"keeve.cli.{name}", interrupted)
    for words in (("ls",), ("doctor",), ("verify",), ("chat", "s1")):
        said = keeve(*words, "--store", store)
        assert (said.code, said.out, said.err) == (130, "", "")
