"""Standing: whoever is answered is asked for again, at each thing that is told and each second in between.

A token may end, or be revoked, while its holder follows a stream or waits for an answer. Then what was begun for it is
abandoned, as for a client that goes away; and it is told why, in the form of what it was being told.

The one rule: nothing is told to a token that is over. All that is answered to somebody who is known passes here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keeve.server.errors import Refusal

OFTEN: Final = 1.0
"""Seconds between two looks at those who are told nothing."""

Again = Callable[[str], Any]
"""Who has a token, now. Raises a `Refusal`."""


@attrs.define(eq=False)
class Held:
    """An answer that is under way. `over` says why it has to end."""

    token: str
    again: Again
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    over: Refusal | None = None

    def stands(self) -> bool:
        """Whether its token is taken yet. If not, what is done for it is cancelled."""
        if self.over is None:
            try:
                self.again(self.token)
            except Refusal as refusal:
                self.over = refusal
                self.scope.cancel()
        return self.over is None


class Standing:
    """All answers that are under way to somebody who is known."""

    def __init__(self, again: Again) -> None:
        self._again = again
        self._held: set[Held] = set()

    async def answer(self, token: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a request with that token answered by `app`. Raises a `Refusal` where nothing has been said yet."""
        held = Held(token, self._again)
        kind: bytes | None = None
        whole = False

        async def sending(message: Message) -> None:
            nonlocal kind, whole
            if not held.stands():
                await trio.lowlevel.checkpoint()  # what was being done is left here
                return
            if message["type"] == "http.response.start":
                kind = dict(message.get("headers", ())).get(b"content-type", b"")
            elif message["type"] == "http.response.body":
                whole = not message.get("more_body", False)
            await send(message)

        self._held.add(held)
        try:
            with held.scope:
                await app(scope, receive, sending)
        finally:
            self._held.discard(held)
        if held.over is None or whole:
            return
        if kind is None:
            raise held.over
        last = last_word(kind, held.over.at(scope.get("path", "")), scope["state"].get("request_id"))
        if last is not None:  # what has a length is cut off
            await send({"type": "http.response.body", "body": last, "more_body": False})

    async def watch(self) -> None:
        """Look at those who are told nothing."""
        while True:
            await trio.sleep(OFTEN)
            for held in list(self._held):
                held.stands()


def last_word(kind: bytes, refusal: Refusal, request_id: str | None) -> bytes | None:
    """What a stream of that media type ends with; None for what is no stream.

    >>> last_word(b"text/event-stream; charset=utf-8", Refusal(401, "x", "it is over"), None)[:24]
    b'event: error\\ndata: {"err'
    """
    said = json.dumps(refusal.document(request_id), ensure_ascii=False, separators=(",", ":"))
    forms = {b"text/event-stream": f"event: error\ndata: {said}\n\n", b"application/x-ndjson": f"{said}\n"}
    form = forms.get(kind.partition(b";")[0].strip())
    return None if form is None else form.encode()
