"""The settings of a server, named to commands that have its store to themselves: the same file, read the same way."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.cli_runner import Said, keeve
from tests.model_server import chunk, model_server, stream, streamed
from tests.served_stores import asked, served_store

TOOLS = """
from keeve import Actor, Toolbox, Tools, actor, tool

@tool
def add(a: int, b: int) -> int:
    '''Add.'''
    return a + b

tools = Tools(add)

@actor("summer.agent", version=1)
class Summer(Actor):
    tools: Toolbox
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with a module of tools, a file of settings with a model, and a store that the file names."""
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    (tmp_path / "summing.py").write_text(TOOLS)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("summing", None)


def settings(folder: Path, url: str = "http://127.0.0.1:9/v1", tools: str = "summing:tools") -> Path:
    file = folder / "server.toml"
    file.write_text(f'store = "elsewhere"\ntools = "{tools}"\nactors = ["summing"]\n[models.small]\nurl = "{url}"\n')
    return file


async def run(*words: str | Path, input: str = "") -> Said:
    return await trio.to_thread.run_sync(lambda: keeve(*words, input=input))


async def test_a_command_has_the_models_tools_and_store_of_the_file(folder: Path) -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    calls = stream(chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls"))
    async with model_server(calls, streamed("three"), streamed("well")) as model:
        file = settings(folder, model.url)
        assert (await run("create", "s1", "--model", "small", "--config", file)).out == "s1\n"
        said = await run("turn", "s1", "1 and 2?", "--config", file)
        assert said == (0, "three\n", "")
        assert [request.body["model"] for request in model.requests] == ["small", "small"]
        assert model.requests[0].body["tools"][0]["function"]["name"] == "add"
        assert model.requests[1].body["messages"][-1]["content"] == "3"
        talked = await run("chat", "s1", "--config", file, input="hello\n")
        assert talked[:2] == (0, "well\n")
        assert f"resume it with: keeve chat --store {folder / 'elsewhere'} --config {file} s1" in talked.err
    assert keeve("ls", "--ids", "--store", folder / "elsewhere").out == "s1\n"


def test_what_a_session_begins_with_is_what_it_begins_with_at_a_server(folder: Path) -> None:
    file = settings(folder)
    assert keeve("create", "a1", "--type", "summer.agent", "--config", file).code == 0
    assert keeve("create", "s1", "--tools", "summing:tools", "--store", "elsewhere").code == 0
    (schema,) = keeve("state", "s1", "--store", "elsewhere", "--json").json["fields"]["tools"]
    assert schema["function"]["name"] == "add"
    refused = keeve("create", "s2", "--model", "nix", "--config", file)
    assert (refused.code, "there is no model 'nix' here: use one that is there" in refused.err) == (2, True)
    assert keeve("create", "s2", "--model", "nix", "--store", "elsewhere").code == 0  # its host is somebody's program


@pytest.mark.parametrize(
    ("tools", "words", "env", "said"),
    [
        ("no.such:tools", (), {}, "tools (file server.toml) no.such:tools: they cannot be had"),
        ("summing:tools", ("--tools", "no.such:t"), {}, "--tools no.such:t: they cannot be had"),
        ("summing:tools", (), {"KEEVE_SERVER_TOOLS": "no.such"}, "KEEVE_SERVER_TOOLS no.such: they cannot be had"),
        ("summing:tools", (), {"KEEVE_ACTORS": "no.such"}, "KEEVE_ACTORS no.such: it cannot be imported"),
        ("summing:tools", ("--actors", "no.such"), {}, "--actors no.such: it cannot be imported"),
    ],
)
def test_what_cannot_be_had_is_named_as_it_was_said(
    folder: Path, tools: str, words: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    settings(folder, tools=tools)
    for command in (("create", "s1"), ("serve",)):
        refused = keeve(*command, *words, "--config", "server.toml", env=env)
        assert (refused.code, refused.out) == (2, "")
        assert f"keeve: {said}" in refused.err
    assert not (folder / "elsewhere").exists()


async def test_a_server_has_its_own(folder: Path) -> None:
    async with served_store(folder / "served"):
        made = await asked("create", "s1", "--tools", "no.such:tools", "--store", folder / "served")
        assert (made.code, made.out) == (0, "s1\n")
        assert "its own types and tools count: --tools no.such:tools is passed over" in made.err
        refused = await asked("create", "s2", "--type", "nope", "--actors", "nope", "--store", folder / "served")
        assert "--actors nope is passed over" in refused.err
        assert "keeve.session" in refused.err
        assert "keeve.approvals" not in refused.err  # no session is made of a part


def test_config_says_of_the_store_whether_a_flag_or_which_variable_names_it(folder: Path) -> None:
    env = {"KEEVE_STORE": "there", "KEEVE_SERVER_STORE": "here"}
    for words, source in (((), "KEEVE_STORE"), (("elsewhere",), "flag"), (("--store", "elsewhere"), "flag")):
        [store] = [
            each for each in keeve("config", *words, "--json", env=env).json["settings"] if each["name"] == "store"
        ]
        assert store == {"name": "store", "value": "elsewhere" if words else "there", "source": source}
