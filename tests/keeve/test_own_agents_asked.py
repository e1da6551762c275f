"""An agent of one's own that is asked by commands, over HTTP and by programs: what is said of what it has not, and how
it is driven where a server has it."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from doctest import DocTestParser
from functools import wraps
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any

import pytest
import trio

import keeve.client
from keeve import Actor, EchoModel, Session, Text, actor, effect, open_host, read
from keeve.errors import KeeveError, NotRunning, OtherParameters, Refused
from keeve.looking import asking, end_turn
from keeve.testing import memory_host
from tests.keeve.own_shapes import Failing, Plain, TakesMore
from tests.pages import ROOT
from tests.served_stores import asked, served_store
from tests.server_worlds import world
from vat.heap.refs import Promise, cancel


@actor("verbs.doing", version=1)
class Doing(Actor):
    """Its `status` does something: nobody calls it who only wants to know how far it is."""

    calls: int = 0

    def interrupt(self) -> dict[str, int]:
        self.calls += 1
        return {"ended": self.calls}

    def steer(self, text: Text) -> None:
        self.calls += 1


async def test_at_the_prompt_it_is_said_what_the_agent_has_and_what_to_do(store_folder: Path) -> None:
    async with open_host(store_folder, actors=[TakesMore, Plain, Doing]) as host:
        for kind, id in ((TakesMore, "more"), (Plain, "plain"), (Doing, "doing")):
            await host.spawn(kind, id)
    where = ("--store", store_folder, "--actors", __name__, "--actors", "tests.keeve.own_shapes")
    assert (await asked("turn", "more", "hello", *where)).err == (
        "keeve: verbs.more has turn(text, urgent), which cannot be called so: missing a required argument: 'urgent'; "
        "give it what it takes, or have a program do so: docs/client.md\n"
    )
    assert "verbs.plain has interrupt(), which" in (await asked("interrupt", "plain", "--turn", "1", *where)).err
    assert "it has calls, interrupt, steer" in (await asked("turn", "doing", "hello", *where)).err
    for id in ("plain", "doing"):
        assert "calls its own methods, as steer, with keeve.client" in (await asked("steer", id, "x", *where)).err
    assert (await asked("interrupt", "doing", *where)).out == 'its interrupt() gave {"ended": 1}\n'
    assert (await asked("interrupt", "plain", *where, "--json")).json == {
        "session": "plain",
        "turn": None,
        "answer": False,
    }


async def test_over_http_what_an_interrupt_gives_that_is_no_turn_is_its_answer() -> None:
    async with world(actors=[Doing, Plain]) as w:
        for kind, id in ((Plain, "plain"), (Doing, "doing")):
            await w.host.spawn(kind, id)
        answers = [
            (await w.owner.post(f"/api/v1/sessions/{id}/interrupt", json={})).json() for id in ("plain", "doing")
        ]
        assert answers == [
            {"session": "plain", "turn": None, "answer": False},
            {"session": "doing", "turn": None, "answer": {"ended": 1}},
        ]


@actor("verbs.derived", version=1)
class Derived(Session):
    """A conversation under a name of its own: its turns have numbers."""


@actor("verbs.counting", version=1)
class Counting(Actor):
    """Its `interrupt` gives a number, which is none of a turn."""

    def interrupt(self, turn: int | None = None) -> int | None:
        return turn


@actor("verbs.counting.untold", version=1)
class Untold(Counting):
    @read
    def status(self) -> None:
        raise ValueError("not today")


@actor("verbs.counting.barred", version=1)
class Barred(Counting):
    @read
    def status(self) -> None:
        raise Refused("not for you")


OWN = [Counting, Untold, Barred]
INTERRUPTED = [
    (Derived, [], "no turn was to end", {"turn": None}),
    *((kind, [], "its interrupt() gave null", {"turn": None, "answer": None}) for kind in OWN),
    *((kind, ["--turn", "3"], "its interrupt() gave 3", {"turn": 3, "answer": 3}) for kind in OWN),
]


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize(("kind", "words", "said", "told"), INTERRUPTED)
async def test_what_an_interrupt_gives_is_a_turn_where_the_session_states_its_turns(
    kind: type[Actor], words: list[str], said: str, told: Any, served: bool, store_folder: Path
) -> None:
    """Whatever its type is called."""
    command = ["interrupt", "own", *words, "--store", store_folder]
    if served:
        async with served_store(store_folder, actors=[kind]) as store:
            await store.host.spawn(kind, "own")
            texts = [await asked(*command), await asked(*command, "--json")]
    else:
        async with open_host(store_folder, actors=[kind]) as host:
            await host.spawn(kind, "own")
        command += ["--actors", __name__]
        texts = [await asked(*command), await asked(*command, "--json")]
    assert texts[0].out == f"{said}\n"
    assert texts[1].json == {"session": "own", **told}


@pytest.mark.parametrize("served", [False, True])
async def test_a_status_that_fails_is_told_as_that_and_not_as_a_type_that_states_no_turns(
    served: bool, store_folder: Path
) -> None:
    said = "cannot say whether it states its turns, since its status() fails (ValueError: not today)"
    if served:
        async with served_store(store_folder, actors=[Failing]) as store:
            ref = await store.host.spawn(Failing, "own")
            before = store.host.row("own").seq
            refused = await asked("queue", "own", "hello", "--store", store_folder)
            assert said in (await asked("chat", "own", "--store", store_folder)).err
            assert (await ref.calls, store.host.row("own").seq) == (0, before)
    else:
        async with open_host(store_folder, actors=[Failing]) as host:
            await host.spawn(Failing, "own")
        refused = await asked("queue", "own", "hello", "--store", store_folder, "--actors", "tests.keeve.own_shapes")
    assert said in refused.err
    assert "of a type that states no turns" not in refused.err
    assert "mend that, or say it with keeve turn" in refused.err


async def test_over_http_too() -> None:
    async with world(actors=[kind for kind, *_ in INTERRUPTED[:4]]) as w:
        for number, (kind, words, _, told) in enumerate(INTERRUPTED):
            await w.host.spawn(kind, f"s{number}")
            body = {"turn": 3} if words else {}
            answer = await w.owner.post(f"/api/v1/sessions/s{number}/interrupt", json=body)
            assert answer.json() == {"session": f"s{number}", **told}


async def test_a_call_that_does_not_fit_leaves_no_trace_of_its_request_id() -> None:
    """Who asks again with it, and with what fits, is heard."""
    async with world(actors=[TakesMore]) as w:
        ref = await w.host.spawn(TakesMore, "more")
        for _ in range(2):
            with pytest.raises(OtherParameters, match=re.escape("verbs.more has turn(text, urgent)")):
                await ref.turn("hello", request="r1")
        assert w.host.row("more").seq == 1
        await ref.turn("hello", True, request="r1")
        assert await ref.calls == 1


def _hidden(function: Any) -> Any:
    @wraps(function)
    def called(self: Any, *args: Any) -> Any:
        return function(self, *args, "given by the decorator")

    return called


@actor("verbs.decorated", version=1)
class Decorated(Actor):
    said: str = ""

    @_hidden
    def turn(self, text: Text, more: str) -> str:
        self.said = text + more
        return more


async def test_what_a_decorator_gives_a_method_nobody_has_to_give() -> None:
    async with world(actors=[Decorated]) as w:
        assert await (await w.host.spawn(Decorated, "d")).turn("hello") == "given by the decorator"


async def test_the_agent_of_the_page_is_driven_over_a_server_as_the_page_says(
    store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "tools.md").read_text()
    module = ModuleType("page_of_tools")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    there = vars(module)
    there.update(keeve=keeve, trio=trio)
    for example in DocTestParser().get_examples(page):
        if example.source.startswith(("import", "from", "@tool", "def", "tools = Tools(weather, area)", "@actor")):
            exec(example.source, there)
    [block] = re.findall(r"^```python\n(async with keeve\.client.*?)^```", page, re.DOTALL | re.MULTILINE)
    program = f"async def program():\n{indent(block.replace('./data', str(store_folder)), '    ')}"
    exec(program, there)
    driven = there["Driven"]
    devices = {"model": EchoModel(), "tools": there["tools"]}
    async with served_store(store_folder, actors=[driven], devices=devices) as served:
        agent = await served.host.spawn(driven, "d1", tools=there["tools"])
        await there["program"]()
        said = [each["content"] for each in await agent.messages if each["role"] == "user"]
        assert (said[1], sorted(said[::2])) == ("and be quick", ["first", "second"])


class Silent:
    """A model that never answers."""

    def __init__(self) -> None:
        self.began = trio.Event()

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        self.began.set()
        await trio.sleep_forever()


@actor("verbs.waiting", version=1)
class Waiting(Actor):
    """Its `status` gives the promise of the turn that runs, or of what comes after it."""

    running: Promise | None = None
    after: Promise | None = None

    def turn(self, text: Text, after: bool = False) -> Promise:
        self.running = self.device("model").complete([text])
        if after:
            self.after = self.device("model").complete([])
        return self.running

    def interrupt(self) -> None:
        assert self.running is not None
        cancel(self.running, Refused("ended"))

    @read
    def status(self) -> Promise | None:
        return self.running if self.after is None else self.after


@pytest.mark.parametrize("after", [False, True])
async def test_a_turn_is_ended_whatever_status_waits_for(after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.1)
    silent = Silent()
    async with memory_host(actors=[Waiting], devices={"model": silent}) as host:
        ref = await host.spawn(Waiting, "own")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(suppressed, ref.turn, "hello", after)
            await silent.began.wait()
            assert await end_turn(ref, "own", None) == {"session": "own", "turn": None, "answer": None}


class Ending:
    """A ref whose host ends as soon as it has interrupted a turn."""

    def __init__(self, ref: Any) -> None:
        self._ref = ref
        self.ended = False

    def __getattr__(self, name: str) -> Any:
        def ask(*args: Any, **keywords: Any) -> Any:
            if self.ended:
                raise NotRunning
            self.ended = name == "interrupt"
            return getattr(self._ref, name)(*args, **keywords)

        return ask


@pytest.mark.parametrize("kind", [Session, Derived])
async def test_a_turn_is_told_as_one_also_where_nothing_can_be_asked_after_it_has_ended(kind: type[Session]) -> None:
    async with memory_host(actors=[Session, Derived, Counting], devices={"model": Silent()}) as host:
        ref = await host.spawn(kind, "s1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(suppressed, ref.turn, "hello")
            async for _ in host.observe('(turn 1 "s1" . _)'):
                break
            assert await end_turn(Ending(ref), "s1", None) == {"session": "s1", "turn": 1}
        assert await end_turn(Ending(ref), "s1", None) == {"session": "s1", "turn": None}
        counting = await host.spawn(Counting, "own")
        assert await end_turn(Ending(counting), "own", 3) == {"session": "own", "turn": 3, "answer": 3}


async def suppressed(call: Any, *args: Any) -> None:
    with suppress(KeeveError):
        await call(*args)
