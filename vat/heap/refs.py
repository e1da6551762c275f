"""Refs and promises as actors hold them, and the crank that is running in this thread.

`ref.method(x)` is an eventual send and gives a promise; `near(ref).method(x)` calls at once, in the same vat.
`promise.then(self.ok, *args, broken=self.err)` names methods and values, so a reaction is data.

The one rule: refs and promises are values. What they do, they do through the crank that is running; outside of
one they do nothing but raise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Final, Protocol

from dataspace import values
from dataspace.errors import KeeveError
from vat.errors import OutsideCrank

DIRECTORY: Final = b"keeve.directory\0"
"""The session of the directory's ref; sends to it are effects of the device `directory`."""


class Sends(Protocol):
    """What a running crank does for refs and promises."""

    def send(self, to: Ref, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Promise: ...
    def call(
        self, to: Ref, method: str, args: tuple[Any, ...], keywords: dict[str, Any], *, inner: bool = False
    ) -> Any: ...
    def runs(self, actor: int) -> bool: ...
    def cancel(self, promise: Promise, error: Exception) -> bool: ...
    def begun(self, promise: Promise) -> bool: ...
    def timer(self, seconds: float) -> Promise: ...
    def react(
        self, promise: Promise, kept: Any, broken: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Promise: ...


class _Running(threading.local):
    crank: Sends | None = None


running = _Running()
"""The crank that runs in this thread now, if any: set by the vat, for as long as it runs."""


def current(what: str) -> Sends:
    """The running crank. Raises `OutsideCrank`, naming `what` was tried."""
    crank = running.crank
    if crank is None:
        raise OutsideCrank(what)
    return crank


class NotNear(KeeveError, TypeError):
    """`near()` was given a ref to another vat's actor, or something that is no ref."""

    usage: ClassVar[bool] = True

    def __init__(self, what: object) -> None:
        super().__init__(
            f"near({what!r}): only an actor of the same vat can be called at once; send to it instead, "
            "ref.method(...), and go on with the promise"
        )


class Ref(values.Ref):
    """A reference to an actor. Its attributes are the actor's public methods, as eventual sends."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Callable[..., Promise]:
        if name.startswith("_"):
            raise AttributeError(name)
        crank = current(f"ref.{name}")

        def send(*args: Any, **keywords: Any) -> Promise:
            return crank.send(self, name, args, keywords)

        return send

    def __repr__(self) -> str:
        where = "" if self.session is None else f"{self.session.hex()[:8]}…/"
        return f"<ref {where}{self.actor}>"


class Promise(values.Promise):
    """A promise of this vat."""

    __slots__ = ()

    def then(
        self,
        kept: Callable[..., Any] | None = None,
        /,
        *args: Any,
        broken: Callable[..., Any] | None = None,
        **keywords: Any,
    ) -> Promise:
        """Call `kept(value, *args)` when it is fulfilled, or `broken(error, *args)` when it breaks.

        Both are methods of actors of this vat (`self.name`, or `near(ref).name`), and all arguments are values.
        Gives a promise for what the method returns; without a method for what happened, that happens to it too.
        """
        return current("promise.then").react(self, kept, broken, args, keywords)

    def __copy__(self) -> Promise:
        return self

    def __deepcopy__(self, memo: Any) -> Promise:
        return self

    def __await__(self) -> Generator[Promise, Any, Any]:
        """Its value, in an `async def` method of an actor; raises the error that broke it."""
        succeeded, value = (yield self)[0]
        if succeeded:
            return value
        try:
            raise value
        finally:
            del value  # its traceback has this frame: in a circle they would keep promises until Python collects them

    def __bool__(self) -> bool:
        raise TypeError(
            "a promise has no value yet: go on with promise.then(self.method), or await it in an async method"
        )

    def __repr__(self) -> str:
        return f"<promise {self.id}>"


def cancel(promise: Promise, error: Exception) -> bool:
    """Give up what settles `promise`: an effect, which breaks with `error` and is stopped if it still runs, or a fiber.

    A fiber has `error` raised where it waits, and may clean up; what it waits for is given up as well. What a device
    has done stays done; its outcome is not waited for. False when no open effect and no waiting fiber settles it.
    """
    return current("cancel(promise)").cancel(promise, error)


def begun(promise: Promise) -> bool:
    """Whether what settles `promise` may have begun; asked before `cancel`, whether anything may have happened.

    False for an effect that no device can have been given, as it is not durable yet that it is wanted; and for one that
    was not started, of a device whose effects are recorded before they start (`on_crash="unknown"`): it waits for its
    turn, say. False as well for what an actor of this vat owes. True for everything else: of a device that may be
    called twice nobody records when it is called.
    """
    return current("begun(promise)").begun(promise)


class Near:
    """An actor of the same vat, to be called at once. Each call has a savepoint of its own."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Ref) -> None:
        self._ref = ref

    def __getattr__(self, name: str) -> NearMethod:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("_") and not self._is_who_asks():
            raise AttributeError(
                f"{name}: what begins with an underscore is an actor's own, which near(self.ref).{name}(...) calls in "
                "its own methods; of another actor call a public one"
            )
        return NearMethod(self._ref, name)

    def _is_who_asks(self) -> bool:
        crank = running.crank
        return crank is not None and crank.runs(self._ref.actor)

    def __repr__(self) -> str:
        return f"near({self._ref!r})"


class NearMethod:
    """A method of a near actor: call it, or name it as a reaction."""

    __slots__ = ("name", "ref")

    def __init__(self, ref: Ref, name: str) -> None:
        self.ref = ref
        self.name = name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        crank = current(f"near(ref).{self.name}")
        return crank.call(self.ref, self.name, args, keywords, inner=self.name.startswith("_"))


def near(ref: Any) -> Any:
    """The actor behind a ref of this vat, to call at once: `near(ref).method(x)`.

    A call that raises is undone to where it began, and the error is the caller's to catch. `near(self.ref)` reaches the
    actor's own methods with an underscore before their names as well. Raises `NotNear` for a ref to another vat.
    """
    if not isinstance(ref, Ref) or ref.session is not None:
        raise NotNear(ref)
    return Near(ref)
