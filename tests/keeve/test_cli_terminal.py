"""`keeve chat` at a terminal: a real one, made for the test."""

from __future__ import annotations

import re
import signal
import termios
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.cli_runner import keeve
from tests.cli_worlds import leave_a_turn_waiting
from tests.model_server import Answer, chunk, failing, held, stream, streamed
from tests.terminals import CTRL_C, CTRL_D, Person, Service, chatting, person, talk

ENDLESS = stream(chunk({"role": "assistant", "content": "well, "}), done=False, silent=True)
"""An answer that begins, and never ends."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


def turns(store: Path, *what: str) -> list[tuple[Any, ...]]:
    """These of each turn of the session, as it was recorded."""
    return [
        tuple(turn[each] for each in what) for turn in keeve("show", "s1", "--store", store, "--json").json["turns"]
    ]


async def turns_of(store: Path, *what: str) -> list[tuple[Any, ...]]:
    return await trio.to_thread.run_sync(turns, store, *what)


def test_a_person_is_greeted_answered_and_told_how_to_come_back(store: Path) -> None:
    with chatting(store) as someone:
        someone.types("hello")
        someone.sees("hello", "hello")  # as it is typed, and the answer
        someone.sees("> ")
        someone.types(CTRL_D)
        assert someone.leaves() == 0
        assert termios.tcgetattr(someone.terminal)[3] & termios.ECHO  # the terminal is as it was
    assert "s1 with the echo model" in someone.seen
    assert f"resume it with: keeve chat --store {store} s1" in someone.seen
    assert turns(store, "input") == [("hello",)]


def test_ctrl_c_at_the_prompt_ends_it_in_order(store: Path) -> None:
    with person("chat", "s1", "--store", store) as someone:
        someone.sees("> ")
        someone.types("hello")
        someone.sees("hello", "hello", "> ")
        someone.presses(CTRL_C, "resume it with")
        assert someone.leaves() == 0
        assert "Traceback" not in someone.seen
    assert keeve("verify", "--store", store).code == 0


def test_who_comes_back_sees_the_last_exchange_and_finds_it_with_up(store: Path) -> None:
    keeve("chat", "s1", "--store", store, input="the first\nthe second\n")
    with chatting(store) as someone:
        someone.sees("the second\nthe second\n", "> ")
        someone.types(b"\x1b[A\x1b[A\r")
        someone.sees("\nthe first\n")
    assert turns(store, "input")[2] == ("the first",)


def test_a_line_that_says_nothing_is_not_sent(store: Path) -> None:
    with chatting(store) as someone:
        someone.types("   ")
    assert keeve("ls", "--store", store, "--json").json["sessions"] == []


def test_a_conversation_whose_process_is_killed_goes_on_where_it_was(store: Path) -> None:
    with person("chat", "s1", "--store", store) as someone:
        someone.sees("> ")
        someone.types("hello")
        someone.sees("hello\nhello\n")
        someone.process.send_signal(signal.SIGKILL)
        assert someone.leaves() == -signal.SIGKILL
    assert keeve("chat", "s1", "--store", store, input="again\n").out == "again\n"
    assert turns(store, "input") == [("hello",), ("again",)]


def test_lists_have_colours_at_a_terminal_and_nowhere_else(store: Path) -> None:
    keeve("chat", "s1", "--store", store, input="hello\n")
    with person("ls", "--store", store, env={"NO_COLOR": ""}) as someone:
        assert someone.leaves() == 0
        assert re.search(r"\x1b\[1m", someone.raw)
    assert "\x1b" not in keeve("ls", "--store", store).out


async def test_an_answer_is_shown_as_it_comes_and_once(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("one two three\n")

    someone, _ = await talk(store, says, streamed("one ", "two ", "three"))
    assert "small at http://127.0.0.1" in someone.seen
    assert someone.seen.count("three") == 1


async def test_escape_sequences_of_a_model_do_not_reach_the_terminal(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("safe and sound\n")

    someone, _ = await talk(store, says, streamed("safe\x1b", "]0;owned\x07 and\x1b[", "2J sound"))
    assert "owned" not in someone.raw
    assert "\x1b[2J" not in someone.raw


async def test_a_turn_that_fails_is_said_and_the_talk_goes_on(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("the model's answer makes no sense", "> ")
        someone.types("hi again")
        someone.sees("well\n")

    await talk(store, says, Answer(headers={"Content-Type": "text/html"}, pieces=(b"<html>",)), streamed("well"))


# Ctrl-C.


async def test_ctrl_c_ends_an_answer_that_is_coming_and_the_talk_goes_on(store: Path) -> None:
    """Invariant 19: that turn and no other."""

    def says(someone: Person, service: Service) -> None:
        someone.types("go on and on")
        someone.sees("and on", "well, ")
        someone.types(CTRL_C)
        someone.sees("(interrupted)", "> ")
        someone.types("and now?")
        someone.sees("fine\n")

    await talk(store, says, ENDLESS, streamed("fine"))
    assert await turns_of(store, "input", "state") == [("go on and on", "interrupted"), ("and now?", "done")]


async def test_ctrl_c_while_an_old_turn_goes_on_ends_that_one_and_the_line_is_answered(store: Path) -> None:
    """Invariant 19."""

    def says(someone: Person, service: Service) -> None:
        someone.sees("1 call of unknown outcome", "> ")
        someone.types("never mind")
        service.was_asked(1)
        someone.types(CTRL_C)
        someone.sees("(interrupted)", "as you like\n")

    await leave_a_turn_waiting(store, "s1")
    await talk(store, says, ENDLESS, streamed("as you like"))
    assert await turns_of(store, "input", "state") == [("send it", "interrupted"), ("never mind", "done")]


async def test_what_is_typed_is_answered_when_the_turn_before_it_is_interrupted(store: Path) -> None:
    """A turn that was under way is ended by Ctrl-C; the line that was typed meanwhile at the prompt is not lost."""

    def says(someone: Person, service: Service) -> None:
        someone.types("go on and on")
        someone.sees("well, ")
        someone.types("and more")
        someone.sees("(this joins at the next step)")
        someone.types(CTRL_C)
        someone.sees("(interrupted)", "> and more\n", "more it is\n")

    await talk(store, says, ENDLESS, streamed("more it is"))
    assert await turns_of(store, "input", "state") == [("go on and on", "interrupted"), ("and more", "done")]


# Typing while an answer comes.


async def test_a_line_that_is_typed_while_an_answer_comes_joins_the_turn(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("look")
        someone.sees("well, ")
        someone.types("not there")
        someone.sees("(this joins at the next step)")
        service.goes_on()
        someone.sees("found it\n", "> ")
        someone.types("and now?")
        someone.sees("fine\n")

    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    first = stream(
        chunk({"role": "assistant", "content": "well, "}), chunk({"tool_calls": [call]}), chunk({}, "tool_calls")
    )
    _, service = await talk(store, says, held(first, 1), streamed("found it"), streamed("fine"))
    messages = service.requests[1].body["messages"]
    assert (messages[0]["content"], messages[3]["content"]) == ("look", "not there")
    assert await turns_of(store, "input", "output") == [("look", "found it"), ("and now?", "fine")]


async def test_a_line_that_comes_too_late_to_join_is_answered_next_and_each_answer_is_shown_once(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("well, ")
        someone.types("and more")
        someone.sees("(this joins at the next step)")
        service.goes_on()
        someone.sees("hello\n> and more\nmore it is\n")

    someone, _ = await talk(store, says, held(streamed("well, ", "hello"), 2), streamed("more ", "it is"))
    assert (someone.seen.count("hello"), someone.seen.count("more it is")) == (1, 1)
    assert await turns_of(store, "input", "output") == [("hi", "well, hello"), ("and more", "more it is")]


async def test_an_answer_waits_while_a_line_is_typed_which_stands_alone(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("\nwell, ")
        someone.types(b"and mo")
        someone.sees("\n> and mo")
        service.goes_on()
        while turns(store, "state") != [("done",)]:
            pass  # the answer is there, whole
        someone.types(b"R\x7fre\n")
        someone.sees("\nhello\n> and more\nmore it is\n")

    someone, _ = await talk(store, says, held(streamed("well, ", "hello"), 2), streamed("more it is"))
    [typed] = re.findall(r"> and mo.*\n", someone.seen)[:1]
    assert "hello" not in typed
    assert "(this joins" not in someone.seen  # it was said when the turn was over, and joins none
    assert await turns_of(store, "input") == [("hi",), ("and more",)]


async def test_ctrl_d_while_an_answer_comes_leaves_after_it(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("well, ")
        someone.types(CTRL_D)
        someone.sees("> ")
        service.goes_on()
        someone.sees("hello\n", "resume it with")
        assert someone.leaves() == 0

    await talk(store, says, held(streamed("well, ", "hello"), 2))
    assert await turns_of(store, "state") == [("done",)]


# What has several lines.


def test_a_line_that_ends_with_a_backslash_goes_on_with_the_next(store: Path) -> None:
    with chatting(store) as someone:
        assert "\\ at the end of a line" in someone.seen
        someone.types("one\\")
        someone.sees("\n. ")
        someone.types("two\\")
        someone.sees("\n. ")
        someone.types("three")
        someone.sees("\none\ntwo\nthree\n")
    assert turns(store, "input") == [("one\ntwo\nthree",)]


def test_lines_that_are_pasted_are_one_turn(store: Path) -> None:
    with chatting(store) as someone:
        someone.types(b"\x1b[200~one\rtwo\rthree\x1b[201~\r")
        someone.sees("\none\ntwo\nthree\n")
    assert turns(store, "input") == [("one\ntwo\nthree",)]


# A model that is busy.


async def test_it_is_said_that_a_model_is_asked_again_and_why(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("(the model is busy or failing (429): not today", "it is asked again)", "well\n")

    await talk(store, says, failing(429), streamed("well"))


async def test_a_key_that_is_refused_is_named_by_the_variable_that_names_it(store: Path) -> None:
    def says(someone: Person, service: Service) -> None:
        someone.types("hi")
        someone.sees("the model refused (401)", "KEEVE_MODEL_KEY")

    await talk(store, says, failing(401))
