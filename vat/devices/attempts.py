"""Attempts: calls a device for one effect, as often as its policy says, and gives what came of it.

What a device raises, or returns that is no value or too large, is its outcome; it is made fit to be recorded here,
before anybody sees it.

The one rule: nothing here knows which effects there are besides this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import attrs
import trio

from dataspace.interrupts import is_interrupt
from dataspace.values import Value, freeze
from vat.devices.devices import Effect, Method
from vat.devices.outcomes import (
    EffectOutcome,
    EffectTimeout,
    OutcomeTooLarge,
    alone,
    fit_for_record,
    larger_than,
    trace_of,
)
from vat.devices.vault import Vault
from vat.failures import place_of

Key: TypeAlias = tuple[bytes, int]
"""Which effect: the uid of the session that wants it, and its number there."""

PATIENCE: Final = 300.0
"""Seconds: the longest that an error's `retry_after` is waited for; one that asks for more ends the attempts."""


@attrs.define(eq=False)
class Wanted:
    """An effect that a durable record wants. `state` says whether a record says, too, that it has started."""

    key: Key
    id: str
    session: str
    device: str
    method: str
    args: Sequence[Any] = ()
    keywords: Mapping[str, Any] = attrs.field(factory=dict)
    state: Literal["wanted", "started"] = "wanted"
    name: str = attrs.field(init=False)
    """What it is called in errors: the device and the method, or what that says of the call, as the name of a tool."""

    @name.default
    def _name(self) -> str:
        return f"{self.device}.{self.method}"


class Attempts:
    """Calls devices. `random` gives a number in [0, 1); `progress` hears what a running device tells."""

    def __init__(self, vault: Vault, *, random: Callable[[], float], progress: Callable[[Wanted, Value], None]) -> None:
        self._vault = vault
        self._random = random
        self._progress = progress

    async def outcome(self, wanted: Wanted, name: str, method: Method) -> EffectOutcome:
        """What comes of an effect, called `name` in errors. Raises only what ends the task: a cancellation, Ctrl-C."""
        policy = method.policy
        attempt = 1
        while True:
            found = await self.attempt(wanted, name, method, attempt)
            if not isinstance(found, BaseException):
                return found
            error = alone(found)
            pause = max(policy.pause(attempt, self._random()), _asked_for(error))
            if attempt >= policy.attempts or not isinstance(error, policy.retry_on) or pause > PATIENCE:
                redact = self._vault.redact
                trace, at = trace_of(found, redact), redact(place_of(error))
                return EffectOutcome(error=fit_for_record(error, name, redact), trace=trace, at=at)
            await trio.sleep(pause)
            attempt += 1

    async def attempt(self, wanted: Wanted, name: str, method: Method, attempt: int) -> EffectOutcome | BaseException:
        """The outcome of one attempt, or what it raised."""
        policy = method.policy
        effect = Effect(
            id=wanted.id,
            device=wanted.device,
            method=wanted.method,
            session=wanted.session,
            attempt=attempt,
            progress=lambda value: self._progress(wanted, self._vault.redact_value(value)),
            credential=self._vault.resolve,
            redact=self._vault.redact_value,
        )
        seconds = math.inf if policy.timeout is None else policy.timeout
        error: BaseException | None = None
        value: Value = None
        returned = False
        try:
            with trio.move_on_after(seconds) as timer:
                value = await method.function(effect, *wanted.args, **wanted.keywords)
                returned = True
        except BaseException as raised:  # whatever a device raises is its outcome
            # A cancellation as well, if it is none of this effect's: that is raised again below.
            if is_interrupt(raised):
                raise
            error = raised
        finally:
            effect.end()
        if not returned:
            # A device may turn its cancellation into an error; what ended it was the cancellation all the same.
            await trio.lowlevel.checkpoint_if_cancelled()
            return error if error is not None and not timer.cancel_called else EffectTimeout(name, seconds)
        try:
            frozen = freeze(value, path=f"{name}()")
            if larger_than(policy.largest, frozen):
                return OutcomeTooLarge(name, policy.largest)
            return EffectOutcome(self._vault.redact_value(frozen))
        except BaseException as unfit:  # a subclass of str or dict may do anything when it is read
            if is_interrupt(unfit):
                raise
            return unfit


def _asked_for(error: BaseException) -> float:
    """Seconds that an error asks to be left alone for."""
    seconds = vars(error).get("retry_after")  # not getattr: a property is code, and may raise
    return seconds if (type(seconds) is int or type(seconds) is float) and seconds > 0 else 0.0
