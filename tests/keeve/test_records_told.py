"""What `keeve chain` tells of the records of an agent of one's own: so that the one is found which brought something,
and erased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keeve import Actor, Tools, actor, open_host, tool
from tests.cli_runner import keeve
from tests.keeve.canaries import found

SECRET = "CANARYCARD" + "4" * 300


@tool
async def price(item: str) -> str:
    """What it costs."""
    return f"{item}: 3"


@actor("told.agent", version=1)
class Agent(Actor):
    seen: Any = None

    async def buy(self, what: str) -> None:
        call = {"id": "c1", "function": {"name": "price", "arguments": f'{{"item": "{what}"}}'}}
        self.seen = await self.device("tools").run(call)

    def keep(self, what: str) -> None:
        self.seen = what


async def talked(store: Path) -> None:
    async with open_host(store, actors=[Agent], devices={"tools": Tools(price)}) as host:
        agent = await host.spawn(Agent, "a1")
        await agent.keep("a word", request="r-1")
        await agent.buy("a pear")
        await agent.keep(SECRET)


async def test_each_record_says_which_call_it_took_and_whose_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    await talked(tmp_path)
    said = keeve("chain", "a1", "--store", tmp_path, "--json")
    told = {each["seq"]: each["of"] for each in said.json["records"]}
    kept, bought, came = [of for of in told.values() if of["method"] or of["effect"]][:3]
    who = {"by": "local", "via": "python"}
    assert kept == {"method": "keep", "effect": None, **who, "request": "r-1", "calls": []}
    assert bought["calls"] == [{"effect": 1, "device": "tools", "method": "run"}]
    assert (came["method"], came["effect"], came["by"]) == (None, 1, None)
    assert "pear" not in said.out
    assert "CANARY" not in said.out
    lines = keeve("chain", "a1", "--store", tmp_path).out.splitlines()
    assert lines[0].split() == ["SEQ", "POSITION", "KIND", "TIME", "OF", "HASH"]
    assert any("keep by local via python request r-1" in line for line in lines)
    assert any("buy by local via python; wants effect 1 (tools.run)" in line for line in lines)
    assert any(" effect 1 (tools.run) " in line for line in lines)
    [*_, seq] = [seq for seq, of in told.items() if of["method"] == "keep"]
    assert keeve("erase", "a1", "--seq", str(seq), "--store", tmp_path).code == 0
    assert found(tmp_path, "CANARYCARD") == []
    assert keeve("chain", "a1", "--store", tmp_path, "--json").json["records"][seq - 1]["of"] == told[seq]


async def test_of_a_record_that_cannot_be_read_it_says_that_and_goes_on(tmp_path: Path) -> None:
    await talked(tmp_path)
    [segment] = (tmp_path / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.index(b"a pear")] ^= 1
    segment.write_bytes(data)
    said = keeve("chain", "a1", "--store", tmp_path, "--json")
    told = [each["of"] for each in said.json["records"]]
    assert said.code == 0
    assert told.count(None) == 1
    assert [of["method"] for of in told if of and of["method"]] == ["keep", "keep"]
    assert "(cannot be read here)" in keeve("chain", "a1", "--store", tmp_path).out
