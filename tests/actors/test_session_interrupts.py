"""Interrupts: a stop takes effect on the turn that it was meant for, whenever it comes, and on no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from actors.models import EchoModel
from actors.session import Session, TurnInterrupted
from dataspace.facts import fact
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import memory_host
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, calls, says, user
from tests.actors.test_session_restarts import Follows
from vat.devices.devices import Effect, effect
from vat.heap.messages import Asker
from vat.heap.refs import Promise, Ref, cancel
from vat.objects.actor import Actor, actor

OPS = Asker("ops", "cli")


def session(*answers: Any, **fields: Any) -> Driven:
    return Driven(Session, {"model": Says(*answers), "tools": Does(a="of a", b="of b")}, **fields)


def ended(driven: Driven) -> list[tuple[str, int]]:
    """How each turn ended, in that order."""
    return [(said.label, said.fields[0]) for said in driven.stated("turn-done", "turn-failed", "turn-interrupted")]


def test_a_late_one_for_a_turn_that_is_over_leaves_the_next_one_alone() -> None:
    """Invariant 19."""
    driven = session(says("1"), says("2"))
    driven.call("turn", "one")
    second = driven.call("turn", "two")
    driven.advance()
    assert driven.read("status")["running"] == 2
    assert driven.call("interrupt", 1).value is None
    driven.run()
    assert second.value == "2"
    assert ended(driven) == [("turn-done", 1), ("turn-done", 2)]


@actor("interrupts.twofold", version=1)
class Twofold(Session):
    """Interrupts twice in one message."""

    def twice(self) -> list[Any]:
        return [self.interrupt(), self.interrupt()]


@pytest.mark.parametrize("tools_run", [False, True])
def test_a_second_one_in_the_same_crank_finds_the_turn_interrupted_already(tools_run: bool) -> None:
    model, doing = Says(says(None, calls("a"), calls("b")), says("next")), Does(a="of a", b="of b")
    driven = Driven(Twofold, {"model": model, "tools": doing})
    driven.call("turn", "one")
    if tools_run:
        driven.advance()
    assert driven.call("twice").value == [1, None]
    assert ended(driven) == [("turn-interrupted", 1)]
    assert len([message for message in driven.read("messages") if message["role"] == "tool"]) == 2 * tools_run


def test_one_for_a_turn_that_is_just_over_does_nothing() -> None:
    driven = session(says("1"))
    driven.call("turn", "one")
    driven.run()
    assert driven.call("interrupt", 1).value is None
    assert driven.call("interrupt").value is None
    assert ended(driven) == [("turn-done", 1)]
    assert driven.stated("turn-interrupted") == []


def test_the_second_of_two_does_nothing() -> None:
    driven = session(says("2"))
    driven.call("turn", "one")
    second = driven.call("turn", "two")
    assert driven.call("interrupt", 1).value == 1
    assert driven.call("interrupt", 1).value is None
    driven.run()
    assert second.value == "2"
    assert ended(driven) == [("turn-interrupted", 1), ("turn-done", 2)]


@pytest.mark.parametrize(("steps", "at"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 0)])
def test_it_ends_a_turn_at_whatever_it_is_after_a_restart_as_well(steps: int, at: int) -> None:
    """Partial work is kept, and marked with the step at which it ended."""
    driven = session(says("x", calls("a"), calls("b")), says("y", calls("a")), says("z"))
    driven.call("turn", "go")
    for _ in range(steps):
        driven.advance()
    driven.restart()
    kept = driven.read("messages")
    assert driven.call("interrupt", 1, asker=OPS).value == (1 if at else None)
    marked = [fact("turn-interrupted", 1, "s1", by="ops", step=at)]
    assert driven.stated("turn-interrupted") == (marked if at else [])
    assert [message for message in driven.read("messages") if message in kept] == kept
    assert driven.open == []
    answer = driven.call("turn", "go on")
    driven.given["model"].answers[:] = [says("fine")]  # type: ignore[attr-defined]  # it is a Says
    driven.run()
    assert answer.value == "fine"


def test_who_asked_for_a_turn_that_waits_hears_of_its_end_at_once() -> None:
    driven = session(says("1"), says("3"))
    first, second, third = (driven.call("turn", input) for input in ("one", "two", "three"))
    driven.call("interrupt", 2)
    with pytest.raises(TurnInterrupted, match="turn 2 of 's1' was interrupted by local"):
        second.value  # noqa: B018  # raises what went wrong
    assert first.outcome is None
    driven.run()
    assert (first.value, third.value) == ("1", "3")


def test_turns_that_were_ended_while_they_waited_are_over_with_the_last_that_ran() -> None:
    driven = session(says("1"), says("4"))
    for input in ("one", "two", "three"):
        driven.call("turn", input)
    driven.call("interrupt", 3)
    driven.call("interrupt", 2)
    driven.run()
    assert driven.read("status") == {"accepted": 3, "over": 3, "running": None, "limit": None, "stated": True}
    answer = driven.call("turn", "four")
    driven.run()
    assert answer.value == "4"
    assert driven.vat.heap.system["promises"].count == 0


@actor("test.hasty", version=1)
class Hasty(Session):
    """Gives up a turn that it has asked for itself."""

    def hurry(self, input: str) -> None:
        cancel(self.turn(input), LookupError("never mind"))

    def stop(self, input: str) -> None:
        asked = self.turn(input)
        self.interrupt(1)
        cancel(asked, LookupError("never mind"))


def test_a_waiting_turn_that_its_caller_gives_up_fails_alone() -> None:
    driven = Driven(Hasty, {"model": Says(says("1"), says("3")), "tools": Does()})
    first = driven.call("turn", "one")
    driven.call("hurry", "two")
    third = driven.call("turn", "three")
    assert ended(driven) == [("turn-failed", 2)]
    driven.run()
    assert (first.value, third.value) == ("1", "3")


def test_a_waiting_turn_that_is_given_up_as_the_one_before_it_ends_is_in_nobodys_way() -> None:
    driven = Driven(Hasty, {"model": Says(says("3"), says("4")), "tools": Does()})
    driven.call("turn", "one")
    driven.call("stop", "two")
    third = driven.call("turn", "three")
    driven.run()
    assert third.value == "3"
    assert sorted(ended(driven)) == [("turn-done", 3), ("turn-failed", 2), ("turn-interrupted", 1)]


@pytest.mark.parametrize("forked", [False, True])
def test_turns_that_never_began_are_over_when_nothing_runs(forked: bool) -> None:
    driven = Driven(Hasty, {"model": Says(says("3")), "tools": Does()})
    driven.call("turn", "one")
    driven.call("turn", "two")
    if forked:
        driven = driven.fork()
        driven.call("hurry", "three")
    else:
        driven.call("interrupt", 2)
        driven.call("stop", "three")
    assert driven.read("status") == {"accepted": 3, "over": 3, "running": None, "limit": None, "stated": True}


def test_one_for_a_waiting_turn_holds_after_a_restart() -> None:
    driven = session(says("1"), says("3"))
    for input in ("one", "two", "three"):
        driven.call("turn", input)
    driven.call("interrupt", 2)
    driven.restart()
    driven.run()
    assert ended(driven) == [("turn-interrupted", 2), ("turn-done", 1), ("turn-done", 3)]
    assert user("two") not in driven.read("messages")


def test_in_a_fork_it_ends_nothing_of_the_parent() -> None:
    driven = session(says("1"), says("2"), says("3"))
    answers = [driven.call("turn", input) for input in ("one", "two")]
    child = driven.fork()
    for n in (1, 2, None):
        assert child.call("interrupt", n).value is None
    driven.run()
    assert [answer.value for answer in answers] == ["1", "2"]


moves = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.text("tTx", max_size=3)),
        st.tuples(st.just("steer"), st.text("tx", max_size=2)),
        st.tuples(st.just("advance"), st.integers(0, 2)),
        st.tuples(st.just("interrupt"), st.one_of(st.none(), st.integers(1, 6))),
    ),
    max_size=16,
)


@given(moves, st.booleans())
def test_each_ends_the_turn_that_it_names_or_none(moves: Sequence[tuple[str, Any]], parallel: bool) -> None:
    """Invariant 19."""

    class Ids(Does):
        @effect
        async def run(self, effect: Effect, call: Mapping[str, Any]) -> Any:
            return call["id"]

    driven = Driven(Session, {"model": Follows(), "tools": Ids()}, max_steps=3, parallel=parallel)
    stopped = []
    for what, how in moves:
        if what == "interrupt":
            running = driven.read("status")["running"]
            n = driven.call("interrupt", how).value
            assert n in (None, running if how is None else how)
            stopped += [] if n is None else [n]
        elif what == "advance":
            if driven.open:
                number = sorted(driven.open)[how % len(driven.open)]
                driven.end(number, driven.carry_out(number))
        else:
            driven.call(what, how)
    driven.run()
    assert [n for label, n in ended(driven) if label == "turn-interrupted"] == stopped
    assert sorted(n for _, n in ended(driven)) == [said.fields[0] for said in driven.stated("turn")]


@actor("test.supervisor", version=1)
class Supervisor(Actor):
    """Stops turns of a session of another vat."""

    def stop(self, worker: Ref, turn: int) -> Promise:
        return worker.interrupt(turn)


class Held(EchoModel):
    """An echo that tells when it is asked, and answers when it may."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.may = trio.Event()

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        self.asked.set()
        await self.may.wait()
        return await super().complete(effect, messages)


async def test_an_actor_of_another_vat_ends_the_turn_that_it_names() -> None:
    """Invariant 19."""
    held = Held()
    async with memory_host(actors=[Supervisor], devices={"model": held}) as host, trio.open_nursery() as nursery:
        boss, worker = await host.spawn(Supervisor, "boss"), await host.spawn(Session, "worker")
        said: list[Any] = []

        async def take(input: str) -> None:
            try:
                said.append(await worker.turn(input))
            except TurnInterrupted as error:
                said.append(str(error))

        nursery.start_soon(take, "one")
        await held.asked.wait()
        nursery.start_soon(take, "two")
        async for _ in host.observe('(turn 2 "worker" . _)'):
            break
        assert await boss.stop(worker, 1) == 1
        assert await boss.stop(worker, 1) is None
        held.may.set()
        async for _ in host.observe('(turn-done 2 "worker" . _)'):
            break
        [interrupted] = host.query("(turn-interrupted . _)")
        assert interrupted.value.fields == (1, "worker")
        await trio.testing.wait_all_tasks_blocked()
    assert said[1] == "two"
    assert said[0].startswith("turn 1 of 'worker' was interrupted by")


async def test_it_holds_when_the_host_ends_at_once() -> None:
    log, held = MemoryLog(), Held()
    async with memory_host(log, devices={"model": held}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")
        nursery.start_soon(s.turn, "one")
        await held.asked.wait()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            assert await s.interrupt(1) == 1
    async with memory_host(log) as host:
        s = await host.get("s1")
        assert await s.interrupt(1) is None
        assert await s.turn("two") == "two"
        assert [message["content"] for message in await s.messages] == ["one", "two", "two"]
