"""Programs of others, unchanged, with our server as their service: each in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.model_server import model_server, whole
from tests.outside.environments import environment
from tests.server_process import Server, server

CLIENTS = Path(__file__).parent / "clients"

SAID = ["one", "two", "three", "four", ["message", "message", "message"], "six", "seven"]
"""What the packages of OpenAI are told by an echo."""


def variables(running: Server, home: Path) -> dict[str, str]:
    """The environment of a client: where the service is, and a home without anybody's settings."""
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "HERMES", "LLM"))}
    return kept | {"OPENAI_BASE_URL": f"{running.address}v1", "OPENAI_API_KEY": running.token, "HOME": str(home)}


def run(command: list[str | Path], env: dict[str, str], where: Path) -> str:
    """What a program says; it has to end well."""
    done = subprocess.run(list(map(str, command)), env=env, cwd=where, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_the_openai_package(store_folder: Path, tmp_path: Path) -> None:
    made = environment("openai")
    with server(store_folder / "s") as running:
        told = run([made / "bin/python", CLIENTS / "openai_sync.py"], variables(running, tmp_path / "home"), tmp_path)
    assert json.loads(told) == SAID


def test_the_openai_package_of_node(store_folder: Path, tmp_path: Path) -> None:
    made = environment("openai-node")
    script = made / "client.mjs"  # a package is looked for from where the script is
    script.write_text((CLIENTS / "openai_node.mjs").read_text())
    with server(store_folder / "s") as running:
        told = run(["node", script], variables(running, tmp_path / "home"), made)
    assert json.loads(told) == SAID


async def test_the_agents_sdk_with_its_conversation_session_and_a_tool(store_folder: Path, tmp_path: Path) -> None:
    made = await trio.to_thread.run_sync(environment, "openai-agents")
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
    answers = (
        whole({"role": "assistant", "content": None, "tool_calls": [call]}),
        whole({"role": "assistant", "content": "It rains."}),
        whole({"role": "assistant", "content": "You are welcome."}),
    )
    async with model_server(*answers) as model:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": model.url}
        with server(store_folder / "s", env=env) as running:
            command = [made / "bin/python", CLIENTS / "agents_session.py"]
            told = await trio.to_thread.run_sync(partial(run, command, variables(running, tmp_path / "home"), tmp_path))
        last: list[Any] = model.requests[-1].body["messages"]
    kinds = ["message", "function_call", "function_call_output", "message", "message", "message"]
    assert json.loads(told) == ["It rains.", "You are welcome.", kinds, 5]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert last[3]["content"] == "rain in Ulm"


@pytest.mark.parametrize("streaming", [True, False])
def test_llm(store_folder: Path, tmp_path: Path, streaming: bool) -> None:
    made = environment("llm")
    with server(store_folder / "s") as running:
        env = variables(running, tmp_path / "home") | {"LLM_USER_PATH": str(tmp_path)}
        models = f'- model_id: keeve\n  model_name: model\n  api_base: "{running.address}v1"\n  api_key_name: keeve\n'
        (tmp_path / "extra-openai-models.yaml").write_text(models)
        run([made / "bin/llm", "keys", "set", "keeve", "--value", running.token], env, tmp_path)
        how = [] if streaming else ["--no-stream"]
        assert run([made / "bin/llm", "-m", "keeve", *how, "one"], env, tmp_path) == "one"
        assert run([made / "bin/llm", "-m", "keeve", *how, "-c", "two"], env, tmp_path) == "two"


def test_hermes_in_one_shot(store_folder: Path, tmp_path: Path) -> None:
    made = environment("hermes-agent")
    home = tmp_path / "hermes"
    home.mkdir()
    with server(store_folder / "s") as running:
        env = variables(running, tmp_path / "home") | {"HERMES_HOME": str(home)}
        (home / "config.yaml").write_text(
            f"model:\n  provider: custom\n  default: model\n  base_url: {running.address}v1\n"
            f"  api_key: {running.token}\n  context_length: 128000\n"
        )
        said = run([made / "bin/hermes", "-z", "Say it again.", "--ignore-rules"], env, tmp_path)
    assert said == "Say it again."
