"""`keeve log`: the events that match a pattern, past and live.

The one rule: read on from a cursor to the head, wait, look again. Each event carries the cursor after it, so that
whoever stops goes on with `--after` where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dataspace.cursor import Cursor
from dataspace.events import Event
from dataspace.patterns import parse
from keeve.cli.faces import event_face
from keeve.cli.output import Output
from keeve.cli.reading import Reading
from keeve.cli.text import moment, visible

LOOK_AGAIN = 0.1
"""Seconds between two looks at what a store's owner has published."""


def place(text: str) -> Any:
    """What `--after` says: `start`, `head`, a position, or a cursor. Raises `BadCursor`."""
    if text in ("start", "head"):
        return text
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else Cursor.parse(text)


def check(pattern: str, after: str) -> None:
    """See to it, before a store is opened, that there is something to look for. Raises `BadPattern`, `BadCursor`."""
    parse(pattern)
    place(after)


def tell_log(
    store: Reading,
    output: Output,
    pattern: str,
    *,
    after: str,
    session: str | None,
    lineage: bool,
    limit: int | None,
    follow: bool,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Tell of the events after `after`; with `follow` for ever. Raises `BadPattern`, `WrongCursor`, `NoSuchSession`."""
    asked = parse(pattern)
    if session is not None:
        store.session(session)
    cursor: Any = place(after)
    left = -1 if limit is None else limit
    while left:
        # What comes while these are told is found the next time.
        upto = store.space.cursor
        for event in store.space.query(asked, after=cursor, upto=upto, session=session, lineage=lineage):
            _tell(output, event)
            left -= 1
            if not left:
                return
        if not follow:
            return
        cursor = upto if isinstance(cursor, str) and cursor == "start" else _later(store, cursor, upto)
        _await(store, upto, wait)


def _later(store: Reading, cursor: Any, upto: Cursor) -> Cursor:
    """The place to go on from: never before the one that was asked for."""
    asked = store.space.places.at(cursor)
    return asked if asked.position > upto.position else upto


def _await(store: Reading, seen: Cursor, wait: Callable[[float], None]) -> None:
    while store.store.refresh().position <= seen.position:
        wait(LOOK_AGAIN)
    store.space.catch_up()


def _tell(output: Output, event: Event) -> None:
    if output.as_json:
        output.document(event_face(event))
        return
    sign = "+" if event.kind == "assert" else "-"
    where = f"{event.position:>6}  {moment(event.time)}  {visible(event.session) or '(the store)'}  {sign} "
    output.say(where + visible(str(event.value)))
