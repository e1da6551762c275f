"""What operations give, as types, by which it is described.

The one rule: a value of Keeve's in JSON is `Any`: `docs/json.md` says how what JSON has not got is written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct

from keeve.server.api.waiting_shapes import ApprovalFace, EffectFace, Time


class ForkedFrom(Struct):
    """Where a session was forked from."""

    session: str | None
    at: int
    deleted: bool


class SessionFace(Struct):
    """A session, as the catalog knows it."""

    id: str
    uid: str
    type: str
    seq: int
    position: int
    hash: str
    forked_from: ForkedFrom | None
    pending: Annotated[int, Meta(description="How much of its work is under way or waits.")]
    deleted: bool
    created: Time
    updated: Time


class SessionList(Struct):
    """A page of sessions."""

    sessions: list[SessionFace]
    next: Annotated[str | None, Meta(description="What `after` is for the next page; null at the end.")]


class ForkFace(Struct):
    """A fork of a session."""

    session: str
    at: int
    deleted: bool


class Shown(SessionFace):
    """A session, and what it waits for. `status` is null for a type that has none, or is not served now."""

    status: Any
    forks: list[ForkFace]
    effects: list[EffectFace]
    approvals: list[ApprovalFace]
    truncated: Annotated[
        list[Literal["forks", "effects", "approvals"]], Meta(description="Of which of these not all are here.")
    ]


class PartFace(Struct):
    """Another actor of a session, which a field of its first actor leads to, as a `Model` or a `Toolbox`."""

    type: str
    actor: int
    fields: dict[str, Any]


class StateFace(Struct):
    """A session as it was after one of its records: the public fields of its first actor."""

    session: str
    type: str
    seq: int
    hash: Annotated[str, Meta(description="Of that record.")]
    time: Time
    fields: dict[str, Any]
    parts: Annotated[
        dict[str, PartFace], Meta(description="By the field that leads to it: what an actor of the session's own has.")
    ]
    next: Annotated[
        str | None,
        Meta(description="What `after` is for the next part, with `seq` as `at`; null at the end."),
    ]


class TurnFace(Struct):
    """A turn."""

    turn: int
    seq: int
    end: int | None
    state: Literal["open", "done", "failed", "interrupted"]
    began: Time
    ended: Time | None
    input: Any
    output: Any
    error: Any
    usage: Any
    limit: Any
    by: Any
    via: Any
    request: Any
    model_answers: int
    tool_calls: list[str]
    failed_calls: int
    refused_calls: int
    unknown_calls: int


class TurnList(Struct):
    """A page of turns."""

    turns: list[TurnFace]
    next: int | None


class MessageList(Struct):
    """A page of the conversation, in OpenAI's chat form."""

    messages: list[Any]
    next: int | None
    count: Annotated[int, Meta(description="How many there are. An agent of one's own may have fewer than before.")]


class TurnDone(Struct):
    """What a turn came to."""

    session: str
    turn: Annotated[int | None, Meta(description="Its number; null where it joined another turn.")]
    output: Any
    usage: Any
    limit: str | None


class Accepted(Struct):
    """An input that was accepted; its turn is to come, or it joins the one that runs (`joins`)."""

    session: str
    turn: int
    joins: bool
    seq: int
    cursor: str


class Interrupted(Struct):
    """The turn that was ended; null if there was none to end. `answer`: what the `interrupt` of a type gave that states
    no turns, or whatever else one gave."""

    session: str
    turn: int | None
    answer: Any = UNSET


class SnapshotFace(Struct):
    """A snapshot."""

    session: str
    seq: int
    root: str
    hash: str


class Deleted(Struct):
    """A session that is gone."""

    session: str
    deleted: bool


class SaidWord(Struct):
    """What a person has said."""

    session: str
    id: str
    said: Literal["approved", "refused"]
    reason: str


class Settled(Struct):
    """An effect that has its outcome."""

    id: str
    session: str
    settled: Literal["value", "error", "again"]


class EventFace(Struct):
    """A fact that was asserted or retracted."""

    position: int
    session: str
    seq: int
    operation: int
    kind: Literal["assert", "retract"]
    label: str
    fields: list[Any]
    keywords: Any
    captures: Any
    text: str
    time: Time
    hash: str
    cursor: str


class UnreadableFace(Struct):
    """A record that cannot be read, and might have matched."""

    position: int
    session: str
    seq: int
    kind: Literal["unreadable"]
    what: str
    away: Annotated[bool, Meta(description="It is not damaged: content of it is in an archive that is not there.")]
    cursor: str


class EventList(Struct):
    """Events. Reading goes on after `cursor`; `more` says that there is more up to `until`."""

    events: list[EventFace]
    unreadable: Annotated[list[UnreadableFace], Meta(description="With `marks`: what cannot be read.")]
    cursor: str
    more: bool


class HeldFace(Struct):
    """A fact that holds."""

    position: int
    session: str
    seq: int
    operation: int
    label: str
    fields: list[Any]
    keywords: Any
    captures: Any
    text: str
    time: Time


class HeldList(Struct):
    """Facts that hold."""

    facts: list[HeldFace]
    more: bool
    at: Annotated[int, Meta(description="The position at which they hold.")]
    next: Annotated[str | None, Meta(description="What `after` is for the next page; null at the end.")]


class CheckpointFace(Struct):
    """The newest signed checkpoint; with `since`, what a witness takes."""

    origin: str
    size: int
    root: str
    note: str
    extension: str | None


class KeyList(Struct):
    """The verifier keys of the log, the one that signs now last."""

    keys: list[str]


class ReceiptFace(Struct):
    """What proves that a record is in the log; with `words`, what it has stated."""

    receipt: str
    words: str | None
    position: int
    session: Annotated[str, Meta(description="The uid of the session.")]
    seq: int
    time: Time
    hash: str


class CellFace(Struct):
    """A longer text of what a record has stated."""

    number: int
    data: Annotated[str, Meta(description="Its bytes, salt and type before them, in base64.")]


class WordsFace(Struct):
    """What a record has stated, as its hash covers it; all of it in base64."""

    deeds: Annotated[str, Meta(description="The digest of what it did.")]
    salt: str
    facts: str
    cells: Annotated[list[CellFace], Meta(description="One that was erased is not there.")]


class WantedFace(Struct):
    """An effect that a record wants."""

    effect: int
    device: str
    method: str


class OfFace(Struct):
    """What a record is of, in names and numbers."""

    method: Annotated[str | None, Meta(description="What was called.")]
    effect: Annotated[int | None, Meta(description="The effect that has started, or ended.")]
    by: Annotated[str | None, Meta(description="Who asked.")]
    via: str | None
    request: str | None
    calls: list[WantedFace]


class LinkFace(Struct):
    """A record of a chain."""

    seq: int
    position: int
    of: Annotated[OfFace | None, Meta(description="Null where that cannot be read.")]
    header: Annotated[str, Meta(description="The bytes that its hash is the SHA-256 of, in base64.")]
    words: Annotated[WordsFace | None, Meta(description="With `words`, if it has stated anything.")]


class ChainFace(Struct):
    """The records of a session, its ancestors' among them, in order."""

    records: list[LinkFace]
    next: Annotated[int | None, Meta(description="What `after` is for the next page; null at the end.")]


class VerifyFace(Struct):
    """Whether everything is what was written: docs/verification.md has the fields."""

    format: int
    sound: bool
    integrity: Any
    completeness: Any
    counts: Any
    sessions: int
    snapshots: int
    troubles: list[Any]


class ReclaimedFace(Struct):
    """What went from the files: pieces of what was deleted, pages of old snapshots, and pieces that archives had."""

    sessions: Annotated[int, Meta(description="Deleted sessions that were seen to.")]
    bodies: int
    pages: int
    archived: int


class ArchivedFace(Struct):
    """What went to an archive, or came back."""

    folder: Annotated[str | None, Meta(description="Where it went; null: it came back.")]
    segments: int
    pieces: int
    bytes: int
    whole: Annotated[list[str], Meta(description="Sessions that keep all they have.")]
    idle: Annotated[int, Meta(description="Sessions that did not count, since they have done nothing since.")]
    records: Annotated[int, Meta(description="How many of the pieces are what records did.")]
    bases: Annotated[int, Meta(description="Sessions that wrote their whole heap for that.")]
    waiting: Annotated[list[str], Meta(description="Sessions that keep what they need, since they wait for something.")]


class About(Struct):
    """The server, and who asks it."""

    version: str
    log: Annotated[str, Meta(description="The id of the log.")]
    head: Annotated[str, Meta(description="The cursor at its end.")]
    principal: str
    verbs: list[str]
    models: list[str]
    types: list[str]


class ErrorBody(Struct):
    """What was wrong, and what to do."""

    code: Annotated[str, Meta(description="Stable.")]
    message: str
    remedy: str
    type: str
    param: str | None
    request_id: str | None


class ErrorFace(Struct):
    """The one shape of everything that is refused."""

    error: ErrorBody
