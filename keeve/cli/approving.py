"""`keeve approve` and `keeve refuse`: a person's word on a call that waits for it.

The one rule: what is said takes the same way into the log as from a program, and nothing else is taken up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import trio

from actors import NothingWaits
from dataspace.errors import KeeveError
from keeve.cli.app import OWNER_OPTIONS, OwnerOptions
from keeve.cli.output import Output
from keeve.cli.owning import owning
from keeve.cli.reading import must_be_there, reading
from keeve.cli.waiting import CACHE, waits_of
from snapshots.cache import PageCache
from vat.host.outside import beside


class SeveralWait(KeeveError, LookupError):
    """Several actors of a session have a call of the same id that waits."""

    usage = True

    def __init__(self, session: str, id: str, several: int) -> None:
        super().__init__(
            f"{several} calls {id!r} of session {session!r} wait, each at an actor of its own: have a program "
            "approve or refuse through a ref to the one that is meant"
        )


def approve(session: str, call: str, /, *, common: OwnerOptions = OWNER_OPTIONS) -> int:
    """Approve of a call that waits for a person.

    The next host that opens the store makes the call.

    ```
    keeve approve s1 call_1
    ```

    Parameters
    ----------
    session
        The id of the session.
    call
        The id of the call, as `keeve effects` tells it.
    """
    trio.run(partial(_say, common.store, common.output, session, call, None, common.own))
    return 0


def refuse(session: str, call: str, reason: str = "", /, *, common: OwnerOptions = OWNER_OPTIONS) -> int:
    """Refuse a call that waits for a person: it is never made, and who wanted it is told the reason.

    ```
    keeve refuse s1 call_1 'that is too much'
    ```

    Parameters
    ----------
    session
        The id of the session.
    call
        The id of the call, as `keeve effects` tells it.
    reason
        Why, in words.
    """
    trio.run(partial(_say, common.store, common.output, session, call, reason, common.own))
    return 0


async def _say(
    folder: Path, output: Output, session: str, call: str, refused: str | None, actors: Sequence[str]
) -> None:
    """Approve of a call, or refuse it for a reason.

    Raises `NoSuchSession`, `Deleted`, `NothingWaits`, `SeveralWait`, `StoreOwned`, `NoSuchActors`; `UnknownActorType`
    for a session whose code is not here: that takes the word at once.
    """
    actor = _asking(folder, session, call)
    async with owning(folder, actors) as host:
        approvals = beside(await host.get(session), actor)
        await (approvals.approve(call) if refused is None else approvals.refuse(call, refused))
    said = "approved" if refused is None else "refused"
    if output.as_json:
        output.document({"session": session, "id": call, "said": said, "reason": refused or ""})
    else:
        output.say(f"{said} {call}")
        output.note(f"the next host that opens this store goes on with {session}")


def _asking(folder: Path, session: str, call: str) -> int:
    """The number of the actor at which a call waits."""
    must_be_there(folder)
    with reading(folder) as store:
        waiting = waits_of(store, store.session(session), PageCache(CACHE)).approvals
    found = [each.actor for each in waiting if each.id == call]
    if not found:
        raise NothingWaits(call, tuple(each.id for each in waiting))
    if len(found) > 1:
        raise SeveralWait(session, call, len(found))
    return found[0]
