"""Environments for programs that know nothing of Keeve: each in a folder of its own, `.outside/NAME`, made once.

The one rule: what cannot be had is no failure, unless that was asked for (`make outside`): then nothing is left out.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parent.parent.parent
ALL = os.environ.get("KEEVE_OUTSIDE") == "all"
"""Whether a program that cannot be had is a failure."""

SECONDS = 600 if ALL else 150
"""How long the installation of one may take."""

PYTHON = {
    "openai": "openai==3.57.0",
    "openai-agents": "openai-agents==0.24.0",
    "llm": "llm==0.36",
    "hermes-agent": "hermes-agent==0.19.0",
}
NODE = {"openai-node": "openai@6.49.0"}


def missing(why: str) -> None:
    """A program cannot be had."""
    if ALL:
        pytest.fail(why)
    pytest.skip(why)


def environment(name: str) -> Path:
    """The folder of an environment, made if it is not there."""
    folder = ROOT / ".outside" / name
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers may want it
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _make(name, folder)
            (folder / "made").touch()
    return folder


def _make(name: str, folder: Path) -> None:
    if name in NODE:
        if shutil.which("npm") is None:
            missing("npm is not installed")
        folder.mkdir()
        (folder / "package.json").write_text('{"private": true}')
        _run(["npm", "install", "--no-audit", "--no-fund", NODE[name]], folder)
        return
    python, quiet = str(folder / "bin" / "python"), "--quiet"
    _run([find_uv_bin(), "venv", quiet, "--no-config", "--python", sys.executable, str(folder)], folder.parent)
    _run(
        [find_uv_bin(), "pip", "install", quiet, "--no-config", "--python", python, PYTHON[name]],
        folder,
        # Ten times as slow, and with what pip has been told of this machine.
        otherwise=[sys.executable, "-m", "pip", "--python", python, "install", quiet, PYTHON[name]],
    )


def _run(command: list[str], where: Path, otherwise: list[str] | None = None) -> None:
    """Run a command, and another one if it fails."""
    try:
        # uv trusts whom this machine trusts, as pip does.
        trusting = os.environ | {"UV_SYSTEM_CERTS": "1"}
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=SECONDS, env=trusting)
        why = f"could not be installed: {done.stderr[-500:]}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        why = "could not be installed in time"
    if why and otherwise:
        _run(otherwise, where)
    elif why:
        missing(f"{command[-1]} {why}")
