"""A test run opens no store but those that tests made.

A test that opens the store of the person who runs it can destroy work, and a variable alone cannot prevent
that: a child process with an environment of its own has lost it. So the signs of a test run are looked for in
this process and in all those above it. Under a test run a store can be opened only beneath a folder that
holds the file `.keeve-test-stores`, unless `KEEVE_ALLOW_ANY_STORE=1` is set here or in a process above.

The one rule: what counts is decided by pure functions over `Process`es, of which no more is kept than the
verdict needs (an environment may hold secrets); reading them from /proc is the last function. Where there is
no /proc, variables are all there is. A process that has cut itself off (its parent has ended, its environment
is new) cannot be told from one that never was a test's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePath
from typing import ClassVar

import attrs

from dataspace.errors import KeeveError

MARKER = ".keeve-test-stores"
SWITCH = "KEEVE_ALLOW_ANY_STORE"
SIGNS = ("KEEVE_TESTING", "PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER")

# Scripts and modules that run tests, and those that run another script or module given as their argument.
RUNNERS = {
    *("pytest", "py.test", "_pytest", "_jb_pytest_runner", "run_pytest_script", "unittest", "_jb_unittest_runner"),
    *("doctest", "nose2", "nosetests", "trial", "twisted.trial", "ward", "behave", "stestr", "testtools.run"),
    "zope-testrunner",
}
WRAPPERS = {"coverage", "debugpy", "pdb", "cProfile", "profile", "trace", "memray", "viztracer", "scalene"}
OPTIONS_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}


class TestRunGuard(KeeveError):
    """A test run asked for a store that is not one of its own; nothing was opened."""

    __test__: ClassVar[bool] = False  # its name begins like that of a test class, which it is not
    usage: ClassVar[bool] = True

    def __init__(self, store: Path, sign: str) -> None:
        self.store = store
        self.sign = sign
        super().__init__(
            f"{store} is not a store of tests, and this is a test run ({sign}). With pytest, "
            'give the test a store under the fixture store_folder (pytest_plugins = ["keeve.testing.plugin"] in the '
            "topmost conftest.py); else under keeve.testing.folder_for_stores(path), or put an empty file "
            f"{MARKER} into the folder of a store that tests may use; {SWITCH}=1 in the environment "
            "of whoever starts the tests lets them open any store"
        )


@attrs.frozen
class Process:
    """What a process says of tests: its runner, and those of our variables that it was started with."""

    runner: str | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict)
    pid: int = 0

    @classmethod
    def started_with(cls, argv: Sequence[str], environ: Mapping[str, str], pid: int = 0) -> Process:
        """The process with this command line and this environment."""
        return cls(runner_of(argv), {name: environ[name] for name in (*SIGNS, SWITCH) if name in environ}, pid)


def sign_of_tests(processes: Sequence[Process]) -> str | None:
    """What shows that these processes, from this one upwards, belong to a test run, or `None`."""
    for process in processes:
        where = f" in process {process.pid}" if process.pid else ""
        for name in SIGNS:
            if process.variables.get(name, "") not in ("", "0"):
                return f"{name} is set{where}"
        if process.runner:
            return f"{process.runner} runs{where}"
    return None


def any_store_is_allowed(processes: Sequence[Process]) -> bool:
    """Whether somebody among these processes was started with the switch that lets tests open any store."""
    return any(process.variables.get(SWITCH) == "1" for process in processes)


def runner_of(argv: Sequence[str]) -> str | None:
    """The test runner that a command line runs.

    >>> runner_of(["/usr/bin/python3", "-X", "dev", "-m", "pytest", "-q"])
    'pytest'
    >>> runner_of(["python", "/home/me/.venv/bin/keeve", "chat", "pytest"]) is None
    True
    """
    if not argv:
        return None
    program = _stem(argv[0])
    if program.startswith(("python", "pypy")):
        program, arguments = _run_by_python(argv[1:])
    else:
        arguments = argv[1:]
    if program in RUNNERS:
        return program
    if program in ("manage", "django", "django-admin") and "test" in arguments[:1]:
        return f"{program} test"
    if program in WRAPPERS:
        return next((_stem(each) for each in arguments if _stem(each) in RUNNERS), None)
    return None


def guard(path: Path) -> None:
    """Raise `TestRunGuard` if this is a test run and the store at `path` is not one that tests may open.

    Links are followed, so a link inside a folder for tests does not lead out of it. Costs microseconds where
    no tests run; the processes above are read once in the life of this one.
    """
    processes = (Process.started_with((), os.environ), *_ancestry())
    sign = sign_of_tests(processes)
    if sign is None or any_store_is_allowed(processes):
        return
    if not is_for_tests(path):
        raise TestRunGuard(path, sign)


def is_for_tests(path: Path) -> bool:
    """Whether the marker stands in this folder or in one above it, after links have been followed."""
    real = Path(os.path.realpath(path))
    return any(os.path.isfile(folder / MARKER) for folder in (real, *real.parents))


def _run_by_python(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The module or script that an interpreter with these arguments runs, and the arguments of that."""
    rest = list(arguments)
    while rest:
        first = rest.pop(0)
        if not first.startswith("-"):
            script = PurePath(first)
            return _stem(script.parent.name if script.name == "__main__.py" else first), rest
        option, value = _split_option(first)
        if option in ("-m", "-c"):
            module = value or (rest.pop(0) if rest else "")
            return (_stem(module) if option == "-m" else ""), rest
        if option in OPTIONS_WITH_VALUE and not value:
            rest = rest[1:]
    return "", ()


def _split_option(word: str) -> tuple[str, str]:
    """An option that takes a value, and the value if it is in the same word: `-Im`, `-Wdefault`."""
    if not word.startswith("--"):
        for at, letter in enumerate(word[1:], 1):
            if letter in "mcWX":
                return f"-{letter}", word[at + 1 :]
    return word, ""


def _stem(program: str) -> str:
    return PurePath(program).name.removesuffix(".py").removesuffix(".exe")


@cache
def _ancestry(proc: Path = Path("/proc")) -> tuple[Process, ...]:
    """This process as it was started, its parent, and so on upwards, as far as they may be read."""
    found: list[Process] = []
    pid = os.getpid()
    while pid > 0:
        folder = proc / str(pid)
        try:
            # The name of a program, in parentheses, may hold anything; what follows the last one is fixed.
            parent = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
            argv = _strings(folder / "cmdline")
        except (OSError, ValueError, IndexError):
            break  # no /proc here, or the process has just ended: what has been found so far stands
        try:
            environ = dict(each.split("=", 1) for each in _strings(folder / "environ") if "=" in each)
        except OSError:
            environ = {}  # another user's
        found.append(Process.started_with(argv, environ, pid))
        pid = parent
    return tuple(found)


def _strings(file: Path) -> list[str]:
    return [os.fsdecode(each) for each in file.read_bytes().split(b"\0")[:-1]]
