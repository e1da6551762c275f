"""`--json` of every command has the fields that the page names, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.errors import KeeveError
from keeve.cli.commands import app
from keeve.private_files import make_private
from tests.cli_runner import ROOT, Said, keeve
from tests.cli_worlds import leave_a_ledger, leave_a_turn_waiting, leave_asking, leave_fibers
from tests.server_process import server

PAGE = (ROOT / "docs" / "json.md").read_text()
ROWS = dict(re.findall(r"^\| `([\w-]+)` \| (.*?) \|$", PAGE, re.MULTILINE))
"""What the page says that each command gives."""


def names(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which there is something of all that is told."""
    path = tmp_path_factory.mktemp("world") / "data"

    async def main() -> None:
        await leave_a_ledger(path, "ann")
        await leave_fibers(path, waits=("for_tomorrow",))
        await leave_a_turn_waiting(path, "mailer")
        for id in ("buyer", "lender"):
            await leave_asking(path, id)

    trio.run(main)
    for words in (("chat", "s1"), ("chat", "gone")):
        assert keeve(*words, "--store", path, input="hello\n").code == 0
    assert keeve("fork", "s1", "--into", "s2", "--store", path).code == 0
    assert keeve("checkpoint", "--signer", path.parent / "log.pem", "--make", "--store", path).code == 0
    make_private(path / "token", b"what-a-server-has-made", lambda what: KeeveError(what))
    (path.parent / "receipt").write_text(keeve("prove", "s1", "2", "--words", "--store", path).out)
    return path


def commands(store: Path) -> dict[str, Callable[[], Said]]:
    waiting = keeve("effects", "--store", store, "--json").json["effects"]
    mail = next(effect["id"] for effect in waiting if effect["session"] == "mailer")
    words: dict[str, tuple[str | Path, ...]] = {
        "chat": ("chat", "s1"),
        "create": ("create", "new"),
        "turn": ("turn", "s1"),
        "queue": ("queue", "s1"),
        "steer": ("steer", "s1"),
        "interrupt": ("interrupt", "s1"),
        "snapshot": ("snapshot", "s1"),
        "state": ("state", "s1"),
        "facts": ("facts", "(turn . _)"),
        "ls": ("ls",),
        "show": ("show", "l1"),
        "log": ("log", "(_ . _)"),
        "fork": ("fork", "s1"),
        "effects": ("effects",),
        "resolve": ("resolve", mail, "--value", "1"),
        "approve": ("approve", "buyer", "call_1"),
        "refuse": ("refuse", "lender", "call_1", "too much"),
        "checkpoint": ("checkpoint", "--since", "3"),
        "prove": ("prove", "s1", "2", "--words"),
        "check": ("check", store.parent / "receipt"),
        "keys": ("keys",),
        "new-key": ("new-key", store.parent / "host.key"),
        "token": ("token", "make"),
        "verify": ("verify",),
        "dump": ("dump",),
        "salvage": ("salvage", store, store.parent / "saved"),
        "doctor": ("doctor",),
        "delete": ("delete", "gone"),
        "gc": ("gc",),
        "erase": ("erase", "s1", "--turn", "1"),
    }
    served = {"serve": partial(serving, store.parent / "served"), "config": partial(keeve, "config", "--json")}
    return served | {
        name: partial(keeve, *these, "--store", store, "--json", input="x\n") for name, these in words.items()
    }


def serving(store: Path) -> Said:
    """What a server says when it has started, which is ended then."""
    with server(store) as running:
        return Said(0, running.said, "")


def test_each_command_gives_the_fields_that_the_page_names(store: Path) -> None:
    wrong: dict[str, list[str]] = {}
    for name, said in commands(store).items():
        document: dict[str, Any] = said().lines[0]
        top, *nested = ROWS.get(name, "").split("; each of ")
        if names(top) - {"ls"} != set(document):
            wrong[name] = sorted(document)
        for part in nested:
            field, _, items = part.partition(": ")
            [of] = names(field)
            told = document[of]
            for item in told.values() if isinstance(told, dict) else told:
                if names(items) - {"log"} != set(item):
                    wrong[f"{name}.{of}"] = sorted(item)
    assert wrong == {}


def test_the_page_says_of_every_command_what_it_gives() -> None:
    assert sorted(ROWS) == sorted(name for name in app.resolved_commands() if not name.startswith("-"))
