"""What an actor does is done whole or not at all, also when something cuts it off in the middle.

The recursion limit, a lack of memory and Ctrl-C can come between any two steps of the runtime, and users' code may
catch them. The heap then holds half of what was done, and the record says something else.

The one rule: a delivery in which something was cut off fails, whatever users' code made of it (`Progress.torn`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from vat.crank.progress import Progress


class Acts(Protocol):
    """Has a crank in progress, which remembers by what something was cut off."""

    progress: Progress


T = TypeVar("T", bound=Acts)
P = ParamSpec("P")
R = TypeVar("R")


def cuts_off(error: BaseException) -> bool:
    """Whether an error can come in the middle of anything, and leave it half done."""
    return isinstance(error, RecursionError | MemoryError) or not isinstance(error, Exception)


def whole(act: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """Something that takes more than one step. If it is cut off between them, its delivery fails."""

    @wraps(act)
    def done(self: T, /, *args: P.args, **keywords: P.kwargs) -> R:
        try:
            return act(self, *args, **keywords)
        except BaseException as error:
            if cuts_off(error):
                self.progress.torn = error
            raise

    return done
