"""`keeve approve` and `keeve refuse`: a person's word on a call that waits for it.

The one rule: what is said takes the same way into the log as from a program, and nothing else is taken up.
"""

from __future__ import annotations

from functools import partial

import trio

from keeve.cli.options import OWNER_OPTIONS, OwnerOptions
from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.where import Where


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
    trio.run(partial(_say, common.where, common.output, session, call, None, common.own))
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
    trio.run(partial(_say, common.where, common.output, session, call, reason, common.own))
    return 0


async def _say(where: Where, output: Output, session: str, call: str, refused: str | None, own: Own) -> None:
    """Approve of a call, or refuse it for a reason.

    Raises `NoSuchSession`, `Deleted`, `NothingWaits`, `SeveralWait`, `StoreOwned`, `NoSuchActors`; `UnknownActorType`
    for a session whose code is not here: that takes the word at once.
    """
    async with where.acting(own) as store:
        await store.say(session, call, refused)
        passing = store.passing
    said = "approved" if refused is None else "refused"
    if output.as_json:
        output.document({"session": session, "id": call, "said": said, "reason": refused or ""})
    else:
        output.say(f"{said} {call}")
        if passing:
            output.note(f"the next host that opens this store goes on with {session}")
