"""What is said stands in no line of a host's log: Keeve names types, methods, places and numbers there, and quotes
nothing.

What an exception of one's own says is told as it says it, in a log too: that is its author's to decide.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.approvals import CallWithdrawn
from dataspace.log.memory import MemoryLog
from dataspace.values import FrozenDict
from keeve import (
    Actor,
    Approvals,
    KeeveError,
    List,
    Map,
    Session,
    Text,
    Toolbox,
    Tools,
    actor,
    effect,
    near,
    open_host,
    tool,
)
from keeve.errors import OtherParameters
from keeve.testing import memory_host
from tests.keeve.canaries import Keeper, look
from tests.vat.hosts import settled
from vat.crank.wording import told
from vat.failures import exception_of
from vat.heap.opcodes import Op

CANARY, OTHER = "CANARY-1234", "CANARY-5678"
SAYS: dict[str, Any] = {}
"""What the code of `Sayer` is now: `way`, and with which `text` it says something."""


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


class Gate:
    """A device that answers nobody before its host has ended."""

    def __init__(self, *, opened: bool = False) -> None:
        self.opened = opened

    @effect(on_crash="retry")
    async def wait(self, effect: Any, *said: Any, **named: Any) -> None:
        if not self.opened:
            await trio.sleep_forever()


def saying(name: str, defined: str) -> Exception:
    """An error of that class that quotes something."""
    return exception_of({"error": name, "class": defined, "message": CANARY})


class Fails:
    """A device that raises what it is told."""

    @effect(on_crash="retry")
    async def fail(self, effect: Any, name: str, defined: str) -> None:
        raise saying(name, defined)


@actor("logs.sayer", version=1)
class Sayer(Actor):
    last: str = ""
    other: Any = None
    said: List[str]
    by_name: Map[str, str]
    tools: Toolbox
    approvals: Approvals

    async def go(self) -> None:
        SAYS["way"](self, SAYS["text"])
        await self.device("gate").wait()

    async def ask(self) -> None:
        SAYS["way"](self, SAYS["text"])
        await self.tools.run_all([CALL])

    async def hear(self, text: Text) -> None:
        await self.device("gate").wait()

    async def pass_on(self, name: str, defined: str) -> None:
        await self.device("fails").fail(name, defined)

    def fail(self, name: str, defined: str) -> None:
        raise saying(name, defined)

    def fail_all(self, names: list[list[str]]) -> None:
        for name, defined in names:
            self.ref.fail(name, defined)
            self.ref.pass_on(name, defined)

    async def travel(self) -> None:
        await self.approvals.ask({"id": "t1", "function": {"name": "travel", "arguments": CANARY}})

    def begin(self) -> None:
        self.ref.travel()


@tool(approval=True)
async def pay(what: str) -> str:
    """Pay."""
    return what


CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": f'{{"what": "{CANARY}"}}'}}


def sets(me: Sayer, text: str) -> None:
    me.last = text


def sets_what_looks_like_a_failure(me: Sayer, text: str) -> None:
    me.other = {"error": text, "message": text, "class": text, "at": text}


def appends(me: Sayer, text: str) -> None:
    me.said.append(text)


def puts(me: Sayer, text: str) -> None:
    me.by_name[text] = text


def states(me: Sayer, text: str) -> None:
    me.assert_fact("logs.said", text, said=Text(text), many=[text, {text: text}])


def wants(me: Sayer, text: str) -> None:
    me.device("gate").wait(text, [text], said={text: text})


def wants_what_looks_like_a_failure(me: Sayer, text: str) -> None:
    me.device("gate").wait({"error": text, "message": text}, said=[{"error": text, "message": text}])


def wants_by_name(me: Sayer, text: str) -> None:
    me.device("gate").wait(**{text: text})


def sends(me: Sayer, text: str) -> None:
    me.other.hear(text)


def starts(me: Sayer, text: str) -> None:
    near(me.ref).hear(text)


def observes(me: Sayer, text: str) -> None:
    me.observe(f'(logs.said "{text}" . _)', me.hear)


def breaks(me: Sayer, text: str) -> None:
    if text == OTHER:
        raise ValueError(text)


def fails(me: Sayer, text: str) -> None:
    with suppress(TypeError):
        near(me.ref).hear(text, text)


WAYS: list[Callable[[Sayer, str], None]] = [
    *(sets, sets_what_looks_like_a_failure, appends, puts, states, wants, wants_what_looks_like_a_failure),
    *(wants_by_name, sends, starts, observes, breaks, fails),
]


async def departed(way: Any, method: str = "go") -> list[Any]:
    """What is stated of a method that says something else when it is run again."""
    log, devices = MemoryLog(), {"gate": Gate(), "tools": Tools(pay)}
    SAYS.update(way=way, text=CANARY)
    async with memory_host(log, actors=[Sayer], devices=devices) as host, trio.open_nursery() as nursery:
        other = await host.spawn(Sayer, "s2", tools=Tools(pay))
        sayer = await host.spawn(Sayer, "s1", tools=Tools(pay), other=other)
        nursery.start_soon(getattr(sayer, method))
        await settled(host)
        nursery.cancel_scope.cancel()
    SAYS.update(text=OTHER)
    devices = {"gate": Gate(opened=True), "tools": Tools(pay)}
    async with memory_host(log, actors=[Sayer], devices=devices) as host:
        await settled(host)
        if method == "ask":
            approvals = await (await host.get("s1")).tools
            with pytest.raises(CallWithdrawn) as caught:
                await approvals.approve("c1")
            assert CANARY in str(caught.value), "who asks is told"
        await settled(host)
        return [event.value for event in host.query("(fiber-failed . _)")]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.__name__))
async def test_a_method_that_departs_from_its_record_is_logged_by_place_and_kind(
    way: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its fact has what was said then and is said now: a cell, which can be erased."""
    [fact] = await departed(way)
    assert "CANARY" in fact.keywords["error"]["message"] or way is fails
    [line] = [record.getMessage() for record in caplog.records if "is over" in record.getMessage()]
    assert "logs.sayer.go (actor 1): FiberDiverged: it cannot go on where it waited: in its part 1 it " in line
    assert f"{Path(__file__).name}:" in line or way in (fails,)
    assert "keeve show SESSION" in line
    assert "CANARY" not in caplog.text


@pytest.mark.parametrize("op", [Op.BROKE, Op.UNDONE, Op.FAILED], ids=lambda op: op.name)
def test_of_a_failure_its_class_is_named_and_the_operation_says_that_it_is_one(op: Op) -> None:
    args = {Op.BROKE: [1], Op.UNDONE: [1, "hear"], Op.FAILED: []}[op]
    said = told([op, *args, FrozenDict({"error": "ValueError", "message": CANARY})], lambda cell: cell)
    assert said.outline.endswith("with ValueError")
    assert CANARY in said.whole, "who asks is told"


async def test_a_call_that_is_withdrawn_is_told_to_who_approved_and_logged_without_what_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    [fact] = await departed(sets, "ask")
    assert fact.keywords["method"] == "ask"
    assert "CANARY" not in caplog.text


def derived(kind: type[KeeveError]) -> Iterator[type[KeeveError]]:
    for each in kind.__subclasses__():
        if each.__module__.partition(".")[0] in ("keeve", "actors", "vat", "snapshots", "dataspace"):
            yield each
            yield from derived(each)


async def test_of_no_error_that_may_quote_something_a_log_has_the_message(caplog: pytest.LogCaptureFixture) -> None:
    """Each one that has not said that it quotes nothing: raised by a method, and by a device, with nobody waiting."""
    quoting = {each.__name__: f"{each.__module__}.{each.__qualname__}" for each in derived(KeeveError) if each.quotes}
    del quoting["Failed"]  # it stands for another one
    names = [*quoting.items(), ("NotLoaded", "actors.elsewhere.NotLoaded")]
    assert {"CallRefused", "ToolFailed", "NoSuchTool", "NoSuchKey", "NotAValue", "OtherParameters"} <= quoting.keys()
    async with memory_host(actors=[Sayer], devices={"fails": Fails(), "gate": Gate()}) as host:
        sayer = await host.spawn(Sayer, "s1", tools=Tools(pay))
        await sayer.fail_all([list(each) for each in names])
        await settled(host)
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    for method in ("fail", "pass_on"):
        for name, _ in names:
            assert any(f"logs.sayer.{method} (actor 1): {name}" in line for line in warned), (method, name)
    assert "CANARY" not in caplog.text


async def test_a_persons_reason_is_in_no_line_where_nobody_waits(caplog: pytest.LogCaptureFixture) -> None:
    async with memory_host(actors=[Sayer], devices={"gate": Gate()}) as host:
        sayer = await host.spawn(Sayer, "s1", tools=Tools(pay))
        await sayer.begin()
        await (await sayer.approvals).refuse("t1", f"no: {CANARY}")
        await settled(host)
    assert any("logs.sayer.travel (actor 1): CallRefused" in record.getMessage() for record in caplog.records)
    assert "CANARY" not in caplog.text


class Mistaken:
    """A model whose calls are wrong in every way, each of which quotes what was said."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return {"message": {"role": "assistant", "content": f"answer to {CANARY}"}, "usage": None}
        given = [f'{{"city": {{"{CANARY}": "{CANARY}"}}}}', f"no JSON: {CANARY}", f'{{"{CANARY}": 1}}']
        calls = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate((name, each) for name in ("look", "nothing", "pay") for each in given)
        ]
        return {"message": {"role": "assistant", "content": CANARY, "tool_calls": [*calls, CALL]}, "usage": None}


async def test_what_is_said_in_a_conversation_and_kept_by_an_actor_is_in_no_line(
    store_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tools = Tools(look, pay)
    devices = {"model": Mistaken(), "tools": tools}
    async with open_host(store_folder, actors=[Keeper], devices=devices) as host, trio.open_nursery() as nursery:
        session = await host.spawn(Session, "s1", tools=tools)
        nursery.start_soon(session.turn, f"input {CANARY}")
        async for _ in host.observe("(approval-wanted . _)"):
            break
        keeper = await host.spawn(Keeper, "k1", last=CANARY)
        await keeper.keep(CANARY, 3)
        with pytest.raises(OtherParameters):
            await keeper.keep(CANARY, 1, CANARY)
        nursery.cancel_scope.cancel()
    async with open_host(store_folder, actors=[Keeper], devices=devices) as host:
        await (await (await host.get("s1")).approvals).refuse("c1", f"no, {CANARY}")
        async for _ in host.observe("(turn-done . _)"):
            break
    assert any("pay was not called yet" in record.getMessage() for record in caplog.records)
    assert "CANARY" not in caplog.text
