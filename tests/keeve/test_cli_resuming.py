"""`keeve chat` with a session whose turn was under way when its host ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from actors.session import Session
from keeve import open_host
from tests.cli_runner import keeve
from tests.cli_worlds import SlowModel, leave_a_turn_waiting
from tests.model_server import model_server, whole


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def leave_turns_open(store: Path, *inputs: str) -> None:
    model = SlowModel()
    async with open_host(store, devices={"model": model}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")
        for input in inputs:
            nursery.start_soon(s.turn, input)
            async for event in host.observe("(turn ? ? #:input ?input . _)", after="start"):
                if event.captures["input"] == input:
                    break
        await model.asked.wait()
        nursery.cancel_scope.cancel()


async def chat(store: Path, *words: str, input: str = "", answers: tuple[str, ...] = (), session: str = "s1") -> Any:
    """Chat with a model that gives these answers, or with the echo if there are none."""
    async with model_server(*(whole({"role": "assistant", "content": answer}) for answer in answers)) as server:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": server.url} if answers else {}
        return await trio.to_thread.run_sync(
            lambda: keeve("chat", session, "--store", store, *words, input=input, env=env)
        )


async def test_the_answers_to_earlier_inputs_come_first_each_on_its_line(store: Path) -> None:
    await leave_turns_open(store, "first", "second")
    said = await chat(store, input="third\n", answers=("one", "two", "three"))
    assert said[:2] == (0, "one\ntwo\nthree\n")
    assert "> first\n> second\n" in said.err


async def test_a_turn_goes_on_although_nothing_is_said(store: Path) -> None:
    await leave_turns_open(store, "first")
    assert (await chat(store, answers=("one",)))[:2] == (0, "one\n")
    assert keeve("show", "s1", "--store", store, "--json").json["turns"][0]["state"] == "done"
    assert (await chat(store))[:2] == (0, "")


async def test_with_json_an_earlier_turn_is_a_line_like_any_other(store: Path) -> None:
    await leave_turns_open(store, "first")
    said = await chat(store, "--json", input="second\n", answers=("one", "two"))
    assert [line["output"] for line in said.lines] == ["one", "two"]


async def test_the_echo_leaves_a_question_that_was_put_to_a_model_and_says_so(store: Path) -> None:
    await leave_turns_open(store, "first")
    said = await chat(store, input="second\n")
    assert said[:2] == (1, "")
    assert "model.complete waits for the device model, which is not here: set KEEVE_MODEL" in said.err
    assert keeve("show", "s1", "--store", store, "--json").json["turns"][0]["state"] == "open"


async def test_an_earlier_turn_that_fails_is_told_of_and_what_is_said_is_answered(store: Path) -> None:
    await leave_turns_open(store, "first")
    assert keeve("fork", "s1", "--into", "s2", "--store", store).code == 0
    said = await trio.to_thread.run_sync(lambda: keeve("chat", "s2", "--store", store, input="second\n"))
    assert said[:2] == (0, "second\n")
    assert "Forked: " in said.err


async def test_a_call_of_unknown_outcome_waits_until_something_is_said(store: Path) -> None:
    await leave_a_turn_waiting(store)
    said = await chat(store)
    assert said[:2] == (0, "")
    assert "1 call of unknown outcome (tools.run): see `keeve effects`" in said.err
    (effect,) = keeve("effects", "--store", store, "--json").json["effects"]
    assert keeve("resolve", effect["id"], "--value", '"it was sent"', "--store", store).code == 0
    said = await chat(store, answers=("so it was",))
    assert "of unknown outcome" not in said.err
    assert said.out == "so it was\n"


async def test_what_is_said_breaks_a_call_of_unknown_outcome_and_the_model_is_told(store: Path) -> None:
    """Invariant 13: it is not run again by itself, whatever is said."""
    await leave_a_turn_waiting(store)
    said = await chat(store, input="and?\n")
    earlier, answer, _ = said.out.split("\n")
    assert earlier.startswith("The outcome of this call is unknown")
    assert answer == "and?"
    assert keeve("effects", "--store", store, "--json").json["effects"] == []
    assert keeve("log", "(tool-unknown . _)", "--store", store).out.count("tool-unknown") == 1
