"""What the runtime refuses, and how a failure is kept: the same class and message after a restart.

A promise breaks, a request is answered and a delivery is recorded with a *failure*: a dict
`{"error": name, "message": text}`, with `"class"` (where a `KeeveError` is defined: module and qualified name), `"at"`
(file, line and method of the user's code) and `"in"` (session and seq) where they are known.
`failure_of` makes one from an exception, `exception_of` an exception from one: of the built-in class, or of the
`KeeveError` that is defined there, or is the only one of that name; or else a `Failed` that carries it. Nothing is ever
imported by a name that was read.

The one rule: who sees an error live and who sees it after a restart see the same, so every error passes
through its failure on its way.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from sysconfig import get_path
from typing import Any, ClassVar, Final

from dataspace.errors import Broken as Broken  # here too, beside the other reasons
from dataspace.errors import Deleted as Deleted
from dataspace.errors import KeeveError, is_interrupt
from dataspace.errors import gone as gone
from dataspace.values import Text

_LONGEST: Final = 10_000
"""Characters of a message that are kept."""


class Failed(KeeveError):
    """An error of a class that is not known here; `kind` is its name where it was raised."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message


class Forked(Broken):
    """What a fork waited for belongs to its parent: ask again from here."""


class Unpaid(Broken):
    """The actor that owed this is gone: nothing referred to it any more, so nobody could have it settled."""


class PromiseCycle(Broken):
    """A promise was told to follow one that follows it."""


class FiberDiverged(Broken):
    """A fiber cannot go on: run again, it did something else than was recorded. It breaks alone, and for good.

    part: which one, from 1. recorded, did: what the record says and what the code does now, in words. raised: whether
    the code has a higher version, so that only the older class is missing.
    """

    def __init__(
        self,
        session: str,
        fiber: int,
        type: str,
        method: str,
        part: int,
        *,
        recorded: str,
        did: str,
        raised: bool = False,
    ) -> None:
        half = "keep" if raised else "give changed code a higher version, and keep"
        super().__init__(
            f"session {session!r}, fiber {fiber}: {type}.{method} cannot go on where it waited. In its part {part}, "
            f"which is run again to bring it back, the record says that it {recorded}; the code now {did}. "
            "This run of it is over; what its earlier parts did stands. Call the method again to start it anew. The "
            f"next time, {half} the old class in actors=[...] until no fiber of it waits (`keeve effects` lists them)"
        )
        self.session = session
        self.fiber = fiber
        self.type = type
        self.method = method
        self.part = part
        self.recorded = recorded
        self.did = did


class OtherShape(KeeveError, TypeError):
    """An older class, which finishes what it began, used a field that has another shape in the version of the state, or
    read one that is gone and has no default."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, *, declares: str, older: int, holds: str | None, newer: int) -> None:
        there = f"has {holds} there" if holds else "has no such field, and the older one has no default for it"
        remedy = (
            "Give what gets another shape another name in the new version, and fill that in upgrade()"
            if holds
            else "Keep the field in the new version, or give it a default in the older class"
        )
        super().__init__(
            f"{field}: version {older} of the class declares {declares}, and the session is at version {newer}, which "
            f"{there}; nothing was read or written. {remedy}"
        )
        self.field = field


class ChangedType(KeeveError, TypeError):
    """A class was changed and its version was not: the state has another shape for a field, or has none of it."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, declares: str, version: int, holds: str | None) -> None:
        there = f"has {holds} there" if holds else "has no such field, and the class no default for it"
        remedy = "" if holds else ", or give the field a default"
        super().__init__(
            f"{field}: version {version} of the class declares {declares}, and the session, which is at version "
            f"{version} as well, {there}; nothing was read or written. Raise the version of the changed class, "
            f"@actor(..., version={version + 1}), and fill the field in upgrade(){remedy}"
        )
        self.field = field


class PromiseGone(KeeveError, LookupError):
    """A promise is over, and nothing in the heap has kept what came of it."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Reentered(KeeveError, RuntimeError):
    """A vat was to take a message in the middle of another one."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Revoked(Broken):
    """The ref was revoked by who handed it on."""


class NothingTakenUp(KeeveError):
    """A call that would wait for a device or a session, in a host that carries out nothing; it has not happened."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str) -> None:
        super().__init__(
            f"session {session!r} would have to wait for a device or another session to answer this, and this host was "
            'opened with Settings(takes_up="nothing"), which carries out no such work; nothing has happened. Ask in a '
            'host that does: takes_up="asked" is enough'
        )


class OutsideCrank(KeeveError, RuntimeError):
    """Something that only actors can do was tried outside of a crank."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: there is no crank here; do this in an actor's method, while it runs")


class NoSuchMethod(KeeveError, AttributeError):
    """An actor has no public method or field of that name."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


def no_such_method(type: str, name: str, known: Iterable[str]) -> NoSuchMethod:
    """The error for a name that an actor of that type does not have."""
    return NoSuchMethod(f"{type} has no method or public field {name!r}; it has {', '.join(sorted(known))}")


class NotAssignable(KeeveError, AttributeError):
    """Something was assigned to an attribute of a ref; says how its actor is changed."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, methods: Iterable[str] = ()) -> None:
        known = sorted(methods)
        call = f"configure({name}=...)" if "configure" in known else ", ".join(known) or "one of them"
        super().__init__(f"{name!r} cannot be assigned through a ref: an actor is changed by its methods; call {call}")
        self.name = name


class NoSuchActor(KeeveError, LookupError):
    """A vat has no actor of that number (any more)."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class ReadOnly(KeeveError, TypeError):
    """A `@read` method, or a delivery through a read-only ref, tried to change something."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Refused(KeeveError, PermissionError):
    """A ref was narrowed and does not reach what was asked of it."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class NotOwed(Refused):
    """A promise that this actor does not owe, or has settled, was to be settled."""


class NoSuchFact(Refused):
    """A fact was to be retracted that the session does not hold."""


class BadCall(KeeveError, TypeError):
    """What was given for a call, or for the fields of a new actor, is not what it takes; says what that is."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class CrankOverrun(KeeveError, RuntimeError):
    """A crank made more deliveries than one may; it is undone whole."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


_BUILTIN: Final[dict[str, type[Exception]]] = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    # What cannot be made from a message alone, and what cannot be raised out of a coroutine.
    and not issubclass(kind, UnicodeError | StopIteration | StopAsyncIteration)
}
_revived: dict[str, type[Exception]] = {}


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
        named: dict[str, type[Exception]] = {}
        todo: list[type[Exception]] = [KeeveError]
        while todo:
            kind = todo.pop()
            if kind.__name__ == name:
                named.setdefault(_qualified(kind), kind)
            todo.extend(sub for sub in kind.__subclasses__() if not issubclass(sub, _Revived))
        only = next(iter(named.values())) if len(named) == 1 else None  # it may have moved
        found = named.get(qualified, only)
        if found is not None:
            places = {"__module__": found.__module__, "__qualname__": found.__qualname__}
            _revived[key] = type(name, (_Revived, found), places)
    return _revived.get(key)


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def failure_of(error: BaseException) -> dict[str, Any]:
    """What is kept of an exception: its class's name, its message, and the place in the user's code.

    The message is content, since it may say anything: it is kept as a cell, and can be erased alone.
    """
    if isinstance(error, Failed):
        failure: dict[str, Any] = {"error": error.kind, "message": Text(error.message[:_LONGEST])}
    else:
        failure = {"error": type(error).__name__, "message": Text(_message(error)[:_LONGEST])}
        if isinstance(error, KeeveError):
            failure["class"] = _qualified(type(error))
    at = place_of(error)
    if at:
        failure["at"] = at
    return failure


def _message(error: BaseException) -> str:
    # KeyError's own text is the repr of its argument, which would be quoted again on the way back.
    try:
        lone = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else None
        if isinstance(lone, str) and type(error).__str__ is KeyError.__str__:
            return lone
        return str(error)
    except BaseException as unshowable:  # a message is the users' code
        if is_interrupt(unshowable):
            raise
        return f"(its message cannot be shown: {type(unshowable).__name__})"


def content_in(failure: Mapping[str, Any]) -> dict[str, Any]:
    """A failure from outside, its message marked as `failure_of` marks it."""
    message = failure["message"]
    return {**failure, "message": Text(message) if isinstance(message, str) else message}


_ADVICE: Final = {
    ("RuntimeError", "no running event loop"): "asyncio has no loop here, since Keeve runs on trio: in an actor wait "
    "with self.sleep(seconds), gather(...) and within(...); in a device or a tool use trio, or call "
    "`await trio.to_thread.run_sync(asyncio.run, main())`"
}
"""What to do about errors of others, which do not say it: by class and message."""


def exception_of(failure: Mapping[str, Any], where: str = "") -> Exception:
    """The exception that a failure stands for; where it was raised is a note (`where`, if the failure does not say)."""
    name, said = failure["error"], failure["message"]
    message = str.__str__(said) if isinstance(said, str) else "(its message was erased)"
    kind = _class_of(name, failure.get("class", ""))
    error: Exception
    if kind is None:
        error = Failed(name, message)
    else:
        try:
            error = kind(message)
        except TypeError:
            error = Failed(name, message)
    place = " ".join(part for part in (failure.get("in", where), failure.get("at", "")) if part)
    if place:
        error.add_note(place)
    if (advice := _ADVICE.get((name, message))) is not None:
        error.add_note(advice)
    return error


_PROJECT: Final = str(Path(__file__).parent.parent)
_OURS: Final = tuple(f"{_PROJECT}{os.sep}{package}{os.sep}" for package in ("vat", "snapshots", "dataspace"))
_LIBRARIES: Final = tuple({f"{get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def place_of(error: BaseException) -> str:
    """`at file.py:12 in method`: where the user's code was, when it raised or called what did; "" if it was not there.

    That is the innermost frame that is neither of the runtime nor of a library; if there is none, the innermost one of
    a library.
    """
    own = foreign = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            place = f"at {Path(code.co_filename).name}:{trace.tb_lineno} in {code.co_name}"
            if code.co_filename.startswith(_LIBRARIES):
                foreign = place
            else:
                own = place
        trace = trace.tb_next
    return own or foreign
