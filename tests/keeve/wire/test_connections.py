"""A connection, message by message: what its client may, and what it cannot do to anybody."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock
from wires import Book, world

from dataspace.values import Promise, Ref, Symbol
from keeve import Session
from keeve.wire.frames import framed, message
from keeve.wire.guarding import Limits
from keeve.wire.messages import DESK
from keeve.wire.sturdy import SturdyRefs
from tests.actors.scenes import says
from vat.devices.devices import Effect, effect

# Calls.


async def test_calls_on_promises_take_one_round_trip() -> None:
    async with world() as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        await raw.call(2, Promise(1), "open")
        await raw.call(3, Promise(2), "write", "line")
        await raw.call(4, Promise(1), "keep", [Promise(2), Promise(3)])
        answers = {said[1]: said for said in [await raw.next() for _ in range(4)]}
        assert answers[3][:3] == ["value", 3, 1]
        assert answers[4][2] == [answers[2][2], 1]


async def test_calls_begin_in_the_order_in_which_they_came() -> None:
    async with world() as there, there.raw() as raw:
        book = await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        ref = (await raw.next())[2]
        await raw.channel._write(  # type: ignore[attr-defined]  # all of them in one piece
            b"".join(framed(message("call", id, ref, "write", [f"{id}"], {}, None, False)) for id in range(2, 40))
        )
        for _ in range(2, 40):
            assert (await raw.next())[0] == "value"
        assert await book.lines == [f"{id}" for id in range(2, 40)]


async def test_a_broken_promise_breaks_what_was_called_on_it() -> None:
    async with world() as there, there.raw() as raw:
        await raw.call(1, DESK, "get", "nobody")
        await raw.call(2, Promise(1), "write", "x")
        await raw.call(3, DESK, "get", Promise(2))
        said = [await raw.next() for _ in range(3)]
        assert sorted((each[0], each[1], each[2]["error"]) for each in said) == [
            ("error", id, "NoSuchSession") for id in (1, 2, 3)
        ]


async def test_a_promise_whose_answer_is_no_ref_cannot_be_called() -> None:
    async with world() as there, there.raw() as raw:
        await raw.call(1, DESK, "sessions")
        await raw.call(2, Promise(1), "write", "x")
        said = {each[1]: each for each in [await raw.next(), await raw.next()]}
        assert said[2][2]["error"] == "NotARef"


async def test_an_answer_can_be_named_until_it_is_forgotten() -> None:
    async with world() as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        await raw.next()
        await raw.call(2, Promise(1), "size")
        assert (await raw.next())[:3] == ["value", 2, 0]
        await raw.send("forget", [1, 77])
        await raw.call(3, Promise(1), "size")
        assert (await raw.next())[2]["error"] == "NoSuchPromise"


async def test_a_repeated_request_is_answered_by_the_first() -> None:
    async with world() as there, there.raw() as raw:
        book = await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        for id in (2, 3):
            await raw.call(id, Promise(1), "write", "once", request="r1")
        await raw.call(4, Promise(1), "write", "other", request="r1")
        said = {each[1]: each for each in [await raw.next() for _ in range(4)]}
        assert (said[2][2], said[3][2]) == (1, 1)
        assert said[4][2]["error"] == "RequestConflict"
        assert await book.lines == ["once"]


async def test_stopping_a_call_frees_it_and_not_what_was_asked() -> None:
    async with world(Limits(calls=1)) as there, there.raw() as raw:
        book = await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        await raw.next()
        await raw.send("forget", [1])
        await raw.send("call", 2, Ref(None, 1), "write", ["x"], {}, None, False)
        await raw.send("stop", 2)
        await raw.send("call", 3, Ref(None, 1), "size", [], {}, None, False)
        said = await raw.next()
        if said[1] == 2:  # its answer was quicker
            said = await raw.next()
        assert said[1] == 3
        assert await book.lines == ["x"]


# What is refused, as an answer.


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (Ref(None, 1), "BadRef"),
        (Ref(bytes(16), 0), "BadRef"),
        (Promise(1), "NoSuchPromise"),
    ],
)
async def test_a_made_up_ref_reaches_nothing(target: Any, error: str) -> None:
    async with world() as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(2, target, "write", "x")
        assert (await raw.next())[2]["error"] == error
        await raw.call(3, DESK, "sessions", target)
        assert (await raw.next())[2]["error"] == error


async def test_the_uid_and_number_of_an_actor_make_no_ref() -> None:
    async with world() as there, there.raw() as raw:
        book = await there.host.spawn(Book, "b")
        uid = there.host.row("b").uid
        await raw.call(1, Ref(uid, 0), "write", "x")
        assert (await raw.next())[2]["error"] == "BadRef"
        await raw.call(4, DESK, "get", "b")
        mine = (await raw.next())[2]
        await raw.call(5, Ref(uid, mine.actor), "write", "x")
        assert (await raw.next())[2]["error"] == "BadRef"
        forged = SturdyRefs("another secret").sturdy("ann", uid, 0)
        await raw.call(2, DESK, "live", forged)
        assert (await raw.next())[2]["error"] == "BadRef"
        await raw.call(3, DESK, "live", SturdyRefs(there.secret).sturdy("bob", uid, 0))
        assert (await raw.next())[2]["error"] == "BadRef"
        assert await book.lines == []


async def test_a_ref_of_another_connection_reaches_nothing() -> None:
    async with world() as there, there.raw() as raw, there.raw() as other:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        number = (await raw.next())[2].actor
        await other.call(1, Ref(None, number), "write", "x")
        assert (await other.next())[2]["error"] == "BadRef"


async def test_a_released_ref_reaches_nothing() -> None:
    async with world() as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        for id in (1, 2):
            await raw.call(id, DESK, "get", "b")
            ref = (await raw.next())[2]
        await raw.send("release", [[ref.actor, 1]])
        await raw.call(3, ref, "size")
        assert (await raw.next())[0] == "value"
        await raw.send("release", [[ref.actor, 1], [99, 1]])
        await raw.call(4, ref, "size")
        assert (await raw.next())[2]["error"] == "BadRef"


async def test_a_connection_holds_so_many_refs_and_no_more() -> None:
    async with world(Limits(refs=3)) as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        ref = (await raw.next())[2]
        await raw.call(2, ref, "several", 3)
        assert (await raw.next())[2]["error"] == "TooMany"
        await raw.call(3, ref, "several", 2)
        assert len((await raw.next())[3]) == 2


async def test_a_connection_makes_so_many_calls_at_once_and_no_more() -> None:
    async with world(Limits(calls=3)) as there, there.raw() as raw:
        for id in (1, 2, 3, 4):
            await raw.call(id, DESK, "sessions")
        said = {each[1]: each for each in [await raw.next() for _ in range(4)]}
        assert said[4][2]["error"] == "TooMany"
        await raw.send("forget", [1])
        await raw.call(5, DESK, "sessions")
        assert (await raw.next())[0] == "value"


async def test_an_answer_that_is_too_large_is_an_error_and_gives_no_refs() -> None:
    async with world(Limits(answer=5000, frame=5000)) as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        ref = (await raw.next())[2]
        await raw.call(2, ref, "big", 10_000)
        assert (await raw.next())[2]["error"] == "TooLarge"
        await raw.call(3, ref, "several", 100)
        assert (await raw.next())[2]["error"] == "TooLarge"
        await raw.call(4, Ref(None, ref.actor + 1), "size")
        assert (await raw.next())[2]["error"] == "BadRef"


@pytest.mark.parametrize(
    ("method", "args", "error"),
    [
        ("nothing", [], "NoSuchMethod"),
        ("_get", ["b"], "NoSuchMethod"),
        ("get", [], "TypeError"),
        ("get", [7], "NoSuchSession"),
        ("get", [Symbol("b")], "NoSuchSession"),
        ("spawn", ["no.such"], "UnknownActorType"),
        ("spawn", [["wires.book"]], "TypeError"),
        ("spawn", ["wires.book", "x\n"], "BadSessionId"),
        ("spawn", ["wires.book", "x", 7], "TypeError"),
        ("live", [7], "BadRef"),
        ("sessions", [1], "BadCall"),
        ("sessions", ["", "", "many"], "TypeError"),
        ("facts", ["(unclosed"], "BadPattern"),
        ("facts", [7], "TypeError"),
        ("facts", ["(turn . _)", "nowhere"], "BadCursor"),
        ("facts", ["(turn . _)", None, b"uid"], "TypeError"),
        ("delete", ["nobody"], "NoSuchSession"),
        ("archive", ["cold"], "NotFromTheRoot"),
        ("archive", [7], "NotFromTheRoot"),
        ("bring_back", ["~/cold"], "NotFromTheRoot"),
    ],
)
async def test_the_desk_refuses_what_cannot_be(method: str, args: list[Any], error: str) -> None:
    async with world() as there, there.raw() as raw:
        await raw.call(1, DESK, method, *args)
        said = await raw.next()
        assert (said[0], said[2]["error"]) == ("error", error)
        await raw.call(2, DESK, "sessions")
        assert (await raw.next())[:3] == ["value", 2, []]


@pytest.mark.parametrize("name", ["_host", "__class__", "_uid", ""])
async def test_only_public_names_are_reached_through_a_ref(name: str) -> None:
    async with world() as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        await raw.call(2, Promise(1), name)
        said = {each[1]: each for each in [await raw.next(), await raw.next()]}
        assert said[2][2]["error"] in ("AttributeError", "NoSuchMethod")


@pytest.mark.parametrize("keyword", ["request", "receipt", "self"])
async def test_keywords_do_not_take_the_place_of_what_the_protocol_says(keyword: str) -> None:
    async with world() as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        await raw.send("call", 2, Promise(1), "write", ["x"], {keyword: "forged"}, None, False)
        said = {each[1]: each for each in [await raw.next(), await raw.next()]}
        assert (said[2][0], said[2][2]["error"]) == ("error", "TypeError")


class Held:
    """A model that answers when it is told."""

    def __init__(self) -> None:
        self.asked, self.answers = trio.Event(), trio.Event()

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> Any:
        self.asked.set()
        await self.answers.wait()
        return says("hello")


@pytest.mark.parametrize("by", ["a call", "an answer", "an event", "nothing"])
async def test_a_token_that_ends_ends_its_connection(by: str, autojump_clock: MockClock) -> None:
    model = Held()
    async with world(devices={"model": model}) as there, there.raw() as raw:
        book = await there.host.spawn(Book, "b")
        await there.host.spawn(Session, "s")
        await raw.call(1, DESK, "get", "b")
        ref = (await raw.next())[2]
        await raw.send("observe", 2, "(wires.line . _)", {"after": "head"}, 10)
        assert (await raw.next())[:2] == ["items", 2]
        await raw.call(3, DESK, "get", "s")
        await raw.next()
        await raw.call(4, Promise(3), "turn", "hello")
        await model.asked.wait()
        there.guard.ended = True
        if by == "a call":
            await raw.call(5, ref, "write", "x")
        elif by == "an answer":
            model.answers.set()
        elif by == "an event":
            await book.write("y")
        kind, said = await raw.next()
        assert (kind, said["error"]) == ("bye", "TokenRefused")
        assert await book.lines == (["y"] if by == "an event" else [])


async def test_a_narrowed_client_reaches_its_session_and_nothing_else() -> None:
    async with world() as there, there.client() as wide:
        one, other = await wide.spawn(Book, "one"), await wide.spawn(Book, "other")
        await one.keep(other)
        await other.write("of another")
        there.guard.only = frozenset({"one"})
        async with there.client() as client:
            mine = await client.get("one")
            assert await mine.write("x") == 1
            for refused in (
                client.get("other"),
                client.get("other").write("x"),
                mine.kept().write("x"),
                mine.kept().lines,
                client.spawn(Book, "third"),
                mine.fork(),
                mine.fork(into="third"),
                client.live(client.sturdy(await mine.kept())).write("x"),
                client.delete("other"),
                client.facts("(wires.line . _)", session="other"),
                anext(client.observe("(wires.line . _)", session="other")),
                anext(client.watch()),
                anext(client.watch("other")),
                anext(client.watch(await mine.kept())),
            ):
                with pytest.raises((PermissionError, LookupError)):
                    await refused
            assert [row.id for row in await client.sessions(limit=10)] == ["one"]
            for whose in ("one", None):
                assert [held.session for held in await client.facts("(wires.line . _)", session=whose)] == ["one"]
                with client.observe("(wires.line . _)", session=whose, until="head") as events:
                    assert [event.session async for event in events] == ["one"]
        there.guard.only = None
        assert await other.lines == ["of another"]


@pytest.mark.parametrize(
    ("verbs", "allowed"),
    [
        ({"read"}, {"size", "lines", "describe"}),
        ({"read", "turn"}, {"size", "lines", "describe", "write"}),
        ({"read", "manage"}, {"size", "lines", "describe", "fork", "snapshot", "narrow"}),
        ({"turn"}, {"write"}),
    ],
)
async def test_reading_writing_and_managing_are_told_apart(verbs: set[str], allowed: set[str]) -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        there.guard.verbs = frozenset(verbs)
        found = set()
        for name, args in {
            **dict.fromkeys(("size", "lines", "describe", "fork", "snapshot", "narrow"), ()),
            "write": ("x",),
        }.items():
            try:
                await getattr(book, name)(*args)
                found.add(name)
            except PermissionError:
                pass
        assert found == allowed
