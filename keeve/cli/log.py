"""`keeve log`: the events that match a pattern, past and live.

The one rule: read on from a cursor to the head, wait, look again. Each event carries the cursor after it, so that
whoever stops goes on with `--after` where it was.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from datetime import datetime
from functools import partial
from math import inf
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from dataspace.errors import KeeveError
from dataspace.observe.events import Away, Event, Unreadable
from dataspace.observe.places import place_of
from dataspace.patterns import parse
from keeve.cli.options import OPTIONS, Flag, Options
from keeve.cli.output import Output
from keeve.cli.stores import Looks
from keeve.cli.text import local_time, visible
from keeve.faces import event_face

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def log(
    pattern: str,
    /,
    *,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative="")] = False,
    after: str = "start",
    until: str | None = None,
    session: str | None = None,
    lineage: Annotated[bool, Flag] = False,
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    common: Options = OPTIONS,
) -> int:
    """Show the events that match a pattern, past and (with --follow) live. With --json, one line of JSON for each.

    A pattern is a fact with holes: `_` is anything, `?name` captures, `. _` leaves the rest open.

    ```
    keeve log '(turn . _)' --follow
    keeve log '(turn-done ?n "s1" . _)' --session s1 --json
    keeve log '(_ . _)' --after 2026-11-30T01:18 --until 2026-11-30T01:19
    ```

    Parameters
    ----------
    pattern
        What to look for.
    follow
        Go on with what comes, until Ctrl-C.
    after
        Where to begin: start, head, a position, or the cursor that an event carried; or a time, as 2026-11-30T01:18 (in
        your zone), 2026-11-30T01:18Z or with an offset: then what was recorded later.
    until
        Where to end: a position, or a time: then what was recorded up to that.
    session
        Only what this session has stated.
    lineage
        With --session: what its ancestors stated before it was forked, too.
    limit
        End after so many.
    """
    check(pattern, after, until, follow=follow)
    how: dict[str, Any] = {"after": after, "until": until, "session": session, "lineage": lineage}
    return common.looked_at(partial(tell_log, output=common.output, pattern=pattern, limit=limit, follow=follow, **how))


class BadTime(KeeveError, ValueError):
    """A text that begins as a time does, and is none."""

    usage: ClassVar[bool] = True

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no time: write it as 2026-11-30T01:18, 2026-11-30T01:18:30Z or with +01:00")


class NoEnd(KeeveError, ValueError):
    """What goes on with what comes was to end somewhere."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__("--follow goes on with what comes, and --until ends it: give one of them")


def time_of(text: str) -> int | None:
    """The time (µs since 1970) that an ISO text names, in the local zone if it says none; None if it begins otherwise.

    Raises `BadTime`.
    """
    if _DAY.match(text) is None:
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1_000_000)
    except (ValueError, OverflowError, OSError) as error:
        raise BadTime(text) from error


class Span(NamedTuple):
    """What part of a log is told: places, and times (µs since 1970) between which a record was made."""

    after: Any = "start"
    until: Any = None
    later: float = -inf
    upto: float = inf

    def has(self, event: Event) -> bool:
        """Whether an event's record is of these times. The end is in them."""
        return self.later < event.time <= self.upto


def span_of(after: str, until: str | None) -> Span:
    """What `--after` and `--until` say. Raises `BadCursor`, `BadTime`."""
    later, upto = time_of(after), None if until is None else time_of(until)
    return Span(
        place_of(after) if later is None else "start",
        place_of(until) if until is not None and upto is None else None,
        -inf if later is None else later,
        inf if upto is None else upto,
    )


def check(pattern: str, after: str, until: str | None, *, follow: bool) -> None:
    """See to it, before a store is opened, that there is something to look for.

    Raises `BadPattern`, `BadCursor`, `BadTime`, `NoEnd`.
    """
    parse(pattern)
    span_of(after, until)
    if follow and until is not None:
        raise NoEnd


async def tell_log(
    store: Looks,
    output: Output,
    pattern: str,
    *,
    after: str = "start",
    until: str | None = None,
    session: str | None,
    lineage: bool,
    limit: int | None,
    follow: bool,
) -> int:
    """Tell of the events after `after` up to `until`; with `follow` for ever. Gives 1 when a record could not be read.

    Positions are in the order of the log. Times need not be: a clock may be set back between two sessions' records. So
    all that matches is read, and what was recorded at another time is left out.

    Raises `BadPattern`, `WrongCursor`, `NoSuchSession`, `Deleted`.
    """
    asked = parse(pattern)
    row = None if session is None else await store.look("row", id=session)
    span = span_of(after, until)
    left = -1 if limit is None else limit
    code, told = 0, False
    events = store.events(asked, after=span.after, until=span.until, session=session, lineage=lineage, follow=follow)
    async with aclosing(events) as items:
        async for item in items:
            if isinstance(item, Unreadable):
                _tell_unreadable(output, item)
                code = 1
            elif span.has(item):
                _tell(output, item)
                told = True
                left -= 1
                if not left:
                    return code
    if not told and not code:
        own = row is not None and row["forked_from"] is not None and not lineage
        hint = f" in {session} itself; --lineage shows what came before the fork as well" if own else ""
        output.note(f"no event matches {asked}{hint}")
    return code


def _tell(output: Output, event: Event) -> None:
    if output.as_json:
        output.document(event_face(event))
        return
    where = f"{event.position:>6}  {local_time(event.time)}  {visible(event.session) or '(the store)'}"
    output.say(f"{where}  {stated(event.kind, str(event.value))}")


def stated(kind: str, fact: str) -> str:
    """What an event asserts (`+`) or retracts (`-`)."""
    return f"{'+' if kind == 'assert' else '-'} {visible(fact)}"


def _tell_unreadable(output: Output, item: Unreadable) -> None:
    """The others go on."""
    away = isinstance(item, Away)
    said = "is not here" if away else "cannot be read"
    what = f"session {item.session} {said} at seq {item.seq} (position {item.position}): {item.what}"
    output.note(what, "yellow" if away else "red")
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
