"""Each example runs to its end, in a folder of its own, with nothing on the standard error.

That of the agent, which is killed, also with a model behind an endpoint that speaks OpenAI's protocol.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from examples.agent import Script
from tests.cli_runner import environment
from tests.model_server import model_server, whole

EXAMPLES = Path(__file__).parent.parent / "examples"
AGENT = EXAMPLES / "agent.py"
OTHERS = sorted({*EXAMPLES.glob("*.py")} - {AGENT})
KEY = "sk-canary-1f2e3d4c5b6a"


@pytest.mark.parametrize("example", OTHERS, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    # Not where somebody's conversations are, by default.
    assert [path.name for path in tmp_path.iterdir()] == ["data-examples"]


async def agent(folder: Path, **env: str) -> tuple[str, str]:
    """What the show of the agent says, and what its tools have done."""
    ran = await trio.run_process(
        [sys.executable, AGENT, "my/trip"], cwd=folder, env=environment(env), capture_stdout=True, capture_stderr=True
    )
    assert ran.stderr == b""
    return ran.stdout.decode(), (folder / "my" / "trip" / "calls.txt").read_text()


DONE = ["find_trains Oslo", "reserve R20", "find_trains Oslo", "pay R20 40"]


async def test_the_agent_is_killed_twice_and_calls_each_tool_as_often_as_the_model_asked(tmp_path: Path) -> None:
    said, done = await agent(tmp_path)
    assert said.count("It is killed.") == 2
    assert done.splitlines() == DONE
    assert "nobody knows whether it took effect" in said
    assert "answer: You leave at 8:05 with R20." in said


@pytest.mark.parametrize(("folder", "what"), [("file/trip", "is no folder"), (".", "is not empty")])
def test_the_agent_says_which_folder_it_cannot_use(tmp_path: Path, folder: str, what: str) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, AGENT, folder]
    ran = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"{folder} {what}")
    assert ran.stderr.endswith("name another one\n")


def test_the_agent_that_is_given_no_folder_takes_a_new_one_elsewhere(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    env = environment({"TMPDIR": str(elsewhere)})
    ran = subprocess.run([sys.executable, AGENT], cwd=here, env=env, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(here.iterdir()) == []
    [made] = elsewhere.iterdir()
    assert ran.stdout.endswith(f"All of it is in {made}\n")


def test_the_agent_that_is_interrupted_ends_without_a_traceback(tmp_path: Path) -> None:
    """Ctrl-C while a tool runs: the next start goes on."""
    command = [sys.executable, AGENT, "trip", "serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), text=True, **pipes) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("  tool: reserve"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert errors == ""
    assert process.returncode == 130


async def test_the_agent_does_the_same_with_a_model_behind_an_endpoint(tmp_path: Path) -> None:
    async with model_server(*(whole(message) for message in Script.says)) as server:
        settings = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": server.url, "KEEVE_MODEL_KEY": "THE_KEY", "THE_KEY": KEY}
        said, done = await agent(tmp_path, **settings)
    assert said.count("It is killed.") == 2
    assert done.splitlines() == DONE
    assert "answer: You leave at 8:05 with R20." in said
    assert len(server.requests) == len(Script.says)  # nothing was asked twice
    last = server.requests[-1]
    assert last.headers["authorization"] == f"Bearer {KEY}"
    assert [each["function"]["name"] for each in last.body["tools"]] == ["find_trains", "reserve", "pay"]
    unknown, paid = last.body["messages"][4], last.body["messages"][-1]
    assert "outcome of this call is unknown" in unknown["content"]
    assert (paid["tool_call_id"], paid["content"]) == ("call_pay", "paid")
    assert files_with(KEY, tmp_path) == []


def files_with(text: str, folder: Path) -> list[Path]:
    """The files under a folder in which a text stands."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
