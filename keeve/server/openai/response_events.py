"""Telling a turn as the events of the Responses API.

Every event has a number. They follow from what is said in the end and not from the pieces in which it came: a delta
counts as many as it has characters, and its number is that of its last one. So whoever was cut off after some number is
given the rest from there (`after`), whenever and by whichever process, cut within a delta if need be.

The one rule: an event whose number is not above `after` was sent before. The last one is always sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from keeve.server.openai.items import Json, call_item, came, message_item, text_in, text_part
from keeve.server.openai.objects import label_of, response_of, status_of

Tell = Callable[[Json], Awaitable[None]]


@attrs.define
class Open:
    """An item that is being told: what of its text was sent, and what the model has said in this attempt."""

    item: Json
    index: int
    start: int
    """The number of the first character."""
    sent: str = ""
    said: str = ""
    level: bool = True
    """Whether what was sent is what was said."""
    closed: bool = False

    def more(self, piece: str) -> str:
        """What of the text can be sent now; nothing while an attempt is not beyond what another one has said."""
        self.said += piece
        if self.level:
            new = piece
        elif self.said.startswith(self.sent):
            new, self.level = self.said[len(self.sent) :], True
        else:
            new = ""
        self.sent += new
        return new

    def again(self) -> None:
        """Another attempt begins."""
        self.said, self.level = "", not self.sent


class ResponseEvents:
    """Tells one turn: `tell` is given each event above `after`. A `Teller` of `keeve.server.openai.following`."""

    def __init__(self, tell: Tell, uid: bytes, after: int = -1) -> None:
        self._tell = tell
        self._uid = uid
        self._after = after
        self._number = 0
        self._output: list[Json] = []
        self._text: Open | None = None
        self._calls: list[Open] = []
        self._named: dict[str, Open] = {}
        """Calls of the last answer that are carried out here, by id, in their order, until they were told as over."""
        self._came: dict[str, Mapping[str, Any]] = {}
        self._next = 0
        """The number of the message that is being told."""
        self._turn: Mapping[str, Any] = {}
        self._theirs: frozenset[str] = frozenset()
        self._one_kind = False
        self._label = "tools"

    # The story.

    async def began(self, turn: Mapping[str, Any]) -> None:
        self._turn = turn
        asked = turn["asked"]
        self._theirs = frozenset(tool["function"]["name"] for tool in asked.get("tools", ()))
        self._one_kind = bool(asked) and (asked["own"] is False or not self._theirs)
        self._label = label_of(turn)
        begun = {**turn, "status": "queued" if turn["status"] == "queued" else "in_progress", "span": {}}
        for kind in ("response.created", "response.in_progress"):
            await self._event(kind, response=response_of(begun, self._uid, []))

    async def text(self, number: int, piece: str) -> None:
        if self._calls:
            return  # the calls have been told already, and this belongs before them
        self._next = number
        if self._text is None:
            await self._open_text()
        assert self._text is not None
        await self._delta(
            "response.output_text.delta", self._text, self._text.more(piece), content_index=0, logprobs=[]
        )

    async def call(self, number: int, at: int, id: str, name: str, piece: str) -> None:
        self._next = number
        # In what order calls of both kinds will stand is not known before the answer is whole.
        if at == len(self._calls) and id and name and self._one_kind:
            if self._text is not None and not self._text.closed and self._text.level:
                await self._close_text({"role": "assistant", "content": self._text.said})
            if self._text is None or self._text.level:
                function = {"name": name, "arguments": ""}
                await self._open_call({"id": id, "function": function}, at, own=name not in self._theirs)
        if at < len(self._calls):
            open = self._calls[at]
            await self._delta(_arguments(open, "delta"), open, open.more(piece))

    async def again(self) -> None:
        for open in (self._text, *self._calls):
            if open is not None:
                open.again()

    async def answered(self, number: int, message: Mapping[str, Any], own: int) -> None:
        self._next = number
        calls = message.get("tool_calls") or ()
        if message.get("content") or message.get("refusal") or not calls:
            if self._text is None:
                await self._open_text()
            await self._close_text(message)
        for at, call in enumerate(calls):
            if at == len(self._calls):
                await self._open_call(call, at, at < own)
            await self._close_call(self._calls[at], call, at, at < own)
        self._text, self._calls, self._came = None, [], {}

    async def came(self, message: Mapping[str, Any]) -> None:
        self._came[message["tool_call_id"]] = message
        # In the order of the calls, whichever is over first.
        while self._named and (id := next(iter(self._named))) in self._came:
            open = self._named.pop(id)
            open.item |= came(self._came.pop(id))
            over = "completed" if open.item["status"] == "completed" else "failed"
            await self._event(f"response.mcp_call.{over}", item_id=open.item["id"], output_index=open.index)
            await self._event("response.output_item.done", item=dict(open.item), output_index=open.index)

    async def ended(self, turn: Mapping[str, Any]) -> None:
        status = status_of(turn)
        kind = status if status in ("completed", "failed") else "incomplete"
        self._after = min(self._after, self._number - 1)
        await self._event(f"response.{kind}", response=response_of(turn, self._uid))

    # Its parts.

    async def _event(self, kind: str, **said: Any) -> None:
        number, self._number = self._number, self._number + 1
        if number > self._after:
            await self._tell({"type": kind, "sequence_number": number, **said})

    async def _delta(self, kind: str, open: Open, text: str, **said: Any) -> None:
        if not text:
            return
        first = self._number
        self._number += len(text)
        text = text[max(0, self._after + 1 - first) :]
        if text:
            place = {"item_id": open.item["id"], "output_index": open.index}
            await self._tell({"type": kind, "sequence_number": self._number - 1, **place, "delta": text, **said})

    async def _opened(self, item: Json) -> Open:
        index = len(self._output)
        self._output.append(item)
        await self._event("response.output_item.added", item={**item, **_empty(item)}, output_index=index)
        return Open(item, index, self._number)

    async def _open_text(self) -> None:
        item = message_item({"role": "assistant", "content": None}, self._uid, self._next, "in_progress")
        self._text = open = await self._opened(item)
        place = {"item_id": item["id"], "output_index": open.index, "content_index": 0}
        await self._event("response.content_part.added", part=text_part(""), **place)
        open.start = self._number

    async def _close_text(self, message: Mapping[str, Any]) -> None:
        open = self._text
        assert open is not None
        if open.closed:
            return
        open.closed = True
        text = text_in(message.get("content"))
        place = {"item_id": open.item["id"], "output_index": open.index, "content_index": 0}
        await self._rest("response.output_text.delta", open, text, content_index=0, logprobs=[])
        open.said = open.sent = text
        open.item |= message_item(message, self._uid, self._next) | {"id": open.item["id"]}
        await self._event("response.output_text.done", text=text, logprobs=[], **place)
        await self._event("response.content_part.done", part=text_part(text), **place)
        await self._event("response.output_item.done", item=dict(open.item), output_index=open.index)

    async def _rest(self, kind: str, open: Open, text: str, **said: Any) -> None:
        """What of a text was not sent yet; and the number behind all of it, also if what was sent was another one."""
        await self._delta(kind, open, text[len(open.sent) :] if text.startswith(open.sent) else "", **said)
        self._number = max(self._number, open.start + len(text))

    async def _open_call(self, call: Mapping[str, Any], at: int, own: bool) -> None:
        item = call_item(call, self._uid, self._next, at, own, self._label)
        open = await self._opened(item)
        if own:
            await self._event("response.mcp_call.in_progress", item_id=item["id"], output_index=open.index)
        open.start = self._number
        self._calls.append(open)

    async def _close_call(self, open: Open, call: Mapping[str, Any], at: int, own: bool) -> None:
        open.item |= {**call_item(call, self._uid, self._next, at, own, self._label), "id": open.item["id"]}
        arguments = open.item["arguments"]
        await self._rest(_arguments(open, "delta"), open, arguments)
        said = {"item_id": open.item["id"], "output_index": open.index, "arguments": arguments}
        await self._event(_arguments(open, "done"), **said, **({} if own else {"name": open.item["name"]}))
        if own:
            self._named[call["id"]] = open
        else:
            await self._event("response.output_item.done", item=dict(open.item), output_index=open.index)


def _arguments(open: Open, what: str) -> str:
    kind = "mcp_call" if open.item["type"] == "mcp_call" else "function_call"
    return f"response.{kind}_arguments.{what}"


def _empty(item: Json) -> Json:
    """An item as it is before anything of it is told."""
    return {"content": []} if item["type"] == "message" else {"arguments": "", "status": "in_progress"}
