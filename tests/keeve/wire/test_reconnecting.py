"""A client goes on: refs, calls, promises and observations outlive the connection, and the server's process."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked
from wires import Book, World, world

from dataspace.log.memory import MemoryLog
from keeve import Session
from keeve.client import ClientClosed, ClientTooLarge, Unreachable
from keeve.client.streams import WINDOW
from keeve.testing.hosts import memory_host
from keeve.wire.guarding import Limits
from keeve.wire.sturdy import BadRef
from keeve.wire.tokens import TokenRefused
from vat.devices.devices import effect
from vat.errors import Deleted


async def test_refs_go_on_after_the_connection_was_cut() -> None:
    async with world() as there, there.client() as client:
        one, other = await client.spawn(Book, "one"), await client.spawn(Book, "other")
        inner = await one.open()
        await there.cut()
        assert await inner.write("x") == 1
        assert await one.keep([other, inner]) == [other, inner]
        assert (await one.kept())[1] is inner


async def test_a_sturdy_ref_goes_on_in_another_client_and_a_restarted_server() -> None:
    log = MemoryLog()
    async with memory_host(log, actors=[Book]) as host, world(host=host) as there, there.client() as client:
        inner = await client.spawn(Book, "b").open()
        await inner.write("x")
        kept = client.sturdy(inner)
    async with memory_host(log, actors=[Book]) as host, world(host=host) as there, there.client() as client:
        assert await client.live(kept).lines == ["x"]
        assert await client.live(kept).write("y") == 2
        with pytest.raises(BadRef):
            await client.live(kept[:-3] + "AAA").lines
        with pytest.raises(BadRef):
            client.live("nothing")


class Slow:
    """A device that answers when it is let."""

    def __init__(self) -> None:
        self.called = 0
        self.go = trio.Event()

    @effect(on_crash="retry")
    async def answer(self, effect: Any, text: str) -> str:
        self.called += 1
        await self.go.wait()
        return text


async def test_a_call_under_way_is_answered_once_over_another_connection() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        original = there.host._engine.ask
        held = trio.Event()

        async def ask(uid: bytes, call: Any, before: Any = None) -> Any:
            outcome = await original(uid, call, before)
            if call.method == "write" and not held.is_set():
                held.set()
                await trio.sleep_forever()  # it is done, and the answer is lost with the connection
            return outcome

        there.host._engine.ask = ask  # type: ignore[method-assign]  # the crash is between the record and the answer
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cut_when, there, held)
            assert await book.write("once") == 1
        assert await book.lines == ["once"]


async def _cut_when(there: World, event: trio.Event) -> None:
    await event.wait()
    await there.cut()


async def test_a_chain_of_promises_under_way_goes_on() -> None:
    async with world() as there, there.client() as client:
        await there.host.spawn(Book, "b")
        there.away = True
        await there.cut()
        async with trio.open_nursery() as nursery:
            found: list[Any] = []

            async def ask() -> None:
                found.append(await client.get("b").open().write("x"))

            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            assert not found
            there.away = False
        assert found == [1]


async def test_an_observation_goes_on_at_its_cursor_without_a_gap() -> None:
    async with world() as there, there.client() as client:
        book = await there.host.spawn(Book, "b")
        seen: list[str] = []
        async with trio.open_nursery() as nursery:

            async def observe() -> None:
                async for event in client.observe("(wires.line ?what)", after="head"):
                    seen.append(event.captures["what"])
                    if len(seen) == 30:
                        return

            nursery.start_soon(observe)
            await wait_all_tasks_blocked()
            for number in range(30):
                await book.write(f"{number}")
                if number % 7 == 3:
                    await there.cut()
        assert seen == [f"{number}" for number in range(30)]


async def test_an_observer_that_does_not_read_holds_a_window_and_then_gets_everything() -> None:
    async with world() as there, there.client() as client:
        book = await there.host.spawn(Book, "b")
        for number in range(WINDOW + 100):
            await book.write(f"{number}")
        with client.observe("(wires.line ?what)") as events:
            await wait_all_tasks_blocked()
            assert len(events._items) == WINDOW
            await there.cut()
            assert await book.size() == WINDOW + 100
            seen = [(await anext(events)).captures["what"] for _ in range(WINDOW + 100)]
        assert seen == [f"{number}" for number in range(WINDOW + 100)]


async def test_marks_and_cursors_come_as_from_a_host() -> None:
    async with world() as there, there.client() as client:
        book = await there.host.spawn(Book, "b")
        await book.write("x")
        with client.observe("(wires.line ?what)", marks=True) as events:
            assert [type(await anext(events)).__name__ for _ in range(2)] == ["Event", "CaughtUp"]
            assert events.cursor == there.host.observe("(a . _)", after="head").cursor
        with client.observe("(wires.line ?what)", after=events.cursor) as on:
            await book.write("y")
            assert (await anext(on)).captures["what"] == "y"


class Talks:
    """A model that says its answer in pieces."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, *_: Any, **__: Any) -> Any:
        for piece in ("hel", "lo"):
            effect.progress({"delta": {"content": piece}})
        return {"message": {"role": "assistant", "content": "hello"}}


async def test_pieces_are_told_to_who_watches() -> None:
    async with world(devices={"model": Talks()}) as there, there.client() as client:
        s = await client.spawn(Session, "s1")
        with client.watch(s) as pieces:
            assert await s.turn("say") == "hello"
            assert [(await anext(pieces)).text for _ in range(2)] == ["hel", "lo"]
            await there.cut()
            assert await s.turn("again") == "hello"
            told = [await anext(pieces) for _ in range(2)]
            assert [(piece.text, piece.missed) for piece in told] == [("hel", 1), ("lo", 0)]


async def test_what_nobody_refers_to_any_more_is_released() -> None:
    async with world(Limits(refs=5)) as there, there.client() as client:
        book = await client.spawn(Book, "b")
        for _ in range(20):
            inner = await book.open()
            await inner.write("x")
            del inner


async def test_an_observation_that_nobody_goes_on_with_is_stopped() -> None:
    async with world(Limits(streams=3)) as there, there.client() as client:
        book = await there.host.spawn(Book, "b")
        await book.write("x")
        for _ in range(20):
            async for event in client.observe("(wires.line ?what)"):
                assert event.captures["what"] == "x"
                break
            await client.sessions()


async def test_a_token_that_is_refused_later_ends_the_client() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        events = client.observe("(wires.line . _)")
        there.refuses = TokenRefused("it was revoked")
        await there.cut()
        with pytest.raises(TokenRefused, match="revoked"):
            await book.write("x")
        with pytest.raises(TokenRefused, match="revoked"):
            await anext(events)
        with pytest.raises(TokenRefused, match="revoked"):
            client.observe("(wires.line . _)")


async def test_a_wrong_token_is_refused_at_once() -> None:
    async with world() as there:
        with pytest.raises(TokenRefused):
            async with there.client("wrong"):
                raise AssertionError("nobody gets here")


async def test_a_server_that_is_not_there_is_said_at_once() -> None:
    async with world() as there:
        there.away = True
        with pytest.raises(Unreachable, match=r"nobody there\): is it running\?$"):  # nothing was asked
            async with there.client():
                raise AssertionError("nobody gets here")


async def test_a_server_that_stays_away_fails_who_waits(autojump_clock: MockClock) -> None:
    async with world() as there, there.client(patience=30) as client:
        book = await client.spawn(Book, "b")
        there.away = True
        await there.cut()
        with pytest.raises(Unreachable, match="may have been carried out"):
            await book.write("x")  # it was on its way when the connection went
        with pytest.raises(Unreachable, match=r"\(nobody there\): is it running\?$"):
            await book.write("never sent")
        assert trio.current_time() >= 30
        there.away = False
        assert await book.write("y") == 1


async def test_a_server_that_is_silent_is_given_up(autojump_clock: MockClock) -> None:
    async with world(Limits(idle=30)) as there, there.client() as client:
        book = await client.spawn(Book, "b")
        stream = there.streams[0]
        await trio.sleep(200)
        assert len(there.streams) == 1  # it has answered
        receive = stream.receive_some

        async def nothing(most: int | None = None) -> bytes:
            await receive(most)
            return await nothing(most)

        there.host._engine  # noqa: B018  # the host is there all the time; what is lost is on the way
        client._link._channel._read = nothing  # type: ignore[union-attr]  # what comes from the server is lost
        await trio.sleep(200)
        assert len(there.streams) == 2
        assert await book.write("x") == 1


async def test_a_deletion_that_was_done_and_not_answered_is_done() -> None:
    async with world() as there, there.client() as client:
        await client.spawn(Book, "b")
        original = there.host._sessions.delete
        held = trio.Event()

        async def delete(*args: Any, **keywords: Any) -> None:
            await original(*args, **keywords)
            held.set()
            await trio.sleep_forever()

        there.host._sessions.delete = delete  # type: ignore[method-assign]  # the answer is lost
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cut_when, there, held)
            await client.delete("b")
        with pytest.raises(Deleted):
            await client.delete("b")


async def test_a_client_that_has_ended_says_so() -> None:
    async with world() as there:
        async with there.client() as client:
            book = await client.spawn(Book, "b")
            promise = book.write("x")
            events = client.observe("(a . _)")
        for refused in (promise, book.lines, anext(events), client.sessions()):
            with pytest.raises(ClientClosed):
                await refused


async def test_what_the_block_raises_leaves_it_as_it_is() -> None:
    async with world() as there:
        with pytest.raises(KeyError):
            async with there.client():
                raise KeyError("mine")


async def test_a_call_that_is_too_large_is_not_made() -> None:
    async with world(Limits(frame=2000)) as there, there.client() as client:
        book = await client.spawn(Book, "b")
        with pytest.raises(ClientTooLarge, match="send less"):
            await book.write("x" * 3000)
        assert await book.write("x") == 1


async def test_more_calls_than_may_be_under_way_wait_their_turn() -> None:
    async with world(Limits(calls=4)) as there, there.client() as client:
        book = await client.spawn(Book, "b")
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(_write, book, f"{number}")
        assert await book.size() == 50


async def _write(book: Any, line: str) -> None:
    await book.write(line)


async def test_who_stops_waiting_abandons_the_wait_alone() -> None:
    slow = Slow()
    async with world(devices={"slow": slow}) as there, there.client() as client:
        book = await client.spawn(Book, "b")
        promise = book.write("x")
        with trio.move_on_after(0):
            await promise
        await wait_all_tasks_blocked()
        assert await promise == 1
        assert await book.lines == ["x"]


async def test_two_tasks_await_one_promise_and_it_is_asked_once() -> None:
    async with world() as there, there.client() as client:
        book = await client.spawn(Book, "b")
        promise = book.write("x")
        found: list[int] = []

        async def wait() -> None:
            found.append(await promise)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(wait)
        assert found == [1, 1]
        assert await book.size() == 1


def test_the_client_imports_no_server() -> None:
    code = "import sys, keeve.client; print(sorted(name.partition('.')[0] for name in sys.modules))"
    server = "import sys, keeve.client; print([name for name in sys.modules if name.startswith('keeve.server')])"
    assert not {"starlette", "hypercorn", "structlog", "prometheus_client"} & set(ast.literal_eval(said_by(code)))
    assert said_by(server) == "[]"


def said_by(code: str) -> str:
    """What a Python of its own prints."""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return out.stdout.strip()
