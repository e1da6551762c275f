"""Tools of a server: a real one of the official package, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

import actors.mcp.connection
from actors.mcp import McpTools, NotFetched, NotInstalled, ServerGone, ServerUnavailable
from actors.tools import ApprovalWanted, BadArguments, BadTool, NoSuchTool, ToolFailed, Tools
from dataspace.values import Blob
from tests.actors.toolcalls import a_call, run
from tests.effect_host import Host, running
from vat.devices.devices import Policy
from vat.devices.outcomes import EffectTimeout
from vat.devices.vault import NoCredential, Vault

SERVER = [sys.executable, str(Path(__file__).with_name("mcp_server.py"))]


@asynccontextmanager
async def using(command: Sequence[str] = SERVER, **options: Any) -> AsyncIterator[Tools]:
    """Tools of a server that is started for them, while a host would run."""
    tools = Tools(McpTools(command, **options))
    async with tools:
        yield tools


def a_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where a server is that all tests of this file share, but for those that start or end one."""
    port = a_port()
    with subprocess.Popen([*SERVER, "--http", str(port)]) as process:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@asynccontextmanager
async def sharing(url: str, **options: Any) -> AsyncIterator[Tools]:
    """Tools of the server that all share."""
    tools = Tools(McpTools(url=url, **options))
    async with tools:
        yield tools


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# What there is


async def test_the_tools_are_the_servers_in_the_form_that_models_take(url: str) -> None:
    async with sharing(url, prefix="calc_") as tools:
        with pytest.raises(NotFetched, match=r"await tools\.fetch\(\) while the host runs"):
            assert tools.schemas
        schemas = await tools.fetch()
        assert tools.schemas == schemas
    shown = schemas[0]["function"]
    assert (shown["name"], shown["description"]) == ("calc_add_up", "Add two numbers.")
    assert shown["parameters"]["required"] == ["a"]


async def test_tools_of_a_server_stand_beside_functions(url: str) -> None:
    def here() -> str:
        return "here"

    tools = Tools(here, McpTools(url=url, prefix="calc_"))
    async with tools:
        assert [schema["function"]["name"] for schema in await tools.fetch()][:2] == ["here", "calc_add_up"]
        assert await run(tools, "here") == "here"
        assert await run(tools, "calc_add_up", {"a": 2}) == "3"


def test_two_sources_of_one_prefix_are_refused() -> None:
    with pytest.raises(BadTool, match="two sources with the prefix ''"):
        Tools(McpTools(SERVER), McpTools(SERVER))


@pytest.mark.parametrize("given", [{}, {"command": "server"}, {"command": ["server"], "url": "http://x"}])
def test_a_server_is_a_command_or_a_url(given: Any) -> None:
    with pytest.raises(BadTool, match="give a command as a list"):
        McpTools(**given)


@pytest.mark.parametrize(
    "url",
    ["http://u:canary@127.0.0.1:9/mcp", "ftp://h/mcp?token=canary", "http://h:9x/mcp#canary", "canary", "http://"],
)
def test_a_url_that_cannot_be_used_is_refused_without_showing_what_may_be_a_secret(url: str) -> None:
    """Invariant 20."""
    with pytest.raises(
        BadTool, match=r"its url (is no URL|holds a user or a password).*; give one like https://"
    ) as caught:
        McpTools(url=url)
    assert "canary" not in str(caught.value)


async def test_what_a_url_has_beside_its_path_is_in_no_error() -> None:
    """Invariant 20."""
    tools = McpTools(url="http://127.0.0.1:9/mcp?token=canary#canary")
    assert repr(tools) == "McpTools('http://127.0.0.1:9/mcp', prefix='')"
    async with tools:
        with pytest.raises(ServerUnavailable, match=r"the server http://127\.0\.0\.1:9/mcp cannot be used") as caught:
            await tools.fetch()
    assert "canary" not in str(caught.value)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actors.mcp.connection, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match=r"pip install 'keeve\[mcp\]'"):
        McpTools(SERVER)


def test_keeve_is_imported_without_the_package() -> None:
    code = "import sys; sys.modules['mcp'] = None; import keeve, actors.mcp"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


# Its life


async def test_the_server_starts_with_the_first_call_and_ends_with_the_host() -> None:
    async with using() as tools:
        first = int(await run(tools, "pid"))
        assert int(await run(tools, "pid")) == first
        assert alive(first)
    assert not alive(first)


async def test_a_server_that_dies_in_a_call_fails_that_call_and_is_started_for_the_next() -> None:
    async with using() as tools:
        first = await run(tools, "pid")
        with pytest.raises(ServerGone, match="ended during this call of die; it may have taken effect all the same"):
            await run(tools, "die")
        assert await run(tools, "pid") != first


async def test_a_server_that_died_between_two_calls_is_noticed_before_the_next() -> None:
    async with using() as tools:
        first = int(await run(tools, "pid"))
        os.kill(first, 9)
        while alive(first):  # noqa: ASYNC110 - another process sets no event
            await trio.sleep(0.01)
        assert int(await run(tools, "pid")) != first


async def test_a_call_that_comes_when_the_connection_has_just_ended_says_so(url: str) -> None:
    source = McpTools(url=url)
    async with Tools(source) as tools:
        await tools.fetch()
        connection = source._connection
        assert connection is not None
        client = connection.client

        class Late:
            async def call_tool(self, *args: Any, **options: Any) -> Any:
                await connection.end()
                return await client.call_tool(*args, **options)

        connection.client = Late()  # type: ignore[assignment]  # as far as it is used
        with pytest.raises(ServerGone, match="ended during this call of pid"):
            await run(tools, "pid")
        assert alive(int(await run(tools, "pid")))


async def test_a_server_that_cannot_start_says_why() -> None:
    async with using([sys.executable, "-c", "import sys; sys.exit('there is no such folder')"]) as tools:
        with pytest.raises(ServerUnavailable, match=r"nothing was called: .*It said: there is no such folder"):
            await run(tools, "pid")
    missing = Tools(McpTools(["no-such-server", "--key=hidden"]))
    async with missing:
        with pytest.raises(ServerUnavailable, match="the server no-such-server cannot be used") as caught:
            await run(missing, "pid")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("line", ["\\n", ""])
async def test_of_what_a_server_said_before_it_ended_whole_lines_are_shown(line: str) -> None:
    said = f"print('canary-12345', '.' * 1990, '{line}the end', sep='', file=sys.stderr)"
    async with using([sys.executable, "-c", f"import sys; {said}"]) as tools:
        with pytest.raises(
            ServerUnavailable, match=r"It said: (the end|\(a line of more than 2000 bytes\))$"
        ) as caught:
            await run(tools, "pid")
    assert "12345" not in str(caught.value)


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async with using([sys.executable, "-c", "import sys; sys.stdin.read()"], patience=0.5) as tools:
        with pytest.raises(ServerUnavailable, match=r"did not answer in 0\.5 s"):
            await run(tools, "pid")


async def test_who_comes_while_a_server_is_started_has_what_comes_of_that(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = f"import sys; p = open({str(starts)!r}, 'a'); p.write('x'); p.close(); sys.exit('down')"
    failed: list[str] = []

    async def ask(tools: Tools) -> None:
        try:
            await tools.fetch()
        except ServerUnavailable as error:
            failed.append(error.reason)

    async with using([sys.executable, "-c", code]) as tools:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask, tools)
        assert (len(failed), starts.read_text()) == (3, "x")
        await ask(tools)
        assert (len(failed), starts.read_text()) == (4, "xx")


async def test_without_a_host_there_is_no_server() -> None:
    with pytest.raises(ServerUnavailable, match="no host runs that it is a device of"):
        await McpTools(SERVER).fetch()


# Calls


async def test_a_failure_that_the_server_tells_is_one(url: str) -> None:
    async with sharing(url) as tools:
        with pytest.raises(ToolFailed, match=r"fail failed: .*fail"):
            await run(tools, "fail")
        with pytest.raises(ToolFailed, match="add_up failed"):
            await run(tools, "add_up", {"a": "many"})


async def test_what_the_model_got_wrong_is_told_before_the_server_is_asked(url: str) -> None:
    async with sharing(url) as tools:
        with pytest.raises(BadArguments, match="no JSON"):
            await run(tools, "pid", "{")
        with pytest.raises(BadArguments, match="no object"):
            await run(tools, "pid", "[1]")
        with pytest.raises(NoSuchTool, match="there is no tool 'sing'; there are add_up, pid"):
            await run(tools, "sing")


async def test_pictures_arrive_as_blobs_and_what_cannot_is_named(url: str) -> None:
    async with sharing(url) as tools:
        assert await run(tools, "picture") == [
            {"type": "image_url", "image_url": {"url": Blob("image/png", b"\x89PNG")}}
        ]
        assert await run(tools, "mixed") == "hear\n[audio/wav of 3 bytes, which is not passed on]"


async def test_a_long_answer_is_cut(url: str) -> None:
    async with sharing(url, longest=100) as tools:
        assert "[… 900 of 1000 characters left out …]" in await run(tools, "long", {"size": 1000})


async def test_a_credential_on_the_cut_of_a_long_answer_leaves_nothing_of_itself() -> None:
    vault = Vault({"bank": lambda: "a" * 40})
    vault.resolve("bank")
    async with using(longest=50) as tools:
        told = await run(tools, "long", {"size": 55}, redact=vault.redact_value)
    assert told == "‹credential bank›" + "a" * 15


async def test_a_server_that_writes_to_its_standard_output_is_heard_all_the_same() -> None:
    async with using() as tools:
        assert await run(tools, "chatter") == "said"


async def test_progress_is_told_on() -> None:
    told: list[Any] = []
    async with using() as tools:
        assert await run(tools, "steps", progress=told.append) == "done"
    assert told == [{"progress": 1, "total": 2, "message": "half"}]


async def test_the_server_is_told_which_effect_it_is(url: str) -> None:
    async with sharing(url) as tools:
        assert await run(tools, "marked", id="e" * 32) == "e" * 32


async def test_calls_run_beside_each_other(url: str) -> None:
    async with sharing(url) as tools:
        await tools.fetch()
        with trio.move_on_after(50) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run, tools, "hang")
                assert await run(tools, "add_up", {"a": 1}) == "2"
                nursery.cancel_scope.cancel()
        assert not limit.cancelled_caught


async def test_each_tool_of_a_server_may_have_its_own_policy(url: str) -> None:
    async with sharing(url, policies={"hang": Policy(timeout=0.2)}) as tools, running(Host(tools)) as host:
        await tools.fetch()
        host.want(1, "run", a_call("hang"))
        error = (await host.outcome()).error
        assert isinstance(error, EffectTimeout)
        assert "d.hang did not answer" in str(error)
        assert await run(tools, "add_up", {"a": 1}) == "2"  # the server goes on


async def test_a_person_may_have_to_approve_of_calls(url: str) -> None:
    async with sharing(url, approval=["pid"]) as tools:
        with pytest.raises(ApprovalWanted):
            await run(tools, "pid")
        assert alive(int(await run(tools, "pid", approved=True)))
    every = McpTools(SERVER, approval=True)
    assert every.variant(a_call("whatever")) == ("?", Policy(on_crash="retry"))


# Credentials


async def test_a_server_is_given_credentials_by_the_name_that_the_vault_has() -> None:
    vault = Vault({"bank": lambda: "canary-12345"})
    tools = Tools(McpTools(SERVER, secrets={"TOKEN": "bank"}))
    async with running(Host(tools, vault=vault)) as host:
        host.want(1, "run", a_call("secret"))
        assert (await host.outcome()).value == "the key is ‹credential bank›"


async def test_without_its_credential_a_server_is_not_started() -> None:
    async with using(secrets={"TOKEN": "bank"}) as tools:
        with pytest.raises(NoCredential):
            await tools.fetch()


# Over HTTP


@asynccontextmanager
async def served(port: int) -> AsyncIterator[None]:
    """The server as one that others have started, at a port."""
    async with trio.open_nursery() as nursery:
        process = await nursery.start(trio.run_process, [*SERVER, "--http", str(port)])
        while True:
            with suppress(OSError):
                await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
                break
            await trio.sleep(0.05)
        yield
        process.kill()
        nursery.cancel_scope.cancel()


async def test_a_server_may_be_at_a_url_and_come_back_there() -> None:
    port = a_port()
    tools = Tools(McpTools(url=f"http://127.0.0.1:{port}/mcp", patience=10))
    async with tools:
        async with served(port):
            first = await run(tools, "pid")
            with pytest.raises(ToolFailed):
                await run(tools, "fail")
        with pytest.raises((ToolFailed, ServerGone, ServerUnavailable)):
            await run(tools, "pid")
        async with served(port):
            assert await run(tools, "pid") != first
