"""An input on its way to a session: said under a request id, by which what the session states of it is found.

    said = Input(observe=host.observe, session="s1", id="s1", request="r-1", by="owner", head=17)
    output = await outcome(s.turn("hello", request=said.request))
    print(await said.told(output))

`observe` is a host's or a client's: over a server that is started again in the middle it goes on like any observation.

The one rule: what the session has stated says what became of it, and nothing that was heard on the way. Whoever stops
waiting changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import trio

from dataspace.errors import KeeveError
from dataspace.observe.events import Event
from dataspace.patterns import ANY, Pattern, capture, pattern
from keeve.faces import face
from keeve.looking.asking import must_state_turns, outcome
from keeve.looking.stating import StatesNoTurns
from vat.crank.vat import RequestConflict

EARLIER: Final = 0.5
"""Seconds after which it is looked whether an input was accepted at an earlier time."""

TAKEN: Final = {"turn": ("turn",), "steer": ("steer", "turn")}
"""By the method that says it, what a session states of an input that it takes: as a turn of its own, or as a part of
the one that runs."""


@attrs.frozen(kw_only=True)
class Input:
    """An input, the session (by id or uid, and its id) that it goes to, its request id, and in whose name it is said.

    by: "" where the request id is enough. head: the place in the log where that ended when it came. again: it may be
    the request of an earlier time.
    """

    observe: Callable[..., Any]
    session: str | bytes
    id: str
    request: str
    by: str = ""
    head: Any
    again: bool = False

    def states(self, label: str) -> Pattern:
        """What the session states of this input: its number is captured as `n`."""
        whose = {"by": self.by} if self.by else {}
        return pattern(label, capture("n"), ANY, ..., request=self.request, **whose)

    async def first(self, wanted: Pattern, after: Any) -> Event | None:
        """The first event of the session that matches. Others have their turns while a long past is read."""
        found: Event | None = await anext(self.observe(wanted, after=after, until="head", session=self.session), None)
        return found

    async def stated(self, *labels: str) -> Event | None:
        """What it has stated of this input by now; of a request of an earlier time all that it ever stated is looked
        at."""
        for after in (self.head, 0) if self.again else (self.head,):
            for label in labels:
                if (found := await self.first(self.states(label), after)) is not None:
                    return found
        return None

    async def _is_stated(self, *labels: str) -> bool:
        try:
            return await self.stated(*labels) is not None
        except KeeveError:
            return False  # what it is refused with says why

    async def heard(self, *labels: str) -> None:
        """Return when it states one of these of this input, or nothing more can come of it."""
        async with trio.open_nursery() as nursery:

            async def hear(label: str) -> None:
                try:
                    await anext(self.observe(self.states(label), after=self.head, session=self.session))
                except KeeveError:
                    return  # nothing more can come: what became of the input says why
                nursery.cancel_scope.cancel()

            for label in labels:
                nursery.start_soon(hear, label)

    async def accepted(self, ref: Any, method: str, said: Any) -> Event:
        """Have it said by that method; the fact with which it is accepted, durably. What comes of it is not waited for.

        Raises what it is refused with, and `StatesNoTurns`.
        """
        await must_state_turns(ref, self.id)
        labels: tuple[str, ...] = TAKEN[method]
        refused: KeeveError | None = None
        async with trio.open_nursery() as nursery:

            async def say() -> None:
                # Whoever stops waiting changes nothing: this is cancelled as soon as the input is accepted.
                nonlocal refused
                try:
                    await outcome(getattr(ref, method)(said, request=self.request))
                except KeeveError as error:
                    # It was refused; or else it was accepted, and its turn has failed later.
                    if isinstance(error, RequestConflict) or not await self._is_stated(*labels):
                        refused = error
                nursery.cancel_scope.cancel()

            async def hear() -> None:
                await self.heard(*labels)
                if await self._is_stated(*labels):
                    nursery.cancel_scope.cancel()

            async def recall() -> None:
                # A request that was made before, and has other content, is refused by then.
                await trio.sleep(EARLIER)
                if await self._is_stated(*labels):
                    nursery.cancel_scope.cancel()

            nursery.start_soon(say)
            nursery.start_soon(hear)
            if self.again:
                nursery.start_soon(recall)
        if refused is not None:
            raise refused
        accepted = await self.stated(*labels)
        if accepted is None:  # of a type that says that it states its turns, and does not
            raise StatesNoTurns(self.id)
        return accepted

    async def ended(self) -> tuple[Event | None, Mapping[str, Any]]:
        """The `turn` as which it was accepted, and what was stated when that was done, if it is."""
        accepted = await self.stated("turn")
        if accepted is None:
            return None, {}
        done = await self.first(pattern("turn-done", accepted.captures["n"], ANY, ...), accepted.position - 1)
        return accepted, {} if done is None else done.value.keywords

    async def told(self, output: Any) -> dict[str, Any]:
        """What its turn came to, in JSON."""
        accepted, said = await self.ended()
        result = {"session": self.id, "turn": None if accepted is None else accepted.captures["n"]}
        return {**result, "output": face(output), "usage": face(said.get("usage")), "limit": said.get("limit")}


def taken_face(session: str, event: Event) -> dict[str, Any]:
    """That an input is accepted, in JSON; behind `cursor` the rest is to be heard."""
    joins = event.value.label == "steer"
    place = {"seq": event.seq, "cursor": str(event.cursor)}
    return {"session": session, "turn": event.captures["n"], "joins": joins, **place}
