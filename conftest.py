"""What holds for every test here, doctests included: a store under `tmp_path` may be opened, and one seed is used.

The seed of a run is chosen once, for all of its processes, and printed; `KEEVE_SEED` replays it.
"""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Generator

import hypothesis
import pytest

from keeve.testing import folder_for_stores

pytest_plugins = ["keeve.testing.plugin"]


@pytest.fixture(scope="session", autouse=True)
def _stores_under_tmp_path_are_for_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder_for_stores(tmp_path_factory.getbasetemp())


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: the processes that tests start would not hear Ctrl-C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile("keeve", deadline=None)
hypothesis.settings.load_profile("keeve")

os.environ.setdefault("KEEVE_SEED", str(random.SystemRandom().randrange(1 << 32)))


def _is_spacious(memory: str) -> bool:
    """Whether there is such a folder, with room for all stores of a run, whose programs may be run."""
    if not os.access(memory, os.W_OK):
        return False
    found = os.statvfs(memory)
    return found.f_bavail * found.f_frsize > 4e9 and not found.f_flag & os.ST_NOEXEC


if os.environ.get("KEEVE_CRASH") != "full" and _is_spacious("/dev/shm"):
    # No test shows anything by a real disk's having been waited for: what a power cut leaves of files is the matter of
    # `CrashFiles` and of a disk that tests make themselves.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")


def pytest_report_header() -> str:
    return f"KEEVE_SEED={os.environ['KEEVE_SEED']}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: it is not looked through for garbage, now or whenever a test leaves some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
