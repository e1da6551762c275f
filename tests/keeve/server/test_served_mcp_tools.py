"""Tools of servers (MCP) at a server of Keeve: their schemas are fetched when a session is to have them first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.mcp import McpTools
from actors.tools import Tools
from tests.actors.scenes import Says, calls, says
from tests.actors.test_tools_mcp import SERVER
from tests.cli_runner import keeve
from tests.server_process import server
from tests.server_worlds import World, world

MODULE = f"""
from keeve import McpTools, Tools
tools = Tools(McpTools({SERVER}, prefix="calc_"))
"""
DOWN = """
import sys
from keeve import McpTools, Tools
tools = Tools(McpTools([sys.executable, "-c", "import sys; sys.exit('no such shop')"], prefix="shop_"))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with modules of tools, one of them of a server that is down."""
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    (tmp_path / "calculating.py").write_text(MODULE)
    (tmp_path / "shopping.py").write_text(DOWN)
    yield tmp_path
    sys.path[:] = path
    for name in ("calculating", "shopping"):
        sys.modules.pop(name, None)


def names(schemas: Any) -> list[str]:
    return [schema["function"]["name"] for schema in schemas]


async def tools_of(w: World, id: str) -> list[str]:
    return names(await (await w.host.get(id)).tools)


def test_sessions_are_made_right_after_each_start_over_http_and_by_commands(folder: Path) -> None:
    store = folder / "data"
    with server(store, "--tools", "calculating:tools") as running:
        assert keeve("create", "s1", "--store", store).out == "s1\n"
        assert running.stop() == 0
    with server(store, "--tools", "calculating:tools") as running:
        with running.client() as client:
            assert client.post("/api/v1/sessions", json={"id": "s2"}).status_code == 201
        assert running.stop() == 0
    for id in ("s1", "s2"):
        assert names(keeve("state", id, "--store", store, "--json").json["fields"]["tools"])[0] == "calc_add_up"


@pytest.mark.parametrize("command", ["create", "chat"])
def test_commands_make_them_where_no_server_has_the_store(folder: Path, command: str) -> None:
    said = keeve(command, "s1", "--tools", "calculating:tools", "--store", "data", input="hello\n")
    assert said.code == 0, said.err
    assert names(keeve("state", "s1", "--store", "data", "--json").json["fields"]["tools"])[0] == "calc_add_up"


async def test_the_doors_for_openai_clients_fetch_them_too() -> None:
    tool = {"type": "mcp", "server_label": "tools"}
    for path, body in (
        ("/v1/responses", {"input": "1 and 2?", "tools": [tool], "tool_choice": "required"}),
        ("/v1/chat/completions", {"model": "model+tools", "messages": [{"role": "user", "content": "1 and 2?"}]}),
    ):
        tools = Tools(McpTools(SERVER, prefix="calc_"))
        model = Says(says(None, calls("c1", "calc_add_up", a=1, b=2)), says("three"))
        async with world(devices={"model": model, "tools": tools}) as w:
            answer = await w.ann.post(path, json=body)
            assert (answer.status_code, "three" in answer.text) == (200, True), answer.text


def test_one_that_is_down_holds_up_neither_the_start_nor_sessions_without_its_tools(folder: Path) -> None:
    store = folder / "data"
    with server(store, "--tools", "shopping:tools") as running:
        with running.client() as client:
            refused = client.post("/api/v1/sessions", json={"id": "s1"})
            made = client.post("/api/v1/sessions", json={"id": "s1", "fields": {"tools": []}})
            asked = client.post("/v1/chat/completions", json={"model": "model+tools", "messages": []})
        assert (refused.status_code, made.status_code, asked.status_code >= 400) == (503, 201, True)
        error = refused.json()["error"]
        assert error["code"] == "server_unavailable"
        assert "of the tools shop_* cannot be used, and nothing was called: " in error["message"]
        assert error["message"].endswith(WHY)
        assert error["remedy"].startswith("see that it can be started and reached, and ask again")
        said = keeve("create", "s2", "--store", store)
        assert (said.code, WHY in said.err, "--field 'tools=[]'" in said.err) == (1, True, True)
        assert keeve("create", "s2", "--field", "tools=[]", "--store", store).code == 0
    said = keeve("create", "s3", "--tools", "shopping:tools", "--store", folder / "other")
    assert (said.code, WHY in said.err, "--field 'tools=[]'" in said.err) == (1, True, True)


WHY = "It said: no such shop"


async def test_after_a_failure_they_are_fetched_again_and_never_for_who_wants_none(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    # A server that is down at its first start alone, and notes each.
    program = (
        f"import runpy, sys; p = open({str(starts)!r}, 'a'); p.write('x'); p.close()\n"
        f"if open({str(starts)!r}).read() == 'x': sys.exit('not yet')\n"
        f"sys.argv = [{SERVER[1]!r}]; runpy.run_path({SERVER[1]!r}, run_name='__main__')"
    )
    tools = Tools(McpTools([sys.executable, "-c", program]))
    async with world(devices={"model": Says(), "tools": tools}) as w:

        async def make(id: str, **fields: Any) -> int:
            answer = await w.ann.post("/api/v1/sessions", json={"id": id, "fields": fields})
            code: int = answer.status_code
            return code

        assert await make("none", tools=[]) == 201
        assert not starts.exists()
        assert await make("s0") == 503
        codes: list[int] = []

        async def note(id: str) -> None:
            codes.append(await make(id))

        async with trio.open_nursery() as nursery:
            for n in range(5):
                nursery.start_soon(note, f"s{n}")
        assert codes == [201] * 5
        assert starts.read_text() == "xx"  # one fetch for all of them
        assert await tools_of(w, "none") == []
        assert (await tools_of(w, "s4"))[0] == "add_up"
