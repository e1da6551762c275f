"""What a request that is not to be kept (`store: false`) is answered in: a session of its own, deleted with the answer.

    nothing said before     a new session
    after a response        a fork at the end of that response
    in a conversation       a fork at its end, once no turn runs there

Which sessions these are stands in the record that each begins with (`VIA`), so nothing has to be written down before: a
server that was killed finds them at its next start.

The one rule: deleted is what a request has made itself. What was there before is forked, and never changed.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio
from starlette.requests import Request

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.observe.dataspace import NoSuchSession
from keeve.server.errors import Refusal
from keeve.server.serving import Serving
from keeve.server.streams import until_gone
from vat.devices.outcomes import alone
from vat.errors import Deleted
from vat.host.asking import NotRunning
from vat.host.births import IdInUse

VIA: Final = "openai, unstored"
"""The way in which such a session is asked for, in its first record. No client can have another one be made so."""

PREFIX: Final = "unstored-"
"""How their ids begin, so that they are found at once. Others may begin so as well."""

PAGE: Final = 200
"""Sessions that are swept at once."""
GONE: Final = 499
"""The status of an answer that nobody is there to read; the log has it."""

AGAIN: Final = 30.0
"""Seconds after which a deletion that failed is tried again."""


@attrs.define
class Use:
    """How many requests a session is for (a repetition finds that of the first); one looks for it at a time."""

    count: int = 0
    looking: trio.Lock = attrs.field(factory=trio.Lock)


@asynccontextmanager
async def while_there(request: Request) -> AsyncIterator[None]:
    """Give up what is done in the block when the client is gone, whose body was read: it goes on behind the block."""
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_gone, request.receive, nursery.cancel_scope)
            yield
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise alone(group) from None


class Unstored:
    """The sessions that are deleted when their request was answered."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._uses: dict[str, Use] = {}

    def id(self, by: str, key: str | None) -> str:
        """The id of the session for a request: the same one under the same key of a principal.

        It stays in the log when the session is gone, and nobody can find the key by trying keys against it.
        """
        words = secrets.token_bytes(16) if key is None else f"{by}\0{key}".encode()
        return PREFIX + hmac.digest(self._serving.secret.encode(), words, "sha256").hex()[:32]

    def use(self, id: str) -> None:
        """A request begins to be answered in that session, which need not be there yet; `let_go` is the end of it."""
        self._uses.setdefault(id, Use()).count += 1

    @asynccontextmanager
    async def looking(self, id: str) -> AsyncIterator[SessionRow | None]:
        """Look for the session of that id, which was begun to be used; it may be made in the block if it is None.

        Raises a `Refusal` (410) where it was deleted: the request was answered.
        """
        async with self._uses[id].looking:
            try:
                row = self._serving.host.row(id)
            except NoSuchSession:
                yield None
                return
            except Deleted:
                what = "this request was answered before, and its answer was not kept (store: false)"
                raise Refusal(410, "deleted", what, "ask again with another Idempotency-Key") from None
            if not self.holds(row):
                raise IdInUse(id)
            yield row

    def holds(self, row: SessionRow) -> bool:
        """Whether a session is one of these."""
        try:
            return row.id.startswith(PREFIX) and self._serving.host.made_by(row.id)[1] == VIA
        except KeeveError:
            return False  # it cannot be read, and so it cannot be deleted either

    async def let_go(self, id: str) -> None:
        """A request was answered, or is given up. With the last one of a session it is deleted, whatever it does."""
        use = self._uses[id]
        use.count -= 1
        if use.count:
            return
        del self._uses[id]
        with trio.CancelScope(shield=True):
            await self._delete(id)

    async def _delete(self, id: str, *, again: bool = False) -> bool:
        """Delete a session; gives whether there is nothing more to do."""
        try:
            await self._serving.host.asking(self._serving.host.made_by(id)[0], VIA).delete(id, force=True)
        except (NoSuchSession, Deleted, NotRunning):
            return True
        except KeeveError as error:
            if not again:
                self._serving.log.warning(
                    "a session that was not to be kept is there yet", session=id, why=in_log(error)
                )
                self._serving.nursery.start_soon(self._later, id)
            return False
        return True

    async def _later(self, id: str) -> None:
        while True:
            await trio.sleep(AGAIN)
            if await self._delete(id, again=True):
                return

    async def sweep(self) -> None:
        """Delete those that a server has left which did not come to its end. Before any request comes.

        Costs a record for each of them, and the reading of one for each session whose id begins so.
        """
        after = PREFIX
        while page := self._serving.host.sessions(PREFIX, after=after, limit=PAGE):
            async with trio.open_nursery() as nursery:
                for row in page:
                    if self.holds(row):
                        nursery.start_soon(self._delete, row.id)
                    await trio.lowlevel.checkpoint()
            after = page[-1].id
