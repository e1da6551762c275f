"""Checkpoints of a log: signed for what is durable, and held against what others have seen.

The newest one is found again at a start, and the log must extend it. One checkpoint serves the receipts of all records
that it covers, so that a batch with many receipts costs one signature.

The one rule: **no checkpoint is signed but of records that are durable, and none that does not extend the last.** The
tree that it is made of is derived; where it does not fit what was signed it is made again from the log, and only then
does the log count as another.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, NamedTuple

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.tree import STEP
from dataspace.checkpoints.keys import LogKey, WrongKey, introduction, log_keys, origin_of
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.marks import Certificate, Head
from dataspace.log.store import Store
from dataspace.log.verdicts import LogTampered, LogTruncated
from dataspace.proofs.merkle import includes, leaf_hash
from dataspace.proofs.notes import BadNote, BadSignature, Checkpoint, Note, NotSigned, checked_checkpoint
from dataspace.proofs.proofs import BadReceipt, Covered, Receipt
from dataspace.proofs.signers import SigningKey
from dataspace.proofs.verifiers import Algorithm, Verifier
from dataspace.records import STORE_UID, ZERO_HASH, Header, Salts
from dataspace.remedies import Remedy

log = logging.getLogger("keeve")

_REMEMBERED: Final = 256
"""Nodes below which the receipts of records have something in common that is remembered, at the most."""

GIVE_SIGNER: Final = Remedy("give-signer", "open the host with signer=..., the file of an Ed25519 key or a SigningKey")


class NotSigning(KeeveError, quotes=False):
    """A checkpoint or a receipt was asked for where there is no key to sign it."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(f"nothing signs here, and no checkpoint is in the store: {GIVE_SIGNER()}")


class NotCovered(KeeveError, quotes=False):
    """A checkpoint was taken before the record that it is to prove."""

    usage: ClassVar[bool] = True

    def __init__(self, position: int, size: int) -> None:
        self.position = position
        self.size = size
        super().__init__(
            f"the checkpoint is of {size} records, and this one is number {position}: use a newer checkpoint"
        )


class Seen(NamedTuple):
    """What somebody has kept: a checkpoint with its signatures, and the record that a receipt is about."""

    checkpoint: Checkpoint
    note: Note
    head: Head | None

    @classmethod
    def of(cls, kept: str | bytes | Receipt) -> Seen:
        """What a receipt, or a checkpoint as it was given out, says. Raises `BadReceipt` or `BadNote`."""
        if isinstance(kept, Receipt):
            header = kept.header
            return cls(kept.checkpoint, kept.note, Head(header.position, header.hash))
        if not isinstance(kept, str | bytes):
            raise BadReceipt(
                f"it is a {type(kept).__name__}, and neither a Receipt nor the text of a receipt or checkpoint"
            )
        if kept[:9] in ("c2sp.org/", b"c2sp.org/"):
            return cls.of(Receipt.parse(kept))
        note = Note.parse(kept)
        return cls(Checkpoint.parse(note.text), note, None)


class Signed:
    """A checkpoint that stands, its note, and what the receipts by it have in common, made once for all of a batch."""

    __slots__ = ("checkpoint", "covered", "note")

    def __init__(self, checkpoint: Checkpoint, note: Note) -> None:
        self.checkpoint = checkpoint
        self.note = note
        self.covered: dict[int, Covered] = {}
        """By the node of the tree at level `STEP` that their records are below."""


class Checkpoints:
    """Signs checkpoints of a store, and checks those that others have kept. All of it is for one thread.

    `key` signs; without it nothing is signed, and what was seen can still be held against the log. A key that the log
    does not know yet is put into it when there is none, or when `former` is the one that signed until now. What
    somebody has seen of the log is held against it (`expect`) before anything is signed.

    Raises `WrongKey`, `LogTruncated` or `LogTampered` when the log does not extend what was signed last, or what
    `append` raises.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        key: SigningKey | None = None,
        *,
        former: SigningKey | None = None,
        now: Callable[[], int] = int,
        salts: Salts = bytes,
        expect: str | bytes | Receipt | None = None,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._key = key
        self.origin = origin_of(store.log_id)
        self._keys: list[LogKey] | None = None
        if expect is not None:
            self.expect(expect)
        if key is not None:
            self._take_up(key, former, now, salts)
        self._newest: Signed | None = None
        self._to_keep: list[Certificate] = []
        self._kept = 0
        if key is not None:
            self._newest = self._found()
            self._kept = 0 if self._newest is None else self._newest.checkpoint.size

    @property
    def keys(self) -> list[LogKey]:
        """The keys of the log, the one that signs now last. Raises what `log_keys` does."""
        if self._keys is None or self._store.readonly:
            self._keys = log_keys(self._store, self._catalog)
        return self._keys

    @property
    def verifiers(self) -> list[Verifier]:
        """The same, as what others check with."""
        return [each.verifier for each in self.keys]

    @property
    def signs(self) -> bool:
        """Whether there is a key."""
        return self._key is not None

    def _take_up(self, key: SigningKey, former: SigningKey | None, now: Callable[[], int], salts: Salts) -> None:
        verifier = key.verifier(self.origin)
        newest = self.verifiers[-1] if self.keys else None
        if newest == verifier:
            return
        if newest is not None and (former is None or former.verifier(self.origin) != newest):
            raise WrongKey(str(newest), str(verifier))
        row = self._catalog.by_uid(STORE_UID)
        chain = (0, ZERO_HASH) if row is None else (row.seq, row.hash)
        record = introduction(chain, self.origin, key, None if newest is None else former, now(), salts)
        self._store.append([record])
        self._catalog.note([record])
        self.keys.append(LogKey(verifier, record.position))

    def _found(self) -> Signed | None:
        """The newest checkpoint that was kept: the log has to extend it."""
        keys = self.verifiers
        for data in self._store.notes() if keys else ():
            try:
                note = Note.parse(data)
                checkpoint, _ = checked_checkpoint(note, keys)
            except (BadNote, BadSignature, NotSigned):
                continue
            if self._is_ahead(checkpoint):
                continue
            self._hold(checkpoint, "was signed")
            return Signed(checkpoint, note)
        return None

    def _is_ahead(self, checkpoint: Checkpoint) -> bool:
        """Whether it is of records that the log has, and that were not noted here yet: its owner goes on meanwhile."""
        return self._catalog.head.position < checkpoint.size <= self._store.refresh().position

    @property
    def _size(self) -> int:
        """How many records are durable and noted."""
        noted, durable = self._catalog.head.position, self._store.mark.position
        return noted if noted < durable else durable

    # Signing.

    def newest(self) -> Note:
        """The signed checkpoint of all that is durable and noted; without a key, the newest one that is in the store.

        Raises `NotSigning` when there is none, or `LogTampered` when the log does not extend the last one. Costs some
        200 µs when there is more than at the last time.
        """
        return self._signed().note

    def _signed(self) -> Signed:
        key = self._key
        if key is None:
            found = self._found()
            if found is None:
                raise NotSigning
            return found
        size = self._size
        newest = self._newest
        if newest is not None:
            if newest.checkpoint.size == size:
                return newest
            self._hold(newest.checkpoint, "was signed")
        checkpoint = Checkpoint(self.origin, size, self._catalog.tree.root(size))
        note = Note(checkpoint.text)
        note = note.signed(key.signature(self.origin, note.text))
        self._newest = Signed(checkpoint, note)
        return self._newest

    def receipt(self, position: int, note: Note | None = None, header: Header | None = None) -> Receipt:
        """What proves that the record at `position` is in the log: with the newest checkpoint, or with `note`.

        `header` is that record's, from who has it, and any checkpoint that covers it will do; else it is read. Raises
        `NotSigning`, `NotCovered`, and what `expect` does of a `note`. Costs below a millisecond; for a new record with
        its header, some 2 µs.
        """
        signed = self._newest
        if note is not None:
            signed = Signed(self.expect(str(note)), note)
        elif header is None or signed is None or position > signed.checkpoint.size:
            signed = self._signed()
        checkpoint = signed.checkpoint
        if not 0 < position <= checkpoint.size:
            raise NotCovered(position, checkpoint.size)
        covered = signed.covered.get(position - 1 >> STEP) or self._covered(position, signed)
        if header is None:
            address = self._catalog.at(position)
            assert address is not None
            header = self._store.read(address).header
        written = position <= self._catalog.written  # what was read back may be wrong, what was just made is not
        if written and not includes(
            checkpoint.root, checkpoint.size, leaf_hash(header.hash), position - 1, covered.ways.proof(position - 1)
        ):
            self._catalog.rebuild()
            signed.covered.clear()
            covered = self._covered(position, signed)
        return Receipt(header, covered)

    def _covered(self, position: int, signed: Signed) -> Covered:
        """What the receipts of that record, and of those near it, have in common."""
        if len(signed.covered) >= _REMEMBERED:
            signed.covered.clear()
        ways = self._catalog.tree.ways(position, signed.checkpoint.size)
        covered = signed.covered[position - 1 >> STEP] = Covered(signed.checkpoint, signed.note, ways)
        return covered

    def extension(self, old: int) -> str:
        """The newest checkpoint, with the proof that it extends the one of `old` records, which a witness has seen.

        It is what C2SP's `tlog-witness` takes: the old size, the hashes, an empty line, the note. Raises `NotCovered`.
        """
        signed = self._signed()
        size = signed.checkpoint.size
        if not 0 <= old <= size:
            raise NotCovered(old, size)
        hashes = self._catalog.tree.consistency(old, size) if old else []
        lines = [f"old {old}", *(b64encode(each).decode() for each in hashes), "", str(signed.note)]
        return "\n".join(lines)

    def cosigned(self, text: str, witnesses: Sequence[Verifier]) -> list[Verifier]:
        """Take a checkpoint of this log with the signatures of witnesses; gives those who have signed.

        It is given out from now on, and kept in the log as `pending` is.

        Raises `BadNote`, `BadSignature`, `NotSigned` (by the log, or by none of them), or what `expect` does.
        """
        note = Note.parse(text)
        checkpoint, signers = checked_checkpoint(note, [*self.verifiers, *witnesses])
        found = [each for each in signers if each.algorithm is Algorithm.WITNESS]
        if not found:
            raise NotSigned(checkpoint.origin, [str(each) for each in witnesses])
        self._hold(checkpoint, "was witnessed")
        if self._newest is not None and self._newest.checkpoint == checkpoint:
            note = self._newest.note.signed(*note.signatures)
            self._newest = Signed(checkpoint, note)
        self._to_keep.append(Certificate(checkpoint.size, checkpoint.root, str(note).encode()))
        return found

    # Keeping.

    def pending(self) -> Certificate | None:
        """What is to be kept in the log now: what a witness has signed, or the newest checkpoint if records came.

        Raises `SignerFailed` or `BadSignature`: later there may be one.
        """
        if self._to_keep:
            return self._to_keep[0]
        if self._key is None or self._size == self._kept:
            return None
        try:
            signed = self._signed()
        except (LogTampered, LogTruncated) as error:
            log.error("no checkpoint is signed: %s", in_log(error))
            return None
        return Certificate(signed.checkpoint.size, signed.checkpoint.root, str(signed.note).encode())

    def kept(self, certificate: Certificate) -> None:
        """It is in the log."""
        if certificate in self._to_keep:
            self._to_keep.remove(certificate)
        self._kept = max(self._kept, certificate.size)

    # Holding what was seen against the log.

    def expect(self, kept: str | bytes | Receipt) -> Checkpoint:
        """Raise unless the log has all that somebody has seen of it: a receipt or a checkpoint.

        `LogTruncated` when it is shorter; `LogTampered` when it is another log, has other records, or was signed by
        another key than its own; `BadReceipt` or `BadNote` for what proves nothing.
        """
        seen = Seen.of(kept)
        self._reaches(seen.checkpoint, "was seen")
        try:
            checked_checkpoint(seen.note, self.verifiers)
        except (BadSignature, NotSigned) as error:
            raise LogTampered(*self._store.mark.place, str(error)) from error
        self._hold(seen.checkpoint, "was seen")
        return seen.checkpoint

    def _reaches(self, checkpoint: Checkpoint, how: str) -> None:
        place = self._store.mark.place
        size = self._catalog.head.position
        if checkpoint.origin != self.origin:
            raise LogTampered(*place, f"it is {self.origin}, and a checkpoint of {checkpoint.origin} {how}")
        if checkpoint.size > size:
            what = f"it ends at position {size}, and a checkpoint of {checkpoint.size} records {how}"
            raise LogTruncated(*place, what)

    def _hold(self, checkpoint: Checkpoint, how: str) -> None:
        """Raise unless the log goes on from a checkpoint."""
        self._reaches(checkpoint, how)
        if self._catalog.tree.root(checkpoint.size) != checkpoint.root:
            self._catalog.rebuild()
            if self._catalog.tree.root(checkpoint.size) != checkpoint.root:
                what = f"its first {checkpoint.size} records are not those of which a checkpoint {how}"
                raise LogTampered(*self._store.mark.place, what)
