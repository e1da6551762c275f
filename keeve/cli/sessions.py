"""`keeve ls` and `keeve show`: which sessions there are, and what one of them holds.

The one rule: read, never loaded. A session whose actor type is not known here is shown like any other.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from actors.responding import Responding
from actors.session import Session
from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.log.archives import Archived
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.events import Event
from keeve.cli.fields import fields_in_words
from keeve.cli.log import stated
from keeve.cli.output import Output
from keeve.cli.reading import Reading
from keeve.cli.text import counted, local_time, shortened
from keeve.cli.waiting import (
    CACHE,
    Waits,
    approval_face,
    called,
    effect_face,
    fiber_face,
    since,
    state_in_words,
    waits_for,
    waits_in,
)
from keeve.faces import Turn, event_face, fields_face, session_face, turns_of
from snapshots.cache import PageCache
from vat.heap.pending import stored_heap
from vat.objects.types import type_of

NEWEST: Final = 10
"""Facts of a type's own that are shown."""

CONVERSATIONS: Final = frozenset(type_of(type).name for type in (Session, Responding))
"""The types whose fields people are shown as turns."""


def list_sessions(store: Reading, output: Output, *, prefix: str, after: str, limit: int | None, deleted: bool) -> None:
    """Tell of the sessions whose ids begin with `prefix` and follow `after`, at most `limit` of them."""
    rows = islice(
        store.sessions(prefix, after=after, deleted=deleted), None if limit is None else min(limit, sys.maxsize)
    )
    if output.as_json:
        output.document({"sessions": [session_face(row, store.name(row.parent)) for row in rows]})
        return
    table = [
        (
            row.id,
            "deleted" if row.deleted else f"{row.pending} pending" if row.pending else "",
            str(row.seq),
            local_time(row.updated),
            row.type,
            "" if row.parent is None else f"fork of {store.name(row.parent)} at {row.parent_seq}",
        )
        for row in rows
    ]
    if table:
        output.table(("SESSION", "STATE", "SEQ", "UPDATED", "TYPE", "ORIGIN"), table)
    else:
        output.note(
            "no sessions" + (f" that begin with {prefix!r}" if prefix else "") + (f" after {after!r}" if after else "")
        )


@attrs.frozen
class Shown:
    """What `show` found. `damage` is why it could not read all of it."""

    row: SessionRow
    parent: str | None
    turns: list[Turn]
    facts: list[Event]
    """The newest that its type has stated, or that say that a fiber failed; the newest last."""
    fields: dict[str, Any]
    """By name: in JSON, or for people as texts."""
    forks: list[tuple[str, int]]
    waits: Waits
    snapshots: list[int]
    damage: KeeveError | None
    owner: int | None
    """The process that has the store."""

    def face(self, store: Reading) -> dict[str, Any]:
        """All of it in JSON."""
        return {
            **session_face(self.row, self.parent),
            "turns": [turn.face for turn in self.turns],
            "fields": self.fields,
            "facts": [event_face(event) for event in self.facts],
            "forks": [{"session": into, "at": at} for into, at in self.forks],
            "snapshots": self.snapshots,
            "effects": [effect_face(effect, self.owner) for effect in self.waits.effects],
            "approvals": [approval_face(call) for call in self.waits.approvals],
            "fibers": [fiber_face(fiber, self.waits, store) for fiber in self.waits.fibers],
            "damage": None if self.damage is None else str(self.damage),
        }


def find_session(store: Reading, id: str, *, whole: bool) -> Shown:
    """All that is shown of a session; `whole`: with its fields in JSON. Raises `NoSuchSession` or `Deleted`.

    Costs a reading of its records, and a restore.
    """
    row = store.session(id)
    damages: list[KeeveError] = []
    facts: deque[Event] = deque(maxlen=NEWEST)
    told = _readable(partial(store.space.query, "(_ . _)", session=row.uid, lineage=True), damages)
    turns = turns_of(_keeping(told, facts))
    told = _readable(partial(store.space.query, "(fork ? . _)", session=row.uid), damages)
    forks = [(str(event.value.keywords.get("into")), _number(event.value.keywords.get("at"))) for event in told]
    waits = Waits()
    fields: dict[str, Any] = {}
    try:
        heap, lineage = stored_heap(row, store.catalog, store.store.read, PageCache(CACHE))
        waits = waits_in(row, heap, lineage)
        fields = fields_face(heap) if whole else {} if row.type in CONVERSATIONS else fields_in_words(heap)
    except KeeveError as error:
        damages.append(error)
    snapshots = [snapshot.seq for snapshot in store.catalog.snapshots(row.uid)]
    damage = min(damages, key=lambda each: isinstance(each, Archived), default=None)
    return Shown(row, store.name(row.parent), turns, list(facts), fields, forks, waits, snapshots, damage, store.owner)


def show_session(store: Reading, output: Output, id: str) -> int:
    """Tell of one session. Gives 1 when a part of it could not be read."""
    shown = find_session(store, id, whole=output.as_json)
    if output.as_json:
        output.document(shown.face(store))
        return 0 if shown.damage is None else 1
    row = shown.row
    output.say(shown.row.id, "bold")
    output.say(f"  type     {row.type}")
    output.say(f"  head     seq {row.seq}, position {row.position}, hash {row.hash.hex()[:16]}…")
    output.say(f"  created  {local_time(row.created)}")
    output.say(f"  updated  {local_time(row.updated)}")
    if row.parent is not None:
        output.say(f"  fork of  {shown.parent} at seq {row.parent_seq}")
    for into, at in shown.forks:
        output.say(f"  fork     {into} at seq {at}")
    if shown.snapshots:
        output.say(f"  snapshot at seq {shown.snapshots[0]}")
    output.say(f"  pending  {_pending(shown)}")
    for call in shown.waits.approvals:
        output.say(f"  approval {call.id} of {call.name}, since {local_time(since(call))}")
    for fiber in shown.waits.fibers:
        what = waits_for(fiber, shown.waits, store)
        output.say(f"  fiber    {fiber.number}, {fiber.method}, since {local_time(fiber.since)}, waits for {what}")
    for name, text in shown.fields.items():
        output.say(f"  field    {name}: {text}")
    for event in shown.facts:
        output.say(f"  fact     {shortened(stated(event), 200)}, seq {event.seq}, {local_time(event.time)}")
    for turn in shown.turns:
        _show_turn(output, turn)
    if shown.damage is not None:
        away = isinstance(shown.damage, Archived)
        what = "not all of it is here, and what is not is left out" if away else "not all of it can be read"
        output.note(f"{what}: {shown.damage}", "red")
        return 1
    return 0


def _pending(shown: Shown) -> str:
    if not shown.row.pending:
        return "nothing"
    names = [f"{called(each)} ({state_in_words(each, shown.owner)})" for each in shown.waits.effects]
    more = shown.row.pending - len(names)
    return ", ".join(names + ([f"{more} messages or subscriptions"] if more else []))


def _show_turn(output: Output, turn: Turn) -> None:
    seqs = f"seq {turn.seq}" if turn.end in (0, turn.seq) else f"seq {turn.seq}–{turn.end}"
    ended = turn.state if turn.limit is None else f"{turn.state} at the limit of {turn.limit}"
    output.say(f"turn {turn.number}  {ended}, {local_time(turn.began)}, {seqs}", "dim")
    output.say(f"  > {shortened(in_words(turn.input), 400)}")
    if turn.calls:
        ends = ((turn.failed, "failed"), (turn.refused, "refused"), (turn.unknown, "of unknown outcome"))
        ended = "".join(f", {count} {how}" for count, how in ends if count)
        output.say(f"  {counted(len(turn.calls), 'tool call')} ({', '.join(sorted(set(turn.calls)))}){ended}")
    if turn.state == "done":
        output.say(f"  {shortened(in_words(turn.output), 400)}")
    elif turn.error is not None:
        output.say(f"  {shortened(in_words(turn.error), 400)}", "red")


def in_words(content: Any) -> str:
    """What people read of an input, an output or an error.

    >>> in_words([{"role": "tool", "content": "wet"}, {"role": "user", "content": "and now?"}])
    '[tool: wet] and now?'
    """
    if content is None:
        return "(nothing)"
    if isinstance(content, str):
        return content
    if isinstance(content, dict) and "error" in content:
        return f"{content['error']}: {content.get('message', '')}"
    if isinstance(content, list):
        return " ".join(map(_part_in_words, content))
    return f"[{str(content).lower()}]"


def _part_in_words(part: Any) -> str:
    if isinstance(part, dict) and "text" in part:
        return str(part["text"])
    if isinstance(part, dict) and "role" in part:  # a message: of a request that brought several
        said = in_words(part.get("content"))
        return said if part["role"] == "user" else f"[{part['role']}: {said}]"
    return f"[{_kind(part)}]"


def _kind(part: Any) -> str:
    return str(part.get("type", "object")) if isinstance(part, dict) else type(part).__name__


def _readable(query: Callable[..., Iterator[Event]], damages: list[KeeveError]) -> Iterator[Event]:
    """The events up to the first record that is damaged. Those are left out whose content is archived and not here."""
    after: Any = "start"
    while True:
        try:
            yield from query(after=after)
        except SessionDamaged as error:
            damages.append(error)
        except Archived as error:
            damages.append(error)
            after = error.position
            continue
        return


def _keeping(events: Iterable[Event], facts: deque[Event]) -> Iterator[Event]:
    """The same events; those of users' own facts, and of fibers that failed unheard, are kept in `facts`."""
    for event in events:
        if "." in event.value.label or event.value.label == "fiber-failed":
            facts.append(event)
        yield event


def _number(value: Any) -> int:
    return value if type(value) is int else 0
