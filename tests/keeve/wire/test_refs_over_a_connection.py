"""Refs over a connection work like those of a host of one's own."""

from __future__ import annotations

from copy import copy

import pytest
import trio
from wires import Book, world

from actors.tools import Tools
from keeve import Session
from keeve.errors import NoSuchSession
from keeve.looking import reading_of
from keeve.looking.sessions import state
from vat.errors import NoSuchMethod


def weather(place: str) -> str:
    """How the weather is."""
    return f"fair in {place}"


async def test_a_session_answers_through_a_ref() -> None:
    async with world() as there, there.client() as client:
        s = await client.spawn(Session, "s1")
        assert await s.turn("hello") == "hello"
        assert await s.history == ["hello"]


async def test_a_promise_is_called_before_it_has_an_answer() -> None:
    async with world() as there, there.client() as client:
        await there.host.spawn(Book, "b")
        assert await client.get("b").write("one") == 1
        assert await client.get("b").open().write("first") == 1
        assert await client.get("b").lines == ["one"]


async def test_who_asks_a_field_as_if_it_had_come_is_told_to_await_it() -> None:
    async with world() as there, there.client() as client:
        s = await client.spawn(Session, "s1")
        with pytest.raises(AttributeError, match=r"await approvals first, .*\(await ref\.approvals\)\.waiting"):
            s.approvals.waiting()
        assert await (await s.approvals).waiting() == []
        assert copy(s.approvals) is not None  # which asks for names before there is anything


async def test_a_ref_is_an_argument_and_comes_back_as_itself() -> None:
    async with world() as there, there.client() as client:
        one, other = await client.spawn(Book, "one"), await client.spawn(Book, "other")
        assert await one.keep(other) == other
        assert await one.kept() is other
        assert await one.tell("through another") == 1
        assert await other.lines == ["through another"]


async def test_a_promise_is_an_argument() -> None:
    async with world() as there, there.client() as client:
        one = await client.spawn(Book, "one")
        got = await one.keep({"a": [client.spawn(Book, "other"), one.write("x")]})
        assert got["a"][1] == 1
        assert await got["a"][0].write("y") == 1


async def test_an_error_comes_back_as_its_class_and_message() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        with pytest.raises(ValueError, match=r"^no such luck\n"):
            await book.fail("no such luck")
        with pytest.raises(NoSuchMethod, match="has no method or public field 'nothing'"):
            await book.nothing()
        with pytest.raises(NoSuchSession, match=r"there is no session 'nobody'.* client\.sessions\(\)"):
            await client.get("nobody")
        with pytest.raises(NoSuchSession):
            await client.get("nobody").write("x")
        assert await book.write("goes on") == 1


async def test_what_is_no_value_raises_at_the_line_that_made_the_call() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        with pytest.raises(TypeError, match=r"write\(\): argument 1: object is not a value"):
            book.write(object())
        with pytest.raises(TypeError, match="is a method or a field"):
            book.write(book.lines)


async def test_nothing_is_done_until_it_is_awaited() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        promise = book.write("once")
        await trio.testing.wait_all_tasks_blocked()
        assert await book.size() == 0
        assert await promise == 1
        assert await promise == 1
        assert await book.size() == 1


async def test_sessions_are_listed_deleted_and_forked() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        await book.write("x")
        twin = await book.fork(into="c")
        assert await twin.write("y") == 2
        assert [row.id for row in await client.sessions()] == ["b", "c"]
        assert (await client.sessions(limit=1))[0] == there.host.row("b")
        await client.delete("b")
        assert [row.id for row in await client.sessions()] == ["c"]
        assert (await twin.snapshot()).session == "c"


async def test_facts_and_events_come_as_from_a_host() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        await book.write("x")
        await book.write("y")
        assert await client.facts("(wires.line ?what)") == there.host.facts("(wires.line ?what)")
        mine = [event async for event in client.observe("(wires.line ?what)", until="head")]
        theirs = [event async for event in there.host.observe("(wires.line ?what)", until="head")]
        assert mine == theirs
        assert len(mine) == 2


async def test_records_say_who_asked_and_how() -> None:
    async with world() as there, there.client() as client:
        await client.spawn(Book, "b")
        [spawned] = [event async for event in there.host.observe("(spawn . _)", until="head")]
        assert (spawned.value.keywords["by"], spawned.value.keywords["via"]) == ("ann", "wire")
        assert client.by == "ann"


async def test_a_field_is_given_tools_as_at_a_host() -> None:
    tools = Tools(weather)
    async with world() as there, there.client() as client:
        await client.spawn(Session, "s", tools=tools)
        await there.host.spawn(Session, "own", tools=tools)
        fields = [await state(reading_of(there.host), id, None) for id in ("s", "own")]
        assert "weather" in str(fields[0]["fields"]["tools"])
        assert fields[0]["fields"] == fields[1]["fields"]
