"""What proves to others: checkpoints, keys, receipts. Of a host the newest checkpoint may be signed now; of files it is
the newest that is in them.

The one rule: what is proven is given as the text that others check, byte for byte.
"""

from __future__ import annotations

from typing import Any, Protocol

from dataspace.catalog.catalog import Catalog
from dataspace.checkpoints.checkpoints import Checkpoints
from dataspace.log.store import Store
from dataspace.observe.dataspace import Dataspace
from dataspace.observe.events import NotProven
from dataspace.observe.words import Words
from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.proofs import Receipt
from keeve.faces import utc_time
from vat.heap.restore import NoSuchPoint
from vat.host.host import Host
from vat.host.within import keys_of


class Proofs(Protocol):
    """Where proofs come from."""

    def checkpoint(self, since: int | None) -> str: ...
    def receipt(self, session: str, seq: int, checkpoint: str | None) -> Receipt: ...
    def keys(self) -> list[dict[str, Any]]: ...


class StoredProofs:
    """What a store has, that is read."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._checkpoints = Checkpoints(store, catalog)
        self._catalog = catalog

    def checkpoint(self, since: int | None) -> str:
        """The newest checkpoint. Raises `NotSigning` when there is none."""
        return str(self._checkpoints.newest()) if since is None else self._checkpoints.extension(since)

    def receipt(self, session: str, seq: int, checkpoint: str | None) -> Receipt:
        """The receipt of a session's record."""
        row = self._catalog.session(session)
        position = None if row is None or seq < 1 else self._catalog.position(row.uid, seq)
        if row is None or position is None:
            raise NoSuchPoint(session, seq, 1, 0 if row is None else row.seq)
        return self._checkpoints.receipt(position, None if checkpoint is None else Note.parse(checkpoint))

    def keys(self) -> list[dict[str, Any]]:
        """The verifier keys, and since which position each signs."""
        return [{"key": str(each.verifier), "since": each.position} for each in self._checkpoints.keys]


class HostProofs:
    """What a host has, that may sign."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def checkpoint(self, since: int | None) -> str:
        """The newest checkpoint."""
        return self._host.checkpoint(since=since)

    def receipt(self, session: str, seq: int, checkpoint: str | None) -> Receipt:
        """The receipt of a session's record."""
        return self._host.receipt(session, seq, checkpoint=checkpoint)

    def keys(self) -> list[dict[str, Any]]:
        """The verifier keys, and since which position each signs."""
        return [{"key": key, "since": since} for key, since in keys_of(self._host)]


def checkpoint_said(proofs: Proofs, since: int | None) -> dict[str, Any]:
    """A checkpoint; with `since`, as a witness takes it that has seen so many records, too."""
    note = proofs.checkpoint(None)
    extension = None if since is None else proofs.checkpoint(since)
    return told_checkpoint(note, extension)


def told_checkpoint(note: str, extension: str | None) -> dict[str, Any]:
    """A checkpoint in JSON."""
    checkpoint = Checkpoint.parse(Note.parse(note).text)
    said = {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex(), "note": note}
    return said if extension is None else {**said, "extension": extension}


def receipt_said(receipt: Receipt, words: Words | None) -> dict[str, Any]:
    """A receipt in JSON."""
    more = {} if words is None else {"words": str(words)}
    return {"receipt": str(receipt), **record_said(receipt), **more}


def record_said(receipt: Receipt) -> dict[str, Any]:
    """Which record a receipt is of."""
    header = receipt.header
    return {
        "position": header.position,
        "session": header.uid.hex(),
        "seq": header.seq,
        "time": utc_time(header.time),
        "hash": header.hash.hex(),
    }


def words_of(space: Dataspace, receipt: Receipt) -> Words:
    """What a record has stated, with its receipt. Raises `NotProven` when it has stated nothing."""
    position = receipt.header.position
    event = next(iter(space.query("(_ . _)", after=position - 1, upto=position)), None)
    if event is None:
        raise NotProven(position, "its record has stated nothing")
    return Words.of(space.proof(event), receipt)
