"""Failures: how an error is kept, as the same class and message after a restart.

A promise breaks, a request is answered and a delivery is recorded with a *failure*: a dict
`{"error": name, "message": text}`, with `"class"` (where a `KeeveError` is defined: module and qualified name), `"at"`
(file, line and method of the user's code) and `"in"` (session and seq) where they are known.
`failure_of` makes one from an exception, `exception_of` an exception from one: of the built-in class, or of the
`KeeveError` that is defined there, or is the only one of that name; or else a `Failed` that carries it. Nothing is ever
imported by a name that was read. That of a fiber's part has `"undone"` as well, if there is anything: the fields of its
actor whose changes went with it.

The one rule: who sees an error live and who sees it after a restart see the same, so every error passes
through its failure on its way.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping
from pathlib import Path
from sysconfig import get_path
from types import CodeType
from typing import Any, Final

from dataspace.errors import KeeveError
from dataspace.in_logs import message_of
from dataspace.values import Text
from vat.errors import Failed

_LONGEST: Final = 10_000
"""Characters of a message that are kept."""

_BUILTIN: Final[dict[str, type[Exception]]] = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    # What cannot be made from a message alone, and what cannot be raised out of a coroutine.
    and not issubclass(kind, UnicodeError | StopIteration | StopAsyncIteration)
}
_revived: dict[str, type[KeeveError]] = {}


class _Revived:
    """Makes an error of any class from its message alone, whatever its own constructor takes."""

    args: tuple[Any, ...]

    def __init__(self, message: str) -> None:
        self.args = (message,)

    def __str__(self) -> str:
        return str(self.args[0])


def _class_of(name: str, qualified: str) -> type[Exception] | None:
    """What to make an error of that name with: a built-in class, or a twin of a `KeeveError` that is loaded.

    qualified: where it is defined, "" for a built-in class or where nobody said.
    """
    if not qualified and name in _BUILTIN:
        return _BUILTIN[name]
    key = qualified or name
    if key not in _revived:
        named: dict[str, type[KeeveError]] = {}
        todo: list[type[KeeveError]] = [KeeveError]
        while todo:
            kind = todo.pop()
            if kind.__name__ == name and kind is not Failed:  # that stands for a class, and is none that was raised
                named.setdefault(_qualified(kind), kind)
            todo.extend(sub for sub in kind.__subclasses__() if not issubclass(sub, _Revived))
        only = next(iter(named.values())) if len(named) == 1 else None  # it may have moved
        found = named.get(qualified, only)
        if found is not None:
            places = {"__module__": found.__module__, "__qualname__": found.__qualname__}
            _revived[key] = type(name, (_Revived, found), places, quotes=found.quotes)
    return _revived.get(key)


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def failure_of(error: BaseException) -> dict[str, Any]:
    """What is kept of an exception: its class's name, its message, and the place in the user's code.

    The message is content, since it may say anything: it is kept as a cell, and can be erased alone.
    """
    if isinstance(error, Failed):
        failure: dict[str, Any] = {"error": error.kind, "message": Text(error.message[:_LONGEST])}
        if error.defined:
            failure["class"] = error.defined
    else:
        failure = {"error": type(error).__name__, "message": Text(message_of(error)[:_LONGEST])}
        if isinstance(error, KeeveError):
            failure["class"] = _qualified(type(error))
    at = place_of(error)
    if at:
        failure["at"] = at
    return failure


def content_in(failure: Mapping[str, Any]) -> dict[str, Any]:
    """A failure from outside, its message marked as `failure_of` marks it."""
    message = failure["message"]
    return {**failure, "message": Text(message) if isinstance(message, str) else message}


_NO_LOOP: Final = (
    "asyncio has no loop here, since Keeve runs on trio: in an actor wait "
    "with self.sleep(seconds), gather(...) and within(...); in a device or a tool use trio, or call "
    "`await trio.to_thread.run_sync(asyncio.run, main())`"
)
_PENDING: Final = (
    "if that came of a call of a device, a model, a tool or an actor, it is the promise of what it will give: "
    "`await` it first"
)
_ADVICE: Final = (
    ("RuntimeError", "no running event loop", _NO_LOOP),
    ("RuntimeError", "There is no current event loop in thread ", _NO_LOOP),
    *(
        (kind, f"'{promise}' object ", _PENDING)
        for kind in ("TypeError", "AttributeError")
        for promise in ("Promise", "Reply")
    ),
)
"""What to do about errors of others, which do not say it: by class, and how the message begins."""


def exception_of(failure: Mapping[str, Any], where: str = "") -> Exception:
    """The exception that a failure stands for; where it was raised is a note (`where`, if the failure does not say)."""
    name, said = failure["error"], failure["message"]
    message = str.__str__(said) if isinstance(said, str) else "(its message was erased)"
    defined = failure.get("class", "")
    kind = _class_of(name, defined)
    error: Exception
    if kind is None:
        error = Failed(name, message, defined)
    else:
        try:
            error = kind(message)
        except TypeError:
            error = Failed(name, message, defined)
    place = " ".join(part for part in (failure.get("in", where), failure.get("at", "")) if part)
    if place:
        error.add_note(place)
    if undone := failure.get("undone"):
        error.add_note(f"changes of this part that were undone with it: {', '.join(map(str, undone))}")
    if (advice := advice_on(name, message)) is not None:
        error.add_note(advice)
    return error


def advice_on(kind: str, message: str) -> str | None:
    """What to do about an error of others which does not say it, by the name of its class and its message."""
    return next((advice for name, begins, advice in _ADVICE if kind == name and message.startswith(begins)), None)


_PACKAGES: Final = ("keeve", "actors", "vat", "snapshots", "dataspace")
_PROJECT: Final = str(Path(__file__).parent.parent)
_OURS: Final = tuple(f"{_PROJECT}{os.sep}{package}{os.sep}" for package in _PACKAGES)
_LIBRARIES: Final = tuple({f"{get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_ours(code: CodeType) -> bool:
    """Whether a piece of code is Keeve's own."""
    return code.co_filename.startswith(_OURS)


def place_of(error: BaseException) -> str:
    """`at file.py:12 in method`: where the user's code was, when it raised or called what did; "" if it was not there.

    That is the innermost frame that is neither ours nor of a library; if there is none, the innermost one of
    a library.
    """
    own = foreign = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_ours(code):
            place = f"at {Path(code.co_filename).name}:{trace.tb_lineno} in {code.co_name}"
            if code.co_filename.startswith(_LIBRARIES):
                foreign = place
            else:
                own = place
        trace = trace.tb_next
    return own or foreign
