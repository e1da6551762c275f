"""The newest part of the catalog, in memory: what has been noted and is not yet in SQLite.

A `Recent` is an index of consecutive records: addresses by position, and by session a `Thread` (what its
records said and where they are). It answers the same questions as the tables, for its own positions only,
and is what one transaction writes.

The one rule: noting a record costs the same whatever is in here, and nothing is ever taken out: a `Recent`
is dropped whole when the tables hold it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dataspace.catalog.recall import UNREADABLE, Notable
from dataspace.drafts import Assertion, Handle, loaded
from dataspace.log.marks import Head, Mark
from dataspace.records import STORE_UID, Kind
from dataspace.values import thaw

_NOTHING: Final[tuple[str, ...]] = ()
_PLAIN: Final = frozenset(Kind) - {
    Kind.SPAWN,
    Kind.FORKED,
    Kind.SNAPSHOT,
    Kind.BASE,
    Kind.DELETE,
    Kind.CREATED,
    Kind.ERASE,
    Kind.RECLAIMED,
    Kind.SALVAGED,
}


class SessionRow(NamedTuple):
    """What the catalog knows of a session.

    `seq`, `position` and `hash` are its head's; `parent` is the uid that it was forked from at `parent_seq`
    (`None` and 0 if it was not); `pending` counts what must be woken after a restart; `deleted` is the
    position of its tombstone, or 0; `created` and `updated` are times in microseconds.
    """

    uid: bytes
    id: str
    type: str
    seq: int
    position: int
    hash: bytes
    parent: bytes | None
    parent_seq: int
    pending: int
    deleted: int
    created: int
    updated: int

    def __repr__(self) -> str:
        said = ((name, value.hex() if isinstance(value, bytes) else value) for name, value in self._asdict().items())
        return f"SessionRow({', '.join(f'{name}={value!r}' for name, value in said)})"


class Taken(NamedTuple):
    """An assertion (at `position`, by `operation`) that was taken back at `gone` by session `by` (its `seq`).

    `own` when the session that took it back had stated it; a fork may take back what it inherited, for itself.
    """

    position: int
    operation: int
    label: str
    by: bytes
    seq: int
    gone: int
    own: bool


class Birth(NamedTuple):
    """What a session's first record says of it. `by` had it made; "" where that is not known."""

    id: str
    type: str
    parent: bytes | None
    parent_seq: int
    created: int
    by: str = ""


def nameless(uid: bytes, time: int) -> Birth:
    """For a session whose first record cannot be read: it is listed all the same, by the one name that is left."""
    return Birth(uid.hex(), "", None, 0, time)


class Unplaced(NamedTuple):
    """What was taken back where nobody could tell which record had stated it: `handle`, by session `by` (its `seq`), at
    position `gone`."""

    handle: Handle
    by: bytes
    seq: int
    gone: int


Origin = Callable[[bytes, Handle], "tuple[str, int, bytes] | None"]
"""What a handle in a session's lineage names: the label (`UNREADABLE` where that cannot be read), the position (0 where
nobody can tell now) and the session of the assertion."""


class Thread:
    """The consecutive records of one session: from seq `first`, their positions and the labels of each."""

    __slots__ = (
        "birth",
        "deleted",
        "first",
        "hash",
        "pending",
        "positions",
        "seq",
        "shapes",
        "snapshots",
        "time",
        "uid",
    )

    def __init__(self, uid: bytes, first: int) -> None:
        self.uid = uid
        self.first = first
        self.positions: list[int] = []
        self.shapes: list[tuple[str, ...]] = []
        self.seq = 0
        self.hash = b""
        self.time = 0
        self.pending = 0
        self.deleted = 0
        self.birth: Birth | None = None
        self.snapshots: list[tuple[int, bool]] = []

    def over(self, before: SessionRow | None) -> SessionRow:
        """The session as it is after these records, given what it was `before` them."""
        birth = self.birth
        if birth is None and before is not None:
            birth = Birth(before.id, before.type, before.parent, before.parent_seq, before.created)
        elif birth is None:
            birth = nameless(self.uid, self.time)
        deleted = self.deleted or (before.deleted if before else 0)
        return SessionRow(
            self.uid,
            birth.id,
            birth.type,
            self.seq,
            self.positions[-1],
            self.hash,
            birth.parent,
            birth.parent_seq,
            0 if deleted else self.pending,
            deleted,
            birth.created,
            self.time,
        )


class Recent:
    """The records after `start` that have been noted. `before` is the head there, `head` the last one's, and `mark` the
    log's at that.

    A posting is `position * 2`, or `position * 2 + 1` for a retraction. `erasing` gathers the records that say that
    content is erased, or gone; `unplaced` what was taken back, and is yet to be found; `nodes` are those of the tree
    over these records that need not be made again.
    """

    __slots__ = (
        "addresses",
        "before",
        "erasing",
        "hashes",
        "head",
        "ids",
        "mark",
        "nodes",
        "postings",
        "start",
        "taken",
        "threads",
        "unplaced",
    )

    def __init__(self, start: Head) -> None:
        self.before = start
        self.start = start.position
        self.head = start
        self.mark: Mark | None = None
        self.addresses: list[int] = []
        self.hashes: list[bytes] = []
        self.nodes: Mapping[int, bytes] = {}
        self.threads: dict[bytes, Thread] = {}
        self.ids: dict[str, bytes] = {}
        self.postings: dict[str, list[int]] = {}
        self.taken: list[Taken] = []
        self.erasing: list[Notable] = []
        self.unplaced: list[Unplaced] = []

    def __len__(self) -> int:
        return len(self.addresses)

    def note(self, record: Notable, origin: Origin) -> None:
        """Index the next record. O(statements)."""
        uid = record.uid
        position = record.position
        thread = self.threads.get(uid)
        if thread is None:
            thread = self.threads[uid] = Thread(uid, record.seq)
        self.addresses.append(record.address)
        self.hashes.append(record.hash)
        thread.positions.append(position)
        thread.seq = record.seq
        thread.hash = record.hash
        thread.time = record.time
        thread.pending = record.pending
        if record.kind not in _PLAIN:
            self._tell(record, thread)
        statements = record.statements
        if not statements:
            thread.shapes.append(_NOTHING)
            return
        labels: tuple[str, ...] = _NOTHING
        for statement in statements:
            posting = position * 2
            if type(statement) is Assertion:
                label = statement.fact.label
            else:
                found = origin(uid, statement.handle)
                if found is None:
                    continue
                label, asserted, by = found
                posting += 1
                handle = statement.handle
                if asserted:
                    self.taken.append(Taken(asserted, handle.operation, label, uid, record.seq, position, by == uid))
                else:
                    self.unplaced.append(Unplaced(handle, uid, record.seq, position))
            listed = self.postings.get(label)
            if listed is None:
                self.postings[label] = [posting]
            else:
                listed.append(posting)
            if label not in labels:
                labels += (label,)
        thread.shapes.append(labels)

    def _tell(self, record: Notable, thread: Thread) -> None:
        """Take in what a record of the runtime's own says, whose message may be one that cannot be read."""
        kind = record.kind
        if kind in (Kind.ERASE, Kind.RECLAIMED, Kind.SALVAGED):
            if record.uid == STORE_UID:
                self.erasing.append(record)
            return
        said = None if record.message is None else thaw(record.message, loaded)
        if kind == Kind.CREATED:
            thread.birth = Birth("", "", None, 0, record.time)
        elif kind == Kind.DELETE:
            thread.deleted = record.position
            if thread.birth is None or thread.birth.id == record.uid.hex():
                self._bury(_buried(said), thread)
        elif kind in (Kind.SNAPSHOT, Kind.BASE):
            thread.snapshots.append((record.seq, kind == Kind.BASE))
        elif (birth := _birth(said, record)) is not None:
            thread.birth = birth
            self.ids.setdefault(birth.id, record.uid)
        else:
            thread.birth = nameless(record.uid, record.time)
            self.ids[thread.birth.id] = record.uid

    def _bury(self, birth: Birth | None, thread: Thread) -> None:
        """A tombstone says what the first record said, which may have been erased."""
        if birth is not None:
            thread.birth = birth
            self.ids.pop(thread.uid.hex(), None)
            self.ids.setdefault(birth.id, thread.uid)

    def address(self, position: int) -> int:
        """The address of the record at `position`, which is one of these."""
        return self.addresses[position - self.start - 1]

    def position(self, uid: bytes, seq: int) -> int | None:
        """The position of a session's record at `seq`, if it is one of these."""
        thread = self.threads.get(uid)
        if thread is None or not thread.first <= seq <= thread.seq:
            return None
        return thread.positions[seq - thread.first]

    def positions(self, uid: bytes | None, label: str | None, after: int, upto: int) -> list[int]:
        """The positions after `after`, up to and with `upto`; with `uid`, those that mention a fact, or `label`."""
        if uid is not None:
            thread = self.threads.get(uid)
            if thread is None:
                return []
            first, last = bisect_right(thread.positions, after), bisect_right(thread.positions, upto)
            said = zip(thread.positions[first:last], thread.shapes[first:last], strict=True)
            if label is None:
                return [place for place, shape in said if shape]
            return [place for place, shape in said if label in shape or UNREADABLE in shape]
        return list(range(max(after, self.start) + 1, min(upto, self.head.position) + 1))

    def mentions(self, label: str, after: int, upto: int) -> Sequence[int]:
        """The postings of `label` after position `after`, up to and with `upto`."""
        return between(self.postings.get(label, ()), after, upto)


def _birth(said: Any, record: Notable) -> Birth | None:
    """What the message of a session's first record says; None when that is not what such a message says."""
    match said:
        case {"id": str(id), "type": str(type), "parent": bytes(parent), "seq": int(seq)} if 0 <= seq < record.seq:
            return Birth(id, type, parent, seq, record.time, made_by(said))
        case {"id": str(id), "type": str(type)} if said.get("parent") is None:
            return Birth(id, type, None, 0, record.time, made_by(said))
    return None


def made_by(said: Any) -> str:
    """Who had a session made, by what the message of its first record says; "" where it does not."""
    by = said.get("by") if isinstance(said, Mapping) else None
    return by if isinstance(by, str) else ""


def _buried(said: Any) -> Birth | None:
    """What a tombstone says of its session; None when that is not all of it."""
    match said:
        case {"id": str(id), "type": str(type), "parent": parent, "at": int(seq), "created": int(created)} if (
            parent is None or isinstance(parent, bytes)
        ):
            return Birth(id, type, parent, seq, created)
    return None


def between(postings: Sequence[int], after: int, upto: int) -> Sequence[int]:
    """The postings of positions after `after`, up to and with `upto`."""
    return postings[bisect_right(postings, 2 * after + 1) : bisect_right(postings, 2 * upto + 1)]


def unique(postings: Sequence[int]) -> list[int]:
    """The positions of sorted postings, each once."""
    return list(dict.fromkeys([posting >> 1 for posting in postings]))
