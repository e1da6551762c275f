"""A log's checkpoints held against its records, for who looks at every frame.

The one rule: a note is held against the records that were read before it, and not against what anybody says of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataspace.catalog.catalog import Catalog
from dataspace.checkpoints.checkpoints import Checkpoints, NotSigning
from dataspace.errors import KeeveError
from dataspace.log.store import Store
from dataspace.proofs.merkle import Tree
from dataspace.proofs.notes import BadNote, BadSignature, Checkpoint, Note, NotSigned, checked_checkpoint
from dataspace.proofs.proofs import Receipt
from dataspace.proofs.verifiers import Verifier


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
            return f"a checkpoint of {size} records that are not those in the log"
        self.sound.append(note)
        return ""


def signatures(
    store: Store, catalog: Catalog, notes: Sequence[Note], keys: Sequence[str], expect: str | bytes | Receipt | None
) -> Iterator[str]:
    """What is wrong with the signatures of a log: under notes, of its keys, and against what was given from outside.

    `keys` are verifier keys that the log has to have signed with, `expect` is what somebody has seen of it.
    """
    checkpoints = Checkpoints(store, catalog)
    try:
        known = checkpoints.verifiers
        for each in keys:
            verifier = Verifier.parse(each)
            if verifier not in known:
                yield f"it was never signed with {verifier}"
    except KeeveError as error:
        yield str(error)
        return
    for note in notes:
        try:
            checkpoint, _ = checked_checkpoint(note, known)
        except (BadSignature, NotSigned) as error:
            yield str(error)
        else:
            if checkpoint.origin != checkpoints.origin:
                yield f"a checkpoint of {checkpoint.origin} is in the log {checkpoints.origin}"
    try:
        checkpoints.newest()
    except NotSigning:
        pass
    except KeeveError as error:
        yield str(error)
    if expect is not None:
        try:
            checkpoints.expect(expect)
        except KeeveError as error:
            yield str(error)
