"""What a long conversation costs under /v1: what is read of it follows from what is asked, and not from its length."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from actors.responding.numbering import Numbering
from actors.session import Session
from dataspace.log.memory import MemoryStore
from keeve.looking import parts
from tests.openai_clients import client_of
from tests.server_worlds import world


class Counted:
    """How much was read: messages of conversations, and records of the log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages = self.records = 0
        numbered, read = Numbering._numbered, MemoryStore.read

        def counted(conversation: Numbering, start: int, stop: int) -> Any:
            found = numbered(conversation, start, stop)
            self.messages += len(found)
            return found

        def counted_read(store: MemoryStore, address: int) -> Any:
            self.records += 1
            return read(store, address)

        monkeypatch.setattr(Numbering, "_numbered", counted)
        monkeypatch.setattr(MemoryStore, "read", counted_read)

    async def of(self, asked: Awaitable[Any]) -> tuple[Any, int, int]:
        """What is answered, and how many messages and records were read for it."""
        self.messages = self.records = 0
        return await asked, self.messages, self.records


async def test_no_answer_reads_a_long_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    async with world() as w:  # the echo looks at the last message alone
        client = client_of(w)
        talk = await client.conversations.create()
        items: Any = [{"type": "message", "role": "user", "content": f"{n}"} for n in range(15)]
        asks: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
            "response": lambda _, __: client.responses.create(input="a", conversation=talk.id),
            "retrieve": lambda last, _: client.responses.retrieve(last.id),
            "input": lambda last, _: client.responses.input_items.list(last.id),
            "unstored": lambda _, __: client.responses.create(input="a", conversation=talk.id, store=False),
            "fork": lambda last, _: client.responses.create(input="b", previous_response_id=last.id),
            "newest": lambda _, __: client.conversations.items.list(talk.id, limit=3),
            "older": lambda _, page: client.conversations.items.list(talk.id, limit=3, after=page.data[-1].id),
            "oldest": lambda _, __: client.conversations.items.list(talk.id, limit=3, order="asc"),
            "item": lambda _, page: client.conversations.items.retrieve(page.data[2].id, conversation_id=talk.id),
        }
        costs: dict[str, list[tuple[int, int]]] = {name: [] for name in asks}
        for parts in (1, 2):
            for _ in range(parts):
                await client.conversations.items.create(talk.id, items=items)
            last = await client.responses.create(input="a", conversation=talk.id)
            page = await client.conversations.items.list(talk.id, limit=3)
            for name, ask in asks.items():
                _, messages, records = await counted.of(ask(last, page))
                costs[name].append((messages, records))
    for name, cost in costs.items():
        assert max(messages for messages, _ in cost) <= 8, (name, cost)
        assert max(records for _, records in cost) <= 30, (name, cost)


async def test_a_repetition_in_a_session_of_another_type_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    async with world() as w:
        s = await w.host.asking("owner").spawn(Session, "talk")
        completions = client_of(w).chat.completions
        first: Any = {
            "model": "model",
            "messages": [{"role": "user", "content": "first"}],
            "extra_headers": {"X-Keeve-Session": "talk", "Idempotency-Key": "k"},
        }
        made = await completions.create(**first)
        costs = []
        for _ in range(2):
            for _ in range(20):
                await s.turn("and on")
            again, _, records = await counted.of(completions.create(**first))
            assert again.id == made.id
            costs.append(records)
    assert costs[1] <= costs[0] + 5, costs


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_page_of_long_items_ends_where_there_is_no_more_room(
    monkeypatch: pytest.MonkeyPatch, order: Any
) -> None:
    monkeypatch.setattr(parts, "ROOM", 20_000)
    counted = Counted(monkeypatch)
    async with world() as w:
        client = client_of(w)
        words = [f"{n} " + "long " * 2_000 for n in range(15)]
        items: Any = [{"type": "message", "role": "user", "content": each} for each in words]
        talk = await client.conversations.create(items=items)
        page, messages, _ = await counted.of(client.conversations.items.list(talk.id, limit=100, order=order))
        assert (len(page.data), page.has_more, messages) == (2, True, 8)
        found = [item.content[0].text async for item in page]
        assert found == (words if order == "asc" else words[::-1])
