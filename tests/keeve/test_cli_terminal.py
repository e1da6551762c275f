"""`keeve chat` at a terminal: a real one, made for the test."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tests.cli_runner import PROGRAM, environment, keeve
from tests.cli_worlds import leave_a_turn_waiting
from tests.model_server import Answer, chunk, held, model_server, stream, streamed

OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
"""What makes a terminal the one that Ctrl-C comes from."""
CTRL_C, CTRL_D = b"\x03", b"\x04"
PATIENCE = 60.0
"""Seconds until a test gives up waiting for what should come at once."""


class Person:
    """Somebody who types into a terminal, and reads what is shown there."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.terminal = terminal
        self.raw = ""
        self.seen = ""
        """The same without what only styles it."""
        self._read = 0

    def types(self, keys: bytes | str) -> None:
        os.write(self.terminal, keys if isinstance(keys, bytes) else f"{keys}\n".encode())

    def presses(self, key: bytes, until: str) -> None:
        """Press a key, and again if nothing comes of it: one in the moment in which a prompt appears can be lost."""
        for _ in range(10):
            self.types(key)
            end = time.monotonic() + PATIENCE / 10
            while until not in self.seen[self._read :] and time.monotonic() < end:
                self._look()
            if until in self.seen[self._read :]:
                break
        self.sees(until)

    def sees(self, text: str) -> None:
        """Wait until that is shown, after what was waited for before."""
        self._wait(lambda: text in self.seen[self._read :], text)
        self._read = self.seen.index(text, self._read) + len(text)

    def leaves(self) -> int:
        """Wait for the end; gives the exit code."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self._look()
        self._look()
        assert self.process.returncode is not None, self.seen
        return self.process.returncode

    def _wait(self, until: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not until():
            assert time.monotonic() < end, f"{what!r} was not shown, but: {self.seen!r}"
            assert self._look() or self.process.poll() is None, f"it ended without {what!r}: {self.seen!r}"

    def _look(self) -> bool:
        ready, _, _ = select.select([self.terminal], [], [], 0.05)
        if not ready:
            return False
        try:
            data = os.read(self.terminal, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.raw += data.decode(errors="replace")
        self.seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw).replace("\r\n", "\n")
        return bool(data)


@contextmanager
def person(*words: str | Path, env: Mapping[str, str] | None = None) -> Iterator[Person]:
    """`keeve` in a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", f"{OWN_TERMINAL}; {PROGRAM[-1]}", *map(str, words)],
        env=environment({"TERM": "xterm", "NO_COLOR": "1", "INPUTRC": "/dev/null", **(env or {})}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Person(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_a_person_is_greeted_answered_and_told_how_to_come_back(store: Path) -> None:
    with person("chat", "s1", "--store", store) as someone:
        someone.sees("s1 with the echo model")
        someone.sees("Ctrl-D ends")
        someone.sees("> ")
        someone.types("hello")
        someone.sees("hello")  # as it is typed
        someone.sees("hello")  # and the answer
        someone.sees("> ")
        someone.types(CTRL_D)
        someone.sees(f"resume it with: keeve chat --store {store} s1")
        assert someone.leaves() == 0
    assert keeve("show", "s1", "--store", store, "--json").json["turns"][0]["input"] == "hello"


def test_ctrl_c_at_the_prompt_ends_it_in_order(store: Path) -> None:
    with person("chat", "s1", "--store", store) as someone:
        someone.sees("> ")
        someone.types("hello")
        someone.sees("hello")
        someone.sees("hello")
        someone.sees("> ")
        someone.presses(CTRL_C, "resume it with")
        assert someone.leaves() == 0
        assert "Traceback" not in someone.seen
    assert keeve("verify", "--store", store).code == 0


def test_who_comes_back_sees_the_last_exchange_and_finds_it_with_up(store: Path) -> None:
    keeve("chat", "s1", "--store", store, input="the first\nthe second\n")
    with person("chat", "s1", "--store", store) as someone:
        someone.sees("> the second\nthe second\n")
        someone.sees("> ")
        someone.types(b"\x1b[A\x1b[A\r")
        someone.sees("\nthe first\n")
        someone.sees("> ")
        someone.types(CTRL_D)
        assert someone.leaves() == 0
    assert keeve("show", "s1", "--store", store, "--json").json["turns"][2]["input"] == "the first"


def test_a_line_that_says_nothing_is_not_sent(store: Path) -> None:
    with person("chat", "s1", "--store", store) as someone:
        someone.sees("> ")
        someone.types("   ")
        someone.sees("> ")
        someone.types(CTRL_D)
        assert someone.leaves() == 0
    assert keeve("ls", "--store", store, "--json").json["sessions"] == []


async def test_an_answer_is_shown_as_it_comes_and_once(store: Path) -> None:
    def talk(url: str) -> str:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("small at http://127.0.0.1")
            someone.sees("> ")
            someone.types("hi")
            someone.sees("one two three\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0
            return someone.seen

    async with model_server(streamed("one ", "two ", "three")) as server:
        seen = await trio.to_thread.run_sync(talk, server.url)
    assert seen.count("three") == 1


async def test_escape_sequences_of_a_model_do_not_reach_the_terminal(store: Path) -> None:
    def talk(url: str) -> str:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("> ")
            someone.types("hi")
            someone.sees("safe and sound\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0
            return someone.raw

    answer = streamed("safe\x1b", "]0;owned\x07 and\x1b[", "2J sound")
    async with model_server(answer) as server:
        seen = await trio.to_thread.run_sync(talk, server.url)
    assert "owned" not in seen
    assert "\x1b[2J" not in seen


async def test_ctrl_c_ends_an_answer_that_is_coming_and_the_talk_goes_on(store: Path) -> None:
    """Invariant 19: that turn and no other."""

    def talk(url: str) -> None:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("> ")
            someone.types("go on and on")
            someone.sees("and on")
            someone.sees("well, ")
            someone.types(CTRL_C)
            someone.sees("(interrupted)")
            someone.sees("> ")
            someone.types("and now?")
            someone.sees("fine\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0

    endless = stream(chunk({"role": "assistant", "content": "well, "}), done=False, silent=True)
    async with model_server(endless, streamed("fine")) as server:
        await trio.to_thread.run_sync(talk, server.url)
    turns = await trio.to_thread.run_sync(lambda: keeve("show", "s1", "--store", store, "--json").json["turns"])
    assert [(turn["input"], turn["state"]) for turn in turns] == [("go on and on", "interrupted"), ("and now?", "done")]


async def test_a_turn_that_fails_is_said_and_the_talk_goes_on(store: Path) -> None:
    def talk(url: str) -> None:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("> ")
            someone.types("hi")
            someone.sees("the model's answer makes no sense")
            someone.sees("> ")
            someone.types("hi again")
            someone.sees("well\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0
            assert "Traceback" not in someone.seen

    nonsense = Answer(headers={"Content-Type": "text/html"}, pieces=(b"<html>",))
    async with model_server(nonsense, streamed("well")) as server:
        await trio.to_thread.run_sync(talk, server.url)


def test_a_conversation_whose_process_is_killed_goes_on_where_it_was(store: Path) -> None:
    with person("chat", "s1", "--store", store) as someone:
        someone.sees("> ")
        someone.types("hello")
        someone.sees("hello\nhello\n")
        someone.process.send_signal(signal.SIGKILL)
        assert someone.leaves() == -signal.SIGKILL
    assert keeve("chat", "s1", "--store", store, input="again\n").out == "again\n"
    assert [turn["input"] for turn in keeve("show", "s1", "--store", store, "--json").json["turns"]] == [
        "hello",
        "again",
    ]


def test_lists_have_colours_at_a_terminal_and_nowhere_else(store: Path) -> None:
    keeve("chat", "s1", "--store", store, input="hello\n")
    with person("ls", "--store", store, env={"NO_COLOR": ""}) as someone:
        assert someone.leaves() == 0
        assert re.search(r"\x1b\[1m", someone.raw)
    assert "\x1b" not in keeve("ls", "--store", store).out


def call(id: str, name: str = "look") -> dict[str, object]:
    """A tool call, as a model streams it."""
    return {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


async def test_a_line_that_is_typed_while_an_answer_comes_joins_the_turn(store: Path) -> None:
    def talk(url: str) -> None:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("> ")
            someone.types("look")
            someone.sees("well, ")
            someone.types("not there")
            someone.sees("(this joins at the next step)")
            trio.from_thread.run_sync(server.go_on.set)
            someone.sees("found it\n")
            someone.sees("> ")
            someone.types("and now?")
            someone.sees("fine\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0

    first = stream(
        chunk({"role": "assistant", "content": "well, "}), chunk({"tool_calls": [call("a")]}), chunk({}, "tool_calls")
    )
    async with model_server(held(first, 1), streamed("found it"), streamed("fine")) as server:
        await trio.to_thread.run_sync(talk, server.url)
        asked = [[message["content"] for message in request.body["messages"]] for request in server.requests]
    assert asked[1][0] == "look"
    assert asked[1][3] == "not there"
    turns = await trio.to_thread.run_sync(lambda: keeve("show", "s1", "--store", store, "--json").json["turns"])
    assert [(turn["input"], turn["output"]) for turn in turns] == [("look", "found it"), ("and now?", "fine")]


async def test_a_line_that_comes_too_late_to_join_is_answered_next(store: Path) -> None:
    def talk(url: str) -> None:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("> ")
            someone.types("hi")
            someone.sees("well, ")
            someone.types("and more")
            someone.sees("(this joins at the next step)")
            trio.from_thread.run_sync(server.go_on.set)
            someone.sees("> and more\n")
            someone.sees("more it is\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0

    async with model_server(held(streamed("well, ", "hello"), 2), streamed("more it is")) as server:
        await trio.to_thread.run_sync(talk, server.url)
    turns = await trio.to_thread.run_sync(lambda: keeve("show", "s1", "--store", store, "--json").json["turns"])
    assert [(turn["input"], turn["output"]) for turn in turns] == [("hi", "well, hello"), ("and more", "more it is")]


async def test_what_is_typed_is_answered_when_the_turn_before_it_is_interrupted(store: Path) -> None:
    """A turn that was under way is ended by Ctrl-C; the line that was typed meanwhile at the prompt is not lost."""

    def talk(url: str) -> None:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("> ")
            someone.types("go on and on")
            someone.sees("well, ")
            someone.types("and more")
            someone.sees("(this joins at the next step)")
            someone.types(CTRL_C)
            someone.sees("(interrupted)")
            someone.sees("> and more\n")
            someone.sees("more it is\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0

    endless = stream(chunk({"role": "assistant", "content": "well, "}), done=False, silent=True)
    async with model_server(endless, streamed("more it is")) as server:
        await trio.to_thread.run_sync(talk, server.url)
    turns = await trio.to_thread.run_sync(lambda: keeve("show", "s1", "--store", store, "--json").json["turns"])
    assert [(turn["input"], turn["state"]) for turn in turns] == [("go on and on", "interrupted"), ("and more", "done")]


async def test_ctrl_c_while_an_old_turn_goes_on_ends_that_one_and_the_line_is_answered(store: Path) -> None:
    """Invariant 19."""

    def talk(url: str) -> None:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": url}
        with person("chat", "s1", "--store", store, env=env) as someone:
            someone.sees("1 call of unknown outcome")
            someone.sees("> ")
            someone.types("never mind")
            trio.from_thread.run(server.asked, 1)
            someone.types(CTRL_C)
            someone.sees("(interrupted)")
            someone.sees("as you like\n")
            someone.sees("> ")
            someone.types(CTRL_D)
            assert someone.leaves() == 0

    await leave_a_turn_waiting(store, "s1")
    endless = stream(chunk({"role": "assistant", "content": "well, "}), done=False, silent=True)
    async with model_server(endless, streamed("as you like")) as server:
        await trio.to_thread.run_sync(talk, server.url)
    turns = await trio.to_thread.run_sync(lambda: keeve("show", "s1", "--store", store, "--json").json["turns"])
    assert [turn["state"] for turn in turns] == ["interrupted", "done"]
    assert turns[1]["input"] == "never mind"
