"""`keeve completion`: bash, asked as it asks itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli_runner import keeve

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_keeve_and_what_there_is
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script, and beside it a `keeve` that says what it was asked."""
    folder = tmp_path_factory.mktemp("completion")
    path = folder / "keeve.bash"
    path.write_text(keeve("completion", "bash").out)
    program = folder / "keeve"
    program.write_text('#!/bin/sh\necho "$@" >> "$0.asked"\nprintf "s1\\nit is\\n"\n')
    program.chmod(0o755)
    return path


def completed(script: Path, *words: str) -> list[str]:
    """What bash makes of the last of these words."""
    command = ["bash", "-c", ASK, "bash", str(script), "keeve", *words]
    path = f"{script.parent}:/usr/bin:/bin"
    ran = subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.split("\n")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_ids_of_sessions(script: Path) -> None:
    assert completed(script, "snap") == ["snapshot"]
    assert "--turn" in completed(script, "fork", "s1", "--t")
    assert completed(script, "show", "") == ["s1", "it\\ is"]
    assert completed(script, "--store", "elsewhere", "turn", "s") == ["s1"]
    assert completed(script, "log", "(turn . _)", "--session", "s") == ["s1"]
    assert completed(script, "turn", "s1", "hel") == [""]
    assert completed(script, "--st") == ["--store"]
    assert {"--server", "--json", "--token-file"} <= set(completed(script, "--"))
    assert completed(script, "--store", "elsewhere", "snap") == ["snapshot"]
    assert completed(script, "approve", "s1", "it") == ["it\\ is"]
    assert completed(script, "resolve", "s") == ["s1"]
    asked = (script.parent / "keeve.asked").read_text().splitlines()
    assert asked[1] == "ls --ids --limit 200 --store elsewhere -- s"
    assert asked[-2:] == ["effects --calls --session s1", "effects --ids"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_that_names_the_commands(shell: str) -> None:
    said = keeve("completion", shell)
    assert said.code == 0
    assert "snapshot" in said.out
    assert keeve("completion", "csh").code == 2


def test_ids_are_listed_alone(tmp_path: Path) -> None:
    for id in ("s1", "s2", "t1"):
        assert keeve("create", id, "--store", tmp_path).out == f"{id}\n"
    assert keeve("ls", "s", "--ids", "--store", tmp_path).out == "s1\ns2\n"
