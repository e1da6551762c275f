"""Repetitions: what was made, or answered, for a request to which the host puts something before it is carried out.

A server gives the sessions that it makes the tools that it has, and a request that names no model the first of its own.
All that may be another one when the request comes again, or not to be had. So such a request is known by what the
client sent (`sent`), and whoever puts something to it asks here first whether it was carried out.

The one rule: nothing is looked at here but what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from vat.crank.vat import Step, Vat, known_request
from vat.heap.heap import ROOT_ACTOR
from vat.heap.messages import Sent
from vat.host.host import Host
from vat.host.outside import HostRef, place, reaching, sent_digest


def sent(request: str | None, what: str, *content: Any) -> Sent | None:
    """A request by its id and what the client sent, for a call or a spawn to be made with it; None without an id.

    what: what it asks for, so that no digest of another kind is the same. Raises `NotAValue`.
    """
    if request is None:
        return None
    return Sent(request, sent_digest(what, *content))


def also_as(host: Host, other: str) -> Host:
    """The same host, asked by the same person, who is called `other` at another door: a request that was made there
    is not made again, and its id is not for another one."""
    same = copy(host)
    same._asker = host._asker._replace(other=other)
    return same


def is_made(host: Host, request: str | Sent | None) -> bool:
    """Whether a session was made for a request of who asks, whatever was sent with it. Raises `Deleted`."""
    return request is not None and host._sessions.spawned(host._asker.requesting(request)) is not None


def made_for(host: Host, request: str | Sent | None) -> HostRef[Any] | None:
    """The session that was made for a request of who asks; None where there is none.

    Of a `Sent`, only where the same was sent. Raises `Deleted`. Costs the reading of a record.
    """
    found = None if request is None else host._sessions.spawned(host._asker.requesting(request))
    if found is None or not (found[1] or isinstance(request, str)):
        return None
    return reaching(host.directory, found[0], ROOT_ACTOR)


async def is_known(host: Host, ref: HostRef[Any], request: str | Sent | None) -> bool:
    """Whether the session behind a ref knows a request of who holds it; of a `Sent`, with the same sent.

    Costs its place among the session's messages.
    """
    if request is None:
        return False
    asker = ref._asker.requesting(request)
    known: list[Any] = []

    def look(vat: Vat) -> Sequence[Step]:
        known.append(known_request(vat.heap, asker))
        return ()

    await host._engine.done(place(ref)[0], look)
    return known[0] is not None and asker.sent in (None, known[0][0])
