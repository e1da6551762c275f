"""Which model and which tools a request under `/v1` chooses, and what holds the model to it."""

from __future__ import annotations

from typing import Any

import attrs
import openai
import pytest

from actors.tools import Tools, tool
from keeve.server import application
from keeve.server.openai import asking
from keeve.settings import named
from tests.actors.scenes import Says, calls, says
from tests.keeve.server.test_openai_responses import weather
from tests.openai_clients import client_of, schema
from tests.server_worlds import asked_by, world

NAMED: Any = {"type": "function", "name": "f"}


@pytest.mark.parametrize(
    ("choice", "answer", "wanted"),
    [
        ("required", says("no need"), "a tool"),
        (NAMED, says("no need"), "the tool 'f'"),
        (NAMED, says(None, calls("c1", "g")), "the tool 'f'"),
    ],
)
async def test_an_answer_that_does_not_call_what_it_has_to_is_none(choice: Any, answer: Any, wanted: str) -> None:
    async with world(devices={"model": Says(answer, answer, says("and on"))}) as w:
        client = client_of(w)
        asked: Any = {"input": "a", "tools": [schema("f"), schema("g")], "tool_choice": choice}
        with pytest.raises(openai.InternalServerError, match=f"has to call {wanted}, and did not") as caught:
            await client.responses.create(**asked)
        assert caught.value.code == "not_called"
        [*_, last] = [event async for event in await client.responses.create(stream=True, **asked)]
        assert (last.type, last.response.status) == ("response.failed", "failed")  # type: ignore[union-attr]  # as it is
        assert len(last.response.output) == 1  # type: ignore[union-attr]  # what it said stays, and is counted
        after = await client.responses.create(input="b", previous_response_id=last.response.id)  # type: ignore[union-attr]  # as above
        assert after.output_text == "and on"


@pytest.mark.parametrize("why", ["length", "content_filter"])
async def test_one_that_was_cut_off_before_is_incomplete(why: str) -> None:
    async with world(devices={"model": Says({**says("no n"), "finish_reason": why})}) as w:
        made = await client_of(w).responses.create(input="a", tools=[schema("f")], tool_choice="required")
    assert made.status == "incomplete"


async def test_a_tool_that_has_to_be_called_has_to_be_there() -> None:
    async with world(devices={"model": Says(), "tools": Tools(weather)}) as w:
        client = client_of(w)
        host_tools: Any = [{"type": "mcp", "server_label": "tools", "allowed_tools": []}]
        other: Any = {"type": "mcp", "server_label": "tools", "name": "weather"}
        for tools, choice in (([], "required"), (host_tools, "required"), ([schema("g")], NAMED), (host_tools, other)):
            with pytest.raises(openai.BadRequestError, match="has to be called, and") as caught:
                await client.responses.create(input="a", tools=tools, tool_choice=choice)
            assert caught.value.param == "tool_choice"


async def test_of_tools_there_may_be_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOST_TOOLS", 3)
    async with world(devices={"model": Says(says("well")), "tools": Tools(weather)}) as w:
        client = client_of(w)
        four: Any = [schema(f"f{n}") for n in range(4)]
        allowed: Any = [{"type": "mcp", "server_label": "tools", "allowed_tools": ["f0", "f1", "f2", "f3"]}]
        for tools, param in ((four, "tools"), (allowed, "tools[0].allowed_tools")):
            with pytest.raises(openai.BadRequestError, match="and may be 3") as caught:
                await client.responses.create(input="a", tools=tools)
            assert caught.value.param == param
        assert (await client.responses.create(input="a", tools=four[:3])).output_text == "well"


async def test_models_are_named_as_their_user_names_them() -> None:
    async with world(devices={"model": Says(says("one"), says("two")), "small": Says(says("three"))}) as w:
        app = application(attrs.evolve(w.serving, named=named({"KEEVE_MODEL": "stub"}, ["model", "small"])))
        async with asked_by("owner", app) as client:
            listed = (await client.get("/v1/models")).json()["data"]
            made = [
                (await client.post("/v1/responses", json={"input": "a", **model})).json()
                for model in ({}, {"model": "model"}, {"model": "small"})
            ]
            none = (await client.post("/v1/responses", json={"input": "a", "model": "gpt-9"})).json()["error"]
            refused = await client.post("/api/v1/sessions", json={"fields": {"model": "gpt-9"}})
            s = (await client.post("/api/v1/sessions", json={"fields": {"model": "stub"}})).json()
            assert str(await (await w.host.get(s["id"])).model) == "model"
    assert [each["id"] for each in listed] == ["stub", "model", "small"]
    assert [each["model"] for each in made] == ["stub", "model", "small"]
    assert none["message"] == "there is no model 'gpt-9' here; there are 'stub', 'model' and 'small'"
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "fields.model")


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.mark.parametrize(("word", "status"), [(True, "completed"), (False, "failed")])
async def test_a_tool_that_needs_a_persons_word_is_under_way_until_it_is_said(word: bool, status: str) -> None:
    model = Says(says(None, calls("c1", "pay", amount=3)), says("well"))
    async with world(devices={"model": model, "tools": Tools(pay)}) as w:
        client = client_of(w, "ann")
        made = await client.responses.create(model="model+tools", input="a", background=True)
        await w.settled()
        waits = await client.responses.retrieve(made.id)
        assert (waits.status, [item.status for item in waits.output]) == ("in_progress", ["in_progress"])  # type: ignore[union-attr]  # it is a call
        [row] = w.host.sessions()
        said = await w.ann.post(f"/api/v1/sessions/{row.id}/approvals/c1", json={"approve": word, "reason": "too much"})
        assert said.status_code == 200, said.text
        await w.settled()
        over = await client.responses.retrieve(made.id)
    assert (over.status, over.output_text, over.output[0].status) == ("completed", "well", status)  # type: ignore[union-attr]  # as above
