"""The keys of a log: with which its checkpoints are signed, from which record on, and who vouches for each.

The store's own chain says it. A `key` record names a verifier key; the key itself has signed that, and so has the one
before it, if there was one. So whoever trusts one of them trusts the later ones by their signatures, and the earlier
ones because the records that name them are under its own checkpoints.

The one rule: a key that is not in the log has signed nothing of it.
"""

from __future__ import annotations

from typing import ClassVar, Final

import attrs

from dataspace.catalog.catalog import Catalog
from dataspace.drafts import Draft, read_deeds
from dataspace.errors import KeeveError
from dataspace.log.marks import ChainHead
from dataspace.log.store import Store
from dataspace.log.verdicts import LogTampered
from dataspace.proofs.notes import BadNote, BadSignature, Note, NotSigned
from dataspace.proofs.signers import SigningKey
from dataspace.proofs.verifiers import BadKey, Verifier
from dataspace.records import STORE_UID, Kind, Record, Salts
from dataspace.remedies import Remedy
from dataspace.values import FrozenDict, FrozenList

LABEL = "log-key"
"""What a `key` record states: `(log-key "name+id+key")`."""


NAME_FORMER: Final = Remedy("name-former", "or name it as the former one, which signs that the new one takes its place")


class WrongKey(KeeveError, quotes=False):
    """A host was given another signing key than the one that the log is signed with."""

    usage: ClassVar[bool] = True

    def __init__(self, expected: str, given: str) -> None:
        self.expected = expected
        self.given = given
        super().__init__(
            f"this log is signed with {expected}, and the key that was given is {given}: give that one; {NAME_FORMER()}"
        )


@attrs.frozen
class LogKey:
    """A key, and the position of the record that names it."""

    verifier: Verifier
    position: int


def origin_of(log_id: bytes) -> str:
    """What a log is called in its checkpoints, and what its keys sign as."""
    return f"keeve/{log_id.hex()}"


def introduction(
    chain: ChainHead, origin: str, key: SigningKey, former: SigningKey | None, time: int, salts: Salts
) -> Record:
    """The record of the store's chain, after its head `chain`, that says: from here on this key signs."""
    verifier = str(key.verifier(origin))
    text = _text(origin, verifier)
    signers = [key] if former is None else [former, key]
    draft = Draft(STORE_UID, chain[0] + 1, Kind.KEY, time)
    lines = FrozenList([str(signer.signature(origin, text)) for signer in signers])
    draft.message = FrozenDict({"key": verifier, "signatures": lines})
    draft.stated(draft.operation(), LABEL, (verifier,), FrozenDict({}))
    return draft.seal(chain[1], salts)


def log_keys(store: Store, catalog: Catalog) -> list[LogKey]:
    """The keys of a log, in their order: the last one signs now. Costs a read for each.

    Raises `LogTampered` for one that nobody vouches for, and `SessionDamaged` when a record of one cannot be read.
    """
    origin = origin_of(store.log_id)
    found: list[LogKey] = []
    for position in catalog.positions(STORE_UID, LABEL):
        address = catalog.at(position)
        assert address is not None
        stored = store.read(address)
        if stored.header.kind != Kind.KEY:
            continue
        try:
            verifier, note = _introduced(read_deeds(stored.body().deeds).message, origin)
            note.checked([verifier])
            if found:
                note.checked([found[-1].verifier])
        except (BadNote, BadKey, BadSignature, NotSigned, ValueError) as error:
            what = f"nobody vouches for the key in the record at position {position} ({error})"
            raise LogTampered(*store.mark.place, what) from error
        found.append(LogKey(verifier, position))
    return found


def _introduced(message: object, origin: str) -> tuple[Verifier, Note]:
    """A key, and what is signed of it."""
    match message:
        case {"key": str(key), "signatures": [*lines]} if all(isinstance(line, str) for line in lines):
            verifier = Verifier.parse(key)
            if verifier.name == origin:
                return verifier, Note.parse(_text(origin, key) + "\n" + "".join(map(str, lines)))
    raise ValueError("it does not say which key of this log")


def _text(origin: str, verifier: str) -> str:
    return f"keeve key 1\n{origin}\n{verifier}\n"
