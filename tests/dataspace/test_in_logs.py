"""Errors in lines of logs, and their traces, without what somebody said."""

from __future__ import annotations

import traceback

import pytest

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log, traced

CANARY = "CANARY-1234"


class Quoting(KeeveError):
    """It says what somebody said."""


class Plain(KeeveError, quotes=False):
    """It quotes nothing."""


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """The error as it was raised, of that cause; or else while its context was handled."""
    try:
        raise error from cause
    except type(error) as found:
        return found


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(traced(error)))


def test_of_an_error_of_ours_there_is_the_class_unless_it_quotes_nothing_and_of_others_what_they_say() -> None:
    assert in_log(Quoting(CANARY)) == "Quoting"
    assert in_log(Plain("no space")) == "Plain: no space"
    assert in_log(KeyError("name")) == "KeyError: name"
    assert in_log(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    "error", [ValueError("a mistake"), Plain("no space"), ExceptionGroup("two", [ValueError("a"), Plain("b")])]
)
def test_the_trace_of_what_quotes_nothing_is_of_the_error_itself(error: Exception) -> None:
    error = raised(error, Plain("why"))  # type: ignore[assignment]  # the same one
    assert traced(error) is error


def test_a_trace_shows_where_an_error_came_from_and_what_led_to_it_and_not_what_was_said() -> None:
    cause = raised(Quoting(CANARY), Plain("no space"))
    cause.add_note("in session 's1'")
    error = raised(ValueError("a mistake"), cause)
    said = shown(error)
    assert CANARY not in said
    places = [said.index(each) for each in ("Plain: no space", "Quoting\nin session 's1'", "ValueError: a mistake")]
    assert places == sorted(places)
    assert said.count(" in raised") == 2
    assert (str(cause), error.__cause__) == (CANARY, cause), "they are as they were"


def test_what_was_handled_meanwhile_is_shown_without_it_too_and_not_where_that_is_suppressed() -> None:
    try:
        raise Quoting(CANARY)
    except Quoting:
        error = raised(ValueError("a mistake"))
        hidden = raised(ValueError("a mistake"), None)
    assert hidden.__suppress_context__
    hidden.__context__ = error.__context__ = Quoting(CANARY)
    error.__suppress_context__ = False
    assert "During handling of the above exception" in shown(error)
    assert "Quoting" in shown(error)
    assert "Quoting" not in shown(hidden)
    assert CANARY not in shown(error) + shown(hidden)


def test_groups_and_what_has_led_to_itself_are_shown_without_it() -> None:
    inner = ExceptionGroup("inner", [Quoting(CANARY)])
    error = raised(ExceptionGroup("outer", [Quoting(CANARY), inner]))
    assert CANARY not in shown(error)
    assert [shown(error).count(each) for each in ("outer", "inner", "| test_in_logs.Quoting")] == [1, 1, 2]
    first, second = Quoting(CANARY), ValueError("a mistake")
    first.__cause__, second.__cause__ = second, first
    assert CANARY not in shown(first)


def test_an_error_that_stands_for_one_of_any_name_can_be_shown() -> None:
    class Named(Quoting):
        @property
        def named(self) -> str:
            return "nu\udcff\0l"

    assert "test_in_logs.nul\n" in shown(raised(Named(CANARY)))
