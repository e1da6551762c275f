"""What sessions wait for: open effects (timers are some), calls that a person has to approve of, fibers, and promises.

The one rule: read from what is stored, never loaded. A session that cannot be read hides no other.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs

from actors import WaitingCall, approvals_in
from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from keeve.faces import face, utc_time
from keeve.looking.reading import Reading
from snapshots.cache import PageCache
from vat.heap.deadlines import deadline_of
from vat.heap.heap import Heap
from vat.heap.pending import OpenEffect, effects_in, read_stored
from vat.heap.restore import Lineage
from vat.heap.waits import Source, WaitingFiber, askers_in, fibers_in, owed_in
from vat.host.resolving import EffectStatus
from vat.objects.views import ListView, MapView, SetView

LATEST = 253_370_764_800
"""Seconds since 1970 until the year 9999, in all zones."""


@attrs.frozen
class UnreadSession:
    """A session of which it cannot be read what it waits for, and why."""

    session: str
    error: KeeveError


@attrs.frozen
class Waits:
    """All that one session waits for. `promises` are told where there is nothing else: what settles those that are not
    settled. `askers` are other sessions, by uid, that wait for its answers."""

    effects: tuple[OpenEffect, ...] = ()
    approvals: tuple[WaitingCall, ...] = ()
    fibers: tuple[WaitingFiber, ...] = ()
    askers: frozenset[bytes] = frozenset()
    promises: tuple[Source, ...] = ()


def waits_of(store: Reading, row: SessionRow, cache: PageCache) -> Waits:
    """What a session waits for. Raises what a restore raises, and costs one."""
    return read_stored(row, store.catalog, store.store.read, cache, partial(waits_in, row))


def waits_in(row: SessionRow, heap: Heap, lineage: Lineage) -> Waits:
    """What a session waits for, that has this heap."""
    effects, approvals = tuple(effects_in(heap, row)), tuple(approvals_in(heap, row.id))
    fibers, askers = tuple(fibers_in(heap, row, lineage)), frozenset(askers_in(heap))
    promises = () if effects or approvals or fibers else tuple(owed_in(heap))
    return Waits(effects, approvals, fibers, askers, promises)


# Effects.


def due(effect: OpenEffect | EffectStatus) -> int:
    """When a timer comes, in µs since 1970, at the latest in the last year that has a name; 0 for any other effect."""
    at = deadline_of(effect.args, effect.keywords) if (effect.device, effect.method) == ("timer", "until") else None
    return 0 if at is None else max(1, int(min(at, LATEST) * 1_000_000))


def effect_face(effect: OpenEffect | EffectStatus, state: str) -> dict[str, Any]:
    """An open effect in JSON: the fields of `EffectStatus`, and when it is due if it is a timer.

    Of a collection, as the messages that a model is asked with, it says how long that is, and reads nothing of it.
    """
    return {
        "id": effect.id,
        "session": effect.session,
        "device": effect.device,
        "method": effect.method,
        "args": face([_given(arg) for arg in effect.args]),
        "keywords": face({name: _given(arg) for name, arg in effect.keywords.items()}),
        "state": state,
        "due": utc_time(due(effect)) if due(effect) else None,
    }


def _given(arg: Any) -> Any:
    return f"({len(arg)} items)" if isinstance(arg, ListView | MapView | SetView) else arg


# Approvals.


def approval_face(call: WaitingCall) -> dict[str, Any]:
    """A call that waits for a person, in JSON."""
    return {
        "id": call.id,
        "session": call.session,
        "turn": call.turn,
        "name": call.name,
        "arguments": face(call.arguments),
        "since": utc_time(since(call)),
    }


def since(call: WaitingCall) -> int:
    """When a call began to wait, in µs since 1970."""
    return int(call.since * 1_000_000)


# Fibers.


def fiber_face(fiber: WaitingFiber, waits: Waits, store: Reading) -> dict[str, Any]:
    """A fiber in JSON. `mode` says what of `waits_for` it needs: `all`, the `first`, or all `values`."""
    return {
        "fiber": fiber.number,
        "session": fiber.session,
        "type": fiber.type,
        "version": fiber.version,
        "actor": fiber.actor,
        "method": fiber.method,
        "parts": fiber.parts,
        "seq": fiber.seq,
        "since": utc_time(fiber.since),
        "mode": fiber.mode,
        "waits_for": [_source_face(source, waits, store) for source in fiber.sources],
    }


def promise_face(session: str, source: Source, waits: Waits, store: Reading) -> dict[str, Any]:
    """A promise of a session in JSON, with what settles it."""
    return {"promise": source.promise, "session": session, "waits_for": [_source_face(source, waits, store)]}


def _source_face(source: Source, waits: Waits, store: Reading) -> dict[str, Any]:
    kind, number = source.kind, source.number
    if kind == "effect":
        effect = next((effect for effect in waits.effects if effect.number == number), None)
        return {"kind": kind} if effect is None else {"kind": kind, "effect": effect.id}
    if kind == "actor":
        call = next((call for call in waits.approvals if call.promise == source.promise), None)
        return {"kind": kind, "actor": number} if call is None else {"kind": "approval", "approval": call.id}
    if kind == "fiber":
        return {"kind": kind, "fiber": number}
    if kind == "session":
        return {"kind": kind, "session": store.name(source.uid) or source.uid.hex()}
    return {"kind": kind}
