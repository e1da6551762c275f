"""`keeve chain` and `keeve messages`: pages put together, and a chain that is looked at as it is shown."""

from __future__ import annotations

import io
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from keeve import ScriptedModel, Session, Tools, open_host, tool
from keeve.cli.output import Output
from keeve.cli.pages import tell_chain
from tests.cli_runner import keeve


@tool
async def price(item: str) -> str:
    """What it costs."""
    return "3 euros"


class Told:
    """A store that tells what it was given."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self._records = records

    async def look(self, what: str, **how: Any) -> dict[str, Any]:
        return {"records": self._records, "next": None}


async def chain(records: list[dict[str, Any]], after: int = 0) -> tuple[int, str]:
    said = io.StringIO()
    told: Any = Told(records)
    return await tell_chain(told, Output(out=io.StringIO(), err=said), id="s1", after=after, limit=None, words=False), (
        said.getvalue()
    )


async def test_a_record_that_does_not_name_the_one_before_it_is_named(tmp_path: Path) -> None:
    store = tmp_path / "data"
    keeve("chat", "s1", "--store", store, input="hello\n")
    records = keeve("chain", "s1", "--store", store, "--json").json["records"]
    assert await chain(records) == await chain(records[1:], after=1) == (0, "")
    header = bytearray(b64decode(records[1]["header"]))
    header[-1] ^= 1
    records[1] = {**records[1], "header": b64encode(header).decode()}
    assert await chain(records) == (
        1,
        "the record at seq 3 does not name the one before it: keeve verify says what is wrong\n",
    )
    assert (await chain(records[2:]))[0] == 1  # the first of a chain names none


def test_pages_of_a_long_conversation_are_one_answer(tmp_path: Path, monkeypatch: Any) -> None:
    store = tmp_path / "data"
    keeve("chat", "s1", "--store", store, input="a\nb\nc\n")
    whole = keeve("messages", "s1", "--store", store, "--json").json
    monkeypatch.setattr("keeve.cli.pages.PAGE", 2)
    assert keeve("messages", "s1", "--store", store, "--json").json == whole
    assert [len(whole["messages"]), whole["next"]] == [6, None]
    part = keeve("messages", "s1", "--store", store, "--json", "--after", "1", "--limit", "3").json
    assert part == {"messages": whole["messages"][1:4], "next": 4}
    assert "no message of s1 comes after 6" in keeve("messages", "s1", "--store", store, "--after", "6").err


async def test_what_was_erased_of_a_call_is_told_as_that_and_not_as_json(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "price", "arguments": '{"item": "CANARYPEAR"}'}}
    messages = (
        {"role": "user", "content": "what is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "3 euros", "tool_call_id": "c1"},
        {"role": "assistant", "content": "it is 3 euros"},
    )
    async with open_host(tmp_path, devices={"model": ScriptedModel(list(messages)), "tools": Tools(price)}) as host:
        await (await host.spawn(Session, "s1", tools=Tools(price).schemas)).turn("what is it?")
    assert "CANARYPEAR" in keeve("messages", "s1", "--store", tmp_path).out
    assert keeve("erase", "s1", "--turn", "1", "--store", tmp_path).code == 0
    said = keeve("messages", "s1", "--store", tmp_path).out
    assert "[calls price([erased])]" in said
    assert "$erased" not in said + keeve("show", "s1", "--store", tmp_path).out
