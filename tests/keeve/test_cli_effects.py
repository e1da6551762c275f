"""`keeve effects` and what `keeve doctor` says of them, in a store with a session that cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keeve.cli.effects import _effect_rows
from keeve.looking import effect_face, look, reading_of
from tests.cli_runner import keeve
from tests.cli_worlds import Caller, leave_a_turn_waiting, leave_waiting
from tests.served_stores import asked, served_store
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


async def test_who_settles_what_is_settled_is_told_how_it_was(tmp_path: Path) -> None:
    store = tmp_path / "data"
    await leave_a_turn_waiting(store)
    [effect] = keeve("effects", "--store", store, "--json").json["effects"]
    assert keeve("resolve", effect["id"][:8], "--error", "it fell", "--store", store).code == 0
    for words in (("--value", "1"), ("--error", "it fell")):
        said = keeve("resolve", effect["id"][:8], *words, "--store", store)
        assert said.code == 2
        assert f"no effect '{effect['id']}' waits for somebody to settle it: it was settled at 20" in said.err
        assert "Z by local (cli), with the error Resolved; keeve effects lists" in said.err
        assert "it fell" not in said.err
    said = keeve("resolve", "", "--value", "1", "--store", store)
    assert (said.code, "it may be settled already" in said.err) == (2, True)


async def test_a_server_tells_it_as_well_of_what_is_there_for_who_asks(tmp_path: Path) -> None:
    store = tmp_path / "data"
    await leave_waiting(store)
    async with served_store(store, unknown="hold", actors=[Caller]) as there:
        await (await there.host.get("c1")).describe()
        [effect] = there.host.effects()
        first = await asked("resolve", effect.id, "--value", "1", "--store", store)
        again = await asked("resolve", effect.id, "--value", "1", "--store", store)
        assert (first.code, again.code) == (0, 2)
        assert re.search(r"it was settled at \S+Z by owner \(\w+\), with a value", again.err)
        reading = reading_of(there.host, lambda row: False)
        assert await look(reading, "settled", {"effect": effect.id}) == {}


def test_keywords_of_an_effect_are_shown_by_their_names() -> None:
    asked = OpenEffect("ab", "s1", b"", 1, "tools", "call", ("mail",), {"approved": True}, started=True)
    assert _effect_rows([effect_face(asked, "unknown")], None) == [
        ("ab", "s1", "unknown", "tools.call", '["mail"] approved=true')
    ]
