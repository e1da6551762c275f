"""Which class an error is of when it comes back from its failure."""

from __future__ import annotations

from typing import Any

import pytest

from actors.chat import BadAnswer, message_in
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.patterns import BadPattern, parse
from vat.errors import Failed
from vat.failures import exception_of, failure_of, place_of


class Shop:
    class OutOfStock(KeeveError):
        """Of the shop."""

    class TimeoutError(KeeveError):
        """Has the name of a built-in one."""

    class Unmistakable(KeeveError):
        """No other has this name."""


class Bank:
    class OutOfStock(KeeveError):
        """Of the bank."""


@pytest.mark.parametrize("kind", [Shop.OutOfStock, Bank.OutOfStock, Shop.TimeoutError, TimeoutError])
def test_an_error_is_of_its_own_class_though_others_have_its_name(kind: Any) -> None:
    error = exception_of(failure_of(exception_of(failure_of(kind("no")))))
    assert isinstance(error, kind)
    others = {Shop.OutOfStock, Bank.OutOfStock, Shop.TimeoutError, TimeoutError} - {kind}
    assert not isinstance(error, tuple(others))
    assert str(error) == "no"


@pytest.mark.parametrize("said", [{}, {"class": "moved.Unmistakable"}])
def test_a_class_that_has_moved_or_was_not_said_is_found_by_its_name(said: dict[str, str]) -> None:
    assert isinstance(exception_of({"error": "Unmistakable", "message": "no", **said}), Shop.Unmistakable)


@pytest.mark.parametrize("said", [{}, {"class": "moved.OutOfStock"}])
def test_a_name_that_two_have_says_neither(said: dict[str, str]) -> None:
    error = exception_of({"error": "OutOfStock", "message": "no", **said})
    assert type(error) is Failed
    assert (error.kind, error.message) == ("OutOfStock", "no")


def test_a_class_that_is_not_loaded_is_not_taken_for_a_built_in_one() -> None:
    assert type(exception_of({"error": "KeyError", "message": "no", "class": "gone.KeyError"})) is Failed


class TheirFailed(Exception):
    """Of users, who may call it as ours is called that stands for what is not known."""


TheirFailed.__name__ = "Failed"


@pytest.mark.parametrize("defined", [{}, {"class": "vat.errors.Failed"}])
def test_an_error_of_users_that_is_called_failed_is_one_like_any_other(defined: dict[str, str]) -> None:
    error = exception_of({**failure_of(TheirFailed("out of stock")), **defined})
    assert type(error) is Failed
    assert (error.kind, error.message) == ("Failed", "out of stock")
    assert str(exception_of(failure_of(error))) == "Failed: out of stock"


class Unknown(Exception):
    """Of the users' code."""


class Shut(KeeveError, quotes=False):
    """What it says quotes nothing."""


class ShutBy(Shut):
    """Has words of its own, and has not said so."""


def test_a_log_has_the_message_of_an_error_only_where_its_own_class_says_that_it_quotes_nothing() -> None:
    assert in_log(Shut("it is shut")) == "Shut: it is shut"
    assert in_log(ShutBy("shut by Eve")) == "ShutBy"
    assert in_log(Shop.OutOfStock("no apples")) == "OutOfStock"


@pytest.mark.parametrize("kind", [Shut, ShutBy, Shop.OutOfStock, ValueError, Unknown])
def test_it_has_the_same_of_an_error_that_was_recorded(kind: type[Exception]) -> None:
    """What others say is told as they say it, also where their class is not known."""
    error = kind("so it is")
    assert in_log(exception_of(failure_of(error))) == in_log(error)
    assert in_log(Unknown("so it is")) == "Unknown: so it is"


def test_an_error_of_ours_whose_class_is_not_loaded_is_logged_by_its_name_alone_however_often_it_is_passed_on() -> None:
    error = exception_of({"error": "Locked", "message": "locked by Eve", "class": "gone.Locked"})
    assert type(error) is Failed
    again = exception_of(failure_of(error))
    assert in_log(error) == in_log(again) == "Locked"
    assert str(again) == "Locked: locked by Eve"


def test_the_place_of_an_error_is_in_the_users_code_whichever_package_of_ours_raised_it() -> None:
    with pytest.raises(BadAnswer) as raised:
        message_in({})
    assert place_of(raised.value).startswith("at test_error_classes.py:")
    with pytest.raises(BadPattern) as raised:
        parse("(")
    assert place_of(raised.value).startswith("at test_error_classes.py:")
