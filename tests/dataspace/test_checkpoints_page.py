"""`docs/checkpoints.md` holds the bytes that its own words make, as another implementation would read them."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from dataspace.proofs.merkle import Tree, consistency, inclusion, leaf_hash
from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.proofs import Receipt
from dataspace.proofs.signers import SigningKey
from dataspace.records import Header

PAGE = (Path(__file__).parents[2] / "docs" / "checkpoints.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```\n", PAGE, re.DOTALL | re.MULTILINE)

ORIGIN = "keeve/" + b"Keeve's log no 1".hex()
KEY = SigningKey.of_seed(sha256(b"an example").digest())
HEADER = Header(3, 0, b"a session's uid.", 1, 3, 1_700_000_000_000_000, bytes(32), bytes(32))
HASHES = [sha256(b"record %d" % n).digest() for n in range(1, 6)]
HASHES[2] = HEADER.hash
TREE = Tree(map(leaf_hash, HASHES))


def signed(size: int) -> Note:
    text = Checkpoint(ORIGIN, size, TREE.root(size)).text
    return Note(text).signed(KEY.signature(ORIGIN, text))


def test_the_page_has_the_hashes_of_the_example():
    lines = [f"{number} {each.hex()}\n" for number, each in enumerate(HASHES, 1)]
    assert "".join(lines) in BLOCKS
    lines = [f"{size} {TREE.root(size).hex()}\n" for size in range(1, 6)]
    assert "".join(lines) in BLOCKS


def test_the_page_has_the_checkpoint_and_its_key():
    assert str(signed(5)) in BLOCKS
    assert f"{KEY.verifier(ORIGIN)}\n" in BLOCKS


def test_the_page_has_the_receipt():
    receipt = Receipt.of(HEADER, inclusion(2, 5, TREE.node), signed(5), Checkpoint.parse(signed(5).text))
    assert str(receipt) in BLOCKS
    (found,) = [block for block in BLOCKS if block.startswith("c2sp.org/tlog-proof")]
    read = Receipt.parse(found)
    assert read.verify([KEY.verifier(ORIGIN)]) == [KEY.verifier(ORIGIN)]
    assert read.header == HEADER
    assert f"`extra` is {len(HEADER.hashed)} bytes" in PAGE


def test_the_page_has_the_proof_of_an_extension():
    assert "".join(f"{each.hex()}\n" for each in consistency(3, 5, TREE.node)) in BLOCKS
