"""Errors that quote something, and what raises them: to be met wherever a log is told of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from dataspace.log.files import ReadFailed, WriteFailed
from dataspace.log.verdicts import LogTampered
from keeve import KeeveError

CANARY = "CANARY-1234"


class Quoting(KeeveError):
    """It says what somebody said."""


class QuotingWrite(WriteFailed):
    """One of the disk's, of which the class has not said that it quotes nothing."""

    def __init__(self, said: str) -> None:
        KeeveError.__init__(self, said)


class QuotingRead(ReadFailed):
    """As the one before."""

    def __init__(self, said: str) -> None:
        KeeveError.__init__(self, said)


class QuotingOrdinary(KeeveError):
    """How things go."""

    ordinary = True


class QuotingTampered(LogTampered):
    """One of a log's."""

    def __init__(self, said: str) -> None:
        KeeveError.__init__(self, said)


def quoting() -> Quoting:
    return Quoting(f"somebody said {CANARY}")


def caused(kind: type[Exception] = ValueError) -> Exception:
    """An error of users that quotes nothing, and that one which does has led to."""
    try:
        try:
            raise quoting()
        except Quoting as error:
            raise kind("a mistake") from error
    except kind as error:
        return error


def raising(error: BaseException) -> Callable[..., Any]:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    return fails


def ending(scope: trio.CancelScope, error: BaseException) -> Callable[..., Any]:
    """As `raising`, and what has called it ends behind what it says of that."""

    def fails(*_: Any, **__: Any) -> Any:
        scope.cancel()
        raise error

    return fails


async def raising_later(*_: Any, **__: Any) -> Any:
    raise quoting()
