"""Waking: sessions that nobody asked for are brought into memory, because something waits that they must see to.

At the start those with pending work; later those of which something could not be made durable, once the store writes
again, or has had some time. Loading does the rest.

The one rule: what wakes a session may be lost; what it wakes it for is in its heap, or with who has its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio


class Waking:
    """Wakes sessions. `wake` brings one into memory, `busy` tells whether that is going on."""

    def __init__(self, wake: Callable[[bytes], None], busy: Callable[[], bool], retry: float) -> None:
        self._wake = wake
        self._busy = busy
        self._retry = retry
        self._waiting: dict[bytes, None] = {}
        self._asked = trio.Event()
        self._written = trio.Event()

    def later(self, uid: bytes) -> None:
        """Wake a session when the store writes again."""
        self._waiting[uid] = None
        self._asked.set()

    def written(self) -> None:
        """The store has written."""
        if self._waiting:
            self._written.set()

    async def run(self) -> None:
        """Wake those that wait, for ever."""
        while True:
            await self._asked.wait()
            with trio.move_on_after(self._retry):
                await self._written.wait()
            self._asked, self._written = trio.Event(), trio.Event()
            waiting, self._waiting = self._waiting, {}
            await self.all(waiting)

    async def all(self, uids: Iterable[bytes]) -> None:
        """Wake these, one after another, so that not all of them are in memory at once."""
        for uid in uids:
            self._wake(uid)
            while self._busy():
                await trio.lowlevel.checkpoint()
