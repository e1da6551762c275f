"""Outcomes: what came of an effect, a value or an error, and the errors that are the runtime's own.

An error is made fit to be recorded before anyone sees it (`fit_for_record`): it carries no traceback, no chain of other
errors and no credential, because all of these can hold what must not leave the device. What helps to find the fault is
put beside it, as text for the host's log (`EffectOutcome.trace`).

The one rule: pure functions of an error; nothing here knows how effects are run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any, Final

import attrs

from dataspace.errors import KeeveError
from dataspace.in_logs import traced
from dataspace.interrupts import is_interrupt
from dataspace.remedies import Remedy
from dataspace.values import Blob, Value

LONGEST_TRACE: Final = 16_384
"""Characters of a trace that are kept, the last ones."""

DEEPEST_GROUP: Final = 8
"""Groups within groups whose errors are told."""

Redact = Callable[[str], str]


@attrs.frozen
class EffectOutcome:
    """What came of an effect: its `value` (frozen), or, when that is not `None`, the `error`.

    `at` is the place in the user's code where an error was raised, for who gets it; `trace` is where it came from, as
    text for the host's log, never for a record. Neither has credentials in it.
    """

    value: Value = None
    error: Exception | None = None
    trace: str = attrs.field(default="", eq=False, repr=False)
    at: str = attrs.field(default="", eq=False, repr=False)


class EffectError(KeeveError):
    """An effect without a value. `effect` is what was called (`"model.complete"`)."""

    def __init__(self, effect: str, *more: Any) -> None:
        super().__init__(effect, *more)
        self.effect = effect


class OutcomeUnknown(EffectError, quotes=False):
    """The host ended after the effect had started and before its outcome was recorded: it may have happened."""

    def __init__(self, effect: str, id: str) -> None:
        super().__init__(effect, id)
        self.id = id

    def __str__(self) -> str:
        return (
            f"nobody knows whether {self.effect} (effect {self.id}) happened: the host ended while it ran. "
            "It is not run again by itself; find out, then settle it or ask for it anew"
        )


GIVE_DEVICE: Final = Remedy(
    "give-device",
    "this host has no {effect}; its devices offer: {known}. Give the device to the host, and mark its method with "
    "@effect",
)


class UnknownDevice(EffectError, quotes=False):
    """This host has no such device, or the device no such method; `known` are those that it has."""

    def __init__(self, effect: str, known: tuple[str, ...]) -> None:
        super().__init__(effect, known)
        self.known = tuple(known)

    def __str__(self) -> str:
        known = ", ".join(self.known) or "none"
        return GIVE_DEVICE(effect=self.effect, known=known)


class EffectTimeout(EffectError, quotes=False):
    """An attempt took longer than the device's policy allows (`seconds`). It may have happened all the same."""

    def __init__(self, effect: str, seconds: float) -> None:
        super().__init__(effect, seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"{self.effect} did not answer in its {self.seconds:g} s; it may have happened all the same: "
            "find out before you ask again"
        )


RETURN_LESS: Final = Remedy("return-less", "Have it return less, or declare @effect(largest=...)")


class OutcomeTooLarge(EffectError, quotes=False):
    """A device returned more than its policy allows (`largest` bytes). It has happened; what it gave is not kept."""

    def __init__(self, effect: str, largest: int) -> None:
        super().__init__(effect, largest)
        self.largest = largest

    def __str__(self) -> str:
        return (
            f"{self.effect} returned more than the {self.largest} bytes that its policy allows, and that is not kept; "
            f"it did happen. {RETURN_LESS()}"
        )


class EffectCancelled(EffectError, quotes=False):
    """Somebody stopped the effect. Unless `started`, the device was never called."""

    def __init__(self, effect: str, started: bool) -> None:
        super().__init__(effect, started)
        self.started = started

    def __str__(self) -> str:
        if self.started:
            return (
                f"{self.effect} was cancelled while it ran; it may have happened all the same: "
                "find out before you ask again"
            )
        return f"{self.effect} was cancelled before it started and did not happen; ask again if it is still wanted"


class DeviceFailed(EffectError):
    """A device raised something that cannot be passed on as it is: its class by name (`kind`), and its message."""

    said: str | None = None
    """As `message`, of each error in it as much as a log may have. None where only its message was recorded."""

    def __init__(self, effect: str, kind: str, message: str) -> None:
        super().__init__(effect, kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.effect} raised {self.kind}: {self.message}"

    @property
    def logged(self) -> str:
        return super().logged if self.said is None else f"{self.effect} raised {self.kind}: {self.said}"


def larger_than(most: int, value: Value) -> bool:
    """Whether a frozen value has more than `most` bytes: of its texts and bytes, and 8 for each item besides.

    Costs no more than to go through the first `most` bytes.
    """
    size = 0
    todo: list[Any] = [value]
    while todo and size <= most:
        each = todo.pop()
        kind = type(each)
        if issubclass(kind, str):
            size += len(each) if each.isascii() or len(each) > most else len(each.encode(errors="replace"))
        elif issubclass(kind, bytes):
            size += len(each)
        elif kind is Blob:
            size += len(each.content)
        else:
            size += 8
            if isinstance(each, Mapping):
                todo.extend(each)
                todo.extend(each.values())
            elif isinstance(each, list):
                todo.extend(each)
    return size > most


def alone(error: BaseException) -> BaseException:
    """The one error inside a group that holds only one, at any depth; else the error itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def trace_of(error: BaseException, redact: Redact) -> str:
    """Where an error came from, with those that led to it, as text without credentials."""
    try:
        text = "".join(traceback.format_exception(traced(error)))
    except BaseException as unshowable:  # a message is the users' code; there is no trace then
        if is_interrupt(unshowable):
            raise
        text = f"{type(error).__name__}, which cannot be shown ({type(unshowable).__name__})"
    return redact(text)[-LONGEST_TRACE:]


def fit_for_record(error: BaseException, effect: str, redact: Redact, depth: int = 0) -> Exception:
    """The error as it may be recorded and shown: the same one, changed where it quotes a credential.

    What is left of it is its class, its arguments, its attributes and its notes. A `DeviceFailed` takes its place
    if it is a group, no `Exception` (`sys.exit()`), cannot be shown, or still quotes a credential.
    """
    kind = redact(type(error).__name__)
    try:
        if isinstance(error, BaseExceptionGroup):
            text = redact(str(error))
            inside = _inside(error, effect, redact, depth)
            return _failed(effect, kind, f"{text}{_listed(map(_said, inside))}", f"{text}{_listed(map(_told, inside))}")
        error.__traceback__ = error.__cause__ = error.__context__ = None
        error.args = tuple(_without(each, redact) for each in error.args)
        for name, attribute in list(vars(error).items()):
            if (changed := _without(attribute, redact)) is not attribute:
                setattr(error, name, changed)
        text = str(error)
        clean = redact(text) == text and redact(shown := repr(error)) == shown
    except BaseException as unshowable:  # messages and attributes are the users' code
        if is_interrupt(unshowable):
            raise
        text = f"its message cannot be shown ({type(unshowable).__name__})"
        return _failed(effect, kind, text, text)
    if clean and isinstance(error, Exception):
        return error
    return _failed(effect, kind, redact(text), redact(_told(error)))


def _failed(effect: str, kind: str, message: str, said: str) -> DeviceFailed:
    error = DeviceFailed(effect, kind, message)
    error.said = said
    return error


def _inside(group: BaseExceptionGroup[Any], effect: str, redact: Redact, depth: int) -> list[Exception]:
    """The errors in a group that are worth telling."""
    if depth >= DEEPEST_GROUP:
        return []
    return [fit_for_record(each, effect, redact, depth + 1) for each in group.exceptions]


def _listed(messages: Iterable[str]) -> str:
    said = "; ".join(messages)
    return f": {said}" if said else ""


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _told(error: BaseException) -> str:
    """The same, as a log may have it."""
    return error.logged if isinstance(error, KeeveError) else _said(error)


def _without(part: Any, redact: Redact) -> Any:
    """`part` without credentials, itself if there are none."""
    kind = type(part)
    if kind is str:
        clean = redact(part)
        return part if clean == part else clean
    if kind is bytes:
        return _without(part.decode(errors="surrogateescape"), redact).encode(errors="surrogateescape")
    if kind is list or kind is tuple:
        items = [_without(each, redact) for each in part]
        return part if all(map(is_, items, part)) else kind(items)
    if kind is dict:
        values = [_without(each, redact) for each in part.values()]
        return part if all(map(is_, values, part.values())) else dict(zip(part, values, strict=True))
    return part
