"""What is said of a tool is said of one that is there: a name that is mistyped leaves no call without approval."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from actors.mcp import McpTools, NotFetched, ServerGone
from actors.tools import ApprovalWanted, BadTool, Tools
from keeve import Session, blocking
from tests.actors.test_tools_mcp import SERVER
from tests.actors.toolcalls import run
from tests.server_worlds import world
from vat.devices.devices import Policy
from vat.devices.vault import Vault


def here() -> str:
    return "here"


@pytest.mark.parametrize("given", ["here", "m_pid", b"m_pid", None, 3, [1], [["m_pid"]]])
def test_what_needs_approval_is_a_list_of_names(given: Any) -> None:
    with pytest.raises(BadTool, match=r"^Tools cannot .* approval is a list of names of tools: give approval=\["):
        Tools(here, approval=given)
    with pytest.raises(BadTool, match=r"^McpTools cannot .* approval is a list of names of tools: give approval=\["):
        McpTools(SERVER, prefix="m_", approval=given)


def test_any_row_of_names_is_one() -> None:
    for given in (["here"], ("here",), {"here"}, iter(["here"])):
        assert Tools(here, approval=given).variant(_call("here")) == ("here?", Policy(on_crash="retry"))


@pytest.mark.parametrize("said", [{"approval": ["pid"]}, {"policies": {"pid": Policy(timeout=1)}}])
def test_a_name_without_the_prefix_is_refused_with_the_one_that_a_model_uses(said: Any) -> None:
    with pytest.raises(BadTool, match=r"^pid cannot be a tool: .* begin with 'm_': give the name .* as 'm_pid'$"):
        McpTools(SERVER, prefix="m_", **said)


@pytest.mark.parametrize("said", [{"approval": ["m_pdi"]}, {"policies": {"m_pdi": Policy(timeout=1)}}])
async def test_a_name_that_no_tool_has_is_refused_when_they_are_known_and_none_is_called(said: Any) -> None:
    source = McpTools(SERVER, prefix="m_", **said)
    tools, what = Tools(here, source), r"^m_pdi cannot be a tool: .* it is not here; there are .*m_pid"
    async with tools:
        with pytest.raises(BadTool, match=what):  # nobody has fetched anything: a session has the schemas as data
            await run(tools, "m_pid")
        for ask in (tools.fetch, source.fetch, lambda: tools.ready(Vault())):
            with pytest.raises(BadTool, match=what):
                await ask()
        with pytest.raises(BadTool, match=what):
            await run(tools, "m_add_up", {"a": 1}, approved=True)
        with pytest.raises(NotFetched):
            assert tools.schemas
        assert await run(tools, "here") == "here"


async def test_a_server_that_comes_back_without_a_tool_that_needs_approval_is_not_called(tmp_path: Path) -> None:
    later = tmp_path / "later"
    code = (
        f"import pathlib, runpy, sys; sys.argv = [{SERVER[1]!r}]; there = runpy.run_path({SERVER[1]!r})\n"
        f"pathlib.Path({str(later)!r}).exists() and there['server'].remove_tool('pid')\n"
        "there['server'].run()"
    )
    async with Tools(McpTools([sys.executable, "-c", code], approval=["pid"])) as tools:
        await tools.fetch()
        assert await run(tools, "add_up", {"a": 1}) == "2"
        later.touch()
        with pytest.raises(ServerGone):
            await run(tools, "die")
        with pytest.raises(BadTool, match=r"^pid cannot be a tool: .* it is not here"):
            await run(tools, "add_up", {"a": 1})


async def test_what_is_named_as_it_is_asks_a_person() -> None:
    async with Tools(McpTools(SERVER, prefix="m_", approval=["m_pid"], policies={"m_hang": Policy()})) as tools:
        assert "m_pid" in [schema["function"]["name"] for schema in await tools.fetch()]
        with pytest.raises(ApprovalWanted):
            await run(tools, "m_pid")


def test_a_session_gets_no_such_tools(store_folder: Path) -> None:
    tools = Tools(McpTools(SERVER, prefix="m_", approval=["m_pdi"]))
    with blocking.open_host(store_folder / "s", devices={"tools": tools}) as host:
        with pytest.raises(BadTool):
            host.spawn(Session, "s1", tools=tools.fetch_from_thread())
        assert not host.sessions()


async def test_over_http_it_is_the_servers_set_up_and_its_log_names_it() -> None:
    tools = Tools(McpTools(SERVER, prefix="m_", approval=["m_pdi"]))
    async with world(devices={"tools": tools}) as w:
        answer = await w.ann.post("/api/v1/sessions")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "bad_tool")
        assert "m_pdi" not in answer.text
        assert "BadTool: m_pdi cannot be a tool" in w.log.getvalue()


def _call(name: str) -> dict[str, Any]:
    return {"id": "a", "type": "function", "function": {"name": name, "arguments": "{}"}}
