"""`keeve completion`: shells, asked as they ask themselves."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Final

import pytest

from tests.cli_runner import keeve
from tests.cli_worlds import leave_fibers

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_keeve_and_what_there_is
printf '%s\\n' "${COMPREPLY[@]}"
"""


ASK_FISH = """
source $argv[1]
for line in $argv[2..]; complete -C $line | string replace -r '\\t.*' ''; echo .; end
"""

ZSHRC: Final = """
fpath=($ZDOTDIR ${(M)fpath:#*/Base} ${fpath:#*/Completion/*})
autoload -Uz compinit && compinit -u -D
zstyle ':completion:*' insert-tab false
compadd() {
  local -a found
  builtin compadd -O found "$@" 2>/dev/null
  (( $#found )) && print -rl -- "${found[@]}" >> $ZDOTDIR/offered
  builtin compadd "$@"
}
bindkey '^I' complete-word '^B' kill-whole-line
"""
"""TAB offers what there is, and notes it. The other key is none that a terminal takes itself before a shell is ready.
Where the completions of all programs are apart from what they stand on, they are not looked through."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a `keeve` that says what it was asked."""
    program = tmp_path / "keeve"
    program.write_text('#!/bin/sh\necho "$@" >> "$0.asked"\nprintf "s1\\nit is\\n"\n')
    program.chmod(0o755)
    return tmp_path


@cache
def script_of(shell: str) -> str:
    """The script for a shell."""
    said = keeve("completion", shell)
    assert said.code == 0
    return said.out


def script_in(folder: Path, shell: str, name: str) -> Path:
    """The same in a file."""
    path = folder / name
    path.write_text(script_of(shell))
    return path


def asked(folder: Path) -> list[str]:
    """What `keeve` was asked by now."""
    return [line.rstrip() for line in (folder / "keeve.asked").read_text().splitlines()]


@pytest.fixture
def script(folder: Path) -> Path:
    """The script for bash, beside that program."""
    return script_in(folder, "bash", "keeve.bash")


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
    assert asked(script.parent)[1] == "ls --ids --limit 200 --store elsewhere -- s"
    assert asked(script.parent)[-2:] == ["effects --calls --session s1", "effects --ids"]


def offered(folder: Path, *lines: str) -> list[str]:
    """What zsh offers for these, typed at a terminal one after another."""
    (folder / ".zshrc").write_text(ZSHRC)
    pid, terminal = pty.fork()
    if not pid:
        path = f"{folder}:/usr/bin:/bin"
        os.execve(str(shutil.which("zsh")), ["zsh", "-d", "-i"], {"ZDOTDIR": str(folder), "PATH": path, "TERM": "dumb"})
    late = Timer(60, os.kill, (pid, 9))
    late.start()
    try:
        os.write(terminal, "".join(f"{line}\t\x02" for line in lines).encode() + b"exit\r")
        with suppress(OSError):  # the terminal is gone with the shell
            while os.read(terminal, 4096):
                pass
        os.waitpid(pid, 0)
    finally:
        late.cancel()
        os.close(terminal)
    return (folder / "offered").read_text().splitlines()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh_completes_commands_options_and_ids(folder: Path) -> None:
    script_in(folder, "zsh", "_keeve")
    lines = ("keeve fork s1 --tu", "keeve --store elsewhere turn s", "keeve approve s1 ", "keeve snap")
    assert offered(folder, *lines) == ["--turn", "s1", "s1", "it is", "snapshot"]
    assert asked(folder) == ["ls --ids --limit 200 --store elsewhere -- s", "effects --calls --session s1"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_completes_commands_options_and_ids(folder: Path) -> None:
    script = script_in(folder, "fish", "keeve.fish")
    lines = ("snap", "show ", "--store elsewhere turn s", "approve s1 ", "resolve ", "log x --session s", "turn s1 zz")
    command = ["fish", "--no-config", "-c", ASK_FISH, str(script), *(f"keeve {line}" for line in lines)]
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)}
    said = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    found = [part.split("\n")[:-1] for part in said.stdout.split(".\n")[:-1]]
    assert found == [["snapshot"], ["it is", "s1"], ["s1"], ["it is", "s1"], ["it is", "s1"], ["s1"], []]
    sessions = "ls --ids --limit 200"
    assert asked(folder) == [
        *(sessions, f"{sessions} --store elsewhere"),
        *("effects --calls --session s1", "effects --ids", sessions),
    ]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_that_names_the_commands_and_asks_for_ids(shell: str) -> None:
    for words in ("snapshot", "--ids --limit 200", "effects --ids", "effects --calls --session"):
        assert words in script_of(shell)
    assert keeve("completion", "csh").code == 2


def test_ids_are_listed_alone(tmp_path: Path) -> None:
    for id in ("s1", "s2", "t1"):
        assert keeve("create", id, "--store", tmp_path).out == f"{id}\n"
    assert keeve("ls", "s", "--ids", "--store", tmp_path).out == "s1\ns2\n"


async def test_effects_and_calls_are_listed_alone(tmp_path: Path) -> None:
    await leave_fibers(tmp_path, w1=("for_a_person", "40"), w2=("for_tomorrow",))
    [effect] = keeve("effects", "--store", tmp_path, "--json").json["effects"]
    assert keeve("effects", "--ids", "--store", tmp_path).out == f"{effect['id']}\n"
    assert keeve("effects", "--calls", "--session", "w1", "--store", tmp_path).out == "c1\n"
    assert keeve("effects", "--calls", "--session", "w2", "--store", tmp_path).out == ""
