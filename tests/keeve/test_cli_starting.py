"""How a command begins: the order of its words, and Ctrl-C before it has begun."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_runner import PROGRAM, ROOT, environment, keeve, keeve_process


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    assert keeve("chat", "s1", "--store", path, input="hello\n").code == 0
    return path


def test_what_every_command_takes_may_stand_before_it(store: Path) -> None:
    behind = keeve("show", "s1", "--store", store, "--json")
    assert keeve("--store", store, "--json", "show", "s1") == behind
    assert keeve(f"--store={store}", "show", "--json", "s1") == behind
    assert keeve("--debug", "--version").code == 0


def test_types_may_be_named_before_the_command(store: Path) -> None:
    said = keeve("--actors", "tests.cli_worlds:Waiter", "--store", store, "fork", "s1", "--into", "s2")
    assert said[:2] == (0, "s2\n")
    assert "--actors" in keeve("--actors", "tests.cli_worlds", "ls", "--store", store).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--limit", "3", "ls"), "--limit stands before the command: write keeve COMMAND --limit ..."),
        (("--store", "data"), "no command is named: write keeve COMMAND --store ..."),
        (("--json",), "no command is named"),
    ],
)
def test_an_option_at_another_place_is_refused_with_the_right_one(words: tuple[str, ...], message: str) -> None:
    said = keeve(*words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err


@pytest.mark.parametrize("program", [[sys.executable, "-m", "keeve"], ["keeve"]])
def test_ctrl_c_while_the_program_is_imported_ends_it_with_130_and_no_word(tmp_path: Path, program: list[str]) -> None:
    # What is imported on the way stands for the moment in which Ctrl-C comes.
    (tmp_path / "cyclopts.py").write_text(
        "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    )
    words = PROGRAM if program == ["keeve"] else program
    env = environment() | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ran = subprocess.run([*words, "ls"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("name", "before", "said"),
    [
        ("keeve", "gc.isenabled()", "False True True"),
        ("shop.py", "gc.isenabled()", "True True False"),
        ("keeve", "gc.disable()", "False False False"),
        ("shop.py", "gc.disable()", "False False False"),
    ],
)
def test_the_program_alone_looks_for_no_garbage_until_it_has_started(name: str, before: str, said: str) -> None:
    """Whether any is looked for at the start; and then, and whether all that is there is frozen."""
    code = (
        f"import gc, sys; sys.argv[0] = {name!r}; {before}; looked = []\n"
        "gc.callbacks.append(lambda *_: looked.append('actors' in sys.modules))\n"
        "import keeve.cli\n"
        "sys.argv[0] = '__main__.py'\n"  # as Python has it for `python -m keeve` by then
        "looks = any(looked); keeve.starting.has_started(); print(looks, gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    env = environment() | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert ran.stdout == f"{said}\n"


def test_a_program_that_imports_keeve_keeps_its_own_ctrl_c(tmp_path: Path) -> None:
    code = "import keeve, signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    env = environment() | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert ran.stdout == "True\n"


def test_ctrl_c_after_the_start_ends_what_goes_on_in_order(store: Path) -> None:
    with keeve_process("log", "(turn . _)", "--follow", "--store", store) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_conversation_in_which_nothing_is_said_says_how_to_begin_one(store: Path) -> None:
    said = keeve("chat", "--store", store, input="\n \n")
    assert (said.code, said.out) == (0, "")
    assert "nothing was said: run this at a terminal, or give it what is to be said" in said.err
    assert "nothing was said" not in keeve("chat", "s1", "--store", store, input="hello\n").err


def test_the_command_that_resumes_names_the_types_that_were_named(store: Path) -> None:
    words = ("chat", "s1", "--store", store, "--actors", "tests.cli_worlds:Waiter")
    assert f"keeve chat --store {store} --actors tests.cli_worlds:Waiter s1" in keeve(*words, input="hello\n").err
    assert "--actors" not in keeve(*words, input="hello\n", env={"KEEVE_ACTORS": "tests.cli_worlds"}).err
