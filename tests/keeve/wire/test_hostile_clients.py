"""What clients cannot do to a server: those that send garbage, stay silent, do not read, or are gone."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked
from wires import TOKEN, Book, Raw, world

from dataspace.values import Promise
from dataspace.values.encoding import encode
from keeve.wire.channels import ChannelClosed
from keeve.wire.desk import Desk
from keeve.wire.frames import framed, message
from keeve.wire.guarding import Limits
from keeve.wire.messages import DESK


async def ended(raw: Raw) -> str:
    """How a connection ends, as its client is told."""
    said = await raw.next()
    assert said[0] == "bye"
    with pytest.raises(ChannelClosed):
        await raw.next()
    return f"{said[1]['error']}: {said[1]['message']}"


# What ends a connection.


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xc1", "0xc1 begins no value"),
        (b"", "missing|left"),
        (encode(7), "not a list"),
        (encode([]), "not a list"),
        (encode([7]), "not a list"),
        (encode(["nothing"]), "no message 'nothing'"),
        (encode(["hello", 1, TOKEN]), "comes first, and once"),
        (encode(["welcome", {}]), "no message 'welcome'"),
        (encode(["call", 1]), "7 fields"),
        (encode(["call", -1, DESK, "get", [], {}, None, False]), "no number from 0"),
        (encode(["call", 1 << 60, DESK, "get", [], {}, None, False]), "no number from 0"),
        (encode(["call", 1, 5, "get", [], {}, None, False]), "is a int"),
        (encode(["call", True, DESK, "get", [], {}, None, False]), "is a bool"),
        (encode(["call", 1, DESK, "get", {}, {}, None, False]), "is a FrozenDict"),
        (encode(["more", 1, 1.5]), "is a float"),
        (encode(["release", [[1]]]), "not 2 numbers"),
        (encode(["release", [[1, -1]]]), "something else than numbers"),
        (encode(["forget", ["x"]]), "something else than numbers"),
        (b"\x91" * 70 + b"\xc0", "nested more than 64"),
        (b"\xdd\xff\xff\xff\xff", "more than 100000 items"),
        (b"\xdc\x7f\xff", "items are announced"),
        (b"\x93\xa4call\xcd\x00\x01", "longer than it must be|announced|left|missing"),
        (b"\x91\xc7\x05\x63hello", "unknown ext type"),
    ],
)
async def test_what_is_no_message_ends_the_connection_with_a_word_of_why(body: bytes, why: str) -> None:
    async with world() as there, there.raw() as raw, there.raw() as other:
        await raw.channel.send(body)
        said = await ended(raw)
        assert said.startswith("BadFrame")
        assert any(part in said for part in why.split("|")), said
        await other.call(1, DESK, "sessions")
        assert (await other.next())[0] == "value"


async def test_an_id_that_is_in_use_ends_the_connection() -> None:
    async with world() as there, there.raw() as raw:
        await raw.call(1, DESK, "sessions")
        await raw.next()
        await raw.call(1, DESK, "sessions")
        assert "there is a call 1 already" in await ended(raw)


async def test_a_length_is_not_believed_before_it_is_looked_at() -> None:
    async with world() as there, there.raw() as raw:
        await raw.channel._write(b"\xff\xff\xff\xff")  # type: ignore[attr-defined]  # a length, and no more
        assert "may be in one" in await ended(raw)


async def test_more_items_than_a_frame_may_have_are_not_made() -> None:
    async with world() as there, there.raw() as raw:
        body = b"\x92\xa6forget\xdd" + (1 << 20).to_bytes(4, "big") + b"\x80" * (1 << 20)
        gc.collect()
        tracemalloc.start()
        try:
            await raw.channel.send(body)
            assert "items" in await ended(raw)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 10 * len(body)  # made into dicts they take more than sixty times that


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(st.binary(max_size=200), max_size=4), well=st.booleans())
def test_garbage_ends_a_connection_and_nothing_else(data: list[bytes], well: bool) -> None:
    async def main() -> None:
        async with world() as there, there.raw() as other:
            raw = Raw(await there.dial())
            if well:
                await raw.send("hello", 1, TOKEN)
            for each in data:
                try:
                    await raw.channel._write(framed(each) if well else each)  # type: ignore[attr-defined]  # as it is
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    break
            await raw.channel.close()
            await other.call(1, DESK, "sessions")
            assert (await other.next())[0] == "value"
            await there.until_open(1)

    trio.run(main)


# Getting in.


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x"])
async def test_who_is_not_known_is_not_let_in(token: str) -> None:
    async with world() as there, there.raw(None) as raw:
        await raw.send("hello", 1, token)
        assert (await ended(raw)).startswith("TokenRefused")


async def test_the_first_message_is_hello() -> None:
    async with world() as there, there.raw(None) as raw:
        await raw.call(1, DESK, "sessions")
        assert "the first message is hello" in await ended(raw)


async def test_another_version_is_told_which_one_is_spoken() -> None:
    async with world() as there, there.raw(None) as raw:
        await raw.send("hello", 99, TOKEN)
        assert "version 1 is" in await ended(raw)


async def test_who_is_not_known_yet_may_not_say_much() -> None:
    async with world() as there, there.raw(None) as raw:
        await raw.send("hello", 1, "x" * 10_000)
        assert "may be in one" in await ended(raw)


async def test_who_says_nothing_is_not_waited_for(autojump_clock: MockClock) -> None:
    async with world() as there, there.raw(None) as raw:
        with pytest.raises(ChannelClosed):
            await raw.channel.receive()
        await wait_all_tasks_blocked()
        assert there.open == 0


# Those who go, stay silent, or do not read.


async def test_a_client_that_is_gone_frees_what_it_held() -> None:
    async with world() as there:
        await there.host.spawn(Book, "b")
        async with there.raw() as raw:
            await raw.call(1, DESK, "get", "b")
            await raw.next()
            for id in range(2, 10):
                await raw.send("observe", id, "(wires.line . _)", {"after": "head"}, 10)
                await raw.send("watch", id + 100, "b", 10)
            await wait_all_tasks_blocked()
            waiting = there.host._engine.dataspace.waiting
            assert waiting
            assert len(there.host._engine.errands.hearing) == 8
        await there.until_open(0)
        assert not waiting
        assert len(there.host._engine.errands.hearing) == 0


async def test_a_client_that_is_silent_is_asked_and_then_given_up(autojump_clock: MockClock) -> None:
    async with world(Limits(idle=60)) as there, there.raw() as raw:
        assert await raw.channel.receive() == message("ping")
        said = [await raw.channel.receive()]
        assert b"Silent" in said[0]
        assert trio.current_time() >= 120


async def test_a_client_that_answers_is_kept(autojump_clock: MockClock) -> None:
    async with world(Limits(idle=60)) as there, there.raw() as raw:
        for _ in range(5):
            assert await raw.channel.receive() == message("ping")
            await raw.send("pong")
        await raw.call(1, DESK, "sessions")
        assert (await raw.next())[0] == "value"


async def test_a_ping_is_answered() -> None:
    async with world() as there, there.raw() as raw:
        await raw.send("ping")
        assert await raw.next() == ["pong"]


async def test_a_client_that_does_not_read_is_not_read_from_and_hurts_nobody() -> None:
    limits = Limits(unsent=10_000)
    welcome = [True]

    async def full() -> None:
        if not welcome:
            await trio.sleep_forever()  # as a socket does whose buffer is full
        welcome.clear()

    async with world(limits) as there, there.raw() as other, there.raw(slow=full) as raw:
        book = await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        for id in range(2, 100):
            await raw.call(id, Promise(1), "big", 3000)
        for id in range(100, 130):
            await raw.call(id, Promise(1), "write", f"{id}")
        await wait_all_tasks_blocked()
        assert await book.size() == 0  # nothing was read any more when that came
        await other.call(1, DESK, "sessions")
        assert (await other.next())[0] == "value"


async def test_an_observer_gets_no_more_than_it_takes() -> None:
    async with world() as there, there.raw() as raw:
        book = await there.host.spawn(Book, "b")
        for number in range(20):
            await book.write(f"{number}")
        await raw.send("observe", 1, "(wires.line ?what)", {}, 3)
        said = await raw.next()
        assert [item[7][1] for item in said[2]] == [["0"], ["1"], ["2"]]
        await raw.call(2, DESK, "sessions")
        assert (await raw.next())[:2] == ["value", 2]
        await raw.send("more", 1, 2)
        assert [item[7][1] for item in (await raw.next())[2]] == [["3"], ["4"]]
        await raw.send("stop", 1)
        await raw.send("more", 1, 2)
        await raw.call(3, DESK, "sessions")
        assert (await raw.next())[:2] == ["value", 3]


async def test_an_observation_that_ends_says_so() -> None:
    async with world() as there, there.raw() as raw:
        book = await there.host.spawn(Book, "b")
        await book.write("x")
        await raw.send("observe", 1, "(wires.line ?what)", {"until": "head"}, 10)
        said = await raw.next()
        assert len(said[2]) == 1
        assert (await raw.next()) == ["end", 1]


@pytest.mark.parametrize(
    ("pattern", "options", "error"),
    [
        ("(", {}, "BadPattern"),
        ("(a . _)", {"after": "nowhere"}, "BadCursor"),
        ("(a . _)", {"after": 1 << 40}, "CursorAhead"),
        ("(a . _)", {"after": str(1 << 40)}, "CursorAhead"),
        ("(a . _)", {"after": True}, "BadCursor"),
        ("(a . _)", {"until": "start"}, "BadCursor|TypeError|ValueError|WrongCursor"),
        ("(a . _)", {"session": "nobody"}, "NoSuchSession"),
        ("(a . _)", {"session": 5}, "TypeError"),
        ("(a . _)", {"handler": "x"}, "TypeError"),
    ],
)
async def test_an_observation_that_cannot_be_is_an_error(pattern: str, options: dict[str, Any], error: str) -> None:
    async with world() as there, there.raw() as raw:
        await raw.send("observe", 1, pattern, options, 10)
        said = await raw.next()
        if error.startswith("BadCursor|") and said[0] != "error":
            return
        assert (said[0], said[1]) == ("error", 1)
        assert said[2]["error"] in error.split("|")


async def test_a_connection_has_so_many_streams_and_no_more() -> None:
    async with world(Limits(streams=2)) as there, there.raw() as raw:
        for id in (1, 2, 3):
            await raw.send("observe", id, "(wires.line . _)", {"after": "head"}, 10)
        said = {each[1]: each for each in [await raw.next() for _ in range(3)]}
        assert said[3][2]["error"] == "TooMany"
        await raw.send("stop", 1)
        await raw.send("observe", 4, "(wires.line . _)", {"after": "head"}, 10)
        assert (await raw.next())[:2] == ["items", 4]


async def test_clients_are_told_when_the_server_stops() -> None:
    async with world() as there, there.raw() as raw:
        there.stopping.set()
        assert (await ended(raw)).startswith("Stopping")


@pytest.mark.parametrize("in_time", [True, False])
async def test_what_is_under_way_when_the_server_stops_is_answered_within_the_grace_and_nothing_new_begins(
    in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = trio.Event()

    async def waits(*_: object) -> str:
        await done.wait()
        return "well"

    monkeypatch.setattr(Desk, "_get", waits)
    async with world() as there:
        there.ending = trio.Event()
        book = await there.host.spawn(Book, "b")
        async with there.raw() as raw:
            await raw.call(1, DESK, "get", "b")
            await raw.call(2, DESK, "get", "b")
            await wait_all_tasks_blocked(0.05)
            there.stopping.set()
            await raw.call(3, DESK, "spawn", "wires.book", "new", {})  # for the next server
            await wait_all_tasks_blocked(0.05)
            (done if in_time else there.ending).set()
            if in_time:
                said = [(await raw.next())[:3] for _ in range(2)]
                assert sorted(said) == [["value", 1, "well"], ["value", 2, "well"]]
            assert (await ended(raw)).startswith("Stopping")
        assert [row.id for row in there.host.sessions()] == ["b"]
        assert await book.lines == []
