"""`keeve effects` and what `keeve doctor` says of them, in a store with a session that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from keeve.cli.effects import _effect_rows
from keeve.looking import effect_face
from tests.cli_runner import keeve
from tests.cli_worlds import leave_waiting
from vat.heap.pending import OpenEffect


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    """Three sessions wait; the first one's content is not what was written."""
    path = tmp_path / "data"
    await leave_waiting(path, ("c1", "c2", "c3"))
    [segment] = (path / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.index(b"a stone")] ^= 1
    segment.write_bytes(data)
    return path


async def test_a_session_that_cannot_be_read_hides_no_other(store: Path) -> None:
    """Invariant 23: a damaged session never stops another from being listed."""
    said = keeve("effects", "--store", store)
    assert said.code == 1
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == ["c2", "c3"]
    assert said.err.startswith("session c1: its effects cannot be read: ")
    assert "Traceback" not in said.err


async def test_with_json_it_is_named_beside_the_others(store: Path) -> None:
    said = keeve("effects", "--store", store, "--json")
    assert said.code == 1
    assert [effect["session"] for effect in said.json["effects"]] == ["c2", "c3"]
    [unread] = said.json["unreadable"]
    assert unread["session"] == "c1"
    assert "damaged" in unread["what"]


async def test_the_doctor_tells_of_all_of_them(store: Path) -> None:
    signs = [sign for sign in keeve("doctor", "--store", store, "--json").json["signs"] if sign["of"] == "effects"]
    assert [(sign["state"], next(id for id in ("c1", "c2", "c3") if id in sign["seen"])) for sign in signs] == [
        ("bad", "c1"),
        ("warn", "c2"),
        ("warn", "c3"),
    ]


def test_keywords_of_an_effect_are_shown_by_their_names() -> None:
    asked = OpenEffect("ab", "s1", b"", 1, "tools", "call", ("mail",), {"approved": True}, started=True)
    assert _effect_rows([effect_face(asked, "unknown")], None) == [
        ("ab", "s1", "unknown", "tools.call", '["mail"] approved=true')
    ]
