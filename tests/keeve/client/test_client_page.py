"""The pages on the client, on tokens and on the protocol say what is so."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from keeve.client.client import Client
from keeve.wire.guarding import Limits
from keeve.wire.messages import FROM_CLIENT, FROM_SERVER
from keeve.wire.verbs import AT_THE_DESK, EVERY_REF
from tests.pages import ROOT, run
from tests.server_process import server

WIRE = (ROOT / "docs" / "wire.md").read_text()
CLIENT = (ROOT / "docs" / "client.md").read_text()
TOKENS = (ROOT / "docs" / "tokens.md").read_text()


def test_the_page_of_the_client_runs_beside_a_server(store_folder: Path) -> None:
    with server(store_folder / "data"):
        ran = run(ROOT / "docs" / "client.md", store_folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[0] == "hello"


def test_the_page_of_the_client_has_all_that_a_client_does() -> None:
    inside = {"begin", "close", "connected", "fail", "leave", "perform", "run", "use"}
    public = {name for name in vars(Client) if not name.startswith("_")} - inside
    assert {name for name in public if f"client.{name}" not in CLIENT} == set()


def test_the_page_of_the_protocol_has_every_message_with_its_fields() -> None:
    parts = (WIRE.partition("## From the client")[2].partition("\n## ")[0], WIRE.partition("## From the server")[2])
    for kinds, part in zip((FROM_CLIENT, FROM_SERVER), parts, strict=True):
        for kind, fields in kinds.items():
            found = re.search(rf'`\["{kind}"(.*?)\]`', part)
            assert found, kind
            shown = found[1].strip(", ")
            while (inner := re.sub(r"\[[^\[\]]*\]|\{[^{}]*\}", "x", shown)) != shown:
                shown = inner
            assert len([field for field in shown.split(", ") if field]) == len(fields), kind


def test_the_pages_have_the_limits_that_are_so() -> None:
    limits = Limits()
    said = {match.replace(",", "") for match in re.findall(r"\d[\d,]*", WIRE)}
    for name in ("hello", "frame", "answer", "calls", "refs", "kept"):
        assert str(getattr(limits, name)) in said, name
    assert {str(round(value)) for value in (limits.greeting, limits.idle)} <= said
    assert {field.name for field in attrs.fields(Limits)} == {
        *("hello", "frame", "answer", "calls", "streams", "refs", "unsent", "kept", "greeting", "idle")
    }


def test_the_page_of_tokens_has_what_manages_and_what_is_called_at_the_desk() -> None:
    assert {name for name in AT_THE_DESK.keys() | EVERY_REF.keys() if f"`{name}`" not in TOKENS} == set()
