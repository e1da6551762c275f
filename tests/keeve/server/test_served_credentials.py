"""Credentials that settings name: tools of a server find them in its vault, nobody elsewhere (Invariant 20)."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actors.test_tools_mcp import SERVER
from tests.cli_runner import Said, keeve
from tests.keeve.canaries import found
from tests.server_process import server

MODULE = f"""
from keeve import Actor, Effect, McpTools, Toolbox, Tools, actor, tool

@tool
async def order(what: str, effect: Effect) -> str:
    '''Order.'''
    key = effect.credential(what)
    return f"{{len(key)}} {{key}}"

tools = Tools(order, McpTools({SERVER}, prefix="calc_", secrets={{"TOKEN": "bank"}}))

@actor("ordering.one", version=1)
class One(Actor):
    tools: Toolbox

    async def turn(self, text: str) -> str:
        name, _, what = text.partition(" ")
        arguments = '{{"what": "' + what + '"}}' if what else ""
        call = {{"id": "c", "type": "function", "function": {{"name": name, "arguments": arguments}}}}
        return await self.tools.call(call)
"""
SETTINGS = """
store = "data"
tools = "ordering:tools"
actors = ["ordering"]
[credentials.shop]
variable = "SHOP_KEY"
[credentials.bank]
file = "keys/bank"
"""
SHOP, BANK, ROTATED = "canary-shop-58a1", "canary-bank-91f3", "canary-rotated-bank-02c7"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with a file of settings, a module of tools that need credentials, and the file of one."""
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    (tmp_path / "ordering.py").write_text(MODULE)
    (tmp_path / "server.toml").write_text(SETTINGS)
    (tmp_path / "keys").mkdir()
    keep(tmp_path, BANK)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("ordering", None)


def keep(folder: Path, value: str, mode: int = 0o600) -> None:
    """The value of the credential in the file is this from now on."""
    new = folder / "keys" / "new"
    new.write_text(f"{value}\n")
    new.chmod(mode)
    os.replace(new, folder / "keys" / "bank")


def said_nowhere(folder: Path, said: list[Said]) -> None:
    """None of the values is in a file but the one that keeps it, nor in what was said."""
    (folder / "keys" / "bank").unlink()
    assert any(path.suffix == ".seg" for path in folder.rglob("*"))
    assert found(folder, SHOP, BANK, ROTATED) == []
    texts = "".join(each.out + each.err for each in said)
    assert not any(value in texts for value in (SHOP, BANK, ROTATED))


def test_a_servers_tools_find_credentials_where_its_settings_say_and_those_that_are_rotated(folder: Path) -> None:
    said: list[Said] = []

    def ask(*words: str) -> Said:
        said.append(keeve(*words, "--store", folder / "data"))
        return said[-1]

    with server(folder / "data", "--config", "server.toml", env={"SHOP_KEY": SHOP}) as running:
        assert ask("create", "s1", "--type", "ordering.one").code == 0
        assert ask("turn", "s1", "order shop").out == f"{len(SHOP)} ‹credential shop›\n"
        assert ask("turn", "s1", "order bank").out == f"{len(BANK)} ‹credential bank›\n"
        assert ask("turn", "s1", "calc_secret").out == "the key is ‹credential bank›\n"
        keep(folder, ROTATED)
        assert ask("turn", "s1", "order bank").out == f"{len(ROTATED)} ‹credential bank›\n"
        refused = ask("turn", "s1", "order nix")
        assert refused.code == 1
        assert "this host's vault has bank, shop; say where it is in the file of settings" in refused.err
        assert "[credentials.nix]" in refused.err
        ask("show", "s1"), ask("log", "--session", "s1"), ask("state", "s1", "--json")
        assert running.stop() == 0
    said_nowhere(folder, said)


def test_commands_that_have_the_store_to_themselves_have_them_too(folder: Path) -> None:
    how, env = ("--config", "server.toml"), {"SHOP_KEY": SHOP}
    said = [
        keeve("create", "s1", "--type", "ordering.one", *how, env=env),  # its tools are asked for with a credential
        keeve("turn", "s1", "order shop", *how, env=env),
        keeve("turn", "s1", "calc_secret", *how, env=env),
        keeve("config", *how, env=env),
    ]
    assert [each.code for each in said] == [0, 0, 0, 0], said
    assert [each.out for each in said[1:3]] == [
        f"{len(SHOP)} ‹credential shop›\n",
        "the key is ‹credential bank›\n",
    ]
    said_nowhere(folder, said)


@pytest.mark.parametrize(
    ("mode", "env", "why"),
    [
        (0o644, {"SHOP_KEY": SHOP}, "credentials.bank (file server.toml): keys/bank has mode 0644"),
        (0o600, {}, "credentials.shop (file server.toml): the environment variable SHOP_KEY is not set"),
        (
            0o600,
            {"SHOP_KEY": SHOP, "KEEVE_MODEL": "m", "KEEVE_MODEL_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "x"},
            "credentials.model (file server.toml): a model's key has that name",
        ),
    ],
)
def test_one_that_cannot_be_had_is_named_at_the_start_and_leaves_no_store(
    folder: Path, mode: int, env: dict[str, str], why: str
) -> None:
    keep(folder, BANK, mode)
    if "a model's" in why:
        (folder / "server.toml").write_text(f'{SETTINGS}[credentials.model]\nvariable = "SHOP_KEY"\n')
    told = [*logging.getLogger("keeve").handlers]
    said = keeve("serve", "--config", "server.toml", env=env)
    assert said.code == 2
    assert why in said.err
    assert logging.getLogger("keeve").handlers == told  # or the tests after it would tell a stream that is no more
    assert BANK not in said.err
    assert not (folder / "data").exists()
