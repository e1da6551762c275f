"""Receipts: what proves to anybody that a record is in a log, as one small text.

    c2sp.org/tlog-proof@v1
    extra a2VldmUgcmVjb3JkIDEK…       base64 of what the record's hash is over: session, seq, kind, time, …
    index 6                           the record's position less one
    B95lDa8R83lS8n0eG+o0buTxRKQT…     the inclusion proof, a hash on each line, from the leaf's sibling up
                                      an empty line
    keeve/4b6565766527…               the signed checkpoint, as it is

The format is C2SP's `tlog-proof`. A receipt proves the record's header, and with it, since the header names the record
before, all that its session said up to there; what a record says is proven with the digests in its header.

The one rule: a receipt is everything that is needed besides a verifier key. Who checks one asks no store.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, ClassVar, Final, NamedTuple

import attrs

from dataspace.errors import KeeveError
from dataspace.proofs.merkle import LONGEST, Ways, includes, leaf_hash
from dataspace.proofs.notes import BadNote, Checkpoint, Note, checked_checkpoint
from dataspace.proofs.verifiers import Verifier, strict_base64
from dataspace.records import MOST, Header

_FIRST: Final = "c2sp.org/tlog-proof@v1"
_INDEX = re.compile(r"index (0|[1-9]\d{0,18})", re.ASCII)


class BadReceipt(KeeveError, ValueError):
    """What was given as a receipt is none, or proves nothing."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"this receipt proves nothing: {what}; keep it byte for byte as it was given out")


@attrs.frozen
class LogProof:
    """That an entry is in a log: its `index` from 0, the inclusion proof, the signed checkpoint that it leads to.

    `extra` is what the application needs besides to know the entry; nobody vouches for it.
    """

    index: int
    hashes: tuple[bytes, ...]
    note: Note
    extra: bytes | None = None

    @classmethod
    def parse(cls, data: str | bytes) -> LogProof:
        """The proof that `data` is. Raises `BadReceipt` or `BadNote`. Nothing is checked but the form."""
        try:
            text = data.decode() if isinstance(data, bytes) else data
        except UnicodeError:
            raise BadReceipt("it is not UTF-8") from None
        above, _, note = text.partition("\n\n")
        lines = above.split("\n", LONGEST + 3)
        if lines.pop(0) != _FIRST:
            raise BadReceipt(f"it does not begin with the line {_FIRST}")
        extra = None
        if lines and lines[0].startswith("extra "):
            extra = strict_base64(lines.pop(0).removeprefix("extra "))
            if extra is None:
                raise BadReceipt("the line `extra` is not base64")
        index = _INDEX.fullmatch(lines.pop(0)) if lines else None
        if index is None or int(index[1]) >= MOST:
            raise BadReceipt("it has no line `index` with a number")
        hashes = tuple([each for each in map(strict_base64, lines) if each is not None and len(each) == 32])
        if len(hashes) != len(lines) or len(hashes) > LONGEST:
            raise BadReceipt(f"the lines after `index` are not at most {LONGEST} hashes")
        return cls(int(index[1]), hashes, Note.parse(note), extra)

    def __str__(self) -> str:
        lines = [_FIRST]
        if self.extra is not None:
            lines.append(f"extra {b64encode(self.extra).decode()}")
        lines.append(f"index {self.index}")
        lines += [b64encode(each).decode() for each in self.hashes]
        return "\n".join(lines) + f"\n\n{self.note}"


class Covered(NamedTuple):
    """What receipts of records near each other have in common: the signed checkpoint, and the ways to its root."""

    checkpoint: Checkpoint
    note: Note
    ways: Ways


class Receipt:
    """Proves that the record with this header was in the log when the checkpoint was signed. `str` gives the file.

    All that it proves with is in it, from the start: it asks no log and no host, whatever becomes of them.
    """

    __slots__ = ("_covered", "_header")

    def __init__(self, header: Header, covered: Covered) -> None:
        self._header = header._replace(epoch=0) if header.epoch else header
        self._covered = covered

    @classmethod
    def of(cls, header: Header, hashes: Iterable[bytes], note: Note, checkpoint: Checkpoint) -> Receipt:
        """The receipt of a record, from the inclusion proof that leads to the root in a signed checkpoint."""
        return cls(header, Covered(checkpoint, note, Ways(header.position - 1, 0, (), hashes)))

    @property
    def header(self) -> Header:
        """Of the record; its epoch is 0."""
        return self._header

    @property
    def checkpoint(self) -> Checkpoint:
        """Of the log with the record."""
        return self._covered.checkpoint

    @property
    def note(self) -> Note:
        """The checkpoint with its signatures."""
        return self._covered.note

    @property
    def hashes(self) -> tuple[bytes, ...]:
        """The inclusion proof, from the record's sibling up."""
        return self._covered.ways.proof(self._header.position - 1)

    @classmethod
    def parse(cls, data: str | bytes) -> Receipt:
        """The receipt in a file. Raises `BadReceipt`: also when the record's hash does not lead to the root."""
        try:
            proof = LogProof.parse(data)
            checkpoint = Checkpoint.parse(proof.note.text)
        except BadNote as bad:
            raise BadReceipt(str(bad.what)) from bad
        try:
            header = Header.of_hashed(proof.extra or b"", proof.index + 1)
        except ValueError as bad:
            raise BadReceipt(f"in the line `extra`, {bad}") from bad
        if not includes(checkpoint.root, checkpoint.size, leaf_hash(header.hash), proof.index, proof.hashes):
            raise BadReceipt("the record's hash does not lead to the root in its checkpoint")
        return cls.of(header, proof.hashes, proof.note, checkpoint)

    @property
    def proof(self) -> LogProof:
        """What is in the file."""
        return LogProof(self.header.position - 1, self.hashes, self.note, self.header.hashed)

    def verify(self, keys: Iterable[Verifier]) -> list[Verifier]:
        """The keys, among these, that vouch for it. Raises `BadSignature`, or `NotSigned` without the log's own."""
        return checked_checkpoint(self.note, keys)[1]

    def __str__(self) -> str:
        return str(self.proof)

    def __eq__(self, other: object) -> bool:
        return self._parts == other._parts if isinstance(other, Receipt) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"Receipt(header={self.header!r}, checkpoint={self.checkpoint!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Receipt.of, self._parts  # without what it shares with others

    @property
    def _parts(self) -> tuple[Header, tuple[bytes, ...], Note, Checkpoint]:
        return self.header, self.hashes, self.note, self.checkpoint
