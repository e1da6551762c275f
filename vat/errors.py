"""What the runtime refuses, and why an outcome cannot come any more: the classes of its errors.

The one rule: an error says what is wrong, where, and what to do, in its message alone: that is all that is kept of it
(see `vat.failures`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from dataspace.errors import Broken as Broken  # here too, beside the other reasons
from dataspace.errors import Deleted as Deleted
from dataspace.errors import KeeveError
from dataspace.errors import gone as gone
from dataspace.remedies import Remedy


class Failed(KeeveError):
    """An error of a class that is not known here; `kind` is its name where it was raised. `defined`: where that class
    is, if it is a `KeeveError`."""

    def __init__(self, kind: str, message: str, defined: str = "") -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message
        self.defined = defined

    @property
    def named(self) -> str:
        return self.kind

    @property
    def logged(self) -> str:
        return self.kind if self.defined else self.message  # whether one of ours quotes something, its class knows


class Forked(Broken, quotes=False):
    """What a fork waited for belongs to its parent: ask again from here."""


class Unpaid(Broken, quotes=False):
    """The actor that owed this is gone: nothing referred to it any more, so nobody could have it settled."""


class PromiseCycle(Broken, quotes=False):
    """A promise was told to follow one that follows it."""


class FiberDiverged(Broken):
    """A fiber cannot go on: run again, it did something else than was recorded. It breaks alone, and for good.

    part: which one, from 1. recorded, did: what the record says and what the code does now, in words. at: where the
    code departs, `agent.py:12 in answer`, which may be in a method that this one has started; "" where no line does.
    raised: whether the code has a higher version, so that only the older class is missing. outline: `recorded` and
    `did` without the content that they may quote.
    """

    outline: tuple[str, str] | None = None
    """None as well where only its message was recorded."""

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
        at: str = "",
        raised: bool = False,
        outline: tuple[str, str] | None = None,
    ) -> None:
        where = f", at {at}" if at else ""
        older = "the old class in actors=[...] until no fiber of it waits (`keeve effects` lists them)"
        remedy = (
            f"The next time, keep {older}"
            if raised
            else f"If its code was changed: the next time, give that a higher version, and keep {older}. If not, it "
            "looks at something besides its arguments and fields, as the order of a set, `random`, a global or a class "
            "attribute: what may be relied on is a table in docs/fibers.md, under How it survives"
        )
        super().__init__(
            f"session {session!r}, fiber {fiber}: {type}.{method} cannot go on where it waited. In its part {part}, "
            f"which is run again to bring it back, the record says that it {recorded}; the code now {did}{where}. "
            "This run of it is over; what its earlier parts did stands, and what it waited for is given up, unless "
            f"somebody else waits for it. Call the method again to start it anew. {remedy}"
        )
        self.session = session
        self.fiber = fiber
        self.type = type
        self.method = method
        self.part = part
        self.recorded = recorded
        self.did = did
        self.at = at
        self.outline = outline

    @property
    def logged(self) -> str:
        rest = "its fact fiber-failed has the rest, and what to do (keeve show SESSION)"
        if self.outline is None:
            return f"a method cannot go on where it waited: {rest}"
        recorded, did = self.outline
        where = f", at {self.at}" if self.at else ""
        return (
            f"it cannot go on where it waited: in its part {self.part} it {recorded}, as recorded, and now the code "
            f"{did}{where}; {rest}"
        )


class OtherShape(KeeveError, TypeError, quotes=False):
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


RAISE_VERSION: Final = Remedy(
    "raise-version",
    ". Raise the version of the changed class, @actor(..., version={version}), and fill the field in upgrade()",
)
OR_DEFAULT: Final = Remedy("or-default", ", or give the field a default")


class ChangedType(KeeveError, TypeError, quotes=False):
    """A class was changed and its version was not: the state has another shape for a field, or has none of it."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, declares: str, version: int, holds: str | None) -> None:
        there = f"has {holds} there" if holds else "has no such field, and the class no default for it"
        remedy = RAISE_VERSION(version=version + 1) + ("" if holds else OR_DEFAULT())
        super().__init__(
            f"{field}: version {version} of the class declares {declares}, and the session, which is at version "
            f"{version} as well, {there}; nothing was read or written{remedy}"
        )
        self.field = field


class PromiseGone(KeeveError, LookupError, quotes=False):
    """A promise is over, and nothing in the heap has kept what came of it."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Reentered(KeeveError, RuntimeError, quotes=False):
    """A vat was to take a message in the middle of another one."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Revoked(Broken, quotes=False):
    """The ref was revoked by who handed it on."""


ASK_ANOTHER: Final = Remedy(
    "ask-another",
    'this host was opened with Settings(takes_up="nothing"), which carries out no such work; nothing has happened. Ask '
    'in a host that does: takes_up="asked" is enough',
)


class NothingTakenUp(KeeveError, quotes=False):
    """A call that would wait for a device or a session, in a host that carries out nothing; it has not happened."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str) -> None:
        super().__init__(
            f"session {session!r} would have to wait for a device or another session to answer this, and "
            f"{ASK_ANOTHER()}"
        )


class OutsideCrank(KeeveError, RuntimeError, quotes=False):
    """Something that only actors can do was tried outside of a crank."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: there is no crank here; do this in an actor's method, while it runs")


class NoSuchMethod(KeeveError, AttributeError):
    """An actor has no public method or field of that name."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


ASK_FOR_THESE: Final = Remedy("ask-for-these", ". Ask for one of these")


def no_such_method(type: str, name: str, known: Iterable[str]) -> NoSuchMethod:
    """The error for a name that an actor of that type does not have."""
    has = ", ".join(sorted(known))
    others = f"it has {has}{ASK_FOR_THESE()}" if has else "it has none: give its class one"
    return NoSuchMethod(f"{type} has no method or public field {name!r}; {others}")


class NotAssignable(KeeveError, AttributeError):
    """Something was assigned to an attribute of a ref; says how its actor is changed."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, methods: Iterable[str] = ()) -> None:
        known = sorted(methods)
        call = f"configure({name}=...)" if "configure" in known else ", ".join(known) or "one of them"
        super().__init__(f"{name!r} cannot be assigned through a ref: an actor is changed by its methods; call {call}")
        self.name = name


class NoSuchActor(KeeveError, LookupError, quotes=False):
    """A vat has no actor of that number (any more)."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class ReadOnly(KeeveError, TypeError, quotes=False):
    """A `@read` method, or a delivery through a read-only ref, tried to change something."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Refused(KeeveError, PermissionError):
    """A ref was narrowed and does not reach what was asked of it."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


class NotOwed(Refused, quotes=False):
    """A promise that this actor does not owe, or has settled, was to be settled."""


class NoSuchFact(Refused):
    """A fact was to be retracted that the session does not hold."""


class BadCall(KeeveError, TypeError):
    """What was given for a call, or for the fields of a new actor, is not what it takes; says what that is."""

    usage: ClassVar[bool] = True

    def __init__(self, message: str) -> None:
        super().__init__(message)


CALL_SO: Final = Remedy("call-so", "call it with what it takes")


class OtherParameters(BadCall):
    """A method was to be called with other arguments than it takes; nothing was recorded."""

    def __init__(self, type: str, method: str, takes: str, problem: str) -> None:
        super().__init__(f"{type} has {method}{takes}, which cannot be called so: {problem}; {CALL_SO()}")
        self.method = method


class CrankOverrun(KeeveError, RuntimeError, quotes=False):
    """A crank made more deliveries than one may; it is undone whole."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
