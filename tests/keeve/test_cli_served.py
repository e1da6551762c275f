"""The commands with a server: they say what they say of files, and ask it for what an owner alone can do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.session import Session
from keeve import Settings, open_host
from keeve.key_files import signing_key
from tests.cli_worlds import Caller, Stuck, Waiter, leave_asking, leave_fibers, leave_waiting
from tests.served_stores import asked, served_store
from vat.devices.devices import Effect, effect

OWN = ("uid", "seq", "hash", "root", "cursor", "position", "created", "updated")
"""What two stores do not have in common."""

LOOKS = (
    ("ls",),
    ("ls", "s", "--limit", "1", "--json"),
    ("ls", "--deleted", "--json"),
    ("show", "s1"),
    ("show", "s1", "--json"),
    ("show", "w1"),
    ("show", "w1", "--json"),
    ("show", "nobody"),
    ("show", "gone"),
    ("state", "s2", "--at", "3"),
    ("state", "w1", "--json"),
    ("state", "s1", "--at", "99"),
    ("messages", "s2"),
    ("messages", "s1", "--after", "1", "--limit", "2", "--json"),
    ("messages", "w1"),
    ("chain", "s2"),
    ("chain", "s2", "--after", "2", "--limit", "2", "--words", "--json"),
    ("chain", "nobody"),
    ("log", "(turn ?n _ . _)"),
    ("log", "(_ . _)", "--session", "s2", "--lineage", "--json", "--limit", "3"),
    ("log", "(turn-done . _)", "--after", "3", "--until", "9", "--json"),
    ("log", "(_ . _)", "--until", "9999"),
    ("log", "(nothing)", "--session", "s2"),
    ("facts", "(turn . _)"),
    ("facts", "(turn . _)", "--session", "s1", "--at", "2", "--json"),
    ("effects",),
    ("effects", "--json"),
    ("checkpoint",),
    ("checkpoint", "--since", "2", "--json"),
    ("keys",),
    ("keys", "--json"),
    ("prove", "s1", "2", "--words"),
    ("prove", "s1", "2", "--json"),
    ("prove", "s1", "99"),
)

ACTS = (
    ("turn", "s1", "hello again"),
    ("turn", "s1", "hello once more", "--json"),
    ("queue", "s2", "when you have time"),
    ("queue", "s1", "when you have time", "--json"),
    ("steer", "s1", "not that", "--json"),
    ("interrupt", "s2"),
    ("interrupt", "s1", "--turn", "1", "--json"),
    ("fork", "s1", "--turn", "1", "--into", "s3"),
    ("fork", "s1", "--at", "3", "--into", "s4", "--json"),
    ("fork", "s1", "--turn", "99"),
    ("fork", "s1", "--into", "s2"),
    ("create", "new"),
    ("create", "other", "--system", "Be brief.", "--json"),
    ("create", "s1"),
    ("snapshot", "s1", "--json"),
    ("erase", "s1", "--turn", "1", "--json"),
    ("approve", "a1", "call_1", "--json"),
    ("approve", "a1", "call_2"),
    ("refuse", "a2", "call_1", "too much"),
    ("resolve", "ffff", "--value", "1"),
    ("archive", "--back"),
    ("delete", "s2", "--json"),
    ("delete", "s2"),
)


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    await leave_fibers(path, w1=("for_a_person", "40"), w2=("for_tomorrow",))
    async with open_host(path, signer=signing_key(tmp_path / "log.pem", make=True)) as host:
        s1 = await host.spawn(Session, "s1")
        await s1.turn("hello")
        await s1.turn("again")
        await s1.fork(at=3, into="s2")
        await host.spawn(Session, "gone")
        await host.delete("gone")
        host.checkpoint()
    return path


async def test_a_server_and_its_files_are_told_of_in_the_same_words(store: Path) -> None:
    async with served_store(store, actors=[Waiter]) as there:
        for words in LOOKS:
            files = await asked(*words, "--store", store)
            assert files.out or files.err, words
            assert await asked(*words, "--server", there.socket) == files, words
        over_tcp = await asked("ls", env={"KEEVE_SERVER": there.url, "KEEVE_TOKEN": there.token})
        assert over_tcp == await asked("ls", "--store", store)


async def test_what_is_asked_of_a_store_is_asked_of_the_server_that_has_it(tmp_path: Path) -> None:
    alone, has = tmp_path / "alone", tmp_path / "has"
    for id in ("a1", "a2"):
        await leave_asking(alone, id)
    async with open_host(alone) as host:
        s1 = await host.spawn(Session, "s1")
        await s1.turn("hello")
        await s1.fork(into="s2")
    shutil.copytree(alone, has)
    async with served_store(has):
        for words in ACTS:
            one, other = await asked(*words, "--store", alone), await asked(*words, "--store", has)
            assert (one.code, told(one.out, words)) == (other.code, told(other.out, words)), (words, one, other)
            if one.code:
                assert one.err.replace(str(alone), "") == other.err.replace(str(has), ""), words


def told(out: str, words: tuple[str, ...]) -> Any:
    """What was said, without what is a store's own."""
    if "--json" not in words or not out:
        return out
    from json import loads

    return {name: value for name, value in loads(out).items() if name not in OWN}


class Patient:
    """A device that never answers, whose calls may be made again."""

    def __init__(self) -> None:
        self.called = trio.Event()

    @effect(on_crash="retry")
    async def call(self, effect: Effect, what: str) -> None:
        self.called.set()
        await trio.sleep_forever()


async def test_what_nobody_runs_and_what_has_no_device_is_told_of_while_a_server_has_the_store(tmp_path: Path) -> None:
    store, stuck, magic = tmp_path / "data", Stuck(), Patient()
    await leave_waiting(store, ("old",))
    settings = Settings(takes_up="asked")
    async with (
        open_host(store, actors=[Caller], devices={"magic": magic}, settings=settings) as host,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon((await host.spawn(Caller, "poor", tool="magic")).call, "a wand")
        await magic.called.wait()
        nursery.cancel_scope.cancel()
    async with (
        served_store(store, actors=[Caller], devices={"tool": stuck}, unknown="hold") as there,
        trio.open_nursery() as nursery,
    ):
        for id in ("new", "newer"):
            called = stuck.called
            nursery.start_soon((await there.host.spawn(Caller, id)).call, "a stone")
            await called.wait()
        await (await there.host.get("old")).keep("what it takes up meanwhile")
        ways = ("--store", store), ("--server", there.socket)
        files, server = [await asked("effects", *way) for way in ways]
        shown = [await asked("show", "old", *way) for way in ways]
        doctor = (await asked("doctor", "--store", store)).out
        nursery.cancel_scope.cancel()
    assert files == server
    states = {line.split()[1]: line.split()[2] for line in files.out.splitlines()[1:]}
    assert states == {"old": "unknown", "new": "started", "newer": "started", "poor": "wanted"}
    assert shown[0] == shown[1]
    assert "tool.call of session old has started, and nobody knows its outcome" in doctor
    assert "session new" not in doctor
    assert "work waits for a host with magic, unlike its server" in doctor
