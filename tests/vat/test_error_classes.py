"""Which class an error is of when it comes back from its failure."""

from __future__ import annotations

from typing import Any

import pytest

from actors.chat import BadAnswer, message_in
from dataspace.errors import KeeveError
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


def test_the_place_of_an_error_is_in_the_users_code_whichever_package_of_ours_raised_it() -> None:
    with pytest.raises(BadAnswer) as raised:
        message_in({})
    assert place_of(raised.value).startswith("at test_error_classes.py:")
    with pytest.raises(BadPattern) as raised:
        parse("(")
    assert place_of(raised.value).startswith("at test_error_classes.py:")
