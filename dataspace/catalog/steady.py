"""Questions that are answered whatever becomes of the catalog's file, and never from a part of the log.

SQLite may fail under a question: then the catalog is made anew, and asked again. What the catalog could not read when
it was to be noted is owed: it is read before the question is answered.

The one rule: whoever asks gets the answer, or an error; never what a catalog that is not whole would say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from dataspace.catalog.connections import FAILED
from dataspace.errors import KeeveError

_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")
_Asked = TypeVar("_Asked", bound="Steady")


class Steady:
    """What has such questions. `_owed` is the position up to which all is to be noted before one is answered; 0 where
    all that was to be is."""

    _owed = 0

    def settle(self) -> None:
        """Have noted what is owed. Raises what keeps it from that."""
        if self._owed:
            self.catch_up()

    def catch_up(self) -> None:
        """Note what is owed. Raises what keeps it from that."""
        raise NotImplementedError

    def rebuild(self) -> None:
        """Make the catalog anew: SQLite has failed."""
        raise NotImplementedError

    def leave_file(self) -> None:
        """Make the catalog anew, in memory: SQLite has failed again."""
        raise NotImplementedError

    def wait_for_writer(self) -> None:
        """Wait until nobody here writes the file."""
        raise NotImplementedError


def steady(
    ask: Callable[Concatenate[_Asked, _P], _Answer],
) -> Callable[Concatenate[_Asked, _P], _Answer]:
    """A question that, when SQLite fails, is asked again of a catalog made anew: of a file, then of one in memory."""

    @wraps(ask)
    def asked(self: _Asked, /, *arguments: _P.args, **options: _P.kwargs) -> _Answer:
        if self._owed:
            self.settle()
        try:
            return ask(self, *arguments, **options)
        except KeeveError:
            raise
        except apsw.BusyError:
            self.wait_for_writer()
        except FAILED:
            self.rebuild()
        try:
            return ask(self, *arguments, **options)
        except KeeveError:
            raise
        except FAILED:
            self.leave_file()
        return ask(self, *arguments, **options)

    return asked
