"""Tools of servers and the host that has them: asked for from any thread, and never holding it up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from actors.mcp import McpTools, NotFetched, ServerUnavailable
from actors.tools import Tools
from keeve import Session, blocking
from tests.actors.test_tools_mcp import SERVER
from vat.devices.vault import Vault


def test_another_thread_than_the_hosts_has_them_fetched_there(store_folder: Path) -> None:
    tools, alone = Tools(McpTools(SERVER, secrets={"TOKEN": "bank"})), McpTools(SERVER)
    vault = Vault({"bank": lambda: "canary-12345"})
    with pytest.raises(NotFetched, match=r"with keeve\.blocking call tools\.fetch_from_thread\(\)"):
        asyncio.run(tools.fetch(vault.resolve))
    with pytest.raises(ServerUnavailable, match="no host runs that it is a device of"):
        tools.fetch_from_thread()
    with blocking.open_host(store_folder / "s", devices={"tools": tools, "alone": alone}, vault=vault) as host:
        schemas = tools.fetch_from_thread(vault.resolve)
        session = host.spawn(Session, "s1", tools=tools)
        assert list(session.tools) == schemas == tools.schemas
        assert alone.fetch_from_thread() == schemas
        assert (
            tools.fetch_from_thread() == schemas
        )  # by the connection that there is, for which no credential is looked up
    for ended in (tools, alone):
        with pytest.raises(ServerUnavailable, match="no host runs that it is a device of"):
            ended.fetch_from_thread()


def test_the_package_is_imported_in_a_thread_which_holds_no_host_up() -> None:
    code = f"""
import sys, threading, trio
from actors.mcp import McpTools

class Noting:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "httpx2"):
            threads.add(threading.current_thread())

async def main():
    async with McpTools({SERVER!r}) as tools:
        sys.meta_path.insert(0, Noting())
        await tools.fetch()

threads = set()
trio.run(main)
assert threads and threading.main_thread() not in threads, threads
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


async def test_what_a_server_says_of_its_tools_has_no_credential_in_it() -> None:
    vault = Vault({"bank": lambda: "canary-12345"})
    code = (
        f"import os, runpy, sys; sys.argv = [{SERVER[1]!r}]; there = runpy.run_path({SERVER[1]!r})\n"
        "there['server'].tool(description='It has ' + os.environ['TOKEN'])(there['pid'].__class__("
        "there['pid'].__code__, there, 'told'))\n"
        "there['server'].run()"
    )
    async with Tools(McpTools([sys.executable, "-c", code], secrets={"TOKEN": "bank"})) as tools:
        said = [schema["function"]["description"] for schema in await tools.fetch(vault.resolve)]
    assert "It has ‹credential bank›" in said


async def test_nor_has_what_it_says_when_it_cannot_be_asked() -> None:
    vault = Vault({"bank": lambda: "canary-12345"})
    failing = [sys.executable, "-c", "import os, sys; sys.exit('no ' + os.environ['TOKEN'])"]
    async with Tools(McpTools(failing, secrets={"TOKEN": "bank"})) as tools:
        for ask in (lambda: tools.fetch(vault.resolve), lambda: tools.ready(vault)):
            with pytest.raises(ServerUnavailable, match="It said: no ‹credential bank›"):
                await ask()
