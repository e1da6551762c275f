"""Fibers whose code has changed: each breaks alone, and says what was recorded and what the code does now."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from vatmaker import assert_restores, operations
from waits import SCRIPTS, Agent, Fiberworld, cancel, near, script, value_of, within

from dataspace.values import ERASED
from vat.errors import FiberDiverged
from vat.heap.entries import KEPT, STATE
from vat.heap.opcodes import Op


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


@script
async def original(me: Agent) -> None:
    me.count += 1
    me.assert_fact("waits.said", "one", n=1)
    await me.want("first")
    me.count += 1
    await me.want("second")
    me.log.append("through")


async def does_other(me: Agent) -> None:
    me.count += 2
    me.assert_fact("waits.said", "one", n=1)
    await me.want("first")


async def states_other(me: Agent) -> None:
    me.count += 1
    me.assert_fact("waits.said", "two", n=1)
    await me.want("first")


async def does_less(me: Agent) -> None:
    me.count += 1
    await me.want("first")


async def does_more(me: Agent) -> None:
    me.count += 1
    me.assert_fact("waits.said", "one", n=1)
    me.log.append("more")
    await me.want("first")


async def asks_other(me: Agent) -> None:
    me.count += 1
    me.assert_fact("waits.said", "one", n=1)
    await me.want("other")


async def waits_for_other(me: Agent) -> None:
    me.count += 1
    me.assert_fact("waits.said", "one", n=1)
    me.want("first")
    await me.ref.plain(1)


async def returns(me: Agent) -> None:
    me.count += 1
    me.assert_fact("waits.said", "one", n=1)


async def raises(me: Agent) -> None:
    me.count += 1
    raise LookupError("new")


async def raises_later(me: Agent) -> None:
    me.count += 1
    me.assert_fact("waits.said", "one", n=1)
    await me.want("first")
    raise LookupError("new")


async def exits(me: Agent) -> None:
    raise SystemExit("now")


async def goes_too_deep(me: Agent) -> None:
    me.count += 1
    raise RecursionError("too deep")


async def takes_too_much(me: Agent) -> None:
    me.count += 1
    raise MemoryError("none left")


@pytest.mark.parametrize(
    ("other", "part", "recorded", "did"),
    [
        (does_other, 1, "sets count of actor 1 to 1", "sets count of actor 1 to 2"),
        (states_other, 1, 'states (waits.said "one" #:n 1)', 'states (waits.said "two" #:n 1)'),
        (does_less, 1, "states a fact", "makes promise 1 (effect tool use)"),
        (does_more, 1, "makes promise 1 (effect tool use)", 'changes log of actor 1: append("more")'),
        (asks_other, 1, 'wants tool.use("first")', 'wants tool.use("other")'),
        (waits_for_other, 1, "makes promise 2 (fiber 1)", "makes promise 2 (send)"),
        (returns, 1, "makes promise 1 (effect tool use)", "comes to its end"),
        (raises, 1, "states a fact", "raises LookupError: new"),
        (exits, 1, "sets count of actor 1 to 1", "raises SystemExit: now"),
        (goes_too_deep, 1, "states a fact", "raises RecursionError: too deep"),
        (takes_too_much, 1, "states a fact", "raises MemoryError: none left"),
        (raises_later, 2, "sets count of actor 1 to 2", "raises LookupError: new"),
    ],
)
def test_what_it_did_and_does_is_named(world, other, part, recorded, did):
    """Invariant 16."""
    world.go("original")
    promise = world.agent.heap.entries("fibers")[0][1][3]
    world.give("one")
    got: list[Any] = []
    world.restart()
    world.agent.vat.waiters[promise] = [got.append]
    before = SCRIPTS["original"]
    SCRIPTS["original"] = other
    try:
        world.give("two")
    finally:
        SCRIPTS["original"] = before
    with pytest.raises(FiberDiverged) as caught:
        value_of(got)
    said = str(caught.value)
    assert said.startswith(f"session 'a', fiber 1: waits.agent.go cannot go on where it waited. In its part {part}, ")
    at = "" if did == "comes to its end" else rf", at \w+\.py:\d+ in ({other.__name__}|want)"
    assert re.search(rf"the record says that it {re.escape(recorded)}; the code now {re.escape(did)}{at}\. ", said)
    assert "If its code was changed: the next time, give that a higher version, and keep the old class" in said
    assert "If not, it looks at something besides its arguments and fields, as the order of a set" in said
    failure = world.agent.steps[-1].failure
    assert (failure.fiber, failure.part, failure.recorded, failure.did) == (1, part, recorded, did)
    assert [op[0] for op in operations(world.agent.records[-1])][2:5] == [Op.RESUMED, Op.FAILED, Op.RETURNED]
    assert world.waiting == 0
    assert (world.ask(world.agent, "count"), world.seen()) == (2, [])
    world.sound()


def test_the_method_that_was_started_and_the_content_that_differs_are_named(world):
    """What began in a part is run again with it."""
    before = "as it was " * 40

    @script
    async def starting(me: Agent) -> None:
        await near(me.ref).other("started")

    @script
    async def started(me: Agent) -> None:
        me.log.append(before + "once")
        await me.want()

    world.go("starting")
    world.restart()

    @script
    async def started(me: Agent) -> None:  # noqa: F811  # it takes the place of the other
        me.log.append(before + "now")
        await me.want()

    world.give()
    failures = [step.failure for step in world.agent.steps if step.failure is not None]
    assert {failure.fiber for failure in failures} == {2}
    assert failures[-1].method == "go"
    assert failures[-1].recorded.endswith('as it was once")')
    assert failures[-1].did.endswith('as it was now")')
    assert failures[-1].at.endswith(" in started")


def test_the_vat_and_its_other_fibers_are_fine(world):
    """Invariant 16: it breaks alone."""

    @script
    async def untouched(me: Agent) -> None:
        me.log.append(await me.want("mine"))

    world.go("original")
    world.go("untouched")
    world.restart()
    before = SCRIPTS["original"]
    SCRIPTS["original"] = returns
    try:
        world.give("x", effect=1)
    finally:
        SCRIPTS["original"] = before
    world.give("y", effect=2)
    assert world.seen() == ["y"]
    assert_restores(world, world.agent)


def test_a_method_or_a_version_that_is_gone_is_named(world):
    world.go("original")
    world.restart()
    described = world.types["waits.agent"]
    go = described.methods.pop("go")
    try:
        world.give()
    finally:
        described.methods["go"] = go
    assert world.agent.steps[-1].failure.did == "has no async method go any more"
    world.sound()


def test_other_arguments_than_the_method_takes_now_are_named(world):
    world.go("original")
    world.restart()
    before = SCRIPTS["original"]

    async def takes_more(me: Agent, more: Any) -> None: ...

    SCRIPTS["original"] = takes_more
    try:
        world.give()
    finally:
        SCRIPTS["original"] = before
    assert "missing 1 required positional argument" in world.agent.steps[-1].failure.did


def test_lines_that_moved_are_no_other_code(world):
    """An error that it caught names its line in the record."""

    @script
    async def catches(me: Agent) -> None:
        with suppress(ValueError):
            (await me.ref.fail("x"))
        cancel(me.want("gone"), ValueError("given up"))
        await me.want("first")
        me.log.append("through")

    world.go("catches")
    world.restart()

    @script
    async def catches(me: Agent) -> None:  # noqa: F811  # it takes the place of the other
        # Further down, and otherwise the same.
        with suppress(ValueError):
            await me.ref.fail("x")
        cancel(me.want("gone"), ValueError("given up"))
        await me.want("first")
        me.log.append("through")

    world.give()
    assert world.seen() == ["through"]
    world.sound()


def test_a_cell_of_another_number_with_the_same_content_is_the_same(world):
    """What a part's cells are numbered depends on what came before it in its crank."""

    @script
    async def long_strings(me: Agent) -> None:
        me.log.append("a" * 300)
        await me.ref.plain("b" * 300)
        me.log.append("c" * 300)
        await me.want()
        me.log.append("end")

    world.go("long_strings")
    world.restart()
    world.give()
    assert [len(item) for item in world.seen()] == [300, 300, 300, 3]
    world.sound()


def test_what_was_erased_since_is_like_anything(world):
    @script
    async def long_strings(me: Agent) -> None:
        me.log.append("private " * 60)
        got = await me.want("public " * 60)
        me.log.append(got)
        await me.want("x")
        me.log.append("end")

    world.go("long_strings")
    world.give("secret " * 60)
    world.restart()
    cell = world.agent.log.cell
    world.agent.log.cell = lambda asked: ERASED if asked.seq > 1 else cell(asked)
    world.give()
    assert world.seen()[-1] == "end"


@script
async def waiting_with_a_limit(me: Agent) -> None:
    other = me.spawn(Agent)
    later = near(other).owing()
    await within(60, near(other).owing())
    await later


async def otherwise(me: Agent) -> None:
    me.log.append("changed")


def test_what_it_waited_for_or_had_and_others_owe_is_given_up(world):
    """As a call that waits for a person: nobody would hear what it comes to."""
    world.go("waiting_with_a_limit")
    world.restart()
    before, SCRIPTS["waiting_with_a_limit"] = SCRIPTS["waiting_with_a_limit"], otherwise
    try:
        world.give()
    finally:
        SCRIPTS["waiting_with_a_limit"] = before
    assert isinstance(world.agent.steps[-1].failure, FiberDiverged)
    assert [entry for _, entry in world.agent.heap.entries("promises") if entry[STATE] < KEPT] == []
    world.sound()
