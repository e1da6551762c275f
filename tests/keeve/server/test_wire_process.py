"""Two processes over refs, and a server that is killed under its clients."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import trio

from keeve import Session
from keeve.client import Client, Unreachable, connect
from keeve.errors import Deleted
from keeve.wire.tokens import TokenRefused, narrowed, sessions
from tests.cli_runner import ROOT
from tests.model_server import model_server, streamed
from tests.server_process import Server, server

CONVERSATIONS, TURNS = 50, 4


async def test_two_processes_fork_by_message_and_pass_the_twin(store_folder: Path) -> None:
    with server(store_folder / "s") as running:
        for url, token in ((store_folder / "s", None), (running.address, running.token)):
            async with connect(url, token=token) as client:
                name = f"s-{'ws' if token else 'unix'}"
                s = await client.spawn(Session, name)
                await s.turn("hello")
                twin = await s.fork(into=f"{name}-twin")
                assert await twin.turn("another way") == "another way"
                assert await client.get(name).fork(into=f"{name}-third").history == ["hello"]
                events = client.observe(f'(turn ?n "{name}-twin" . _)', session=f"{name}-twin")
                assert (await anext(events)).captures["n"] == 2
        assert running.stop() == 0


async def test_a_killed_server_answers_every_retry_once_and_observers_go_on(store_folder: Path) -> None:
    store = store_folder / "s"
    async with model_server(streamed("an ", "answer")) as model:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": model.url}
        with server(store, env=env) as first:
            async with connect(store, patience=120) as client, trio.open_nursery() as nursery:
                kept = client.sturdy(await client.spawn(Session, "s0"))
                events = client.observe("(turn . _)")
                running = trio.Event()
                for number in range(CONVERSATIONS):
                    nursery.start_soon(talk, client, number, running)
                await running.wait()
                first.process.send_signal(signal.SIGKILL)
                first.process.wait()
                with server(store, env=env):
                    seen = [(await anext(events)).value for _ in range(CONVERSATIONS * TURNS)]
                    for number in range(CONVERSATIONS):
                        said = [fact.keywords["input"] for fact in seen if fact.fields[1] == f"s{number}"]
                        assert said == [f"{number}:{turn}" for turn in range(TURNS)]
                        assert await client.get(f"s{number}").history == said
                    assert await client.live(kept).history == [f"0:{turn}" for turn in range(TURNS)]


async def talk(client: Client, number: int, running: trio.Event) -> None:
    """A conversation that knows nothing of the server's end."""
    s = client.get("s0") if number == 0 else client.spawn(Session, f"s{number}")
    for turn in range(TURNS):
        assert await s.turn(f"{number}:{turn}") == "an answer"
        if turn == 1:
            running.set()


async def test_a_client_that_is_killed_leaves_nothing(store_folder: Path) -> None:
    store = store_folder / "s"
    program = (
        "import trio, keeve.client\n"
        "async def main():\n"
        "    async with keeve.client.connect(PATH) as client:\n"
        "        events = client.observe('(turn . _)')\n"
        "        with client.watch() as pieces:\n"
        "            print('there', flush=True)\n"
        "            await trio.sleep_forever()\n"
        "trio.run(main)\n"
    ).replace("PATH", repr(str(store)))
    with server(store) as running:
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", program]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, env=env)
        assert process.stdout is not None
        try:
            said = b""
            while not said.endswith(b"\n"):  # it may come in pieces
                said += await process.stdout.receive_some()
            assert said == b"there\n"
            assert connections(running) == 1
        finally:  # whatever is wrong, it does not outlive the test
            process.kill()
            await process.wait()
            await process.stdout.aclose()
        with trio.fail_after(30):
            while connections(running):  # noqa: ASYNC110  # the server tells it to whoever asks, and to nobody else
                await trio.sleep(0.05)
        assert running.stop() == 0


def connections(running: Server) -> int:
    """How many connections with refs a server has."""
    with running.client() as client:
        said = client.get("/metrics").text
    mine = (line for line in said.splitlines() if line.startswith('keeve_requests_under_way{kind="wire"}'))
    return int(float(next(mine).split()[1]))


async def test_a_token_from_the_command_line_is_taken_and_revoked(store_folder: Path) -> None:
    store = store_folder / "s"
    with server(store) as running:
        async with connect(store) as client:
            await client.spawn(Session, "s1")
            await client.spawn(Session, "s2")
        token = narrowed(running.token, os.urandom(16), sessions("s1"))
        async with connect(running.address, token=str(token)) as client:
            assert await client.get("s1").turn("hello") == "hello"
            with pytest.raises(LookupError):
                await client.get("s2")
            words = ["token", "revoke", token.id, "--store", str(store)]
            done = await trio.run_process([sys.executable, "-m", "keeve", *words], cwd=ROOT, capture_stdout=True)
            assert done.returncode == 0
            with pytest.raises(TokenRefused, match="revoked"):
                await client.get("s1")
        with httpx2.Client(base_url=running.address, trust_env=False) as client_of_http:
            answer = client_of_http.get("/api/v1/sessions", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 401


async def test_clients_of_a_server_that_stops_are_told_and_go_on_with_the_next(store_folder: Path) -> None:
    store = store_folder / "s"
    with server(store) as running:
        async with connect(store, patience=0.5) as client:
            s = await client.spawn(Session, "s1")
            assert running.stop() == 0
            with pytest.raises(Unreachable):
                await s.turn("hello")
            with server(store):
                with trio.fail_after(60):
                    while True:
                        try:
                            assert await s.turn("again") == "again"
                            break
                        except Unreachable:
                            continue
                await client.delete("s1")
                with pytest.raises(Deleted):
                    await s.history
