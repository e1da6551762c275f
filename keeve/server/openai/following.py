"""Following one turn: what happens in it, as a story that is told in order, and ends with the turn.

    began(turn)                what was said before anybody listened
    text(number, piece)        a piece of the answer that is being given, which will be the message of that number
    call(number, at, id, name, piece)   a piece of a call in it
    again()                    another attempt: of the answer that is being given, what was told is void
    answered(number, message, own)      an answer is whole: what it is, whatever was told of it before
    came(message)              what a call of the answer before came to, as the model is told it
    ended(turn)                the end

What is whole comes from the log, pieces from the effects that run (`host.on_progress`). A piece is told with the newest
position of the log at that moment, so it is put between the events that stand before and after it.

The one rule: the story is whole without the pieces. Where it is not sure from their first one on, none is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import trio

from actors.chat import told
from actors.messages import UNKNOWN, tool_message
from dataspace.observe.events import CaughtUp, Event, Unreadable
from keeve.faces import ENDS
from keeve.server.heard import Heard
from keeve.server.openai.drafts import Draft
from vat.host.host import Host
from vat.host.outside import HostRef
from vat.host.pieces import Piece


class Teller(Protocol):
    """What is told the story. Each of these may wait, and whoever waits holds up nothing but this."""

    async def began(self, turn: Mapping[str, Any]) -> None: ...
    async def text(self, number: int, piece: str) -> None: ...
    async def call(self, number: int, at: int, id: str, name: str, piece: str) -> None: ...
    async def again(self) -> None: ...
    async def answered(self, number: int, message: Mapping[str, Any], own: int) -> None: ...
    async def came(self, message: Mapping[str, Any]) -> None: ...
    async def ended(self, turn: Mapping[str, Any]) -> None: ...


class Story:
    """A turn as it is told to a teller: how far it is."""

    def __init__(self, teller: Teller, number: int) -> None:
        self.teller = teller
        self.number = number
        """That of the message that comes next."""
        self.answers = 0
        """How many answers were told."""
        self.own: set[str] = set()
        """Calls of the last answer that are carried out here, and have no outcome yet."""

    async def message(self, number: int, message: Mapping[str, Any], own: int) -> None:
        """Tell a message that is whole; of an answer's calls the first `own` are carried out here."""
        self.number = number + 1
        if message["role"] == "assistant":
            self.answers += 1
            self.own = {call["id"] for call in (message.get("tool_calls") or ())[:own]}
            await self.teller.answered(number, message, own)
        elif message["role"] == "tool":
            self.own.discard(message["tool_call_id"])
            await self.teller.came(message)

    async def piece(self, piece: Piece) -> None:
        """Tell a piece of the answer that is being given."""
        if piece.text:
            await self.teller.text(self.number, piece.text)
        delta = piece.value.get("delta") if isinstance(piece.value, dict) else None
        for at, call in enumerate(delta.get("tool_calls") or () if isinstance(delta, dict) else ()):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                place = call.get("index", at)
                id, name, more = map(_text, (call.get("id"), function.get("name"), function.get("arguments")))
                await self.teller.call(self.number, place if type(place) is int else at, id, name, more)


class TurnFollower:
    """One turn of a session, from when this was made until `close`; so it is made before the turn is asked for.

    Whoever makes it closes it, also where `run`, which tells the story, is never come to.
    """

    def __init__(self, host: Host, ref: HostRef[Any], session: str, model: str, heard: Heard) -> None:
        self._host = host
        self._heard_before = heard
        self._ref = ref
        self._session = session
        self._model = model
        self._events = host.observe("(_ . _)", after="head", session=session, marks=True)
        self._draft = Draft()
        self._end = host.on_progress(self._told, session)
        self._turn = 0
        self._first: int | None = None
        """The seq of the record in which the turn began."""
        self._behind = False
        """Whether events may come that were told already, since they are in what was read at the beginning."""

    def close(self) -> None:
        """Hear no more."""
        self._end()

    def _told(self, piece: Piece) -> None:
        """A running effect of the session tells something."""
        if piece.device == self._model and piece.method == "complete":
            self._draft.hear(piece)

    async def run(self, n: int, teller: Teller) -> None:
        """Tell the story of turn `n` from its beginning."""
        self._turn = n
        turn = await self._ref.response(n)
        await teller.began(turn)
        story = Story(teller, turn["span"].get("out", 0))
        for each in turn["output"]:
            await story.message(each["number"], each["message"], each["own"])
        if "to" in turn["span"] or turn["status"] not in ("queued", "in_progress"):
            await teller.ended(turn)
            return
        self._first = turn["span"].get("first")
        if turn["status"] == "in_progress":
            self._take_up()
        one_at_a_time = trio.Lock()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hear, story, one_at_a_time)
            async for item in self._events:
                async with one_at_a_time:
                    if await self._happened(item, story):
                        break
            nursery.cancel_scope.cancel()
        await teller.ended(await self._ref.response(n))

    def _take_up(self) -> None:
        """What was told before this was made of the answer that is being given comes first, in its place."""
        for effect in self._host.effects(self._session):
            if (effect.device, effect.method) == (self._model, "complete"):
                before = self._heard_before.of(self._session, effect.id)
                if before is not None:
                    self._draft.take_up(before)

    async def _hear(self, story: Story, one_at_a_time: trio.Lock) -> None:
        while True:
            await self._draft.came.wait()
            self._draft.came = trio.Event()
            async with one_at_a_time:
                await self._flush(self._events.cursor.position, story)

    async def _flush(self, position: int, story: Story) -> None:
        """Tell what was said when the log ended there, or before."""
        for piece in self._draft.upto(position):
            if piece is None:
                await story.teller.again()
            else:
                await story.piece(piece)

    async def _happened(self, item: Event | CaughtUp | Unreadable, story: Story) -> bool:
        """One more item of the log; gives whether the turn is over with it."""
        if not isinstance(item, Event):
            await self._flush(item.cursor.position, story)
            return False
        await self._flush(item.position - 1, story)
        fact = item.value
        label, said = fact.label, fact.keywords
        if self._first is None and label in ENDS:
            self._first = (await self._ref.response(self._turn))["span"].get("first")
        if item.seq == self._first and not story.answers:
            self._draft.begins()
        if not fact.fields or fact.fields[0] != self._turn or item.kind != "assert":
            return False
        if label == "model-output":
            await self._answer(fact.fields[2], said["message"], story)
        elif label in ("tool-result", "tool-unknown") and not self._behind and fact.fields[2] in story.own:
            content = UNKNOWN if label == "tool-unknown" else told(said["output"])
            await story.message(story.number, tool_message(fact.fields[2], content), 0)
        elif label == "steered" and not self._behind:
            story.number += 1
        return label in ENDS

    async def _answer(self, step: int, message: Mapping[str, Any], story: Story) -> None:
        self._behind = step < story.answers
        if step <= story.answers:
            return
        turn = await self._ref.response(self._turn, since=story.number)
        answer = next(each for each in turn["output"] if each["message"]["role"] == "assistant")
        await story.message(answer["number"], message, answer["own"])
        self._draft.begins()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
