"""Checkpoints and receipts of a log: what is signed, what is refused, what they say of a log that was changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from signed_worlds import KEY, OTHER, changed, kept, signing, size_of, tree, world
from worlds import World

from dataspace.catalog.catalog import Catalog
from dataspace.checkpoints.checkpoints import Checkpoints, NotCovered, NotSigning
from dataspace.facts import fact
from dataspace.log.memory import MemoryLog
from dataspace.log.verdicts import LogTampered, LogTruncated
from dataspace.proofs.notes import BadNote, Checkpoint, Note
from dataspace.proofs.proofs import BadReceipt, Receipt
from dataspace.proofs.signers import SigningKey

# Signing


def test_a_checkpoint_is_of_all_records_and_signed_by_the_log():
    here = world()
    checkpoints = signing(here)
    note = checkpoints.newest()
    checkpoint = Checkpoint.parse(note.text)
    assert checkpoint.origin == f"keeve/{here.store.log_id.hex()}"
    assert checkpoint.size == here.store.head.position
    assert checkpoint.root == tree(here).root(checkpoint.size)
    assert note.checked(checkpoints.verifiers) == [KEY.verifier(checkpoint.origin)]


def test_it_stays_the_same_until_there_is_more():
    here = world()
    checkpoints = signing(here)
    first = checkpoints.newest()
    assert checkpoints.newest() is first
    here.say("ada", fact("turn", 9))
    assert size_of(checkpoints.newest()) == size_of(first) + 1


def test_only_what_is_durable_is_signed():
    """Invariant 7: what is promised to the world is durable."""
    here = world()
    checkpoints = signing(here)
    durable = here.store.head.position
    record = here.seal(here.saying("ada", fact("turn", 9)))
    record.position = record.address = durable + 1
    here.catalog.note([record])  # as if somebody had noted what is not in the store yet
    assert size_of(checkpoints.newest()) == durable


def test_without_a_key_nothing_is_signed():
    here = world()
    checkpoints = signing(here, None)
    assert not checkpoints.signs
    assert checkpoints.verifiers == []
    for ask in (checkpoints.newest, lambda: checkpoints.receipt(1), lambda: checkpoints.extension(1)):
        with pytest.raises(NotSigning):
            ask()
    assert checkpoints.pending() is None


def test_without_a_key_the_newest_is_the_one_that_was_kept():
    here = world()
    owner = signing(here)
    kept(owner, here)
    note = owner.newest()
    here.say("ada", fact("turn", 9))
    reader = signing(here, None)
    assert reader.newest() == note
    assert reader.receipt(2) == owner.receipt(2, note)
    with pytest.raises(NotCovered):
        reader.receipt(here.store.head.position)


def test_who_has_not_noted_all_yet_is_given_the_newest_of_what_it_has():
    """An owner goes on, and signs, while somebody looks at what was there a moment ago: that is no shorter log."""
    here = world()
    owner = signing(here)
    kept(owner, here)
    note, behind = owner.newest(), Catalog(None, here.store)
    here.say("ada", fact("turn", 9))
    kept(owner, here)
    assert Checkpoints(here.store, behind).newest() == note
    assert Checkpoints(here.store, here.catalog).newest() == owner.newest() != note


def test_nothing_is_signed_that_does_not_extend_the_last():
    """A log under a running host that is not the one of before any more."""
    here = world(turns=6)
    checkpoints = signing(here)
    checkpoints.newest()
    head = here.store.head.position
    other = changed(here, head - 3)
    for turn in range(9):
        other.say("ada", fact("another.turn", turn))
    checkpoints._store, checkpoints._catalog = other.store, other.catalog
    with pytest.raises(LogTampered):
        checkpoints.newest()
    assert checkpoints.pending() is None


def test_a_log_that_does_not_extend_what_was_signed_last_signs_no_more():
    here = world(turns=6)
    kept(signing(here), here)
    head = here.store.head.position
    shorter = changed(here, head - 2)
    shorter.log.certificates = here.log.certificates
    with pytest.raises(LogTruncated):
        signing(shorter)
    for turn in range(9):
        shorter.say("ada", fact("another.turn", turn))
    with pytest.raises(LogTampered):
        signing(shorter)


def test_what_was_signed_is_found_again_at_a_start():
    here = world()
    checkpoints = signing(here)
    kept(checkpoints, here)
    note = checkpoints.newest()
    again = signing(here.reopen())
    assert again.newest() == note
    assert again.pending() is None


def test_a_wrong_tree_is_made_again_and_the_log_is_not_blamed(tmp_path: Path):
    """Invariant 21: the tree is derived."""
    here = World(tmp_path / "catalog.sqlite")
    here.spawn("ada")
    for turn in range(80):
        here.say("ada", fact("turn", turn))
    checkpoints = signing(here)
    note = checkpoints.newest()
    right = checkpoints.receipt(5)
    here.catalog.flush()
    here.catalog._tables._writer.execute("UPDATE tree SET nodes = zeroblob(length(nodes)) WHERE level = 5")
    here.catalog.tree.forget()
    checkpoints._newest.covered.clear()
    assert checkpoints.receipt(5) == right
    here.catalog.flush()
    here.catalog._tables._writer.execute("UPDATE tree SET nodes = zeroblob(length(nodes)) WHERE level = 5")
    here.catalog.tree.forget()
    here.say("ada", fact("turn", 99))
    assert size_of(checkpoints.newest()) == size_of(note) + 1
    assert Checkpoint.parse(checkpoints.newest().text).root == tree(here).root(size_of(note) + 1)
    here.catalog.close()


# Receipts


def test_a_receipt_proves_any_record():
    here = world(turns=40)
    checkpoints = signing(here)
    for position in range(1, here.store.head.position + 1):
        receipt = Receipt.parse(str(checkpoints.receipt(position)))
        assert receipt.verify(checkpoints.verifiers)
        assert receipt.header.hash == here.store.read(position).header.hash
    for position in (0, here.store.head.position + 1):
        with pytest.raises(NotCovered):
            checkpoints.receipt(position)


def test_a_receipt_can_lead_to_an_earlier_checkpoint():
    here = world()
    checkpoints = signing(here)
    note = checkpoints.newest()
    here.say("ada", fact("turn", 9))
    receipt = checkpoints.receipt(2, note)
    assert receipt.note == note
    with pytest.raises(NotCovered):
        checkpoints.receipt(here.store.head.position, note)


def test_many_receipts_of_one_batch_cost_one_signature():
    here = world(turns=30)
    count = 0
    private = Ed25519PrivateKey.from_private_bytes(bytes(32))

    def sign(text: bytes) -> bytes:
        nonlocal count
        count += 1
        return private.sign(text)

    checkpoints = signing(here, SigningKey(KEY.public, sign))
    count = 0
    for position in range(1, 30):
        checkpoints.receipt(position)
    assert count == 1


READERS: list[Callable[[Checkpoints], object]] = [
    lambda c: c.newest(),
    lambda c: c.receipt(2),
    lambda c: c.extension(1),
]


@pytest.mark.parametrize("ask", READERS)
def test_the_same_is_told_with_a_catalog_made_anew(ask: Callable[[Checkpoints], object]):
    """Invariant 21."""
    here = world(turns=50)
    first = ask(signing(here))
    anew = Checkpoints(here.store, Catalog(None, here.store), KEY, now=int, salts=here.random.randbytes)
    assert ask(anew) == first


# What was seen


def test_a_log_that_goes_on_has_all_that_was_seen():
    here = world()
    checkpoints = signing(here)
    receipt, note = checkpoints.receipt(3), checkpoints.newest()
    for turn in range(40):
        here.say("ada", fact("turn", turn))
    for seen in (receipt, str(receipt), str(receipt).encode(), str(note)):
        assert checkpoints.expect(seen) == Checkpoint.parse(note.text)


def test_a_log_that_was_cut_is_truncated():
    here = world()
    receipt = signing(here).receipt(2)
    shorter = changed(here, here.store.head.position - 1)
    with pytest.raises(LogTruncated):
        signing(shorter, None).expect(receipt)


def test_an_older_copy_that_went_on_is_tampered_with():
    here = world()
    checkpoints = signing(here)
    here.say("ada", fact("turn", 8))
    receipt = checkpoints.receipt(2)
    other = changed(here, here.store.head.position - 1)
    for turn in range(5):
        other.say("ada", fact("another.turn", turn))
    with pytest.raises(LogTampered, match="not those"):
        signing(other, None).expect(receipt)


def test_a_receipt_of_another_log_is_tampered_with():
    receipt = signing(world(log=MemoryLog(b"another log ...."))).receipt(2)
    with pytest.raises(LogTampered):
        signing(world()).expect(receipt)


def test_a_checkpoint_that_the_log_never_signed_is_tampered_with():
    here = world()
    checkpoints = signing(here)
    text = checkpoints.newest().text
    forged = Note(text).signed(OTHER.signature(checkpoints.origin, text))
    with pytest.raises(LogTampered, match="signed by no key"):
        checkpoints.expect(str(forged))
    (line,) = checkpoints.newest().signatures
    with pytest.raises(LogTampered, match="does not fit"):
        checkpoints.expect(str(Note(text, (line._replace(data=bytes(64)),))))


@pytest.mark.parametrize("seen", ["", "nonsense", b"\xff", "c2sp.org/tlog-proof@v1\n", 7, None])
def test_what_proves_nothing_is_refused(seen: object):
    with pytest.raises((BadReceipt, BadNote)):
        signing(world()).expect(seen)  # type: ignore[arg-type]  # that is the test
