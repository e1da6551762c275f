"""`keeve log`: the events that match a pattern, past and live.

The one rule: read on from a cursor to the head, wait, look again. Each event carries the cursor after it, so that
whoever stops goes on with `--after` where it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Event, Unreadable
from dataspace.patterns import parse
from keeve.cli.faces import event_face
from keeve.cli.output import Output
from keeve.cli.reading import Reading
from keeve.cli.text import local_time, visible

LOOK_AGAIN = 0.1
"""Seconds between two looks at what a store's owner has published."""


def after_of(text: str) -> Any:
    """What `--after` says: `start`, `head`, a position, or a cursor. Raises `BadCursor`."""
    if text in ("start", "head"):
        return text
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else Cursor.parse(text)


def check(pattern: str, after: str) -> None:
    """See to it, before a store is opened, that there is something to look for. Raises `BadPattern`, `BadCursor`."""
    parse(pattern)
    after_of(after)


async def tell_log(
    store: Reading,
    output: Output,
    pattern: str,
    *,
    after: str,
    session: str | None,
    lineage: bool,
    limit: int | None,
    follow: bool,
    wait: Callable[[float], Awaitable[None]] = trio.sleep,
) -> int:
    """Tell of the events after `after`; with `follow` for ever. Gives 1 when a record could not be read.

    Raises `BadPattern`, `WrongCursor`, `NoSuchSession`, `Deleted`.
    """
    asked = parse(pattern)
    if session is not None:
        store.session(session)
    cursor = store.space.places.at(after_of(after))
    left = -1 if limit is None else limit
    code, told = 0, False
    while True:
        # What comes while these are told is found the next time.
        upto = store.space.cursor
        reading = store.space.observe(asked, after=cursor, until=upto, marks=True, session=session, lineage=lineage)
        async for item in reading:
            if isinstance(item, Unreadable):
                _tell_unreadable(output, item)
                code = 1
            elif isinstance(item, Event):
                _tell(output, item)
                told = True
                left -= 1
                if not left:
                    return code
        if not follow:
            if not told and not code:
                output.note(f"no event matches {asked}")
            return code
        cursor = max(cursor, upto, key=lambda place: place.position)
        while store.store.refresh().position <= upto.position:
            await wait(LOOK_AGAIN)
        store.space.catch_up()


def _tell(output: Output, event: Event) -> None:
    if output.as_json:
        output.document(event_face(event))
        return
    where = f"{event.position:>6}  {local_time(event.time)}  {visible(event.session) or '(the store)'}"
    output.say(f"{where}  {stated(event)}")


def stated(event: Event) -> str:
    """What an event asserts (`+`) or retracts (`-`)."""
    return f"{'+' if event.kind == 'assert' else '-'} {visible(str(event.value))}"


def _tell_unreadable(output: Output, item: Unreadable) -> None:
    """The others go on."""
    what = f"session {item.session} cannot be read at seq {item.seq} (position {item.position}): {item.what}"
    output.note(what, "red")
    if output.as_json:
        output.document(
            {
                "position": item.position,
                "session": item.session,
                "seq": item.seq,
                "kind": "unreadable",
                "what": item.what,
                "cursor": str(item.cursor),
            }
        )
