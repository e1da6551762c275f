"""Receipts: one text proves that a record is in a log, or nothing."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_notes import cosignature, signature, verifier

from dataspace.proofs.merkle import Tree, inclusion, leaf_hash
from dataspace.proofs.notes import BadNote, BadSignature, Checkpoint, Note, NotSigned
from dataspace.proofs.proofs import BadReceipt, LogProof, Receipt
from dataspace.proofs.verifiers import Algorithm
from dataspace.records import Header

LOG = "example.com/log"
HEADERS = [
    Header(position, 1, bytes([position]) * 16, position, 5, 10**15 + position, bytes(32), bytes([position]) * 32)
    for position in range(1, 12)
]
TREE = Tree(leaf_hash(header.hash) for header in HEADERS)


def checkpoint(size: int) -> Checkpoint:
    return Checkpoint(LOG, size, TREE.root(size))


def signed(size: int) -> Note:
    text = checkpoint(size).text
    return Note(text, (signature(LOG, text),))


def receipt(position: int, size: int) -> Receipt:
    return Receipt.of(HEADERS[position - 1], inclusion(position - 1, size, TREE.node), signed(size), checkpoint(size))


def test_a_receipt_proves_its_record_to_who_has_the_key():
    for size in range(1, 12):
        for position in range(1, size + 1):
            given = receipt(position, size)
            read = Receipt.parse(str(given))
            assert read == given
            assert read.verify([verifier(LOG)]) == [verifier(LOG)]
            assert read.header == HEADERS[position - 1]._replace(epoch=0)
            assert read.checkpoint.size == size


def test_a_receipt_names_the_witnesses_that_are_known():
    note = signed(7).signed(cosignature("w", signed(7).text, 9))
    given = Receipt.of(HEADERS[2], inclusion(2, 7, TREE.node), note, checkpoint(7))
    witness = verifier("w", Algorithm.WITNESS)
    assert given.verify([verifier(LOG), witness]) == [verifier(LOG), witness]
    with pytest.raises(NotSigned):
        given.verify([witness])


def test_a_receipt_of_another_record_is_refused():
    honest = receipt(3, 7)
    other = LogProof(2, honest.hashes, honest.note, HEADERS[3].hashed)
    with pytest.raises(BadReceipt, match="does not lead to the root"):
        Receipt.parse(str(other))


def test_a_receipt_with_another_checkpoint_is_refused():
    root, other = (b64encode(TREE.root(size)).decode() for size in (7, 8))
    with pytest.raises(BadReceipt, match="does not lead to the root"):
        Receipt.parse(str(receipt(3, 7)).replace(root, other))
    for old, new in (("\n7\n", "\n8\n"), (str(signature(LOG, signed(7).text)), str(signature(LOG, "other\n")))):
        with pytest.raises(BadSignature):
            Receipt.parse(str(receipt(3, 7)).replace(old, new)).verify([verifier(LOG)])


GOOD = str(receipt(3, 7))


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD.replace("@v1", "@v2"),
        GOOD.replace("extra ", "extra"),
        GOOD.replace("index 2", "index 02"),
        GOOD.replace("index 2", "index 3"),
        GOOD.replace("index 2", "index -1"),
        GOOD.replace("index 2", f"index {1 << 70}"),
        GOOD.replace("index 2\n", ""),
        GOOD.replace("index 2\n", "index 2\nAAAA\n"),
        GOOD.replace("index 2\n", "index 2\n" + (b64encode(bytes(32)).decode() + "\n") * 70),
        GOOD.replace("\n\n", "\n"),
        GOOD[: GOOD.index("\n\n") + 2],
        GOOD.replace(GOOD.split("\n")[1] + "\n", ""),
        GOOD.replace(GOOD.split("\n")[1], "extra " + b64encode(b"something else").decode()),
    ],
)
def test_what_is_no_receipt_is_refused(text: str):
    with pytest.raises(BadReceipt):
        Receipt.parse(text)


def test_a_proof_of_another_application_is_read_too():
    proof = LogProof(0, (), signed(1))
    assert LogProof.parse(str(proof)) == proof
    assert str(proof).startswith("c2sp.org/tlog-proof@v1\nindex 0\n\n")
    empty = LogProof(0, (), signed(1), b"")
    assert LogProof.parse(str(empty)) == empty


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300)))
def test_anything_may_be_fed_as_a_receipt(data: bytes | str):
    """Invariant 42: a receipt raises its own error, whatever it is made of."""
    with pytest.raises(BadReceipt):
        Receipt.parse(data)


@given(st.data())
def test_a_mutilated_receipt_is_refused_or_proves_the_same(data: st.DataObject):
    """Invariant 42: receipts that almost are some."""
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 8)))
    changed = GOOD[:start] + data.draw(st.text("\n\0 +=—Aa0", max_size=4)) + GOOD[end:]
    try:
        read = Receipt.parse(changed)
        assert str(read) == changed
        read.verify([verifier(LOG)])
    except (BadReceipt, BadNote, BadSignature, NotSigned):
        return
    assert read.header == HEADERS[2]._replace(epoch=0)
    assert read.checkpoint == Checkpoint(LOG, 7, TREE.root(7))
