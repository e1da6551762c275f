"""A real server, from its start to its end: its token, its address, TLS, an orderly end and a sudden one."""

from __future__ import annotations

import json
import signal
import ssl
import stat
import subprocess
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import httpx2
import trio

from keeve.client import connect
from tests.cli_runner import PROGRAM, environment
from tests.model_server import held, model_server, streamed
from tests.server_certificates import certificate
from tests.server_process import Server, server, trusted

API = "/api/v1/sessions"


def model_at(url: str) -> dict[str, str]:
    return {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}


def asking(running: Server) -> httpx2.AsyncClient:
    address, headers = running.address, running.headers
    return httpx2.AsyncClient(base_url=address, headers=headers, timeout=60, trust_env=False, verify=trusted())


def test_the_token_is_made_once_for_its_owner_alone_and_told_once(store_folder: Path) -> None:
    store = store_folder / "s"
    said = []
    for _ in range(2):
        command = [*PROGRAM, "serve", str(store), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
            assert process.stdout is not None
            said.append(process.stdout.readline().decode().strip())
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    token = (store / "token").read_text().strip()
    assert stat.S_IMODE((store / "token").stat().st_mode) == 0o600
    assert said[0].endswith(f"/#token={token}")
    assert said[1].startswith("http://127.0.0.1:")
    assert token not in said[1]


def test_a_token_file_that_others_can_read_is_refused(store_folder: Path) -> None:
    store = store_folder / "s"
    with server(store) as running:
        running.stop()
    (store / "token").chmod(0o644)
    done = subprocess.run([*PROGRAM, "serve", str(store), "--port", "0"], capture_output=True, env=environment())
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"chmod 600" in done.stderr


def test_a_store_that_is_served_is_owned(store_folder: Path) -> None:
    store = store_folder / "s"
    with server(store):
        done = subprocess.run([*PROGRAM, "serve", str(store), "--port", "0"], capture_output=True, env=environment())
        assert done.returncode == 2
        shown = subprocess.run([*PROGRAM, "ls", "--store", str(store)], capture_output=True, env=environment())
        assert shown.returncode == 0


def test_a_port_that_is_taken_is_said(store_folder: Path) -> None:
    with server(store_folder / "a") as running:
        command = [*PROGRAM, "serve", str(store_folder / "b"), "--port", str(running.port)]
        done = subprocess.run(command, capture_output=True, env=environment())
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr
        assert str(running.port).encode() in done.stderr
        assert not (store_folder / "b" / "token").exists(), "nobody was told it, so the next start is to make one"


def test_what_was_acknowledged_outlives_a_kill(store_folder: Path) -> None:
    store = store_folder / "s"
    with server(store) as running, running.client() as client:
        client.post(API, json={"id": "s"})
        client.post(f"{API}/s/turn", json={"input": "hello"}, headers={"idempotency-key": "k"})
        running.stop(signal.SIGKILL)
    with server(store) as running, running.client() as client:
        said = client.post(f"{API}/s/turn", json={"input": "hello"}, headers={"idempotency-key": "k"}).json()
        assert (said["turn"], said["output"]) == (1, "hello")
        assert len(client.get(f"{API}/s/turns").json()["turns"]) == 1


SAID = {
    "s": (503, "the same Idempotency-Key"),
    "unkeyed": (503, "GET the session"),
    "stream": (200, "event: stopping"),
}


async def test_a_running_turn_ends_before_the_server_does(store_folder: Path) -> None:
    """Asked for its answer, as it comes, and over a connection."""
    async with model_server(held(streamed("he", "llo"), after=2)) as model:
        with server(store_folder / "s", env=model_at(model.url)) as running:
            answers: list[str] = []
            async with asking(running) as client, connect(running.store) as over, trio.open_nursery() as nursery:
                for id in ("s", "stream", "wire"):
                    await client.post(API, json={"id": id})

                async def say(id: str, accept: str) -> None:
                    answer = await client.post(f"{API}/{id}/turn", json={"input": "x"}, headers={"accept": accept})
                    answers.append(answer.text)

                async def call() -> None:
                    answers.append(await over.get("wire").turn("x"))

                nursery.start_soon(say, "s", "application/json")
                nursery.start_soon(say, "stream", "text/event-stream")
                nursery.start_soon(call)
                await model.asked(3)
                running.process.terminate()
                await trio.to_thread.run_sync(_until, running, "stopping")
                model.go_on.set()
            assert all("hello" in answer for answer in answers), answers
            assert "event: done" in "".join(answers)
            assert await trio.to_thread.run_sync(running.process.wait) == 0


async def test_who_waits_longer_than_the_grace_is_told_and_the_turn_is_left_to_the_next_start(
    store_folder: Path,
) -> None:
    """Asked with a key, without one, as it comes, and over a connection."""
    store, key = store_folder / "s", {"idempotency-key": "k"}
    async with model_server(held(streamed("he", "llo"), after=2)) as model:
        with server(store, "--grace", "0.1", env=model_at(model.url)) as running:
            async with asking(running) as client, trio.open_nursery() as nursery:
                for id in SAID:
                    await client.post(API, json={"id": id})
                answers: dict[str, httpx2.Response] = {}

                async def say(id: str, **headers: str) -> None:
                    answers[id] = await client.post(f"{API}/{id}/turn", json={"input": "x"}, headers=headers)

                nursery.start_soon(partial(say, "s", **key))
                nursery.start_soon(say, "unkeyed")
                nursery.start_soon(partial(say, "stream", accept="text/event-stream"))
                await model.asked(3)
                running.process.terminate()
                assert await trio.to_thread.run_sync(running.process.wait) == 0
            for id, (status, word) in SAID.items():
                assert (answers[id].status_code, word in answers[id].text) == (status, True), answers[id].text
            assert answers["s"].json()["error"]["code"] == "stopping"
            assert "x-should-retry" not in answers["s"].headers
            assert "x-should-retry" in answers["unkeyed"].headers
    async with model_server(streamed("he", "llo")) as model:
        with server(store, env=model_at(model.url)) as running:
            async with asking(running) as client:
                again = await client.post(f"{API}/s/turn", json={"input": "x"}, headers=key)
                assert (again.json()["turn"], again.json()["output"]) == (1, "hello")


async def test_a_stream_is_told_of_the_end_and_goes_on_after_it(store_folder: Path) -> None:
    store = store_folder / "s"
    with server(store) as running:
        async with asking(running) as client:
            await client.post(API, json={"id": "s"})
            headers = {"accept": "text/event-stream"}
            async with client.stream("GET", "/api/v1/dataspace", headers=headers) as stream:
                told = stream.aiter_lines()
                cursor = ""
                async for line in told:
                    if line.startswith("id: "):
                        cursor = line[4:]
                    if line == "event: caught-up":
                        break
                running.process.terminate()
                assert [line async for line in told if line.startswith("event:")] == ["event: stopping"]
        assert await trio.to_thread.run_sync(running.process.wait) == 0
    with server(store) as running:
        async with asking(running) as client:
            page = await client.get("/api/v1/dataspace", headers={"last-event-id": cursor})
            assert page.json()["events"] == []


async def test_nobody_who_has_nothing_under_way_holds_up_the_end(store_folder: Path) -> None:
    """Not who only looks, nor who has a connection open, nor who reads a stream and closes nothing."""
    with server(store_folder / "s", "--grace", "3600") as running:
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {running.token}\r\n"
        follows = f"GET /api/v1/dataspace HTTP/1.1\r\n{head}Accept: text/event-stream\r\n\r\n"
        async with connect(store_folder / "s"), AsyncExitStack() as open:
            for asked in ("", f"GET /api/v1 HTTP/1.1\r\n{head}\r\n", follows, follows):
                stream = await open.enter_async_context(await trio.open_tcp_stream("127.0.0.1", running.port))
                if asked:
                    await stream.send_all(asked.encode())
                    await stream.receive_some()
            running.process.terminate()
            with trio.fail_after(60):
                assert await trio.to_thread.run_sync(running.process.wait) == 0


async def test_a_client_that_does_not_read_does_not_hold_up_the_end(store_folder: Path) -> None:
    with server(store_folder / "s", "--grace", "0.1") as running:
        stream = await trio.open_tcp_stream("127.0.0.1", running.port)
        async with asking(running) as client:
            await client.post(API, json={"id": "s"})
            for _ in range(30):
                await client.post(f"{API}/s/turn", json={"input": "x" * 300_000})
        head = f"GET /api/v1/dataspace HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {running.token}\r\n"
        await stream.send_all(f"{head}Accept: text/event-stream\r\n\r\n".encode())
        await stream.receive_some(100)
        running.process.terminate()
        with trio.fail_after(60):
            assert await trio.to_thread.run_sync(running.process.wait) == 0
        await stream.aclose()


def test_tls_is_spoken_where_there_is_a_certificate(store_folder: Path, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with server(store_folder / "s", "--tls-cert", cert, "--tls-key", key) as running:
        assert running.address.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(base_url=running.address, headers=running.headers, verify=context) as client:
            assert client.get("/api/v1").json()["principal"] == "owner"
        assert b"200" not in running.raw(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")


def test_half_of_what_tls_needs_is_refused(store_folder: Path, tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path)
    command = [*PROGRAM, "serve", str(store_folder / "s"), "--tls-cert", str(cert)]
    done = subprocess.run(command, capture_output=True, env=environment())
    assert (done.returncode, b"both" in done.stderr) == (2, True)


def test_ctrl_c_ends_it_in_order(store_folder: Path) -> None:
    with server(store_folder / "s") as running:
        assert running.stop(signal.SIGINT) == 130
        assert running.events()[-1]["event"] == "ended"


def test_the_models_of_the_file_are_there_by_name(store_folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text('[models.small]\nurl = "http://127.0.0.1:1/v1"\nmodel = "s-1"\nkey = "SOME_KEY"\n')
    with server(store_folder / "s", "--config", config, env={"SOME_KEY": "sk-0123456789"}) as running:
        with running.client() as client:
            assert "small" in client.get("/api/v1").json()["models"]
        assert [each["model"] for each in running.events() if "first model" in str(each["event"])] == ["small"]
        assert "sk-0123456789" not in running.log.read_text()


def _until(running: Server, event: str) -> None:
    while all(each["event"] != event for each in running.events()):
        time.sleep(0.01)


def test_the_log_is_json_where_that_is_asked_for(store_folder: Path) -> None:
    with server(store_folder / "s") as running:
        with running.client() as client:
            client.get("/api/v1", headers={"x-request-id": "mine"})
        running.stop()
        first = running.events()[0]
        assert (first["event"], first["pid"]) == ("starting", running.process.pid)
        assert (running.store / "lock").read_text().startswith(f"pid {running.process.pid}\n")
        [told] = [each for each in running.events() if each.get("request") == "mine"]
        assert (told["event"], told["method"], told["path"], told["status"], told["by"]) == (
            *("request", "GET", "/api/v1", 200, "owner"),
        )
        assert json.dumps(told)
