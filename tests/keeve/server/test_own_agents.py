"""An agent of one's own, as the README's is, behind the server: its calls that wait for a person are seen and answered
at every door, and what its type does not state is said by name."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from keeve import Actor, List, Model, Text, Toolbox, Tools, actor, effect, looking, read, tool, user
from keeve.cli.own import named_tools, named_types
from keeve.errors import BadSetting
from keeve.server.wire import TokenGuard
from keeve.wire.desk import Desk
from keeve.wire.sturdy import SturdyRefs
from tests.page_visits import browser, form_of, text_of
from tests.pages import ROOT, program_in
from tests.server_worlds import TOKENS, World, world

API = "/api/v1/sessions"


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class Pays:
    """A model that pays once, if it is told to."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        last = messages[-1]
        call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 3}'}}
        if last["role"] == "user" and last["content"] == "pay":
            return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "usage": None}
        return {"message": {"role": "assistant", "content": "done", "tool_calls": []}, "usage": None}


@actor("own.agent", version=1)
class Agent(Actor):
    """A loop that keeps its calls at a toolbox, and states nothing of its turns."""

    model: Model
    tools: Toolbox
    said: List[str]
    seen: List[Any]

    async def turn(self, text: Text) -> Text:
        self.said.append(text)
        reply = await self.model.complete([user(text)])
        for _, outcome in await self.tools.run_all(reply.get("tool_calls") or []):
            self.seen.append(str(outcome))
            self.assert_fact("own.came", str(outcome))
        return "done"


@actor("own.posing", version=1)
class Posing(Actor):
    """It tells how far it is, as conversations do, and states nothing."""

    messages: List[dict]

    def turn(self, text: Text) -> Text:
        self.messages.append(user(text))
        return text

    @read
    def status(self) -> dict[str, Any]:
        return {"accepted": len(self.messages), "over": len(self.messages), "running": None, "limit": None}


def agents() -> Any:
    tools = Tools(pay)
    return world(actors=[Agent], devices={"model": Pays(), "tools": tools}), tools


async def waits(w: World, tools: Tools, nursery: trio.Nursery) -> None:
    ref = await w.host.asking("ann").spawn(Agent, "own", tools=tools)
    nursery.start_soon(ref.turn, "pay")
    async for _ in w.host.observe("(approval-wanted . _)"):
        break


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def came(w: World) -> Any:
    async for event in w.host.observe("(own.came ?what)"):
        return event.captures["what"]
    return None


@pytest.mark.parametrize("door", ["http", "page", "page of what waits", "command"])
async def test_a_call_that_waits_at_a_toolbox_is_seen_and_answered_at_every_door(door: str) -> None:
    opened, tools = agents()
    async with opened as w, browser(w, "ann") as ann, trio.open_nursery() as nursery:
        await waits(w, tools, nursery)
        head = w.host.row("own").seq
        address = "/sessions/own/approvals/c1"
        if door == "http":
            [call] = (await w.ann.get(f"{API}/own/approvals")).json()["approvals"]
            assert (call["id"], call["name"], call["session"]) == ("c1", "pay", "own")
            assert (await w.ann.get(f"{API}/own")).json()["approvals"] == [call]
            said = await w.ann.post(f"/api/v1{address}", json={"approve": True})
            assert said.json()["said"] == "approved"
        elif door == "command":
            [call] = (await looking.look(looking.reading_of(w.host), "waits", {"id": "own"}))["approvals"]
            await looking.say_word(w.host.asking("ann"), "own", call["id"], None)
        else:
            shown = (await ann.get("/sessions/own" if door == "page" else "/waiting")).text
            assert "pay" in text_of(shown)
            answer = await ann.post(address, data={**form_of(shown, address), "word": "approve"})
            assert answer.status_code == 303
        assert await came(w) == "paid 3"
        assert w.host.row("own").seq > head
        assert (await w.ann.get(f"{API}/own/approvals")).json() == {"approvals": [], "next": None}


async def test_to_see_what_waits_records_and_loads_nothing() -> None:
    opened, tools = agents()
    async with opened as w, browser(w, "ann") as ann, trio.open_nursery() as nursery:
        await waits(w, tools, nursery)
        seq = w.host.row("own").seq
        for _ in range(2):
            await w.ann.get(f"{API}/own/approvals")
            await ann.get("/waiting")
        assert w.host.row("own").seq == seq
        nursery.cancel_scope.cancel()


async def test_a_word_at_a_toolbox_counts_once_under_its_key() -> None:
    opened, tools = agents()
    async with opened as w, trio.open_nursery() as nursery:
        await waits(w, tools, nursery)

        async def word(key: str, approve: bool = True) -> httpx2.Response:
            headers = {"idempotency-key": key}
            return await w.ann.post(f"{API}/own/approvals/c1", json={"approve": approve}, headers=headers)

        assert [(await word("k")).json()["said"] for _ in range(2)] == ["approved", "approved"]
        assert code(await word("k", approve=False)) == (409, "request_conflict")
        assert code(await word("other")) == (404, "nothing_waits")
        assert await came(w) == "paid 3"


@pytest.mark.parametrize("how", ["queue", "steer"])
async def test_an_input_that_only_waits_is_refused_by_name_where_no_turns_are_stated(how: str) -> None:
    opened, tools = agents()
    async with opened as w:
        ref = await w.host.asking("ann").spawn(Agent, "own", tools=tools)
        answer = await w.ann.post(f"{API}/own/{how}", json={"input": "hello"})
        assert code(answer) == (422, "states_no_turns")
        assert await ref.said == []
        assert (await w.ann.post(f"{API}/own/turn", json={"input": "hello"})).json()["output"] == "done"


async def test_a_type_that_only_looks_like_a_conversation_is_refused_before_anything_is_said() -> None:
    async with world(actors=[Posing]) as w, browser(w, "ann") as ann:
        ref = await w.host.asking("ann").spawn(Posing, "own")
        for how in ("queue", "steer"):
            answer = await w.ann.post(f"{API}/own/{how}", json={"input": "hello"})
            assert code(answer) == (422, "states_no_turns")
        assert len(await ref.messages) == 0
        await ref.turn("said by a turn")
        shown = (await ann.get("/sessions/own")).text
        assert "said by a turn" in shown
        assert "Nothing was said yet" not in shown


async def test_a_chat_completion_of_an_own_agent_is_streamed_as_it_is_unstreamed() -> None:
    opened, tools = agents()
    async with opened as w:
        await w.host.asking("ann").spawn(Agent, "own", tools=tools)
        body = {"model": "model", "messages": [{"role": "user", "content": "hello"}]}
        headers = {"x-keeve-session": "own"}
        whole = await w.ann.post("/v1/chat/completions", json=body, headers=headers)
        assert whole.json()["choices"][0]["message"]["content"] == "done"
        parts = await w.ann.post("/v1/chat/completions", json={**body, "stream": True}, headers=headers)
        lines = [line.removeprefix("data: ") for line in parts.text.splitlines() if line.startswith("data: ")]
        told = [json.loads(line)["choices"] for line in lines if line != "[DONE]"]
        assert "".join(each[0]["delta"].get("content") or "" for each in told if each) == "done"


@pytest.mark.parametrize("door", ["http", "wire"])
async def test_an_agent_has_the_tools_of_the_server_unless_it_is_given_others(door: str) -> None:
    opened, _ = agents()
    async with opened as w:

        async def made(type: str, id: str, **fields: Any) -> list[str]:
            if door == "http":
                answer = await w.ann.post(API, json={"type": type, "id": id, "fields": fields})
                assert answer.status_code == 201, answer.text
            else:
                await desk(w).call("spawn", [type, id, fields], {}, None)
            schemas = w.host.look(id, schemas_in)
            return [each["function"]["name"] for each in schemas]

        other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
        assert await made("own.agent", "a") == ["pay"]
        assert await made("own.agent", "b", tools=[other]) == ["other"]
        assert await made("own.agent", "c", tools=[]) == []
        assert await made("keeve.session", "d") == ["pay"]


@pytest.mark.parametrize("type", ["keeve.session", "own.agent"])
async def test_a_model_that_is_not_there_is_refused_at_every_door(type: str) -> None:
    opened, _ = agents()
    async with opened as w:
        answer = await w.ann.post(API, json={"type": type, "id": "a", "fields": {"model": "nix"}})
        assert code(answer) == (422, "model_not_found")
        with pytest.raises(BadSetting, match="there is no model 'nix' here; there is 'model'"):
            await desk(w).call("spawn", [type, "a", {"model": "nix"}], {}, None)
        assert w.host.sessions() == []
        await desk(w).call("spawn", [type, "a", {"model": "model"}], {}, None)


class Asks:
    """A model that asks for a price, and tells it."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **options: Any) -> Any:
        last = messages[-1]
        if last["role"] == "tool":
            return {"message": {"role": "assistant", "content": last["content"]}, "usage": None}
        [offered] = options["tools"]
        function = {"name": offered["function"]["name"], "arguments": '{"item": "a pear"}'}
        calls = [{"id": "c1", "type": "function", "function": function}]
        return {"message": {"role": "assistant", "content": None, "tool_calls": calls}, "usage": None}


async def test_the_agent_of_the_page_of_the_server_runs_as_it_is_served_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "server.md").read_text()
    [options] = re.findall(r"^keeve serve \./data --actors (\S+) --tools (\S+)$", page, re.MULTILINE)
    [body] = re.findall(r"""^curl .*/sessions" -d '(.*"shop.agent".*?)' -H""", page, re.MULTILINE)
    (tmp_path / "shop.py").write_text(program_in(page))
    monkeypatch.syspath_prepend(tmp_path)
    try:
        types, tools = named_types([options[0]]), named_tools(options[1])
    finally:
        sys.modules.pop("shop", None)
    async with world(actors=types, devices={"model": Asks(), "tools": tools}) as w:
        made = (await w.ann.post(API, json=json.loads(body))).json()
        said = await w.ann.post(f"{API}/{made['id']}/turn", json={"input": "what is a pear?"})
        assert said.json()["output"] == "a pear: 3 euros"


def desk(w: World) -> Desk:
    """What a client over a connection asks, as ann."""
    return Desk(w.host.asking("ann", "wire"), TokenGuard(w.serving, TOKENS["ann"]), SturdyRefs("x"))


def schemas_in(past: Any) -> list[Any]:
    """The schemas that a session or a toolbox holds."""
    heap = past.heap
    fields = {name: held for number in heap.actors() for name, held in heap.state(number).fields.items()}
    held = fields["schemas"] if "schemas" in fields else fields["tools"]
    return [heap.read(item) for item in held.iterate(0, held.count, heap.page)]
