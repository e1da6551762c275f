"""A session that its code cannot have is told of in logs by its id, once, with what to do: nobody else knows of it.

Invariant 43. Nothing of what was said stands there (Invariant 20).
"""

from __future__ import annotations

import ast
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import trio

from keeve import Actor, Model, Text, actor, effect, read
from keeve.errors import DiskFull, UpgradeFailed
from keeve.server.errors import refusal_of, set_up_of
from keeve.testing import MemoryLog, memory_host
from tests.page_visits import browser, form_of
from tests.server_worlds import World, world
from tests.vat.hosts import settled
from vat.host import care
from vat.host.residents import Residents
from vat.host.within import dataspace_of

ROOT = Path(__file__).parents[2]
API = "/api/v1/sessions"
SECRET = "canary-4711"


@actor("tests.asking", version=2)
class Asking(Actor):
    model: Model

    async def turn(self, text: Text) -> Text:
        answer = await self.model.complete([{"role": "user", "content": text}])
        return str(answer["content"])

    @read
    def status(self) -> str:
        return "there"


@actor("tests.asking", version=3)
class Newer(Asking):
    @classmethod
    def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
        raise ValueError("no way")


@actor("tests.asking", version=1)
class Older(Asking): ...


class Slow:
    """A model that has not answered yet when its host ends."""

    def __init__(self) -> None:
        self.asked = trio.Event()

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **options: Any) -> Any:
        self.asked.set()
        await trio.sleep_forever()


class Quick:
    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **options: Any) -> Any:
        return {"message": {"role": "assistant", "content": "late"}, "usage": None}


async def left_waiting(log: MemoryLog, id: str = "s") -> None:
    model = Slow()
    async with memory_host(log, actors=[Asking], devices={"model": model}) as host, trio.open_nursery() as nursery:
        ref = await host.asking("ann", "http").spawn(Asking, id)
        nursery.start_soon(ref.turn, SECRET)
        await model.asked.wait()
        nursery.cancel_scope.cancel()


def told(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "keeve" and each.levelno >= level]


async def test_work_that_waits_for_an_upgrade_is_warned_of_once_by_name(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    await left_waiting(log)
    caplog.set_level("INFO", "keeve")
    async with memory_host(log, actors=[Newer], devices={"model": Quick()}) as host:
        await settled(host)
        uid = host.row("s").uid.hex()
        for _ in range(3):
            assert host._engine.turns.unload(host.row("s").uid)
            host._engine._wake(host.row("s").uid)  # as a second later, and loaded anew
            await settled(host)
    [warning] = told(caplog)
    assert warning.startswith("session s has work pending, which waits until it can be upgraded: UpgradeFailed: ")
    assert "mend tests.asking's upgrade(), or run the older code" in warning
    assert "session s: the outcome of an effect waits" in "\n".join(told(caplog, logging.INFO))
    assert uid not in caplog.text
    assert SECRET not in caplog.text


async def test_what_is_kept_of_whom_that_was_said_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(care, "MOST_TOLD", 1)
    log = MemoryLog()
    for id in ("s", "s2", "s3"):
        await left_waiting(log, id)
    async with memory_host(log, actors=[Newer], devices={"model": Quick()}) as host:
        await settled(host)
        assert len(host._engine.care._told) == 1


@pytest.mark.parametrize(("types", "what"), [((Older,), "NewerVersion"), ((), "UnknownActorType")])
async def test_one_that_cannot_be_loaded_is_named_by_its_id(
    caplog: pytest.LogCaptureFixture, types: Any, what: str
) -> None:
    log = MemoryLog()
    await left_waiting(log)
    async with memory_host(log, actors=types, devices={"model": Quick()}) as host:
        await settled(host)
        uid = host.row("s").uid.hex()
    [warning] = told(caplog)
    assert warning.startswith(f"session s has work pending and cannot be loaded: {what}: ")
    assert uid not in caplog.text


async def test_one_that_only_sleeps_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    async with memory_host(log, actors=[Asking], devices={"model": Quick()}) as host:
        await host.spawn(Asking, "s")
    async with memory_host(log, actors=[Newer], devices={"model": Quick()}) as host:
        with pytest.raises(Exception, match="no way"):
            await (await host.get("s")).status()
    assert told(caplog) == []


def test_no_line_of_a_log_names_a_session_by_its_uid() -> None:
    """Nobody can look that up. What knows no id asks for it (`Residents.name`, `Catalog.name`)."""
    found: list[str] = []
    for path in [*(ROOT / "vat").rglob("*.py"), *(ROOT / "dataspace").rglob("*.py"), *(ROOT / "keeve").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("log.", "self._log.", "serving.log.")):
                found += [f"{path}:{node.lineno}" for given in node.args if ".hex()" in ast.unparse(given)]
    assert found == []


async def test_where_no_catalog_tells_the_id_the_uid_has_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with memory_host(MemoryLog(), actors=[Asking]) as host:
        await host.spawn(Asking, "s")
        uid, catalog = host.row("s").uid, dataspace_of(host).catalog
        assert Residents(1, catalog.name).name(uid) == "s"

        def fails(uid: bytes) -> None:
            raise DiskFull("data", "no space", undone=True)

        monkeypatch.setattr(catalog, "by_uid", fails)
        assert Residents(1, catalog.name).name(uid) == uid.hex()


def said_in(w: World) -> list[str]:
    lines = [json.loads(line) for line in w.log.getvalue().splitlines()]
    return [line["why"] for line in lines if line.get("event") == "not set up"]


@pytest.mark.parametrize(("kind", "code"), [(Newer, "upgrade_failed"), (Older, "newer_version")])
async def test_a_request_that_met_it_says_so_in_the_servers_log_with_the_session(kind: Any, code: str) -> None:
    log = MemoryLog()
    await left_waiting(log)
    async with world(log=log, actors=[kind], devices={"model": Quick()}) as w:
        answer = await w.ann.post(f"{API}/s/turn", json={"input": SECRET})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, code)
        assert "its log says what is missing" in answer.json()["error"]["remedy"]
        assert "no way" not in answer.text
        stream = await w.ann.post(f"{API}/s/turn", json={"input": SECRET}, headers={"accept": "text/event-stream"})
        assert "its log says what is missing" in stream.text
        assert (await w.ann.get(f"{API}/s")).status_code == 200
        for why in said_in(w):
            assert "tests.asking" in why
            assert "in session 's'" in why
        assert len(said_in(w)) == 2
        assert SECRET not in w.log.getvalue()


async def test_so_do_the_page_and_the_door_of_openais_clients() -> None:
    log = MemoryLog()
    await left_waiting(log)
    async with world(log=log, actors=[Newer], devices={"model": Quick()}) as w, browser(w, "ann") as ann:
        form = form_of((await ann.get("/sessions/s")).text, "/sessions/s/say")
        answer = await ann.post("/sessions/s/say", data={**form, "how": "turn", "input": SECRET})
        assert (answer.status_code, "its log says what is missing" in answer.text) == (503, True)
        [why] = said_in(w)
        assert "in session 's'" in why
    raised = UpgradeFailed("s", "tests.asking", 2, ValueError("no way"))
    refusal = refusal_of(raised)
    assert refusal is not None
    refusal.__cause__ = ExceptionGroup("", [raised])  # as a stream of theirs raises it
    assert (set_up_of(refusal) or "").startswith("UpgradeFailed: session 's' cannot be brought")
