"""The commands with a server of an earlier version, that was not started anew since an update: what it does not know is
asked for in another way, and what it does not tell is left out.

It is a server of this version without all that has come since. What a command begins to use of that, it has to do
without here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from keeve import EchoModel, Session
from keeve.looking import NoSuchLook
from keeve.wire import desk
from keeve.wire.desk import Desk
from tests.cli_runner import Said
from tests.keeve.own_shapes import Plain
from tests.served_stores import ServedStore, asked, served_store
from vat.crank.finding import Finding
from vat.errors import no_such_method

AT_THE_DESK: Final = {
    *("archive", "bring_back", "delete", "erase", "facts", "get", "live", "look", "reclaim", "resolve", "say"),
    *("sessions", "spawn"),
}
LOOKS: Final = {
    *("chain", "checkpoint", "end", "facts", "keys", "lacking", "messages", "receipt", "row", "sessions", "show"),
    *("state", "waiting", "waits"),
}
DESCRIBED: Final = {
    *("id", "uid", "type", "version", "methods", "fields", "seq", "hash", "time", "actors", "effects", "messages"),
    *("subscriptions", "fibers"),
}
SESSION: Final = {
    *("id", "uid", "type", "seq", "position", "hash", "forked_from", "pending", "deleted", "created", "updated"),
}
TOLD: Final = {
    "row": SESSION,
    "show": SESSION
    | {"turns", "turns_before", "fields", "fields_next", "facts", "forks", "snapshots", "effects", "approvals"}
    | {"fibers", "truncated", "damage", "away", "owner"},
    "state": {"session", "type", "seq", "hash", "time", "fields", "next", "refs"},
}
"""What looks told that tell one thing."""
LISTED: Final = {
    "chain": ("records", {"seq", "position", "header", "words"}),
    "sessions": ("sessions", SESSION),
    "show": ("forks", {"session", "at"}),
}
"""What looks told of each thing in a list."""


def only(told: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """What there was of that."""
    kept = {name: value for name, value in told.items() if name in names}
    if kept.get("forked_from"):
        kept["forked_from"] = only(kept["forked_from"], {"session", "at"})
    return kept


@pytest.fixture
async def older(store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServedStore]:
    call, look, describe = Desk.call, desk.look, Finding.describe

    async def called(self: Desk, method: str, *args: Any) -> Any:
        if method not in AT_THE_DESK:
            raise no_such_method("the desk", method, AT_THE_DESK)
        return await call(self, method, *args)

    async def looked(store: Any, what: str, how: Mapping[str, Any]) -> Any:
        if what not in LOOKS:
            raise NoSuchLook(what)
        told = await look(store, what, how)
        if what in LISTED:
            items, names = LISTED[what]
            told = {**told, items: [only(item, names) for item in told[items]]}
        return only(told, TOLD.get(what, set(told)))

    monkeypatch.setattr(Desk, "call", called)
    monkeypatch.setattr(desk, "look", looked)
    monkeypatch.setattr(Finding, "describe", lambda self, actor: only(describe(self, actor), DESCRIBED))
    async with served_store(store_folder, actors=[Session, Plain], devices={"model": EchoModel()}) as served:
        session = await served.host.spawn(Session, "s1")
        await session.turn("hello")
        await session.fork(into="f1")
        await served.host.spawn(Plain, "plain")
        yield served


async def ask(store: ServedStore, *words: str) -> Said:
    """Have a command ask the server, and not read its files."""
    said = await asked(*words, "--server", store.socket, env={"KEEVE_STORE": str(store.folder)})
    assert "Traceback" not in said.err
    return said


@pytest.mark.parametrize(
    "words",
    [
        ("show", "s1"),
        ("show", "f1", "--json"),
        ("show", "plain"),
        ("state", "s1"),
        ("state", "plain", "--json"),
        ("chain", "s1"),
        ("chain", "f1", "--json"),
        ("ls",),
        ("ls", "--json"),
        ("effects",),
        ("effects", "--session", "s1"),
        ("facts", "(turn . _)"),
        ("log", "(turn . _)"),
        ("messages", "s1"),
        ("queue", "s1", "hello"),
        ("turn", "s1", "hello"),
        ("steer", "s1", "hello"),
        ("snapshot", "s1"),
        ("erase", "s1", "--turn", "1"),
        ("delete", "f1"),
    ],
    ids=" ".join,
)
async def test_what_an_older_server_can_do_is_done(older: ServedStore, words: tuple[str, ...]) -> None:
    said = await ask(older, *words)
    assert said.code == 0, said.err


async def test_what_is_made_is_named(older: ServedStore) -> None:
    assert (await ask(older, "fork", "s1", "--into", "other")).out == "other\n"
    assert (await ask(older, "create", "new")).out == "new\n"


async def test_what_is_not_told_is_left_out(older: ServedStore) -> None:
    assert "fork     f1 at seq 3\n" in (await ask(older, "show", "s1")).out
    assert "cannot be read" not in (await ask(older, "chain", "s1")).out
    assert "parts" not in (await ask(older, "state", "s1", "--json")).json


async def test_what_is_over_is_told_in_the_words_that_there_were(older: ServedStore) -> None:
    assert "no effect 'abc' waits for somebody to settle it" in (await ask(older, "resolve", "abc", "--value", "1")).err
    assert (await ask(older, "interrupt", "s1")).out == "no turn was to end\n"
    assert (await ask(older, "interrupt", "plain")).out == "its interrupt() gave false\n"
    assert "is of a type that states no turns" in (await ask(older, "queue", "plain", "hello")).err
