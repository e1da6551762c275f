"""What recovery is told, what it finds, and the errors that stand for it.

| found | outcome |
|---|---|
| every byte accounted for (zeros after the end are preallocation) | CLEAN |
| anything malformed after the last valid commit, and no valid commit after it | TORN |
| a body or cell wrong, its frame and the chain sound | DAMAGED |
| frames unsound and then a valid commit, or in a sealed segment; a gap; a missing segment; a misfit | CORRUPT |
| the log ends before a head that was seen | TRUNCATED |
| a signature, or a history that does not extend what was seen | TAMPERED |
| a newer format, an unknown type of frame or kind of record | NEWER |

The one rule: only the first three may be opened for writing, and only TORN ever cuts. Data and messages
alone live here; `recovery` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import ClassVar, Final, NamedTuple, Protocol

import attrs

from dataspace.errors import KeeveError
from dataspace.log.frames import Frame
from dataspace.log.marks import ChainHead, Damage, Head, Mark
from dataspace.records import STORE_UID, Header


class Bytes(Protocol):
    """Bytes that are looked at in slices: `bytes`, a `memoryview`, or what reads them then."""

    def __len__(self) -> int: ...

    def __getitem__(self, where: slice, /) -> bytes | memoryview: ...


class SegmentBytes(NamedTuple):
    """A segment as recovery reads it: the id that its file's name says, and all its bytes."""

    id: int
    data: Bytes


class Span(NamedTuple):
    """A range of bytes of one segment."""

    segment: int
    offset: int
    length: int


class Found(NamedTuple):
    """A record that recovery accepted: its header, its hash, its address and its frame."""

    header: Header
    hash: bytes
    address: int
    frame: Frame


class Outcome(Enum):
    """What recovery makes of a log; see the table above. `writable` ones may be opened for writing."""

    CLEAN = "clean"
    TORN = "torn"
    DAMAGED = "damaged"
    CORRUPT = "corrupt"
    TRUNCATED = "truncated"
    TAMPERED = "tampered"
    NEWER = "newer"

    @property
    def writable(self) -> bool:
        """Whether a store with this outcome may be written to (when damaged: all but those sessions)."""
        return self in (Outcome.CLEAN, Outcome.TORN, Outcome.DAMAGED)


def _no_head(uid: bytes) -> ChainHead | None:
    return None


@attrs.frozen
class Evidence:
    """What is known of a log besides its bytes. All of it may be left out.

    `start` and `heads` only save work: they come from what is derived, and where they do not fit, the log
    is judged from its beginning. `seen` and `log_id` are held against the log.
    """

    log_id: bytes | None = None
    """The id that the log must have."""
    start: Mark | None = None
    """Where to begin: everything before it was judged earlier."""
    heads: Callable[[bytes], ChainHead | None] = _no_head
    """The head that the chain of a uid had at `start`; None when it had no record."""
    seen: tuple[Head, ...] = ()
    """Heads that somebody has been told of: the log must reach them. One before `start` is not looked at."""
    epoch: int = 0
    """The newest epoch known from elsewhere."""
    sealed: int = 0
    """The newest segment that is known to be sealed: another one must follow."""


NOTHING_KNOWN: Final = Evidence()
"""For a log of which nothing is known but its bytes."""


@attrs.frozen
class Verdict:
    """What recovery found, and what is to be done before anyone sees the log.

    When `outcome.writable`: first save `cut` beside the log, then truncate its segment at `cut.offset` (when
    that is 0, remove the file), remove whatever segments come after `end.segment`, truncate the zeros after
    `end.offset` if no more are wanted, then write `last` again and sync it. Otherwise: change nothing.
    """

    outcome: Outcome
    end: Mark
    """Where the next batch goes; what is readable ends here."""
    what: str
    """What was found, where, and what to do; for people."""
    log_id: bytes | None = None
    """None when not even one segment's first frame could be read."""
    began: Mark | None = None
    """Where this judgement began: `Evidence.start`, if it fitted; None for the beginning of the log."""
    epoch: int = 0
    """The newest epoch, of the evidence or of a record."""
    cut: Span | None = None
    """The torn tail, without the zeros after it."""
    last: Span | None = None
    """The last batch (or segment head) after `began`: accepted, perhaps not yet durable."""
    damaged: Mapping[bytes, Damage] = attrs.field(factory=dict)
    """The first damage of each session, by uid. The store's own chain may be among them, and goes on."""
    lost: tuple[tuple[bytes, Damage], ...] = ()
    """Heap pages and checkpoints that are wrong, and that can be done without; each with its uid."""
    heads: Mapping[bytes, ChainHead] = attrs.field(factory=dict)
    """The head of each chain that has a record after `began`."""
    records: int = 0
    """How many records there are after `began`."""
    segment: int = 0
    offset: int = 0
    """Where the trouble lies, when there is any."""

    def error(self) -> LogError | None:
        """The error to raise when the log cannot be opened for writing; None when it can."""
        made = _ERRORS.get(self.outcome)
        return None if made is None else made(self.segment, self.offset, self.what)


Visit = Callable[[Found], None]


class SessionDamaged(KeeveError, quotes=False):
    """A session's content is not what was written. It is readable up to there and refuses writes.

    `session` is its uid in hex, or its id where the one who raises knows it. `seq` is the first record
    that is damaged.
    """

    def __init__(self, session: str, seq: int, position: int, what: str) -> None:
        self.session = session
        self.seq = seq
        self.position = position
        self.what = what
        fork = f"fork it before seq {seq} (--at {seq - 1}), " if seq > 1 else ""
        super().__init__(
            f"session {session} is damaged at seq {seq} (position {position}): {what}. It can be read up to "
            f"there, and a host that has come to this takes no more input for it; {fork}"
            "have what is sound put into a new store (`keeve salvage`), or restore a backup"
        )

    @classmethod
    def of(cls, uid: bytes, damage: Damage) -> SessionDamaged:
        """The error for a damage that recovery found."""
        name = "(the store)" if uid == STORE_UID else uid.hex()
        return cls(name, damage.seq, damage.position, damage.what)


class PastDamaged(SessionDamaged, quotes=False):
    """A fork of a `session` was asked for at a seq that has damage in its past, and none was made.

    `seq` is that of the damaged record, `last_good` the one before it, 0 if there is none.
    """

    def __init__(self, session: str, seq: int, position: int, what: str) -> None:
        super().__init__(session, seq, position, what)
        self.last_good = seq - 1
        remedy = (
            f"its last good seq is {self.last_good}: fork it at that (--at {self.last_good})"
            if self.last_good
            else "nothing before that can be forked: have what is sound put into a new store (`keeve salvage`), or "
            "restore a backup"
        )
        self.args = (
            f"session {session} is damaged at seq {seq} (position {position}): {what}. A fork from there on would "
            f"stand on records that cannot be read, so none was made; {remedy}",
        )


class LogError(KeeveError):
    """A log that must not be written to. `segment` and `offset` say where the trouble lies."""

    summary: ClassVar[str]
    remedy: ClassVar[str]

    def __init__(self, segment: int, offset: int, what: str) -> None:
        self.segment = segment
        self.offset = offset
        self.what = what
        super().__init__(f"{self.summary} (segment {segment}, offset {offset}): {what}. {self.remedy}")


class LogCorrupt(LogError, quotes=False):
    """The log is damaged where no crash can have done it. Nothing was cut; it opens read-only."""

    summary = "the log is corrupt"
    remedy = (
        "Nothing was changed. Copy the folder, run `keeve verify` to see what is touched, open it read-only to look at "
        "sessions, write what is sound into a new store with `keeve salvage`, or restore a backup"
    )


class LogTruncated(LogError, quotes=False):
    """The log ends before a head that somebody was told of."""

    summary = "the log is truncated"
    remedy = "Nothing was changed. The end of the log is missing: put back the newest copy of its segment files"


class LogTampered(LogError, quotes=False):
    """The log does not continue the history that was seen, or a signature is wrong."""

    summary = "the log is not the one that was seen"
    remedy = "Nothing was changed. Compare it with a backup or a witness before you trust it"


class NewerFormat(LogError, quotes=False):
    """The log was written by a newer version."""

    summary = "the log was written by a newer version of Keeve"
    remedy = "Nothing was changed. Open it with that version or a later one"


_ERRORS: dict[Outcome, type[LogError]] = {
    Outcome.CORRUPT: LogCorrupt,
    Outcome.TRUNCATED: LogTruncated,
    Outcome.TAMPERED: LogTampered,
    Outcome.NEWER: NewerFormat,
}
