"""`/v1/conversations` and their items, asked by the real `openai` package."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from actors.tools import Tools
from tests.actors.scenes import Says, calls, says
from tests.actors.test_session_on_host import Waits
from tests.keeve.server.test_openai_responses import weather
from tests.openai_clients import client_of
from tests.server_worlds import world


def message(text: str, role: str = "user") -> Any:
    """A message, as an item."""
    return {"type": "message", "role": role, "content": text}


async def test_a_conversation_has_what_was_said_in_it() -> None:
    model = Says(says("one"), says("two"))
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        made = await client.conversations.create(items=[message("before")], metadata={"topic": "x"})
        first = await client.responses.create(input="a", conversation=made.id)
        await client.responses.create(input="b", conversation={"id": made.id})
        items = await client.conversations.items.list(made.id, order="asc")
        again = await client.conversations.retrieve(made.id)
    texts = [item.content[0].text for item in items.data]  # type: ignore[union-attr]  # they are messages
    assert texts == ["before", "a", "one", "b", "two"]
    assert first.conversation is not None
    assert first.conversation.id == made.id
    assert (again.metadata, again.id) == ({"topic": "x"}, made.id)
    assert [each["content"] for each in model.asked[1][0]] == ["before", "a", "one", "b"]
    assert first.output[0].id in [item.id for item in items.data]


async def test_items_are_added_looked_at_and_removed() -> None:
    async with world() as w:
        client = client_of(w)
        made = await client.conversations.create()
        call: Any = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
        outcome: Any = {"type": "function_call_output", "call_id": "c1", "output": "3"}
        added = await client.conversations.items.create(
            made.id, items=[message("a"), call, outcome, message("b", "assistant")]
        )
        assert [item.type for item in added.data] == ["message", "function_call", "function_call_output", "message"]
        for item in added.data:
            assert (
                await client.conversations.items.retrieve(str(item.id), conversation_id=made.id)
            ).to_dict() == item.to_dict()
        await client.conversations.items.delete(str(added.data[1].id), conversation_id=made.id)
        left = await client.conversations.items.list(made.id, order="asc")
        assert [item.id for item in left.data] == [added.data[0].id, added.data[3].id]
        with pytest.raises(openai.NotFoundError):
            await client.conversations.items.retrieve(str(added.data[1].id), conversation_id=made.id)
        with pytest.raises(openai.NotFoundError):
            await client.conversations.items.delete(str(added.data[1].id), conversation_id=made.id)


async def test_long_conversations_are_listed_page_by_page_either_way() -> None:
    async with world() as w:
        client = client_of(w)
        made = await client.conversations.create()
        for start in range(0, 50, 10):
            await client.conversations.items.create(made.id, items=[message(str(n)) for n in range(start, start + 10)])
        for order, expected in (("asc", range(50)), ("desc", range(49, -1, -1))):
            pages = client.conversations.items.list(made.id, order=order, limit=7)  # type: ignore[arg-type]  # as it is
            texts = [item.content[0].text async for item in pages]  # type: ignore[union-attr]  # they are messages
            assert texts == [str(n) for n in expected]
        for item in (await client.conversations.items.list(made.id, limit=8)).data[1:]:
            await client.conversations.items.delete(str(item.id), conversation_id=made.id)
        page = await client.conversations.items.list(made.id, limit=3)  # more than the newest four are looked at
        assert [item.content[0].text for item in page.data] == ["49", "41", "40"]  # type: ignore[union-attr]  # as above


async def test_pages_do_not_part_a_call_of_the_host_from_its_outcome() -> None:
    turns = [[says(None, calls(f"c{n}", "weather", city=str(n))), says(f"rain {n}")] for n in range(6)]
    model, tools = Says(*(answer for turn in turns for answer in turn)), Tools(weather)
    async with world(devices={"model": model, "tools": tools}) as w:
        client = client_of(w)
        made = await client.conversations.create()
        for n in range(6):
            await client.responses.create(model="model+tools", input=str(n), conversation=made.id)
        for order in ("asc", "desc"):
            for limit in (1, 2, 4):
                pages = client.conversations.items.list(made.id, order=order, limit=limit)  # type: ignore[arg-type]  # as it is
                items = [item async for item in pages]
                kinds = [item.type for item in items]
                assert kinds == ["message", "mcp_call", "message"] * 6
                outputs = [item.output for item in items if item.type == "mcp_call"]
                assert sorted(map(str, outputs)) == [f"rain in {n}" for n in range(6)]


async def test_while_a_turn_runs_nothing_else_is_put_there() -> None:
    model = Waits()
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        made = await client.conversations.create()
        running = await client.responses.create(input="a", conversation=made.id, background=True)
        with pytest.raises(openai.ConflictError):
            await client.conversations.items.create(made.id, items=[message("b")])
        await client.responses.cancel(running.id)
        await client.conversations.items.create(made.id, items=[message("b")])


async def test_requests_at_once_in_a_conversation_come_one_after_another() -> None:
    async with world() as w:
        client = client_of(w)
        made = await client.conversations.create()
        first = await client.responses.create(input="a", conversation=made.id, background=True)
        second = await client.responses.create(input="b", conversation=made.id)
        assert second.output_text == "b"
        assert (await client.responses.retrieve(first.id)).output_text == "a"


async def test_a_conversation_that_is_deleted_is_gone_with_its_responses() -> None:
    async with world() as w:
        client = client_of(w)
        made = await client.conversations.create()
        response = await client.responses.create(input="a", conversation=made.id)
        deleted = await client.conversations.delete(made.id)
        assert (deleted.deleted, deleted.object) == (True, "conversation.deleted")
        with pytest.raises(openai.NotFoundError):
            await client.conversations.retrieve(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(response.id)


async def test_the_conversation_of_somebody_else_is_not_there() -> None:
    async with world() as w:
        made = await client_of(w, "ann").conversations.create()
        bob = client_of(w, "bob")
        for id in (made.id, "conv_" + "0" * 32, "conv_1"):
            for ask in (
                bob.conversations.retrieve(id),
                bob.conversations.delete(id),
                bob.conversations.update(id, metadata={}),
                bob.conversations.items.create(id, items=[message("x")]),
                bob.responses.create(input="x", conversation=id),
            ):
                with pytest.raises(openai.NotFoundError, match="there is no conversation"):
                    await ask


async def test_a_conversation_is_made_and_added_to_once_under_one_key() -> None:
    async with world() as w:
        client = client_of(w)
        key = {"Idempotency-Key": "k"}
        one = await client.conversations.create(items=[message("a")], metadata={"x": "y"}, extra_headers=key)
        other = await client.conversations.create(items=[message("a")], metadata={"x": "y"}, extra_headers=key)
        await client.conversations.items.create(one.id, items=[message("b")], extra_headers=key)
        await client.conversations.items.create(one.id, items=[message("b")], extra_headers=key)
        items = await client.conversations.items.list(one.id)
    assert one.id == other.id
    assert len(items.data) == 2


async def test_what_is_noted_about_a_conversation_can_be_changed() -> None:
    async with world() as w:
        client = client_of(w)
        made = await client.conversations.create(metadata={"a": "b"})
        assert (await client.conversations.update(made.id, metadata={"c": "d"})).metadata == {"c": "d"}
        assert (await client.conversations.retrieve(made.id)).metadata == {"c": "d"}
