"""Answers as they come: one stream for a whole conversation."""

from __future__ import annotations

import io
from collections.abc import Callable
from math import inf

import pytest

from keeve.cli.answers import AnswerStream, TurnSpan
from keeve.cli.output import Output
from vat.host import pieces
from vat.host.pieces import Piece


class Screen:
    """A stream, and what it has shown."""

    def __init__(self) -> None:
        self._out = io.StringIO()
        self.stream = AnswerStream(Output(out=self._out, err=self._out), "s1", lambda: None)

    def told(self, effect: str, *texts: str, after: int, attempt: int = 1, session: str = "s1") -> None:
        """An effect that began behind that position of the log tells this."""
        for text in texts:
            value = {"attempt": attempt, "delta": {"content": text}}
            self.stream.hear(Piece(session, effect, "model", "complete", value, after))

    @property
    def seen(self) -> str:
        return self._out.getvalue()


def ran(before: float, over: float = inf) -> Callable[[], TurnSpan]:
    return lambda: (before, over)


@pytest.fixture
def screen() -> Screen:
    return Screen()


def test_what_the_next_turn_says_before_the_last_one_is_shown_is_kept_for_it(screen: Screen) -> None:
    screen.told("a", "one ", "two", after=5)
    screen.told("b", "three ", after=9)  # the turn of `a` was over at 8, where that of `b` began
    screen.stream.show(ran(3, 8))
    screen.stream.end("one two")
    assert screen.seen == "one two\n"
    screen.told("b", "four", after=9)
    screen.stream.show(ran(8, 12))
    screen.stream.end("three four")
    assert screen.seen == "one two\nthree four\n"


def test_what_a_turn_said_that_is_shown_no_more_is_void(screen: Screen) -> None:
    screen.told("a", "well, ", after=5)
    screen.told("b", "fine", after=9)
    screen.stream.show(ran(8))
    screen.stream.end("fine")
    assert screen.seen == "fine\n"


def test_another_answer_or_attempt_begins_on_a_line_of_its_own(screen: Screen) -> None:
    screen.told("a", "look", after=5)
    screen.told("b", "found", after=7)
    screen.told("b", "it is found", after=7, attempt=2)
    screen.stream.show(ran(3))
    screen.stream.end("it is found")
    assert screen.seen == "look\nfound\nit is found\n"


@pytest.mark.parametrize(
    ("told", "seen"),
    [("", "one and\n"), ("one and two", "one and two\none and\n"), ("one", "one and\n"), ("one and", "one and\n")],
)
def test_an_answer_that_was_not_streamed_as_it_is_is_shown_whole(screen: Screen, told: str, seen: str) -> None:
    screen.told("a", told, after=5)
    screen.stream.show(ran(3))
    screen.stream.end("one and")
    assert screen.seen == seen  # of one whose last pieces did not come, what is missing


def test_of_an_answer_that_was_not_all_heard_no_more_is_shown_until_the_end(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "WAITING", 2)
    screen.told("a", "one", after=5)
    screen.stream.show(ran(3))
    screen.told("a", "two ", "three ", "four", after=5)
    screen.stream.show(ran(3))
    screen.stream.end("one two three four")
    note = "(some of what was said was not heard; the answer follows when it is whole)"
    assert screen.seen == f"one\n{note}\none two three four\n"
    screen.told("b", "the next", after=9)
    screen.stream.show(ran(8))
    assert screen.seen.endswith("the next")


def test_what_other_sessions_say_is_not_shown(screen: Screen) -> None:
    screen.told("a", "hello", after=5, session="s2")
    screen.stream.show(ran(3))
    assert screen.seen == ""
