"""Witnesses: what they sign, what they refuse, and what is kept of it."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256

import pytest
from signed_worlds import KEY, changed, kept, signing, world
from test_notes import cosignature, verifier

from dataspace.facts import fact
from dataspace.proofs.merkle import extends
from dataspace.proofs.notes import BadSignature, Checkpoint, Note, NotSigned
from dataspace.proofs.signers import SigningKey
from dataspace.proofs.verifiers import Algorithm


class Witness:
    """Signs a checkpoint of a log only if it extends the one it has seen: what C2SP's `tlog-witness` asks for."""

    def __init__(self, *keys: SigningKey) -> None:
        self.keys = keys
        self.seen: dict[str, Checkpoint] = {}

    def add(self, request: str) -> str | int:
        """The note with a signature more; or the size that it has seen, or an error of HTTP."""
        above, _, text = request.partition("\n\n")
        old, *proof = above.split("\n")
        note = Note.parse(text)
        checkpoint = Checkpoint.parse(note.text)
        note.checked([key.verifier(checkpoint.origin) for key in self.keys])
        seen = self.seen.get(checkpoint.origin, Checkpoint(checkpoint.origin, 0, sha256(b"").digest()))
        if old != f"old {seen.size}":
            return seen.size
        hashes = [b64decode(line) for line in proof]
        if seen.size and not extends(seen.size, seen.root, checkpoint.size, checkpoint.root, hashes):
            return 422
        self.seen[checkpoint.origin] = checkpoint
        return str(note.signed(cosignature("witness.example/w", note.text, 1_700_000_000)))


W = verifier("witness.example/w", Algorithm.WITNESS)


def test_a_witness_signs_what_extends_what_it_has_seen_and_that_is_kept():
    here = world()
    checkpoints, witness = signing(here), Witness(KEY)
    for old in (0, None):
        seen = next(iter(witness.seen.values())).size if old is None else old
        cosigned = witness.add(checkpoints.extension(seen))
        assert isinstance(cosigned, str)
        assert checkpoints.cosigned(cosigned, [W]) == [W]
        kept(checkpoints, here)
        assert W in Note.parse(next(here.store.notes())).checked([*checkpoints.verifiers, W])
        assert W in checkpoints.receipt(2).verify([*checkpoints.verifiers, W])
        for turn in range(9):
            here.say("ada", fact("turn", turn))
    here = here.reopen()
    assert W not in Note.parse(str(signing(here).newest())).checked([*checkpoints.verifiers, W])


def test_a_witness_refuses_a_history_that_does_not_extend_what_it_has_seen():
    """Not even a host that has lost its memory, with the right key, gets another history signed."""
    here = world()
    witness = Witness(KEY)
    assert isinstance(witness.add(signing(here).extension(0)), str)
    other = changed(here, here.store.head.position - 2)
    for turn in range(9):
        other.say("ada", fact("another.turn", turn))
    forgetful = signing(other)
    size = next(iter(witness.seen.values())).size
    assert witness.add(forgetful.extension(0)) == size
    assert witness.add(forgetful.extension(size)) == 422


def test_what_no_witness_has_signed_is_not_kept_as_witnessed():
    here = world()
    checkpoints = signing(here)
    note = checkpoints.newest()
    with pytest.raises(NotSigned):
        checkpoints.cosigned(str(note), [W])
    forged = note.signed(cosignature("witness.example/w", "other\n", 5))
    with pytest.raises(BadSignature):
        checkpoints.cosigned(str(forged), [W])
    strange = Note(note.text).signed(cosignature("witness.example/w", note.text, 5))
    with pytest.raises(NotSigned):
        checkpoints.cosigned(str(strange), [W])
