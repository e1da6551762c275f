"""Whoever looks at a session calls nothing of it that may write: what is called of refs is held as a kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from actors.responding import Responding
from keeve import Session, open_host
from keeve.cli.partner import Partner
from keeve.wire.verbs import EVERY_REF
from tests.cli_runner import ROOT
from vat.objects.types import type_of

FOLDERS: Final = ("keeve/cli", "keeve/looking", "keeve/server", "keeve/wire")
"""Where sessions are asked for whoever has a command, an address or a connection."""

DOING: Final = frozenset(
    ("turn", "interrupt", "respond", "add", "remove", "forget", "offer", "describe_as", "spawn", *EVERY_REF)
)
"""What somebody has asked for that it is called; and what every ref has, of which `describe` looks, and is the
runtime's own."""

ASKED_FIRST: Final = ("keeve/looking/asking.py", "status")
"""What is called only where `describe` says that it is to be read."""

CONVERSATIONS: Final = "keeve/server/openai/"
"""Where a ref is to a conversation by requests, whose type is looked at when it is reached."""


def called(path: Path) -> Iterator[str]:
    """The names of what is called of refs in a file, and of what is read of them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Await):
            node = node.value.func if isinstance(node.value, ast.Call) else node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            continue
        if isinstance(node, ast.Attribute):
            of = node.value
            name = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else ""
            if name.lstrip("_") == "ref":
                yield node.attr


def test_for_a_look_nothing_is_called_but_what_is_to_be_read() -> None:
    kind = type_of(Responding)
    reads = {name for name, method in kind.methods.items() if method.read} | kind.fields.keys()
    wrong, found = [], set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            for name in called(path):
                found.add((place, name))
                if name not in DOING and not (place.startswith(CONVERSATIONS) and name in reads):
                    wrong.append((place, name))
    assert wrong == [ASKED_FIRST]
    assert {"response", "status", "turn", "describe", "offered"} <= {name for _, name in found}


async def test_a_conversation_that_is_gone_on_with_at_a_prompt_is_woken_without_a_record(store_folder: Path) -> None:
    async with open_host(store_folder) as host:
        await (await host.spawn(Session, "s1")).turn("hello")
    async with open_host(store_folder) as host:
        head = host.row("s1").seq
        assert host.loaded("s1") is None
        await Partner(None, "s1", await host.get("s1"), 0).wake()  # type: ignore[arg-type]  # of the store nothing is asked
        assert (host.loaded("s1") is not None, host.row("s1").seq) == (True, head)
