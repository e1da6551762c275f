"""Salvage: from the bytes of a log, whatever state they are in, to all records that are sound, in their order.

Each chain is kept from its beginning for as long as it verifies: its records follow each other by seq and hash, each
has the body that its hash covers. A fork is kept if the record is that it goes on from. After the first record of a
chain that is not there, or is not what was written, nothing more of it is kept.

A cell that is not what its record names is a hole: it reads as erased, and the session goes on behind it, since all
that it did is in its records. So what was acknowledged after the disk had lost a word is not lost with it. The store's
own chain has no holes, since what its records say is needed.

Snapshots are derived: one whose pages are not all right stays as a record without them, as do those after it, since
they share pages with it; up to a base, which shares none. Of a record whose deeds are in an archive that is not there
the facts stay, and a base after it without which nothing could be made. Erased content stays erased.

The one rule: nothing is made up. What is kept is what was written, and what is not is named, by session and seq.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import attrs

from dataspace.drafts import read_deeds
from dataspace.encryption.cipher import ENCRYPTED, Unopened
from dataspace.errors import KeeveError
from dataspace.log.called import Called
from dataspace.log.contents import nowhere
from dataspace.log.erasures import Capped, Erasures, Hole
from dataspace.log.frames import (
    ELSEWHERE,
    RESTS,
    Frame,
    Type,
    body_fits,
    checkpoint_head,
    part_head,
    record_head,
    segment_head,
)
from dataspace.log.groups import Found, grouped
from dataspace.log.marks import Certificate
from dataspace.log.rests import read_rest
from dataspace.log.rewriting import Kept, Part
from dataspace.log.survey import Piece, Survey
from dataspace.log.verdicts import SegmentBytes
from dataspace.records import STORE_UID, ZERO_HASH, Header, Kind, Rest, content_digest, split_body, split_digests

_KINDS: Final = frozenset(map(int, Kind))
_TELLING: Final = frozenset(map(int, (Kind.ERASE, Kind.RECLAIMED, Kind.CREATED, Kind.SALVAGED)))
"""Records of the store's own chain that say something of all of it."""
_NAMING: Final = frozenset({int(Kind.FORK), int(Kind.FORKED)})
"""Records that name two sessions."""

Open: TypeAlias = Callable[[Header, Frame, bytes], bytes | None]
"""Opens a sealed body of a record; None when its key was destroyed. Raises `Unopened`, or `LookupError`."""


@attrs.define
class Chain:
    """What is known of one chain while its records are gone through, and at the end."""

    uid: bytes
    seq: int = 0
    """The newest record that is kept; 0 when none is."""
    hash: bytes = ZERO_HASH
    time: int = 0
    id: str | None = None
    born: Mapping[str, Any] = {}
    """What a tombstone says of it, as its first record says it, or is known without that."""
    follows: bytes | None = None
    """Of a fork, the session whose record its first one follows: its parent, or an ancestor of that."""
    deleted: bool = False
    """Whether its tombstone is kept."""
    tombstone: bool = False
    """Whether a tombstone of it was met, or its first record without its body, which nothing but a tombstone takes."""
    first: int = 0
    """The seq of the first record that is kept."""
    lost: int = 0
    """The seq of the first record that is not kept; 0 when all is."""
    last: int = 0
    """The highest seq that was met."""
    met: int = 0
    """How many records with a sound header were met."""
    why: str = ""
    pending: int = 0
    pageless: int = 0
    """The seq of the first snapshot that is kept without its pages."""
    hollow: int = 0
    """The seq of the first record that is kept without its deeds, and that no base stands for; 0 when none is."""
    _lacks: list[tuple[int, int, int]] = attrs.field(factory=list, init=False)
    """From which seqs on which was `pageless` and `hollow`, where that is not what it was before."""

    def note(self) -> None:
        """The record `seq` is kept."""
        if (self.pageless, self.hollow) != (self._lacks[-1][1:] if self._lacks else (0, 0)):
            self._lacks.append((self.seq, self.pageless, self.hollow))

    def lacked(self, seq: int) -> tuple[int, int]:
        """What was `pageless` and `hollow` once the record of that seq was kept."""
        return next(((pageless, hollow) for at, pageless, hollow in reversed(self._lacks) if at <= seq), (0, 0))


class Salvage:
    """Goes through the segments of a log once `kept()` is iterated; the rest tells what came of it.

    `open` opens sealed bodies, `archives` gives archived ones by segment and frame. Costs some 40 µs for each record,
    and about 300 bytes of memory.
    """

    def __init__(
        self,
        segments: Sequence[SegmentBytes],
        open: Open | None = None,
        archives: Callable[[int, Frame], bytes | None] = nowhere,
    ) -> None:
        self.chains: dict[bytes, Chain] = {}
        self.positions: set[int] = set()
        """The positions of records with sound headers."""
        self.end = 0
        """The highest position that was met, or that a commit names."""
        self.log_id: bytes | None = None
        self.pieces = Capped[tuple[int, Piece]]()
        """What is no frame, or has a wrong body, by segment."""
        self.records = 0
        self.created = False
        """Whether the record is there that says which log this is."""
        self.away = 0
        """Archived bodies that were found in no archive, of what is kept: they are gone from it."""
        self._open = open
        self._archives = archives
        self._surveys = [Survey(data, number) for number, data in segments]
        self.holes = Capped[Hole]()
        """The cells that are not what was written, of records that are kept."""
        self.erasures = Erasures()
        """What the log says is erased, and what reads so without that."""
        self._hashes: dict[bytes, tuple[bytes, int]] = {}
        self._called = Called()

    def look(self) -> None:
        """Go through the log before anything of it is kept: which log it is, and what of it is erased."""
        for survey in self._surveys:
            for found in grouped(survey, self._other):
                header, _ = record_head(found.piece.frame.head)  # type: ignore[union-attr]  # a group has a record
                if header.uid == STORE_UID and header.kind in _TELLING:
                    self._told(header, found)

    def _other(self, survey: Survey, piece: Piece) -> None:
        frame = piece.frame
        if frame is not None and frame.type == Type.SEGMENT and self.log_id is None:
            head = segment_head(frame.head)
            self.log_id = None if head is None else head.log_id

    def _told(self, header: Header, found: Found) -> None:
        body = self._body(found, header)
        deeds = split_body(body).deeds if isinstance(body, bytes) else None  # type: ignore[union-attr]  # `_body` has split it
        self.erasures.told(header, deeds)
        if header.kind == Kind.CREATED and deeds is not None:
            with suppress(ValueError, TypeError):  # a message that nobody can have written says nothing
                match read_deeds(deeds).message:
                    case {"log_id": bytes(log_id)}:
                        self.created = True
                        self.log_id = self.log_id or log_id

    @property
    def unread(self) -> int:
        """How many records of the store's own cannot be read that may have said what is erased, and is there yet."""
        own = self.chains.get(STORE_UID)
        return len(self.erasures.unread) + (0 if own is None else max(0, own.last - own.met))

    def give_up(self, uid: bytes, why: str) -> None:
        """Keep nothing of a chain."""
        self.chains[uid] = Chain(uid, lost=1, why=why)

    def kept(self, certificate: Callable[[Certificate], bool]) -> Iterator[Kept]:
        """The records to keep, in the order of the log. Checkpoints are offered where they stand."""

        def other(survey: Survey, piece: Piece) -> None:
            frame = piece.frame
            if piece.wrong:
                self.pieces.add([(survey.number, piece)])
            if frame is None or piece.wrong:
                return
            if frame.type == Type.COMMIT:
                self.end = max(self.end, int.from_bytes(frame.head[8:16], "little"))
            elif frame.type == Type.CHECKPOINT:
                with suppress(struct.error):
                    certificate(Certificate(*checkpoint_head(frame.head), survey.body(frame)))

        for survey in self._surveys:
            for found in grouped(survey, other):
                record = self._record(found)
                if record is not None:
                    self.records += 1
                    yield record
        for uid, chain in self.chains.items():
            chain.id = chain.id or self._called.names.get(uid)

    def _record(self, found: Found) -> Kept | None:
        frame = found.piece.frame
        assert frame is not None
        if found.piece.wrong:
            self.pieces.add([(found.survey.number, found.piece)])
        header, starts = record_head(frame.head)
        hash = header.hash
        self.positions.add(header.position)
        self.end = max(self.end, header.position)
        if hash in self._hashes:
            return None
        chain = self.chains.get(header.uid)
        if chain is None:
            chain = self.chains[header.uid] = Chain(header.uid)
        chain.met += 1
        chain.last = max(chain.last, header.seq)
        chain.tombstone = chain.tombstone or header.kind == Kind.DELETE
        if chain.lost:
            if chain.id is None and header.uid not in self._called.names:
                self._hear(header, found)
            return None
        why = self._misfit(chain, header)
        parts: Sequence[Part] = ()
        if not why:
            parts, why = self._parts(chain, header, starts, found)
        if why:
            chain.lost = chain.seq + 1 if chain.seq else header.seq if header.kind == Kind.FORKED else 1
            chain.why = why
            if chain.id is None:
                self._hear(header, found)
            return None
        chain.first = chain.first or header.seq
        chain.seq, chain.hash, chain.time = header.seq, hash, header.time
        chain.note()
        chain.deleted = chain.deleted or header.kind == Kind.DELETE
        if header.kind in _NAMING:
            self._hear(header, found)
        self._hashes[hash] = (header.uid, header.seq)
        return Kept(frame.head, hash, parts)

    def _misfit(self, chain: Chain, header: Header) -> str:
        """Why a record cannot come next in its chain; nothing if it can."""
        seq = header.seq
        if header.kind not in _KINDS:
            return f"a record of kind {header.kind}, which this version does not know"
        if chain.seq:
            if seq > chain.seq + 1:
                return f"seq {chain.seq + 1}" + (f" to {seq - 1} are" if seq > chain.seq + 2 else " is") + " missing"
            if (seq, header.previous) != (chain.seq + 1, chain.hash):
                return f"seq {seq} does not follow the one before it"
        elif header.kind == Kind.FORKED:
            if self._hashes.get(header.previous, (b"", 0))[1] != seq - 1 or seq < 2:
                return f"its parent is not there up to seq {seq - 1}"
        elif seq != 1:
            return f"its beginning, seq 1{f' to {seq - 1}' if seq > 2 else ''}, is missing"
        elif header.previous != ZERO_HASH:
            return "its first record follows another one"
        return ""

    def _parts(self, chain: Chain, header: Header, starts: Sequence[int], found: Found) -> tuple[Sequence[Part], str]:
        """What a record and its parts hold, and what of that is wrong."""
        frame = found.piece.frame
        assert frame is not None
        body = self._body(found, header)
        parts = [Part(Type.RECORD, body if isinstance(body, bytes) else None)]
        if body is None and frame.type in RESTS:
            rest = self._rest(found.survey, frame, header)
            if isinstance(rest, Rest):
                parts = [Part(Type.FACTS, rest.encoded())]
                chain.pending, chain.hollow = rest.pending, chain.hollow or header.seq
            elif rest is not None:
                body = rest
        if isinstance(body, str):
            return (), f"the body of seq {header.seq} {body}"
        named: Sequence[bytes] | None = None
        if body is not None:
            try:
                deeds = read_deeds(split_body(body).deeds, tree=bytes)  # type: ignore[union-attr]  # `_body` has split it
            except (KeeveError, ValueError, TypeError) as error:
                return (), f"the body of seq {header.seq} cannot be read: {error}"
            named = split_digests(deeds.digests)
            self._know(chain, header, deeds.message)
            chain.pending = deeds.pending
        elif not chain.seq and header.uid != STORE_UID:
            chain.tombstone = True
            self._know(chain, header, None)
        if base := header.kind == Kind.BASE:
            chain.pageless = 0
        erased, gone, holes = self.erasures.of(header.position), list[int](), list[Hole]()
        for number, start in enumerate(starts):
            piece = found.parts.get(frame.offset + start)
            own = None if piece is None else piece.frame
            is_cell = number < len(named) if named is not None else own is not None and own.was == Type.CELL
            if own is not None and part_head(own.head) != (header.position, number):
                own = None
            if is_cell:
                content = self._content(header, found.survey, own, None if named is None else named[number])
                if isinstance(content, str) and number not in erased:
                    if header.uid == STORE_UID:
                        return (), f"cell {number} of seq {header.seq} {content}"
                    holes.append(Hole(header.uid, header.seq, header.position, number, content))
                parts.append(Part(Type.CELL, content if isinstance(content, bytes) and number not in erased else None))
                if own is not None and own.type == Type.ERASED and frame.type != Type.ERASED:  # else all of it is gone
                    gone.append(number)
            else:
                parts.append(Part(Type.PAGE, self._page(chain, header, found.survey, own)))
                let_go = own is not None and own.type == Type.ERASED
                if base and chain.hollow and parts[-1].body is None and not let_go:
                    return (), f"page {number} of seq {header.seq}, which holds its whole heap, is not what was written"
        if named is not None and sum(part.type == Type.CELL for part in parts) != len(named):
            return (), f"seq {header.seq} has not all of its cells"
        if base and all(part.body is not None for part in parts):
            chain.hollow = 0
        self.erasures.met(header, gone)
        self.holes.add(holes)
        return parts, ""

    def _know(self, chain: Chain, header: Header, message: Any) -> None:
        """Take up what a session's first record says of it; or else what its header and the record before it tell."""
        if chain.seq:
            return
        said = message if isinstance(message, Mapping) else {}
        id, type, parent, at = said.get("id"), said.get("type"), None, header.seq - 1  # 0 but for a fork
        chain.id = id if isinstance(id, str) else None
        if header.kind == Kind.FORKED:
            chain.follows, seq = owner, at = self._hashes[header.previous]
            chain.pageless, chain.hollow = self.chains[owner].lacked(seq)
            type, parent = type or self.chains[owner].born.get("type"), said.get("parent", owner)
        type = type if isinstance(type, str) else ""
        chain.born = {"type": type, "parent": parent, "at": at, "created": header.time}

    def _hear(self, header: Header, found: Found) -> None:
        """Take up what a record says its session is called, and those that it names as its fork or its parent."""
        body = self._body(found, header)
        if isinstance(body, bytes):
            self._called.hear(header, body)

    def _page(self, chain: Chain, header: Header, survey: Survey, own: Frame | None) -> bytes | None:
        """A page's bytes; None once one of this chain is not there."""
        if chain.pageless:
            return None
        content = self._content(header, survey, own, None)
        if isinstance(content, str):
            chain.pageless = header.seq
            return None
        return content

    def _body(self, found: Found, header: Header) -> bytes | str | None:
        """The body of a record, which is the one that its hash covers; None for an erased one; or what is wrong."""
        stored = self._content(header, found.survey, found.piece.frame, None)
        if isinstance(stored, bytes):
            body = split_body(stored)
            if body is None or body.digest != header.body_digest:
                return "is not the one that its hash covers"
        return stored

    def _rest(self, survey: Survey, found: Frame, header: Header) -> Rest | str | None:
        """What is left of a record without its deeds, if its hash covers that; None if its key was destroyed; or what
        is wrong with it."""
        if found.flags and (found.flags != ENCRYPTED or self._open is None):
            return "is sealed"
        try:
            rest = read_rest(header, found, survey.body(found), self._open)
        except Unopened:
            return "does not open with its key"
        except LookupError:
            return "is sealed with a key that is not in the key file"
        except ValueError as bad:
            return str(bad)
        return rest if rest is None or rest.digest == header.body_digest else "is not the one that its hash covers"

    def _content(self, header: Header, survey: Survey, found: Frame | None, digest: bytes | None) -> bytes | str | None:
        """A frame's body, opened, if it is the one that was written (and has that digest); None for an erased one; or
        what is wrong with it."""
        if found is None:
            return "is not there"
        if found.type in (Type.ERASED, Type.FACTS):
            return None
        stored: bytes | None = survey.body(found)
        if found.type in ELSEWHERE:
            stored = self._archives(survey.number, found)
            if stored is None:
                self.away += 1
                return None
        if not body_fits(found, stored or b""):
            return "is not what was written"
        if found.flags:
            if found.flags != ENCRYPTED or self._open is None:
                return "is sealed"
            try:
                stored = self._open(header, found, stored or b"")
            except Unopened:
                return "does not open with its key"
            except LookupError:
                return "is sealed with a key that is not in the key file"
        if stored is not None and digest is not None and content_digest(stored) != digest:
            return "is not the one that its record names"
        return stored
