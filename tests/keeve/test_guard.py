"""Invariant 44: a test run can never open a store that is not its own.

Not even from a child process with a rebuilt environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from keeve import guard as guarding
from keeve.guard import (
    MARKER,
    SWITCH,
    Process,
    TestRunGuard,
    any_store_is_allowed,
    guard,
    runner_of,
    sign_of_tests,
)

ROOT = Path(guarding.__file__).parent.parent
ASK = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from keeve.guard import TestRunGuard, guard
try:
    guard(Path(sys.argv[1])); print("opened")
except TestRunGuard as error:
    print(error.sign)
"""


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds no marker and stands under none. It is only asked about, never made."""
    return Path(os.path.realpath(tmp_path_factory.getbasetemp())).parent / "a store of somebody's"


def ask_in_a_child(store: Path, environ: Mapping[str, str], *, by: Sequence[str] = ()) -> str:
    ran = subprocess.run(
        [*by, sys.executable, "-c", ASK, str(store)],
        env=dict(environ),
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


# What the verdict is


@pytest.mark.parametrize(
    "line",
    [
        "/venv/bin/pytest -q",
        "/venv/bin/python /venv/bin/pytest -q",
        "py.test",
        "python -m pytest",
        "python3.12 -mpytest",
        "python -X dev -W error -m pytest tests",
        "python -Wdefault -Im pytest",
        "python -m unittest discover",
        "python /lib/site-packages/pytest/__main__.py",
        "python -m coverage run -m pytest",
        "coverage run --branch -m unittest",
        "python -m pdb /venv/bin/pytest",
        "python manage.py test",
        "/opt/pycharm/_jb_unittest_runner.py --path x",
    ],
)
def test_a_command_line_that_runs_tests_is_known(line: str) -> None:
    assert runner_of(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "python",
        "python -",
        "python /venv/bin/keeve chat pytest",
        "python -m keeve chat -m pytest",
        "python -c import_pytest -m pytest",
        "python -X pytest run.py",
        "bash -c pytest",
        "vim test_pytest.py",
        "python manage.py runserver",
        "coverage report",
    ],
)
def test_a_command_line_that_only_mentions_tests_is_none(line: str) -> None:
    assert runner_of(line.split()) is None


@pytest.mark.parametrize("name", guarding.SIGNS)
def test_each_variable_of_a_runner_is_a_sign(name: str) -> None:
    assert sign_of_tests([Process.started_with((), {name: "x"})]) == f"{name} is set"


@pytest.mark.parametrize("value", ["", "0"])
def test_a_variable_that_says_no_is_no_sign(value: str) -> None:
    assert sign_of_tests([Process.started_with((), {"KEEVE_TESTING": value})]) is None


def test_a_runner_far_above_is_a_sign() -> None:
    above = [Process(pid=3), Process(pid=2), Process.started_with(["pytest"], {}, pid=1)]
    assert sign_of_tests(above) == "pytest runs in process 1"


def test_the_switch_counts_from_any_process_above() -> None:
    above = [Process.started_with(["pytest"], {}), Process.started_with(["bash"], {SWITCH: "1"})]
    assert any_store_is_allowed(above)


@pytest.mark.parametrize("value", ["", "0", "yes"])
def test_the_switch_says_yes_in_one_way_only(value: str) -> None:
    assert not any_store_is_allowed([Process.started_with((), {SWITCH: value})])


def test_nothing_of_an_environment_is_kept_but_our_variables() -> None:
    process = Process.started_with(["tool", "--token=canary"], {"SECRET": "canary", "KEEVE_TESTING": "1"})
    assert "canary" not in repr(process)


# What a test run may open


def test_a_store_outside_is_refused_with_what_to_do(outside: Path) -> None:
    with pytest.raises(TestRunGuard) as caught:
        guard(outside)
    assert caught.value.store == outside
    assert caught.value.usage
    for part in (
        str(outside),
        "PYTEST",
        MARKER,
        f"{SWITCH}=1",
        "folder_for_stores",
        "store_folder",
        "keeve.testing.plugin",
    ):
        assert part in str(caught.value)


def test_a_refusal_leaves_nothing_behind(outside: Path) -> None:
    with pytest.raises(TestRunGuard):
        guard(outside)
    assert not outside.exists()


def test_a_store_under_a_marked_folder_is_opened_at_any_depth(store_folder: Path) -> None:
    guard(store_folder)
    guard(store_folder / "deeper" / "still" / "store")


def test_a_store_under_tmp_path_is_opened(tmp_path: Path) -> None:
    guard(tmp_path / "store")


def test_a_link_does_not_lead_out_of_a_marked_folder(store_folder: Path, outside: Path) -> None:
    (store_folder / "link").symlink_to(outside)
    with pytest.raises(TestRunGuard):
        guard(store_folder / "link")


def test_dots_do_not_lead_out_of_a_marked_folder(store_folder: Path, outside: Path) -> None:
    dots = os.path.relpath(outside, store_folder)
    with pytest.raises(TestRunGuard):
        guard(store_folder / dots)


def test_a_folder_named_like_the_marker_marks_nothing(outside: Path) -> None:
    with tempfile.TemporaryDirectory(dir=outside.parent) as unmarked:
        (Path(unmarked) / MARKER).mkdir()
        assert not guarding.is_for_tests(Path(unmarked))


def test_the_switch_in_our_environment_opens_any_store(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "1")
    guard(outside)


# Children


def test_a_child_with_our_environment_is_covered(outside: Path) -> None:
    assert ask_in_a_child(outside, os.environ).endswith("is set")


def test_a_child_with_an_empty_environment_is_covered(outside: Path) -> None:
    assert " in process " in ask_in_a_child(outside, {})


def test_a_grandchild_with_an_empty_environment_is_covered(outside: Path) -> None:
    assert ask_in_a_child(outside, {}, by=["/bin/sh", "-c", 'env -i "$0" "$@"; exit $?']) != "opened"


def test_a_child_with_an_empty_environment_opens_stores_of_tests(store_folder: Path) -> None:
    assert ask_in_a_child(store_folder / "store", {}) == "opened"


def test_the_switch_reaches_a_child_with_a_rebuilt_environment(outside: Path) -> None:
    rebuild = ["/usr/bin/env", f"{SWITCH}=1", "/bin/sh", "-c", 'env -i "$0" "$@"; exit $?']
    assert ask_in_a_child(outside, os.environ, by=rebuild) == "opened"


# Reading the processes


def process_folder(proc: Path, pid: int, parent: int, argv: Sequence[str], environ: bytes | None) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (odd) 9 (name) S {parent} 1 1 0")
    (proc / str(pid) / "cmdline").write_bytes(b"".join(each.encode() + b"\0" for each in argv))
    if environ is not None:
        (proc / str(pid) / "environ").write_bytes(environ)


def test_without_proc_there_are_no_processes_above(tmp_path: Path) -> None:
    assert guarding._ancestry(tmp_path) == ()


def test_processes_are_read_upwards_whatever_their_names(tmp_path: Path) -> None:
    process_folder(tmp_path, os.getpid(), 7, ["python"], b"PYTEST_VERSION=9\0=odd\0odd\0A=\xff\0")
    process_folder(tmp_path, 7, 0, ["python", "-m", "pytest"], b"")
    here, above = guarding._ancestry(tmp_path)
    assert here.variables == {"PYTEST_VERSION": "9"}
    assert above == Process("pytest", {}, 7)


def test_a_process_whose_environment_is_not_ours_to_read_still_counts(tmp_path: Path) -> None:
    process_folder(tmp_path, os.getpid(), 0, ["pytest"], None)
    assert guarding._ancestry(tmp_path) == (Process("pytest", {}, os.getpid()),)


def test_a_process_that_ends_while_we_read_ends_the_list(tmp_path: Path) -> None:
    process_folder(tmp_path, os.getpid(), 7, ["python"], b"")
    assert len(guarding._ancestry(tmp_path)) == 1
