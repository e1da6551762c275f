"""The page on the command line, and the help: their examples run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest
import trio

from dataspace.errors import KeeveError
from keeve.cli.commands import app
from keeve.private_files import make_private
from tests.cli_runner import ROOT, keeve
from tests.cli_worlds import leave_a_turn_waiting, leave_asking

PAGE = (ROOT / "docs" / "command-line.md").read_text()
COMMANDS = sorted(name for name in app.resolved_commands() if not name.startswith("-"))


def examples(page: str) -> Iterator[tuple[str, str]]:
    """Each command of the page, and what is shown under it."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = example.partition("\n")
            yield command, shown


def carried_out(command: str) -> str:
    """What a command of the page says: `keeve …`, or `printf '…' | keeve …`."""
    before, bar, rest = command.rpartition(" | ")
    said = shlex.split(before)[1].replace("\\n", "\n") if bar else ""
    words = shlex.split(rest)
    assert words[0] == "keeve", command
    result = keeve(*words[1:], input=said)
    return result.out + result.err


def test_the_examples_of_the_page_run_and_say_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong, waiting = [], ""
    for command, shown in examples(PAGE):
        if command == "keeve effects":
            trio.run(leave_a_turn_waiting, Path("data"), "mailer")
            waiting = keeve("effects", "--json").json["effects"][0]["id"]
        if command.startswith("keeve token make"):
            make_private(Path("data/token"), b"what-a-server-has-made", lambda what: KeeveError(what))
        if command.startswith(("keeve approve", "keeve refuse")):
            trio.run(leave_asking, Path("data"), command.split()[2])
        command, shown = command.replace("EFFECT", waiting), shown.replace("settled EFFECT", f"settled {waiting}")
        got = carried_out(command)
        if not OutputChecker().check_output(shown, got, ELLIPSIS):
            wrong.append(f"$ {command}\nshown:\n{shown}\ngot:\n{got}")
    assert not wrong, "\n".join(wrong)


def test_the_page_has_each_command_with_an_example() -> None:
    used = {command.rpartition(" | ")[2].split()[1] for command, _ in examples(PAGE)}
    assert sorted(used) == COMMANDS
    for command in COMMANDS:
        assert f"`keeve {command}" in PAGE


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_shows_an_example_and_its_options(command: str) -> None:
    said = keeve(command, "--help")
    assert said.code == 0
    assert re.search(rf"^ +(printf .* \| )?keeve {command}\b", said.out, re.MULTILINE)
    for option in ("--store", "--json", "--debug", "KEEVE_STORE"):
        assert option in said.out


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_help_names_the_commands(words: tuple[str, ...]) -> None:
    said = keeve(*words)
    assert said.code == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", said.out)


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"\S+\n", keeve("--version").out)


def test_the_package_runs_as_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "keeve", "ls", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "keeve ls" in ran.stdout) == (0, True)
