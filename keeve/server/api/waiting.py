"""What waits for a person: calls that want approval, and effects of which nobody knows what came.

The one rule: a word that is said counts once; what does not wait any more is refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import UNSET

from keeve import looking
from keeve.server.api.sessions import approvals_of, effects_of, reached, values
from keeve.server.api.table import Asked, Document
from vat.host.resolving import BadOutcome


async def list_waiting(asked: Asked) -> Document:
    """What the sessions wait for that who asks can reach, or one of them."""
    serving, query = asked.serving, asked.query
    principal, auth = serving.principal(asked.request), serving.auth
    store = looking.reading_of(serving.host, partial(auth.reaches, principal), exact=True)
    how: dict[str, Any] = {"after": query.after, "limit": query.limit}
    if query.session is None:
        page = await looking.look(store, "waiting", how)
    else:
        page = await looking.look(store, "waits", {"id": auth.row(principal, query.session, "read").id, **how})
    return {kind: page[kind] for kind in (*looking.KINDS, "next")}


async def list_approvals(asked: Asked) -> Document:
    """The calls that wait for a person."""
    host, _, row = await reached(asked, "read")
    approvals, following = await approvals_of(host, row, asked.query.after, asked.query.limit)
    return {"approvals": approvals, "next": following}


async def say_word(asked: Asked) -> Document:
    """Yes, or no and why."""
    host, _, row = await reached(asked, "manage")
    call, body = asked.path("call"), asked.body
    await looking.say_word(host, row.id, call, None if body.approve else body.reason, asked.key)
    said = "approved" if body.approve else "refused"
    return {"session": row.id, "id": call, "said": said, "reason": body.reason}


async def list_effects(asked: Asked) -> Document:
    """The effects of a session that have no outcome."""
    host, _, row = await reached(asked, "read")
    effects, following = await effects_of(host, row, asked.query.after, asked.query.limit)
    return {"effects": effects, "next": following}


async def resolve_effect(asked: Asked) -> Document:
    """What came of it, or that it is to run once more."""
    host, _, row = await reached(asked, "manage")
    id, body = asked.path("effect"), asked.body
    given: dict[str, Any] = {}
    if body.value is not UNSET:
        given["value"] = values(body.value, "value")
    if body.error is not None:
        given["error"] = body.error
    if body.again:
        given["again"] = True
    if len(given) != 1:
        raise BadOutcome("give one of them")
    await looking.resolve(host, row.id, id, given, asked.key)
    return {"id": id, "session": row.id, "settled": next(iter(given))}
