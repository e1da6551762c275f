"""A person's word on a call that waits for it, at whichever actor of the session it waits.

The one rule: what is said takes the same way into the log as from a program.
"""

from __future__ import annotations

from typing import ClassVar

from actors import NothingWaits
from dataspace.errors import KeeveError
from keeve.looking.reading import Reading, reading_of
from keeve.looking.waiting import CACHE, waits_of
from snapshots.cache import PageCache
from vat.host.host import Host
from vat.host.outside import beside


class SeveralWait(KeeveError, LookupError):
    """Several actors of a session have a call of the same id that waits."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str, id: str, several: int) -> None:
        super().__init__(
            f"{several} calls {id!r} of session {session!r} wait, each at an actor of its own: have a program "
            "approve or refuse through a ref to the one that is meant"
        )


async def say_word(host: Host, session: str, call: str, refused: str | None) -> None:
    """Approve of a call, or refuse it for a reason.

    Raises `NoSuchSession`, `Deleted`, `NothingWaits`, `SeveralWait`; `UnknownActorType` for a session whose code is not
    here: that takes the word at once.
    """
    approvals = beside(await host.get(session), _asking(reading_of(host), session, call))
    await (approvals.approve(call) if refused is None else approvals.refuse(call, refused))


def _asking(store: Reading, session: str, call: str) -> int:
    """The number of the actor at which a call waits."""
    waiting = waits_of(store, store.session(session), PageCache(CACHE)).approvals
    found = [each.actor for each in waiting if each.id == call]
    if not found:
        raise NothingWaits(call, tuple(each.id for each in waiting))
    if len(found) > 1:
        raise SeveralWait(session, call, len(found))
    return found[0]
