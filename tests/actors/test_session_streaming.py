"""Streaming: an answer as it comes, to whoever watches at that moment, and nothing of it in the log."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors.session import Session, TurnInterrupted
from dataspace.log.memory import MemoryLog
from keeve import blocking
from keeve.testing.hosts import memory_host
from vat.devices.devices import Effect, effect
from vat.host import pieces as pieces_of_effects
from vat.host.pieces import Piece
from vat.host.watching import Watch


class Speaks:
    """A model that says one word after another, each when it may."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.may = [trio.Event() for _ in range(len(words) + 1)]
        self.asked = trio.Event()

    def say(self, count: int) -> None:
        for event in self.may[:count]:
            event.set()

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        self.asked.set()
        for may, word in zip(self.may, self.words, strict=False):
            await may.wait()
            effect.progress({"attempt": effect.attempt, "delta": {"content": word}})
        await self.may[-1].wait()
        return {"message": {"role": "assistant", "content": "".join(self.words)}, "usage": None}


async def all_of(watch: Watch, into: list[str], each: Callable[[Piece], None] = lambda piece: None) -> None:
    async for piece in watch:
        each(piece)
        into.append(piece.text)


async def test_an_answer_is_heard_as_it_comes() -> None:
    model = Speaks("one ", "two ", "three")
    async with memory_host(devices={"model": model}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")
        heard: list[str] = []
        with host.watch(s) as pieces:
            nursery.start_soon(s.turn, "count")
            model.say(2)
            async for piece in pieces:
                heard.append(piece.text)
                assert (piece.session, piece.device, piece.method, piece.attempt) == ("s1", "model", "complete", 1)
                if len(heard) == 2:
                    break
            assert heard == ["one ", "two "]
            model.say(4)
            async for piece in pieces:
                heard.append(piece.text)
                break
        assert "".join(heard) == "one two three"


async def test_it_ends_after_what_has_come_when_it_is_closed() -> None:
    model = Speaks("one ", "two")
    model.say(3)
    async with memory_host(devices={"model": model}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")
        heard: list[str] = []
        watch = host.watch(s)
        nursery.start_soon(all_of, watch, heard)
        assert await s.turn("count") == "one two"
        watch.close()
        await trio.testing.wait_all_tasks_blocked()
        assert heard == ["one ", "two"]
        watch.close()
        with pytest.raises(StopAsyncIteration):
            await anext(watch)


async def test_a_slow_one_one_that_raises_and_a_late_one_mind_nobody() -> None:
    """Invariant 32, for what is told while an effect runs."""
    words = [f"{number} " for number in range(20)]
    model = Speaks(*words)
    heard: dict[str, list[str]] = {name: [] for name in ("quick", "slow", "raises", "late")}

    def fail(piece: Piece) -> None:
        if piece.text == "3 ":
            raise ValueError("no more")

    async def fails(watch: Watch) -> None:
        with pytest.raises(ValueError, match="no more"), watch:
            await all_of(watch, heard["raises"], fail)

    async with memory_host(devices={"model": model}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")
        slow = host.watch(s)
        nursery.start_soon(all_of, host.watch(s), heard["quick"])
        nursery.start_soon(fails, host.watch("s1"))
        nursery.start_soon(s.turn, "count")
        model.say(10)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(all_of, host.watch(), heard["late"])
        model.say(21)
        assert await s.turn("again") == "".join(words)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(all_of, slow, heard["slow"])
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert heard == {
        "quick": words * 2,
        "slow": words * 2,
        "raises": words[:3],
        "late": words[10:] + words,
    }


async def test_one_that_never_takes_anything_is_told_how_much_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_of_effects, "WAITING", 3)
    model = Speaks(*"abcdefgh")
    model.say(9)
    async with memory_host(devices={"model": model}) as host:
        s = await host.spawn(Session, "s1")
        with host.watch(s) as pieces:
            await s.turn("spell")
        taken = [(piece.text, piece.missed) async for piece in pieces]
    assert taken == [("f", 5), ("g", 0), ("h", 0)]


async def test_one_that_nobody_has_any_more_is_gone() -> None:
    model = Speaks("a")
    model.say(2)
    async with memory_host(devices={"model": model}) as host:
        s = await host.spawn(Session, "s1")
        watches = [host.watch(s) for _ in range(10)]
        hearing = watches[0]._hearing
        assert len(hearing) == 10
        watches.clear()
        gc.collect()
        await s.turn("hello")
        assert len(hearing) == 0


async def test_only_what_the_session_is_told_is_heard() -> None:
    async with memory_host(devices={"model": Speaks("a"), "other": (other := Speaks("b"))}) as host:
        other.say(2)
        one, two = await host.spawn(Session, "s1"), await host.spawn(Session, "s2", model="other")
        with host.watch(one) as first, host.watch(two) as second:
            await two.turn("hello")
        assert [piece.text async for piece in first] == []
        assert [piece.text async for piece in second] == ["b"]


async def test_it_ends_with_its_host() -> None:
    async with memory_host() as host:
        watch = host.watch()
    with trio.fail_after(60):
        assert [piece async for piece in watch] == []


async def test_nothing_of_it_is_in_the_log_and_what_was_partly_said_is_not_in_the_messages() -> None:
    """The answer of a turn that was interrupted is heard by who watches, and kept nowhere."""
    log, model = MemoryLog(), Speaks("sesame-", "partial")
    async with memory_host(log, devices={"model": model}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")

        async def take() -> None:
            with pytest.raises(TurnInterrupted):
                await s.turn("hello")

        with host.watch(s) as pieces:
            nursery.start_soon(take)
            model.say(1)
            assert (await anext(pieces)).text == "sesame-"
            await s.interrupt(turn=1)
        assert await s.messages == [{"role": "user", "content": "hello"}]
        assert [event.value.label for event in host.query("(_ . _)")] == ["spawn", "turn", "turn-interrupted"]


def test_without_await_it_is_heard_in_a_thread(store_folder: Path) -> None:
    class Says:
        @effect(on_crash="retry")
        async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
            for word in ("one ", "two"):
                effect.progress({"attempt": 1, "delta": {"content": word}})
            return {"message": {"role": "assistant", "content": "one two"}, "usage": None}

    heard: list[str] = []
    with blocking.open_host(store_folder / "s", devices={"model": Says()}) as host:
        s = host.spawn(Session, "s1")
        with host.watch(s) as pieces:
            thread = threading.Thread(target=lambda: heard.extend(piece.text for piece in pieces))
            thread.start()
            assert s.turn("count") == "one two"
        thread.join()
    assert heard == ["one ", "two"]
