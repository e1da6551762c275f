"""Waking: sessions that nobody asked for are brought into memory, because something waits that they must see to.

At the start those with pending work (when there are many, most of them while the host is at work already); later those
of which something could not be made durable, once the store writes again, or has had some time. Loading does the rest.

The one rule: what wakes a session may be lost; what it wakes it for is in its heap, or with who has its outcome.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log

log = logging.getLogger("keeve")


class Waking:
    """Wakes sessions. `wake` has one brought into memory when its turn comes; `name` says what it is called."""

    def __init__(self, wake: Callable[[bytes], None], retry: float, name: Callable[[bytes], str] = bytes.hex) -> None:
        self._wake = wake
        self._name = name
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
        """Wake these, one after another: others have their turns between them, and not all are in memory at once."""
        for uid in uids:
            try:
                self._wake(uid)
            except KeeveError as error:
                what = "session %s may have work pending, and is looked up again later: %s"
                log.warning(what, self._name(uid), in_log(error))
                self.later(uid)
            await trio.lowlevel.checkpoint()
