"""Devices: async functions that touch the world, and what each of them declares of itself.

    class Weather:
        @effect(on_crash="retry", timeout=20, attempts=3, retry_on=(OSError,))
        async def report(self, effect: Effect, city: str) -> dict: ...

A host is given `devices={"weather": Weather()}`; a plain function marked `@effect` is a device with one method,
`call`. What is asked of a device arrives as values (or as views of collections) after an `Effect`, which says which
call this is; what it returns must be a value.

The one rule: this file only says what a device is. Nothing is run here, and nothing waits; `runner` runs them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar, overload

import attrs

from dataspace.errors import KeeveError
from dataspace.values import Value, freeze

LONGEST_PAUSE: Final = 30.0
"""Seconds: the longest pause between two attempts that backoff comes to by itself."""

LARGEST: Final = 16 << 20
"""Bytes that a device returns at the most, unless its policy says otherwise."""

_MARK: Final = "__keeve_effect__"

AsyncFunction = TypeVar("AsyncFunction", bound=Callable[..., Awaitable[Any]])


class BadPolicy(KeeveError, ValueError):
    """A policy that cannot be meant; says which field (`field`) and why (`reason`)."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"@effect({self.field}=...): {self.reason}"


class NotADevice(KeeveError, TypeError):
    """Something given as a device (`what`) that is none; `reason` says why and what to do."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.what} is not a device: {self.reason}"


@attrs.frozen
class Policy:
    """What a device method declares. Raises `BadPolicy` for what cannot be meant.

    on_crash: when the host ends during a call, `"retry"` runs it again at the next start; `"unknown"` records that
      it started before the call, and never runs it twice.
    timeout: seconds for one attempt; `None` is without end.
    concurrency: calls of the method at once in one host, the others wait in order; `None` is any number.
    attempts: how often it is tried in all, when it raises one of `retry_on` (`EffectTimeout` may be among them).
    backoff: seconds of the first pause between attempts; it doubles, up to 30 s, and is shortened by up to a half
      at random. An error that has `retry_after` (seconds) gets at least that.
    largest: bytes of what it returns, at the most; more is an `OutcomeTooLarge`.
    """

    on_crash: Literal["unknown", "retry"] = "unknown"
    timeout: float | None = None
    concurrency: int | None = None
    attempts: int = 1
    backoff: float = 0.5
    retry_on: tuple[type[Exception], ...] = ()
    largest: int = LARGEST

    def __attrs_post_init__(self) -> None:
        if self.on_crash not in ("unknown", "retry"):
            raise BadPolicy("on_crash", f'it is "unknown" or "retry", not {self.on_crash!r}')
        if self.timeout is not None and not self.timeout > 0:
            raise BadPolicy("timeout", f"it is more than 0 seconds, or None for no end; not {self.timeout!r}")
        if self.concurrency is not None and self.concurrency < 1:
            raise BadPolicy("concurrency", f"it is at least 1, or None for any; not {self.concurrency!r}")
        if self.attempts < 1:
            raise BadPolicy("attempts", f"it counts the first one, so it is at least 1; not {self.attempts!r}")
        if not 0 <= self.backoff <= LONGEST_PAUSE:
            raise BadPolicy("backoff", f"it is from 0 to {LONGEST_PAUSE:g} seconds, not {self.backoff!r}")
        if not isinstance(self.retry_on, tuple):
            raise BadPolicy("retry_on", "it is a tuple of exception classes: (OSError,)")
        if self.attempts > 1 and not self.retry_on:
            raise BadPolicy("retry_on", "more than one attempt needs the errors that are worth another one")
        if self.largest < 0:
            raise BadPolicy("largest", f"it is a number of bytes, not {self.largest!r}")

    def pause(self, attempt: int, chance: float) -> float:
        """Seconds to wait after attempt number `attempt` (from 1); `chance` in [0, 1) is what is random in it."""
        return min(self.backoff * 2.0 ** min(attempt - 1, 64), LONGEST_PAUSE) * (1 - chance / 2)


Variant: TypeAlias = Callable[..., "tuple[str, Policy] | None"]
"""Given what a method is called with: the name of what that comes to, and its policy. None: the method's own.

What it raises is the outcome of the effect, whose device is not called then: nobody knows how.
"""


@attrs.frozen
class Method:
    """A device's method, bound to it, and its policy; with `variant`, which policy it is depends on the arguments."""

    policy: Policy
    function: Callable[..., Awaitable[Value]]
    variant: Variant | None = None


@overload
def effect(function: AsyncFunction, /) -> AsyncFunction: ...
@overload
def effect(
    *,
    on_crash: Literal["unknown", "retry"] = ...,
    timeout: float | None = ...,
    concurrency: int | None = ...,
    attempts: int = ...,
    backoff: float = ...,
    retry_on: tuple[type[Exception], ...] = ...,
    largest: int = ...,
) -> Callable[[AsyncFunction], AsyncFunction]: ...
def effect(function: Callable[..., Any] | None = None, /, **policy: Any) -> Any:
    """Mark an async function, or an async method, as one that a device offers; keywords as in `Policy`.

    Raises `NotADevice` for what is not an `async def`, and `BadPolicy`.
    """
    declared = Policy(**policy)

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.iscoroutinefunction(function):
            raise NotADevice(_name(function), "@effect marks an `async def`; make it one")
        setattr(function, _MARK, declared)
        return function

    return mark if function is None else mark(function)


def methods_of(device: object) -> dict[str, Method]:
    """What a device offers, by name: its public methods marked `@effect`, or `call` for a function so marked.

    An object may have `policies`, a dict of policies by method name, in which its own stand that differ from the
    declared ones; and `variants`, a dict of functions by method name, for methods that do several things (`Variant`).
    Raises `NotADevice`, and `BadPolicy` for a policy of a method that it does not have.
    """
    if isinstance(device, type):
        raise NotADevice(_name(device), f"it is a class; give an object of it, {device.__name__}(...)")
    if inspect.isroutine(device):
        policy = getattr(device, _MARK, None)
        if policy is None:
            wanted = "" if inspect.iscoroutinefunction(device) else "make it an `async def`, and "
            name = getattr(device, "__name__", "...")
            remedy = f"{wanted}mark the function with @effect; or, if a model is to call it, give Tools({name})"
            raise NotADevice(_name(device), remedy)
        return {"call": Method(policy, _called(device))}
    if isinstance(device, list | tuple):
        what = f"a {type(device).__name__}"
        raise NotADevice(what, "give one object; several functions for a model are Tools(*them)")
    own: Mapping[str, Policy] = getattr(device, "policies", {})
    variants: Mapping[str, Variant] = getattr(device, "variants", {})
    methods = {}
    for name in dir(device):
        if not name.startswith("_") and (policy := _declared(device, name)) is not None:
            methods[name] = Method(own.get(name, policy), _called(getattr(device, name)), variants.get(name))
    if not methods:
        raise NotADevice(
            _name(type(device)),
            "it has no public `async def` marked with @effect; mark one (a plain `def` must become one)",
        )
    for name in own:
        if name not in methods:
            raise BadPolicy(name, f"{_name(type(device))} has no such method; it has {', '.join(methods)}")
    return methods


def _declared(device: object, name: str) -> Policy | None:
    policy: Policy | None = getattr(inspect.getattr_static(device, name, None), _MARK, None)
    if policy is None and any(hasattr(vars(base).get(name), _MARK) for base in type(device).__mro__):
        raise NotADevice(_name(type(device)), f"{name} overrides an effect; mark it with @effect as well")
    return policy


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which takes an `Effect` first. Raises `NotADevice` for one that does not look like it."""
    if inspect.ismethod(function):
        _check_method(function.__func__)
    else:
        _check(function, list(inspect.signature(function).parameters.values()))
    return function


@lru_cache(maxsize=1024)
def _check_method(function: Callable[..., Any]) -> None:
    """Check what comes after `self`; once, since a host that is opened again has the same devices."""
    parameters = list(inspect.signature(function).parameters.values())
    _check(function, parameters if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL else parameters[1:])


def _check(function: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> None:
    first = parameters[0] if parameters else None
    said = "" if first is None or first.annotation is first.empty else inspect.formatannotation(first.annotation)
    if first is None or first.kind is first.KEYWORD_ONLY or (said and not _MAY_BE_EFFECT.search(said)):
        arguments = "" if first is None else f", {first.name}, ..."
        raise NotADevice(
            _name(function),
            f"what it is given first says which call it is: write `async def {function.__name__}(effect: Effect"
            f"{arguments})`, with `self` before it in a method",
        )


_MAY_BE_EFFECT: Final = re.compile(r"Effect|Any\b|object\b")


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', None)}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


class Effect:
    """One attempt at one call of a device: which one it is, and what it may use. A device's first argument."""

    __slots__ = ("_credential", "_progress", "_redact", "attempt", "device", "id", "method", "session")

    def __init__(
        self,
        *,
        id: str,
        device: str,
        method: str,
        session: str,
        attempt: int,
        progress: Callable[[Value], None],
        credential: Callable[[str], str],
        redact: Callable[[Value], Value] = lambda value: value,
    ) -> None:
        self.id = id
        """The idempotency key: the same in every attempt, after a restart too."""
        self.device = device
        self.method = method
        self.session = session
        """The id of the session that asked."""
        self.attempt = attempt
        """From 1. After a restart they are counted anew."""
        self._progress: Callable[[Value], None] | None = progress
        self._credential = credential
        self._redact = redact

    def progress(self, value: Value) -> None:
        """Tell whoever observes right now how far it is. Kept nowhere. Nobody hears it once the attempt is over."""
        if self._progress is not None:
            self._progress(freeze(value, path="progress"))

    def credential(self, name: str) -> str:
        """The value of a credential in the host's vault, as it is now; ask for it at each use and keep it nowhere.

        Raises `NoCredential`.
        """
        return self._credential(name)

    def redact(self, value: Value) -> Any:
        """A frozen value, or a text, without the credentials that the vault has given out.

        For a device that cuts what it gives: of a credential on the cut, nobody could find the half that is left. What
        is not cut is looked through when it is returned, told or raised.
        """
        return self._redact(value)

    def end(self) -> None:
        """The attempt is over: progress is no longer told."""
        self._progress = None

    def __repr__(self) -> str:
        return f"<Effect {self.device}.{self.method} {self.id} for {self.session}, attempt {self.attempt}>"
