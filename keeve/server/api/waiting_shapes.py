"""What operations give of what waits, as types: effects, calls that want approval, async methods.

The one rule: as in `keeve.server.api.shapes`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Time = Annotated[str, Meta(description="UTC, as 2026-11-30T08:00:00.000000Z.")]


class EffectFace(Struct):
    """A call of a model or a tool that has no outcome yet."""

    id: str
    session: str
    device: str
    method: str
    args: Any
    keywords: Any
    state: Literal["wanted", "running", "started", "unknown"]
    due: Time | None


class EffectList(Struct):
    """A page of effects."""

    effects: list[EffectFace]
    next: Annotated[str | None, Meta(description="What `after` is for the next page; null at the end.")]


class ApprovalFace(Struct):
    """A call that waits for a person."""

    id: str
    session: str
    turn: int
    name: str
    arguments: Any
    since: Time


class ApprovalList(Struct):
    """A page of calls that wait."""

    approvals: list[ApprovalFace]
    next: Annotated[str | None, Meta(description="What `after` is for the next page; null at the end.")]


class SourceFace(Struct):
    """What an async method or a session waits for; beside its kind, the id or number of that."""

    kind: Literal["effect", "approval", "fiber", "session", "actor", "message"]
    effect: str | UnsetType = UNSET
    approval: str | UnsetType = UNSET
    fiber: int | UnsetType = UNSET
    session: str | UnsetType = UNSET
    actor: int | UnsetType = UNSET


class FiberFace(Struct):
    """An async method that waits, and since when."""

    fiber: int
    session: str
    type: str
    version: int
    actor: int
    method: str
    parts: int
    seq: int
    since: Time
    mode: Literal["all", "first", "values", "all-within", "values-within"]
    waits_for: list[SourceFace]


class PromiseFace(Struct):
    """What a session waits for that has none of the others: a promise, and what is to settle it."""

    promise: int
    session: str
    waits_for: list[SourceFace]


class UnreadFace(Struct):
    """A session of which it cannot be read what it waits for, and why."""

    session: str
    what: str
    away: Annotated[bool, Meta(description="Nothing is wrong: it is in an archive that is not in its place.")]


class WaitingList(Struct):
    """A page of what waits, by its kind."""

    effects: list[EffectFace]
    approvals: list[ApprovalFace]
    fibers: list[FiberFace]
    promises: list[PromiseFace]
    unreadable: list[UnreadFace]
    next: Annotated[str | None, Meta(description="What `after` is for the next page; null at the end.")]
