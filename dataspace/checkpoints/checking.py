"""A log's checkpoints held against its records, for who looks at every frame; and what was seen of it elsewhere.

The one rule: a note is held against the records that were read before it, and not against what anybody says of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple

import attrs

from dataspace.catalog.catalog import Catalog
from dataspace.checkpoints.checkpoints import Checkpoints, NotSigning, Seen
from dataspace.errors import KeeveError
from dataspace.log.findings import OTHERS
from dataspace.log.store import Store
from dataspace.log.verdicts import LogCorrupt, LogTruncated, SessionDamaged
from dataspace.proofs.merkle import Tree
from dataspace.proofs.notes import BadNote, BadSignature, Checkpoint, Note, NotSigned, checked_checkpoint
from dataspace.proofs.proofs import BadReceipt, Receipt
from dataspace.proofs.verifiers import Algorithm, Verifier, witness_time


class Notes:
    """What `dataspace.log.verify` meets: the `tree` of the records so far, and each checkpoint after those it covers.

    `sound` are the notes over the records that were read.
    """

    def __init__(self) -> None:
        self.tree = Tree()
        self.sound: list[Note] = []

    def note(self, size: int, root: bytes, data: bytes) -> str:
        """A checkpoint frame: what is wrong with it, or nothing."""
        try:
            note = Note.parse(data)
            checkpoint = Checkpoint.parse(note.text)
        except BadNote as bad:
            return f"a checkpoint that is no {bad.what}"
        if (checkpoint.size, checkpoint.root) != (size, root):
            return "a checkpoint that says something else than its frame"
        if size > self.tree.size or self.tree.root(size) != root:
            return f"a checkpoint of {size} {OTHERS}"
        self.sound.append(note)
        return ""


@attrs.frozen
class Testimony:
    """What somebody outside of a store has seen of its log, held against that.

    `kind`: `receipt` or `checkpoint` (somebody has kept it), or `cosignature` (a witness whose key was given has signed
    a checkpoint that is in the log; `time` is when, in seconds since 1970). `size`: how many records it is over.
    `outcome`: `holds`, `missing` (the log has fewer), `contradicted` (it has others), `not held` (it is damaged before
    there).
    """

    __test__: ClassVar[bool] = False  # its name begins like that of a test class, which it is not

    kind: Literal["receipt", "checkpoint", "cosignature"]
    size: int
    by: tuple[str, ...]
    outcome: Literal["holds", "missing", "contradicted", "not held"]
    what: str
    time: int | None = None

    @property
    def said(self) -> str:
        """Who says it, for people."""
        return f"a {self.kind} of {', '.join(self.by)}" if self.by else f"a {self.kind}"


class Held:
    """A log as its bytes have told it: the tree of its records, sound up to position `upto`, and where it ends."""

    def __init__(self, origin: str, tree: Tree, upto: int, end: int) -> None:
        self.origin = origin
        self.tree = tree
        self.upto = upto
        self.end = end

    def testimony(self, given: str | bytes | Receipt) -> Testimony:
        """What a receipt or a checkpoint says of it; whether the signatures are good is not looked at here.

        Raises `BadReceipt` or `BadNote` for what proves nothing.
        """
        seen = Seen.of(given)
        checkpoint = seen.checkpoint
        kind: Literal["receipt", "checkpoint"] = "checkpoint" if seen.head is None else "receipt"
        by = tuple(dict.fromkeys(each.name for each in seen.note.signatures))
        size = checkpoint.size
        if checkpoint.origin != self.origin:
            return Testimony(kind, size, by, "contradicted", f"it is of {checkpoint.origin}, this is {self.origin}")
        if size > self.end:
            return Testimony(kind, size, by, "missing", f"the log ends at position {self.end}")
        if size > self.upto:
            what = f"the log is damaged after position {self.upto}: what comes then cannot be held against it"
            return Testimony(kind, size, by, "not held", what)
        if self.tree.root(size) != checkpoint.root:
            what = f"the first {size} records of the log are not those that were seen"
            return Testimony(kind, size, by, "contradicted", what)
        return Testimony(kind, size, by, "holds", "")

    def cosignatures(self, notes: Sequence[Note], witnesses: Sequence[Verifier]) -> Iterator[Testimony]:
        """What witnesses have signed of the notes that are in the log, and fit it."""
        for note in notes:
            try:
                signers = note.checked(witnesses)
            except (BadSignature, NotSigned):
                continue
            size = Checkpoint.parse(note.text).size
            for signer in signers:
                lines = [each.data for each in note.signatures if (each.name, each.id) == (signer.name, signer.id)]
                outcome: Literal["holds", "not held"] = "holds" if size <= self.upto else "not held"
                yield Testimony("cosignature", size, (signer.name,), outcome, "", witness_time(lines[0]))


def witnesses_of(keys: Sequence[str]) -> list[Verifier]:
    """Those of some verifier keys that are witnesses'. Raises `BadKey`."""
    return [key for key in map(Verifier.parse, keys) if key.algorithm is Algorithm.WITNESS]


class Wrong(NamedTuple):
    """What is wrong with a signature, or with what was seen: in words, of which nature, and which record (its session,
    its seq) it is that cannot be read, if it is that."""

    what: str
    nature: Literal["altered", "damaged", "missing", "unread"] = "altered"
    record: tuple[str, int] | None = None

    @classmethod
    def of(cls, error: KeeveError) -> Wrong:
        """What an error says."""
        if isinstance(error, LogTruncated):
            return cls(str(error), "missing")
        if isinstance(error, BadNote | BadReceipt):
            return cls(str(error), "unread")
        if isinstance(error, SessionDamaged):
            return cls(str(error), "damaged", (error.session, error.seq))
        return cls(str(error), "damaged" if isinstance(error, LogCorrupt) else "altered")


def signatures(
    store: Store,
    catalog: Catalog,
    notes: Sequence[Note],
    keys: Sequence[str],
    expect: Sequence[str | bytes | Receipt] = (),
) -> Iterator[Wrong]:
    """What is wrong with the signatures of a log: under notes, of its keys, and against what was given from outside.

    `keys` are verifier keys that the log has to have signed with (or witnesses'), `expect` what was seen of it.
    """
    checkpoints = Checkpoints(store, catalog)
    try:
        known = checkpoints.verifiers
        for each in keys:
            verifier = Verifier.parse(each)
            if verifier.algorithm is Algorithm.NOTE and verifier not in known:
                yield Wrong(f"it was never signed with {verifier}")
    except KeeveError as error:
        yield Wrong.of(error)
        return
    for note in notes:
        try:
            checkpoint, _ = checked_checkpoint(note, known)
        except (BadSignature, NotSigned) as error:
            yield Wrong(str(error))
        else:
            if checkpoint.origin != checkpoints.origin:
                yield Wrong(f"a checkpoint of {checkpoint.origin} is in the log {checkpoints.origin}")
    try:
        checkpoints.newest()
    except NotSigning:
        pass
    except KeeveError as error:
        yield Wrong.of(error)
    for given in expect:
        try:
            checkpoints.expect(given)
        except KeeveError as error:
            yield Wrong.of(error)
