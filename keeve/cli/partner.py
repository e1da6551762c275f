"""The other end of a conversation: a session, wherever its store is, as the prompt has to do with it.

The prompt is in a thread of its own (`keeve.cli.conversation`), and has all of this done in that of the store.

The one rule: it is asked for nothing that a client could not ask for, so it does not matter whether a host of this
process has the store, or a server, which may be started again meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final

import trio

from dataspace.errors import KeeveError
from dataspace.observe.dataspace import NoSuchSession
from keeve.cli.answers import TurnSpan
from keeve.cli.outside import missing
from keeve.cli.stores import Acts
from keeve.cli.talkable import must_talk
from keeve.faces import ENDS, Turn, tell, turns_of
from keeve.looking import CONVERSATION, Input, TurnSpans, outcome
from vat.errors import Failed
from vat.host.pieces import Piece

RECENT: Final = 2000
"""Positions of the log before a session's head that are looked at for what was said last."""

ACCEPTING: Final = 2.0
"""Seconds that are waited at the most for an input on its way to be accepted."""


class Partner:
    """A session that is talked to. `head` is the position of its newest record when this was made."""

    def __init__(self, store: Acts, id: str, ref: Any, head: int) -> None:
        self.id = id
        self._store = store
        self._ref = ref
        self._head = head
        self._spans = TurnSpans(None)
        """Where turns ran, by those that have ended since then."""
        self._read: Any = head
        """How far in the log that is known."""

    @classmethod
    async def found(cls, store: Acts, id: str, actors: Sequence[type]) -> Partner | None:
        """The session of that id, if it is there; `actors` are the types that this process knows.

        Raises `NoConversation` for one that cannot be talked to.
        """
        try:
            row = await store.look("row", id=id)
        except NoSuchSession:
            return None
        ref = await store.get(id)
        await must_talk(ref, id, row["type"], actors)
        return cls(store, id, ref, row["position"])

    @classmethod
    async def made(cls, store: Acts, id: str) -> Partner:
        """A new one."""
        ref = await store.spawn(CONVERSATION, id, {})
        return cls(store, id, ref, (await store.look("row", id=id))["position"])

    async def pieces(self) -> AsyncIterator[Piece]:
        """What the session's running effects tell from now on."""
        return self._store.pieces(self.id)

    @staticmethod
    async def hear(pieces: AsyncIterator[Piece], told: Callable[[Piece], object]) -> None:
        """Have `told` called with each of them, until this is cancelled or the session ends."""
        with suppress(KeeveError):  # nothing more can come: whoever asks for something is told why
            async for piece in pieces:
                told(piece)

    # What is said.

    async def say(self, method: str, line: str, request: str) -> Any:
        """What it comes to. Raises a `KeeveError`, whatever a device has raised."""
        return await outcome(getattr(self._ref, method)(line, request=request))

    async def number(self, request: str, *, waits: bool = True) -> int | None:
        """The number of the turn that an input is; None if it joined another one, or is not accepted.

        waits: it is on its way, and is waited for.
        """
        said = self._input(request)
        if waits:
            with trio.move_on_after(ACCEPTING):
                await said.heard("turn", "steer")
        accepted = await said.stated("turn", "steer")
        return None if accepted is None or accepted.value.label == "steer" else accepted.captures["n"]

    async def joined(self, request: str, *, waits: bool = True) -> bool | None:
        """Whether an input joins the turn that runs, or is one of its own; None if it is not accepted.

        waits: it is on its way, and is waited for, for as long as something may come of it.
        """
        said = self._input(request)
        if waits:
            await said.heard("turn", "steer")
        accepted = await said.stated("turn", "steer")
        return None if accepted is None else accepted.value.label == "steer"

    def _input(self, request: str) -> Input:
        return Input(observe=self._store.observe, session=self.id, id=self.id, request=request, head=self._head)

    async def span(self, number: int | None) -> TurnSpan:
        """Where in the log a turn begins and, if it is over, ends; of one that is not accepted, where it may begin."""
        events = self._store.observe("(_ ?n _ . _)", after=self._read, until="head", session=self.id)
        async for event in events:
            if event.value.label in ENDS:
                self._spans.ended(event.captures["n"], event.position)
            self._read = event.cursor
        return (self._spans.newest, inf) if number is None else self._spans.of(number)

    async def interrupt(self, number: int) -> None:
        """End that turn, and no other."""
        await self._ref.interrupt(turn=number)

    # What was said before.

    async def earlier(self) -> list[Turn]:
        """The newest turns, out of what was recorded shortly before this was made: few, however long its past is."""
        after = max(0, self._head - RECENT)
        events = self._store.observe("(_ . _)", after=after, until="head", session=self.id, lineage=True)
        return turns_of([event async for event in events])

    async def end_of(self, turn: Turn) -> Any:
        """What a turn comes to that somebody asked for earlier. Raises `Failed`."""
        async for event in self._store.observe(f"(_ {turn.number} . _)", after=self._head, session=self.id):
            tell(turn, event)
            if turn.state != "open":
                break
        if turn.state != "done":
            error = turn.error if isinstance(turn.error, Mapping) else {}
            raise Failed(str(error.get("error", "TurnInterrupted")), str(error.get("message", "")))
        return turn.output

    async def wake(self) -> None:
        """Bring it into memory, so that it goes on. Nothing is recorded. Raises why it cannot be."""
        await self._ref.describe()

    # What it waits for.

    async def missing(self) -> str:
        """What it waits for that nothing here gives, in words."""
        return await missing(self._store, self.id)

    async def unknown(self) -> list[Mapping[str, Any]]:
        """Its calls of unknown outcome."""
        waits = await self._store.look("waits", id=self.id)
        return [effect for effect in waits["effects"] if effect["state"] == "unknown"]

    async def let_go(self) -> None:
        """What it waits for of that breaks with `OutcomeUnknown`."""
        for effect in await self.unknown():
            await self._store.let_go(self.id, effect)
