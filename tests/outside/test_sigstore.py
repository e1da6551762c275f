"""What a host signs, read by the `sigstore` package as a checkpoint of a transparency log."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest
from sigstore._internal.rekor.checkpoint import LogCheckpoint, SignedNote  # it has no public name
from sigstore.errors import VerificationError

from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.signers import SigningKey
from keeve import Session, open_host

KEY = SigningKey.of_seed(bytes(32))


async def test_it_reads_a_checkpoint_as_we_do(tmp_path: Path) -> None:
    async with open_host(tmp_path / "store", signer=KEY) as host:
        s = await host.spawn(Session, "s")
        await s.turn("hello")
        await s.turn("again", receipt=True)
    text = (tmp_path / "store" / "checkpoint").read_text()
    ours = Note.parse(text)
    checkpoint = Checkpoint.parse(ours.text)
    theirs = SignedNote.from_text(text)
    assert theirs.note == ours.text
    (signature,) = theirs.signatures
    (own,) = ours.signatures
    assert (signature.name, signature.sig_hash) == (own.name, own.id)
    assert b64decode(signature.signature) == own.data
    read = LogCheckpoint.from_text(theirs.note)
    assert (read.origin, read.log_size, bytes.fromhex(read.log_hash)) == checkpoint[:3]
    with pytest.raises(VerificationError):
        SignedNote.from_text(text.removesuffix("\n"))
