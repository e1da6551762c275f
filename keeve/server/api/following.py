"""Following a turn: its facts and the pieces of the model's answers, in their order, and then what it came to.

A piece stands before the facts that came after it was told, and those of other turns are left out
(`keeve.server.pieces`).

The one rule: pieces are a preview. What counts are the facts, each with the cursor behind it, from which another stream
goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any, Final, Protocol

import trio

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.observe.events import Event
from keeve.faces import ENDS, event_face
from keeve.server.api.previews import piece_face
from keeve.server.errors import Refusal
from keeve.server.pieces import TurnPieces, turns_over
from keeve.server.streams import Put, Sent
from vat.host.host import Host
from vat.host.outside import HostRef

TOLD: Final = frozenset(
    (
        *("turn", "model-output", "tool-call", "tool-result", "tool-unknown", "steer", "steered"),
        *("approval-wanted", "approval-given", "approval-refused", "approval-withdrawn", *ENDS),
    )
)
"""The facts of a turn that are told."""


class Followed(Protocol):
    """An input on its way to a session."""

    @property
    def host(self) -> Host: ...
    @property
    def ref(self) -> HostRef[Any]: ...
    @property
    def row(self) -> SessionRow: ...
    @property
    def request(self) -> str: ...
    @property
    def by(self) -> str: ...


class Following:
    """Follows the turn of an input; `answer` has it take its turn, and gives what is told last.

    accepted: its `turn`, if that was stated before now: it may lie before `after`.
    """

    def __init__(
        self, said: Followed, after: Any, answer: Callable[[], Awaitable[Any]], accepted: Event | None = None
    ) -> None:
        self._said = said
        self._after = after
        self._answer = answer
        self._accepted = accepted
        self._number = 0
        self._pieces = TurnPieces(0)
        self._telling = trio.Lock()
        self._waits = trio.CancelScope()
        self._over = False

    async def run(self, put: Put) -> None:
        """Tell all of it. Raises what the turn raises, when everything else was told."""
        answers: list[Any] = []
        failures: list[Exception] = []
        self._pieces = pieces = TurnPieces(await turns_over(self._said.host, self._said.ref))
        if self._accepted is not None:
            self._ours(self._accepted)
        unheard = self._said.host.on_progress(pieces.hear, self._said.ref)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._live, put)
                nursery.start_soon(self._previews, put)
                try:
                    answers.append(await self._answer())
                except (KeeveError, Refusal) as error:
                    failures.append(error)
                self._over = True
                self._waits.cancel()
                pieces.came.set()
            await self._rest(put)
        finally:
            unheard()
        if failures:
            raise failures[0]
        await put(Sent(answers[0], "done"))

    async def _live(self, put: Put) -> None:
        """Facts as they come, until the answer is there. Nobody is ended in the middle of telling."""
        said = self._said
        heard = said.host.observe("(_ ?n . _)", after=self._after, session=said.row.uid)
        with suppress(KeeveError):  # nothing more can come: the answer says why
            while not self._over:
                event = None
                with trio.CancelScope() as self._waits:
                    event = await anext(heard)
                if event is not None:
                    await self._fact(put, event)

    async def _rest(self, put: Put) -> None:
        """Those that were there when the answer was."""
        said = self._said
        async for event in said.host.observe("(_ ?n . _)", after=self._after, until="head", session=said.row.uid):
            await self._fact(put, event)

    async def _fact(self, put: Put, event: Event) -> None:
        number, label = event.captures["n"], event.value.label
        if number == self._number and label in TOLD:
            await self._tell(put, event.position)
        ours = label == "turn" and self._is_ours(event)
        if label in TOLD and (ours or number == self._number):
            await put(Sent(event_face(event), label, str(event.cursor)))
        if ours:
            self._ours(event)
        elif label in ENDS:
            self._pieces.ended(number, event.position)
        self._after = event.cursor

    def _ours(self, event: Event) -> None:
        """This is its `turn`: what is told of that number is told here."""
        self._number = event.captures["n"]
        self._pieces.accepted(self._number, event.position)

    def _is_ours(self, event: Event) -> bool:
        said = event.value.keywords
        return (said.get("request"), said.get("by")) == (self._said.request, self._said.by)

    # Pieces.

    async def _previews(self, put: Put) -> None:
        while not self._over:
            await self._pieces.came.wait()
            self._pieces.came = trio.Event()
            await self._tell(put)

    async def _tell(self, put: Put, position: float = inf) -> None:
        """Tell the pieces that were told before a position."""
        async with self._telling:
            for piece in self._pieces.before(position):
                await put(Sent(piece_face(piece), "piece"))
