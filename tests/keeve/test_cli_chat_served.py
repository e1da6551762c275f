"""`keeve chat` with a session that a server has: the same words and keys, over a server that is started again too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from actors.chat import Content
from actors.models import ChatModel, EchoModel
from actors.session import Session
from keeve import actor
from keeve.cli import conversation
from keeve.looking import LOOKS, say_word
from tests.cli_worlds import Caller, SlowModel, leave_a_turn_waiting, leave_asking
from tests.model_server import Answer, chunk, held, model_server, stream, streamed
from tests.served_stores import ServedStore, asked, served_store
from tests.terminals import CTRL_C, CTRL_D, Person, Service, person


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def turns(there: ServedStore, *what: str) -> list[tuple[Any, ...]]:
    shown = (await asked("show", "s1", "--store", there.folder, "--json")).json["turns"]
    return [tuple(turn[each] for each in what) for turn in shown]


async def test_lines_are_answered_by_the_server_which_makes_the_session(store: Path) -> None:
    async with served_store(store) as there:
        said = await asked("chat", "s1", "--store", store, input="hello\nagain\n")
        assert said == (0, "hello\nagain\n", f"resume it with: keeve chat --store {store} s1\n")
        env = {"KEEVE_TOKEN": there.token}
        said = await asked("chat", "s1", "--json", "--server", there.url, input="and on\n", env=env)
        assert said.lines == [{"session": "s1", "input": "and on", "output": "and on"}]
        assert f"keeve chat --server {there.url} s1" in said.err
        new = await asked("chat", "--server", there.socket, input="hi\n")
        assert (new.code, new.out, new.err.startswith("session s-")) == (0, "hi\n", True)
        assert await turns(there, "input", "by") == [("hello", "owner"), ("again", "owner"), ("and on", "owner")]


async def test_a_session_that_cannot_be_talked_to_is_named_before_anything_is_said(store: Path) -> None:
    async with served_store(store, actors=[Caller]) as there:
        await there.host.spawn(Caller, "c1")
        said = await asked("chat", "c1", "--server", there.socket, input="hello\n")
        assert (said.code, said.out) == (2, "")
        assert "session 'c1' is a test.caller" in said.err


async def test_a_conversation_goes_on_over_a_server_that_is_started_again(store: Path) -> None:
    said: list[Any] = []
    over = trio.Event()

    async def talk() -> None:
        said.append(await asked("chat", "s1", "--store", store, input="hello\nagain\n"))
        over.set()

    async with trio.open_nursery() as nursery:
        slow = SlowModel()
        async with served_store(store, devices={"model": slow}):
            nursery.start_soon(talk)
            await slow.asked.wait()
        async with served_store(store, devices={"model": EchoModel()}) as there:
            await over.wait()
            assert said[0][:2] == (0, "hello\nagain\n")
            assert await turns(there, "input", "output") == [("hello", "hello"), ("again", "again")]


async def test_what_a_person_has_to_approve_is_told_and_waited_for(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, look, often = 0, LOOKS["waits"], trio.Event()

    async def counted(*args: Any, **how: Any) -> dict[str, Any]:
        nonlocal looked
        looked += 1
        if looked == 5:
            often.set()
        return await look(*args, **how)

    monkeypatch.setitem(cast(Any, LOOKS), "waits", counted)
    monkeypatch.setattr(conversation, "LOOK", 0.01)
    await leave_asking(store)
    async with served_store(store) as there, trio.open_nursery() as nursery:
        said: list[Any] = []

        async def talk() -> None:
            said.append(await asked("chat", "s1", "--server", there.socket))
            nursery.cancel_scope.cancel()

        nursery.start_soon(talk)
        await often.wait()
        await say_word(there.host, "s1", "call_1", "not now")
    assert said[0].code == 0
    assert "(a person has to approve of send: keeve approve s1 call_1 (or keeve refuse, with a reason))" in said[0].err


async def test_what_is_said_lets_go_of_what_nobody_knows(store: Path) -> None:
    await leave_a_turn_waiting(store)
    async with served_store(store, unknown="hold") as there:
        said = await asked("chat", "s1", "--store", store, input="and?\n")
        assert "1 call of unknown outcome (tools.run)" in said.err
        assert (said.code, said.out.splitlines()[-1]) == (0, "and?")
        assert await turns(there, "input", "unknown_calls") == [("send it", 1), ("and?", 0)]


@actor("test.stubborn", version=1)
class Stubborn(Session):
    """A conversation that takes nothing while it answers."""

    def steer(self, input: Content) -> Any:
        raise ValueError("one thing after another")


async def test_a_line_that_is_refused_is_not_said_to_join_and_why_is_said(store: Path) -> None:
    joins: list[Any] = []

    def says(someone: Person, service: Service) -> None:
        someone.types("look")
        someone.sees("well, ")
        someone.types("not there")
        someone.sees("not there\n")
        service.goes_on()
        someone.sees("here it is\n", "ValueError: one thing after another\n", "> ")
        someone.types("and now?")
        someone.sees("fine\n", "> ")
        assert "(this joins" not in someone.seen

    came = await at_a_terminal(
        store, says, joins, held(streamed("well, ", "here it is"), 2), streamed("fine"), kind=Stubborn
    )
    assert came == [("look", "well, here it is", "done"), ("and now?", "fine", "done")]


async def at_a_terminal(
    store: Path,
    says: Callable[[Person, Service], None],
    joins: list[Any],
    *answers: Answer,
    kind: type[Session] = Session,
) -> list[Any]:
    """What turns came of this, said in a conversation with a server whose model gives these answers.

    `joins` is given an observation of what joins a turn.
    """

    def talk() -> None:
        with person("chat", "s1", "--store", store) as someone:
            someone.sees("with the server of", "> ")
            says(someone, service)
            someone.types(CTRL_D)
            assert someone.leaves() == 0
            assert "Traceback" not in someone.seen

    async with (
        model_server(*answers) as model,
        served_store(store, actors=[kind], devices={"model": ChatModel(model.url, "m")}) as at,
    ):
        await at.host.spawn(kind, "s1")
        joins.append(at.host.observe("(steer . _)"))
        service = Service(model)
        await trio.to_thread.run_sync(talk)
        return await turns(at, "input", "output", "state")


async def test_keys_do_at_a_server_what_they_do_at_a_host(store: Path) -> None:
    """Invariant 19: an answer is shown as it comes, what is typed joins it, and Ctrl-C ends that turn and no other."""
    joins: list[Any] = []

    def says(someone: Person, service: Service) -> None:
        someone.types("look")
        someone.sees("well, ")
        someone.types("not there")
        someone.sees("(this joins at the next step)")
        trio.from_thread.run(anext, joins[0])
        service.goes_on()
        someone.sees("found it\n", "> ")
        assert someone.seen.count("found it") == 1
        someone.types("go on and on")
        someone.sees("endless ")
        someone.types(CTRL_C)
        someone.sees("(interrupted)", "> ")

    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    first = stream(
        chunk({"role": "assistant", "content": "well, "}), chunk({"tool_calls": [call]}), chunk({}, "tool_calls")
    )
    endless = stream(chunk({"role": "assistant", "content": "endless "}), done=False, silent=True)
    came = await at_a_terminal(store, says, joins, held(first, 1), streamed("found ", "it"), endless)
    assert came == [("look", "found it", "done"), ("go on and on", None, "interrupted")]
