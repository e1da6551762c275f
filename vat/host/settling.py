"""Settling once: a person gives an effect of a session its outcome, with a request id.

Asked again with that id, whoever settled it is answered as the first time, also after a restart; and nothing is done.
The answer to the request is in one record with what makes it true: the outcome (`Ended`), or that the effect starts
again (`Chain.started`).

The one rule: the session is asked whether it knows the request before anything else is looked at, since an effect that
was settled is not there any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vat.crank.vat import Step, Vat
from vat.heap.heap import ROOT_ACTOR
from vat.heap.messages import Call, Sent
from vat.host.host import Host
from vat.host.resolving import EffectStatus, NoSuchEffect


async def settle(
    host: Host,
    session: str,
    effect: str,
    request: Sent | None,
    outcome: Callable[[EffectStatus], Mapping[str, Any]],
) -> None:
    """Settle an effect of a session, as `Host.resolve` does with the keywords that `outcome` gives for it.

    Raises what that raises, `NoSuchSession`, `Deleted`, and `RequestConflict` for an id of something else.
    """
    host._sessions.must_write()
    row, resolving = host.row(session), host._resolving
    asker = host._asker.requesting(request)
    call = Call(ROOT_ACTOR, "resolve", [effect], asker=asker, digest=asker.sent)
    if await _answered(host, row.uid, call):
        return
    found = next((each for each in resolving.effects(row.id) if each.id == effect), None)
    try:
        if found is None:
            raise await resolving.none_waits(effect, row)
        await resolving.resolve(effect, asker, **outcome(found))
    except NoSuchEffect:
        if not await _answered(host, row.uid, call):  # else the same request came twice at once
            raise


async def _answered(host: Host, uid: bytes, call: Call) -> bool:
    """Whether a session has answered a request, durably. Raises `RequestConflict`."""
    if call.asker.request is None:
        return False
    known = False

    def look(vat: Vat) -> Sequence[Step]:
        nonlocal known
        repeated = vat.repeated(call)
        known = repeated is not None
        return () if repeated is None else (repeated,)

    await host._engine.done(uid, look)
    return known
