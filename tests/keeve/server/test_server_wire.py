"""Refs over a connection to a server: with the owner's token, another one's, and narrowed ones."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from trio.testing import memory_stream_pair

from keeve import Session, open_host
from keeve.client import Client, Unreachable, connect
from keeve.client.running import running
from keeve.errors import NoSuchSession, StoreOwned
from keeve.server import ServerSettings
from keeve.server.app import application
from keeve.server.listening import HttpListener
from keeve.server.tokens import Chains
from keeve.server.wire import BadSocket, made_socket, serve, serve_socket
from keeve.wire.channels import Channel
from keeve.wire.revocations import Revocations
from keeve.wire.tokens import Caveat, TokenRefused, methods, mint, named, narrowed, read_only, sessions, until
from tests.keeve.wire.wires import channel
from tests.server_worlds import TOKENS, World, _client, world
from vat.errors import Refused


@asynccontextmanager
async def served(folder: Path, **options: Any) -> AsyncIterator[World]:
    """A server that takes chained tokens, as `serve` makes it."""
    async with world(ServerSettings(store=folder, port=0), **options) as there:
        there.serving.auth.ways.append(Chains(there.serving.secret, Revocations(folder)))
        yield there


@asynccontextmanager
async def client_of(there: World, token: str) -> AsyncIterator[Client]:
    """A client over a connection in memory."""

    async def dial() -> Channel:
        theirs, ours = memory_stream_pair()
        there.serving.nursery.start_soon(serve, there.serving, channel(theirs))
        return channel(ours)

    async with running(dial, token, "memory:", 5) as client:
        yield client


def minted(there: World, *caveats: Caveat) -> str:
    return str(mint(there.serving.secret, bytes(16)).narrow(*caveats))


async def reached(there: World, token: str, *, write: bool = False) -> set[str]:
    """Of two sessions, ann's and bob's, those that a token reaches over a connection."""
    found: set[str] = set()
    async with client_of(there, token) as client:
        for id in ("ann's", "bob's"):
            try:
                s = client.get(id)
                await (s.turn("hello") if write else s.history)
                found.add(id)
            except (PermissionError, NoSuchSession):
                pass
    return found


@asynccontextmanager
async def two_sessions(folder: Path) -> AsyncIterator[World]:
    async with served(folder) as there:
        for name in ("ann", "bob"):
            async with client_of(there, TOKENS[name]) as client:
                await client.spawn(Session, f"{name}'s")
        yield there


async def test_the_owner_reaches_all_and_a_principal_its_own(tmp_path: Path) -> None:
    async with two_sessions(tmp_path) as there:
        assert await reached(there, TOKENS["owner"], write=True) == {"ann's", "bob's"}
        assert await reached(there, TOKENS["ann"], write=True) == {"ann's"}
        async with client_of(there, TOKENS["ann"]) as client:
            assert [row.id for row in await client.sessions()] == ["ann's"]
            for told in (
                client.facts("(turn . _)", session="bob's"),
                anext(client.observe("(turn . _)", session="bob's")),
                client.delete("bob's"),
                client.get("bob's"),
            ):
                with pytest.raises((Refused, NoSuchSession)):
                    await told
            assert len(await client.facts("(turn . _)", session="ann's")) == 2
            assert {held.session for held in await client.facts("(turn . _)")} == {"ann's"}
            with client.observe("(turn . _)", until="head") as events:
                assert {event.session async for event in events} == {"ann's"}


@pytest.mark.parametrize(
    ("caveats", "read", "write"),
    [
        ([], {"ann's", "bob's"}, {"ann's", "bob's"}),
        ([named("ann")], {"ann's"}, {"ann's"}),
        ([sessions("bob's")], {"bob's"}, {"bob's"}),
        ([sessions("bob's"), named("ann")], {"bob's"}, {"bob's"}),
        ([named("ann"), sessions("bob's")], set(), set()),
        ([read_only()], {"ann's", "bob's"}, set()),
        ([named("ann"), read_only()], {"ann's"}, set()),
        ([methods("get", "history")], {"ann's", "bob's"}, set()),
        ([methods("get", "turn")], set(), {"ann's", "bob's"}),
    ],
)
async def test_a_narrowed_token_reaches_what_is_left(
    tmp_path: Path, caveats: list[Caveat], read: set[str], write: set[str]
) -> None:
    async with two_sessions(tmp_path) as there:
        token = minted(there, *caveats)
        assert await reached(there, token) == read
        assert await reached(there, token, write=True) == write


@pytest.mark.parametrize(
    ("caveats", "seen"),
    [
        ([], {"ann's", "bob's"}),
        ([named("ann")], {"ann's"}),
        ([sessions("bob's")], {"bob's"}),
        ([named("ann"), sessions("bob's")], set()),
        ([read_only()], {"ann's", "bob's"}),
        ([methods("history")], None),
    ],
)
async def test_a_narrowed_token_reaches_the_same_over_http(
    tmp_path: Path, caveats: list[Caveat], seen: set[str] | None
) -> None:
    async with two_sessions(tmp_path) as there:
        client = _client(there.app, minted(there, *caveats))
        answer = await client.get("/api/v1/sessions")
        if seen is None:
            assert answer.status_code == 403
        else:
            assert {row["id"] for row in answer.json()["sessions"]} == seen
        if caveats:
            assert (await client.post("/api/v1/verify")).status_code == 403


@pytest.mark.parametrize("caveat", [sessions("ann's"), read_only(), methods("read")])
async def test_such_a_token_makes_no_sessions(tmp_path: Path, caveat: Caveat) -> None:
    async with two_sessions(tmp_path) as there:
        token = minted(there, caveat)
        answer = await _client(there.app, token).post("/api/v1/sessions", json={"id": "new"})
        assert answer.status_code == 403
        async with client_of(there, token) as client:
            for making in (client.spawn(Session, "new"), client.get("ann's").fork(into="new")):
                with pytest.raises(PermissionError):
                    await making
        assert [row.id for row in there.host.sessions()] == ["ann's", "bob's"]


async def test_a_token_ends_at_its_time_and_when_it_is_revoked(tmp_path: Path) -> None:
    async with two_sessions(tmp_path) as there:
        clock: Any = there.serving.clock
        soon = minted(there, until(clock() + 1_000_000))
        token = mint(there.serving.secret, bytes(16)).narrow(named("ann"))
        async with client_of(there, soon) as one, client_of(there, str(token)) as other:
            assert await one.get("ann's").history == await other.get("ann's").history == []
            clock.move(2)
            with pytest.raises(TokenRefused, match="ended"):
                await one.get("ann's")
            assert await other.get("ann's").history == []
            Revocations(tmp_path).revoke(token.id)
            with pytest.raises(TokenRefused, match="revoked"):
                await other.get("ann's")
        for refused in (soon, str(token), str(token.narrow(read_only()))):
            with pytest.raises(TokenRefused):
                async with client_of(there, refused):
                    raise AssertionError("nobody gets here")
            assert (await _client(there.app, refused).get("/api/v1/sessions")).status_code == 401


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1], lambda text: text + "A", lambda text: text.replace(".", ".A")]
)
async def test_an_altered_token_is_refused(tmp_path: Path, change: Callable[[str], str]) -> None:
    async with two_sessions(tmp_path) as there:
        token = change(minted(there))
        assert (await _client(there.app, token).get("/api/v1/sessions")).status_code == 401
        with pytest.raises(TokenRefused):
            async with client_of(there, token):
                raise AssertionError("nobody gets here")


async def test_revocations_that_cannot_be_read_let_no_chained_token_in(tmp_path: Path) -> None:
    async with two_sessions(tmp_path) as there:
        token = minted(there)
        (tmp_path / "revoked").write_text("garbage\n")
        assert (await _client(there.app, token).get("/api/v1/sessions")).status_code == 401
        assert (await there.owner.get("/api/v1/sessions")).status_code == 200


async def test_a_token_narrowed_offline_from_another_is_taken(tmp_path: Path) -> None:
    async with two_sessions(tmp_path) as there:
        wide = narrowed(there.serving.secret, bytes(16), named("ann"))
        assert await reached(there, str(narrowed(str(wide), b"", read_only()))) == {"ann's"}


# Real sockets, on this machine alone.


@asynccontextmanager
async def listening(there: World) -> AsyncIterator[str]:
    """The server's address."""
    listens = HttpListener(application(there.serving), there.serving.settings)
    async with trio.open_nursery() as nursery:
        stop = trio.Event()
        port = await nursery.start(listens.run, stop)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            nursery.cancel_scope.cancel()


async def test_a_session_over_a_websocket(tmp_path: Path) -> None:
    async with served(tmp_path) as there, listening(there) as url:
        async with connect(url, token=TOKENS["ann"]) as client:
            s = await client.spawn(Session, "s1")
            assert await s.turn("hello") == "hello"
            assert await client.get("s1").turn("x" * 300_000) == "x" * 300_000
            events = [event async for event in client.observe("(turn . _)", session="s1", until="head")]
            assert [event.value.keywords["by"] for event in events] == ["ann", "ann"]
            assert events[0].value.keywords["via"] == "wire"
        with pytest.raises(TokenRefused, match="401"):
            async with connect(url, token="wrong-token-0123456789"):
                raise AssertionError("nobody gets here")


@pytest.mark.parametrize(
    ("header", "status"),
    [("host: evil.example", 421), ("host: localhost\r\norigin: http://evil.example", 403), ("host: localhost", 101)],
)
async def test_the_websocket_is_for_nobody_of_another_site(tmp_path: Path, header: str, status: int) -> None:
    upgrade = (
        f"GET /wire HTTP/1.1\r\n{header}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
        f"sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nauthorization: Bearer {TOKENS['owner']}\r\n\r\n"
    )
    async with served(tmp_path) as there, listening(there) as url:
        stream = await trio.open_tcp_stream("127.0.0.1", int(url.rpartition(":")[2]))
        async with stream:
            await stream.send_all(upgrade.encode())
            assert (await stream.receive_some()).startswith(f"HTTP/1.1 {status} ".encode())


async def test_a_session_over_a_unix_socket(tmp_path: Path) -> None:
    async with served(tmp_path) as there, trio.open_nursery() as nursery:
        path = await nursery.start(serve_socket, there.serving)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (tmp_path / "token").write_text(TOKENS["owner"])
        (tmp_path / "token").chmod(0o600)
        async with connect(tmp_path) as client, connect(f"unix:{path}", token=TOKENS["ann"]) as other:
            s = await client.spawn(Session, "s1")
            assert await s.turn("hello") == "hello"
            assert (client.by, other.by) == ("owner", "ann")
            with pytest.raises(NoSuchSession):
                await other.get("s1")
        with pytest.raises(TokenRefused):
            async with connect(f"unix:{path}", token="wrong"):
                raise AssertionError("nobody gets here")
        there.serving.stopping.set()
    assert not path.exists()
    with pytest.raises(Unreachable):
        async with connect(tmp_path):
            raise AssertionError("nobody gets here")


async def test_where_nobody_serves_a_client_is_told_why(store_folder: Path, tmp_path: Path) -> None:
    async def refused(folder: Path, *said: str, **how: Any) -> None:
        with pytest.raises(Unreachable) as caught:
            async with connect(folder, **how):
                raise AssertionError("nobody gets here")
        assert all(each in str(caught.value) for each in said), caught.value

    store = store_folder / "data"
    for how in ({}, {"token": "a-token-0123456789"}):
        await refused(store_folder / "nowhere", "there is no folder", **how)
        async with open_host(store):
            await refused(store, f"process {os.getpid()} owns the store", "does not serve it", **how)
        await refused(store, "nobody serves the store", f"keeve serve {store}", **how)
        with suppress(FileExistsError):
            (tmp_path / ("x" * 107)).mkdir(parents=True)
        await refused(tmp_path / ("x" * 107), "http address", **how)


async def test_who_wants_a_store_that_is_served_is_told_how_to_reach_it(store_folder: Path) -> None:
    store = store_folder / "data"
    async with open_host(store):
        for served in (False, True):
            if served:
                listening = await made_socket(store / "socket")
            with pytest.raises(StoreOwned, match="keeve.client.connect" if served else "close it there") as caught:
                async with open_host(store):
                    raise AssertionError("nobody gets here")
            assert (caught.value.served, caught.value.pid) == (served, os.getpid())
        listening.close()


async def test_a_socket_that_a_killed_server_left_is_replaced_and_a_file_is_not(tmp_path: Path) -> None:
    async with served(tmp_path) as there:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                await nursery.start(serve_socket, there.serving)
                (tmp_path / "kept").hardlink_to(tmp_path / "socket")
                nursery.cancel_scope.cancel()
            (tmp_path / "kept").rename(tmp_path / "socket")
        (tmp_path / "socket").unlink()
        (tmp_path / "socket").write_text("mine")
        with pytest.raises(BadSocket, match="no socket"):
            await serve_socket(there.serving)
        assert (tmp_path / "socket").read_text() == "mine"


def test_an_asyncio_program_has_the_same_client(tmp_path: Path) -> None:
    ready: list[str] = []
    done = False

    async def server() -> None:
        async with served(tmp_path) as there, listening(there) as url:
            ready.append(url)
            while not done:  # noqa: ASYNC110  # it is another thread that ends it
                await trio.sleep(0.01)

    async def program() -> None:
        async with connect(ready[0], token=TOKENS["ann"]) as client:
            s = await client.spawn(Session, "s1")
            assert await client.get("s1").turn("hello") == "hello"
            with client.observe("(turn-done . _)", session="s1", after="head") as events:
                async with anyio.create_task_group() as tasks:
                    for word in ("a", "b", "c"):
                        tasks.start_soon(said, s, word)
                assert [(await anext(events)).kind for _ in range(3)] == ["assert"] * 3

    async def said(s: Any, word: str) -> None:
        assert await s.turn(word) == word

    thread = threading.Thread(target=trio.run, args=(server,))
    thread.start()
    try:
        while not ready:
            assert thread.is_alive()
            time.sleep(0.01)
        anyio.run(program, backend="asyncio")
    finally:
        done = True
        thread.join()


@pytest.mark.parametrize(
    ("given_to", "caveats", "read", "write"),
    [
        ("ann", [named("ann")], True, True),
        ("ann", [named("ann"), read_only()], True, False),
        ("ann", [named("ann"), sessions("bob's")], False, False),
        ("ann", [named("ann"), methods("turn")], False, True),
        ("ann", [named("bob")], False, False),
        ("ann", [], False, False),
        ("owner", [read_only()], True, False),
        ("owner", [sessions("bob's")], False, False),
        ("bob", [named("ann")], False, False),
    ],
)
async def test_a_sturdy_ref_does_what_the_token_that_shows_it_may(
    tmp_path: Path, given_to: str, caveats: list[Caveat], read: bool, write: bool
) -> None:
    async with two_sessions(tmp_path) as there:
        s = "bob's" if given_to == "bob" else "ann's"
        async with client_of(there, TOKENS[given_to]) as client:
            kept = client.sturdy(await client.get(s))
        async with client_of(there, minted(there, *caveats)) as client:
            for called, may in ((lambda ref: ref.history, read), (lambda ref: ref.turn("hello"), write)):
                if may:
                    await called(client.live(kept))
                else:
                    with pytest.raises(PermissionError):
                        await called(client.live(kept))
