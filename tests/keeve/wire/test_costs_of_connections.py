"""What a connection may cost: what waits to be taken, what came and has no answer, and what was stopped, counted."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from dataspace.values import Promise
from keeve.wire.desk import Desk
from keeve.wire.guarding import Limits
from keeve.wire.messages import DESK
from keeve.wire.outbox import Outbox
from tests.keeve.wire.wires import Book, Free, world
from vat.host.outside import Member


async def forever(*_: Any, **__: Any) -> Any:
    await trio.sleep_forever()


async def test_answers_that_nobody_takes_are_not_kept_beyond_what_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(answer=300_000)
    boxes: list[Outbox] = []
    made = Outbox.__init__

    def noted(box: Outbox, *given: Any) -> None:
        boxes.append(box)
        made(box, *given)

    monkeypatch.setattr(Outbox, "__init__", noted)
    taken = trio.Event()

    async def until_taken() -> None:
        if boxes:  # after welcome
            await taken.wait()

    async with world(limits) as there, there.raw(slow=until_taken) as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        for id in range(2, 40):
            await raw.call(id, Promise(1), "big", 100_000)
        while len(boxes[0]._waiting) < 39:  # all have been answered
            await trio.lowlevel.checkpoint()
        assert boxes[0]._bytes < 300_000 + 38 * 1000
        taken.set()
        said = [await raw.next() for _ in range(39)]
        assert [each[0] for each in said].count("value") == 3
        assert {each[2]["error"] for each in said if each[0] == "error"} == {"Untaken"}
        await raw.call(40, Promise(1), "big", 100_000)  # what is taken makes room
        assert (await raw.next())[0] == "value"


async def test_what_calls_have_brought_is_bounded_together_until_they_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Desk, "_get", forever)
    async with world(Limits(answer=300_000)) as there, there.raw() as raw:
        await raw.call(1, DESK, "get", "b")
        for id in range(2, 6):
            await raw.call(id, Promise(1), "write", "x" * 100_000)
        for id in (4, 5):
            said = await raw.next()
            assert (said[1], said[2]["error"]) == (id, "TooMany")
        await raw.send("stop", 2)
        await wait_all_tasks_blocked()
        await raw.call(6, Promise(1), "write", "x" * 100_000)
        await raw.call(7, DESK, "sessions")
        assert (await raw.next())[:2] == ["value", 7]


async def test_a_call_that_was_stopped_counts_until_its_session_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(Limits(calls=4)) as there, there.raw() as raw:
        await there.host.spawn(Book, "b")
        await raw.call(1, DESK, "get", "b")
        assert (await raw.next())[0] == "value"
        goes, over = trio.Event(), trio.Semaphore(0)
        called = Member.__call__

        async def later(*given: Any, **named: Any) -> Any:
            await goes.wait()
            try:
                return await called(*given, **named)
            finally:
                over.release()

        monkeypatch.setattr(Member, "__call__", later)
        for id in range(2, 6):
            await raw.call(id, Promise(1), "size")
            await wait_all_tasks_blocked()  # it has come to its session
            await raw.send("stop", id)
        said = await raw.next()
        assert (said[0], said[1], said[2]["error"]) == ("error", 5, "TooMany")
        goes.set()
        for _ in range(3):
            await over.acquire()
        await wait_all_tasks_blocked()
        await raw.call(6, Promise(1), "size")
        assert (await raw.next())[:3] == ["value", 6, 0]  # and nothing came of those that were stopped


async def test_only_what_is_asked_for_is_paced() -> None:
    async with world() as there, there.raw() as raw:
        guard: Free = there.guard
        await raw.call(1, DESK, "sessions")
        await raw.send("observe", 2, "(wires.line _)", {"until": "head", "marks": True}, 10)
        await raw.send("more", 2, 1)
        await raw.send("forget", [1])
        await raw.send("ping")
        assert {(await raw.next())[0] for _ in range(4)} == {"value", "items", "end", "pong"}
        assert guard.paces == 2
        guard.ended = True
        await raw.call(3, DESK, "sessions")
        assert (await raw.next())[0] == "bye"
