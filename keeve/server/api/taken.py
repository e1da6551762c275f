"""What operations take, as types: it is read by them, and described by them.

The one rule: a name that a type has not is refused.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from keeve.looking import CONVERSATION

Count = Annotated[int, Meta(ge=1, le=1000)]
Seq = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class Taken(Struct, forbid_unknown_fields=True):
    """The base of what is taken: a name that it has not is refused."""


# Queries.


class ListQuery(Taken):
    """A page of the list, in the order of ids."""

    prefix: Annotated[str, Meta(max_length=200, description="Only those whose ids begin so.")] = ""
    after: Annotated[str, Meta(max_length=200, description="Only those that follow this id.")] = ""
    limit: Count = 100
    deleted: Annotated[bool, Meta(description="Those that were deleted as well; to admin alone.")] = False


class PageQuery(Taken):
    """A page of what a session has, in order."""

    after: Annotated[Number, Meta(description="Only those that follow this one.")] = 0
    limit: Count = 100


class WaitingQuery(Taken):
    """A page of what waits."""

    after: Annotated[str, Meta(max_length=300, description="What `next` was.")] = ""
    limit: Count = 100


class AllWaitingQuery(WaitingQuery):
    """A page of what waits in sessions."""

    session: Annotated[str | None, Meta(description="Only what this session waits for.")] = None


class StateQuery(Taken):
    """As of when."""

    at: Annotated[Seq | None, Meta(description="After the record at this seq; else now.")] = None
    after: Annotated[
        str,
        Meta(max_length=300, description="What `next` was; with the `seq` of the first part as `at`."),
    ] = ""


class DeleteQuery(Taken):
    """How to delete."""

    force: Annotated[bool, Meta(description="Also while it has work under way, which is abandoned.")] = False


class DataspaceQuery(Taken):
    """Which events."""

    pattern: Annotated[str, Meta(max_length=10_000, description="A fact with holes: (turn . _).")] = "(_ . _)"
    after: Annotated[str, Meta(max_length=300, description="start, head, a position or a cursor.")] = "start"
    until: Annotated[str | None, Meta(description="head, a position or a cursor; as a stream, none: for ever.")] = None
    session: Annotated[str | None, Meta(description="Only what this session has stated.")] = None
    lineage: Annotated[bool, Meta(description="With session: what its ancestors stated before it was forked too.")] = (
        False
    )
    limit: Count = 100
    pieces: Annotated[
        bool, Meta(description="As events, with session: what models say of the answers that they are giving, too.")
    ] = False
    head: Annotated[
        bool, Meta(description="As events, with session: how far the session is, now and after each record, too.")
    ] = False
    marks: Annotated[bool, Meta(description="As JSON: name what cannot be read, and go on; else it is an error.")] = (
        False
    )


class FactsQuery(Taken):
    """Which facts hold."""

    pattern: Annotated[str, Meta(max_length=10_000, description="A fact with holes.")] = "(_ . _)"
    at: Annotated[Number | None, Meta(description="At this position; else now.")] = None
    session: str | None = None
    lineage: bool = False
    after: Annotated[
        str, Meta(max_length=40, description="What `next` was; with the same `at`, nothing is missed.")
    ] = "0"
    limit: Count = 100


class CheckpointQuery(Taken):
    """Which checkpoint."""

    since: Annotated[Number | None, Meta(description="What a witness has seen.")] = None


class ChainQuery(Taken):
    """Which records of a session, in order."""

    after: Annotated[Number, Meta(description="Only those that follow this seq.")] = 0
    limit: Count = 100
    words: Annotated[bool, Meta(description="What each has stated, as its hash covers it, as well.")] = False


class ReceiptQuery(Taken):
    """What goes with a receipt."""

    words: Annotated[bool, Meta(description="What the record has stated, proven, as well.")] = False


# Bodies.


class NewSession(Taken):
    """A session to be made. Without an id it is given one."""

    id: str | None = None
    type: Annotated[str, Meta(description="The registered name of its actor type.")] = CONVERSATION
    fields: Annotated[dict[str, Any], Meta(description="What it begins with: system, model, max_steps and so on.")] = {}


class Said(Taken):
    """An input: a text, or a list of content parts."""

    input: str | list[dict[str, Any]]


class Interrupt(Taken):
    """Which turn is to end: the one of that number, or the one that runs."""

    turn: Number | None = None


class Fork(Taken):
    """Where the new session parts: after the record at a seq, after a turn, or now."""

    at: Seq | None = None
    turn: Seq | None = None
    into: Annotated[str | None, Meta(description="The id of the new session; else one is made.")] = None


class Word(Taken):
    """A person's word on a call."""

    approve: bool
    reason: Annotated[str, Meta(max_length=10_000)] = ""


class Outcome(Taken):
    """What came of an effect: exactly one of these."""

    value: Any = UNSET
    error: str | None = None
    again: bool = False


class Archive(Taken):
    """What is to go to an archive, and where that is."""

    into: Annotated[str, Meta(max_length=4096, description="A folder of the server's machine, from the root.")]
    before: Annotated[Seq | None, Meta(description="Only segments whose records all come before this position.")] = None
    keep: Annotated[Number, Meta(description="So many of the newest segments stay as they are.")] = 0
    idle: Annotated[bool, Meta(description="With all content of sessions that have done nothing since.")] = False
    records: Annotated[bool, Meta(description="With what old records did, but for what they state.")] = False


class BringBack(Taken):
    """From where it is to come back."""

    folder: Annotated[str | None, Meta(description="Where the archive is now; else where it went.")] = None
