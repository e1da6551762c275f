"""Checkpoints and receipts of a log: what is signed, what is refused, and what they say of a log that was changed."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from test_notes import cosignature, verifier
from worlds import World

from dataspace.catalog.catalog import Catalog
from dataspace.checkpoints.keys import WrongKey, introduction, log_keys
from dataspace.checkpoints.signing import Checkpoints, NotCovered, NotSigning
from dataspace.facts import fact
from dataspace.log.memory import MemoryLog
from dataspace.log.merkle import Tree, extends, leaf_hash
from dataspace.log.notes import BadNote, BadSignature, Checkpoint, Note, NotSigned
from dataspace.log.proofs import BadReceipt, Receipt
from dataspace.log.signing import SigningKey
from dataspace.log.verdicts import LogTampered, LogTruncated
from dataspace.log.verifiers import Algorithm
from dataspace.records import Kind

KEY = SigningKey.of_seed(bytes(32))
OTHER = SigningKey.of_seed(bytes([1]) * 32)


def world(turns: int = 3, log: MemoryLog | None = None) -> World:
    made = World(log=log)
    made.spawn("ada")
    for turn in range(turns):
        made.say("ada", fact("turn", turn))
    return made


def signing(world: World, key: SigningKey | None = KEY, former: SigningKey | None = None) -> Checkpoints:
    return Checkpoints(world.store, world.catalog, key, former=former, now=int, salts=world.random.randbytes)


def kept(checkpoints: Checkpoints, world: World) -> None:
    """Let what is pending be kept, as it is when the log is settled."""
    while (certificate := checkpoints.pending()) is not None:
        world.store.settle(certificate)
        checkpoints.kept(certificate)


def size_of(note: Note) -> int:
    return Checkpoint.parse(note.text).size


def tree(world: World) -> Tree:
    return Tree(leaf_hash(stored.header.hash) for stored in world.store.scan())


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


def changed(before: World, at: int) -> World:
    """Another history with the same beginning: the records up to position `at`, and others after them."""
    log = MemoryLog(before.log.log_id)
    log.records = before.log.records[:at]
    log.marks = before.log.marks[: at + 1]
    other = World(log=log)
    other.uids, other.random = dict(before.uids), before.random
    other.random.random()
    for stored in other.store.scan():
        other.heads[stored.header.uid] = (stored.header.seq, stored.header.hash)
    return other


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
    assert checkpoints.receipt(5) == right
    here.catalog.flush()
    here.catalog._tables._writer.execute("UPDATE tree SET nodes = zeroblob(length(nodes)) WHERE level = 5")
    here.catalog.tree.forget()
    here.say("ada", fact("turn", 99))
    assert size_of(checkpoints.newest()) == size_of(note) + 1
    assert Checkpoint.parse(checkpoints.newest().text).root == tree(here).root(size_of(note) + 1)
    here.catalog.close()


# Keys


def test_the_first_key_is_put_into_the_log_by_itself():
    here = world()
    checkpoints = signing(here)
    (only,) = log_keys(here.store, here.catalog)
    assert only.verifier == KEY.verifier(checkpoints.origin)
    assert here.store.read(only.position).header.kind == Kind.KEY
    assert [str(held.fact) for held in here.space.facts("(log-key . _)")] == [f'(log-key "{only.verifier}")']
    head = here.store.head
    assert signing(here.reopen()).keys == [only]
    assert here.store.head == head


def test_another_key_is_refused_and_nothing_is_written():
    """Invariant 43."""
    here = world()
    signing(here)
    head = here.store.head
    for former in (None, OTHER):
        with pytest.raises(WrongKey):
            signing(here, OTHER, former)
    assert here.store.head == head


def test_a_key_takes_the_place_of_another_when_that_one_signs():
    here = world()
    first = signing(here)
    old = first.newest()
    receipt = first.receipt(2)
    kept(first, here)
    here = here.reopen()
    second = signing(here, OTHER, KEY)
    assert second.verifiers == [KEY.verifier(first.origin), OTHER.verifier(first.origin)]
    assert second.newest().checked([second.verifiers[1]])
    assert second.expect(str(old)).size == size_of(old)
    second.expect(receipt)
    kept(second, here)
    here = here.reopen()
    assert signing(here, OTHER).verifiers == second.verifiers
    with pytest.raises(WrongKey):
        signing(here, KEY)


def test_a_key_that_nobody_vouches_for_is_no_key_of_the_log():
    """A `key` record that somebody else has written, with a signature of its own alone."""
    here = world()
    signing(here)
    row = here.catalog.by_uid(bytes(16))
    assert row is not None
    origin = f"keeve/{here.store.log_id.hex()}"
    here.append(introduction((row.seq, row.hash), origin, OTHER, None, 0, here.random.randbytes))
    with pytest.raises(LogTampered, match="nobody vouches"):
        signing(here.reopen(), OTHER)


def test_a_key_may_be_anything_that_signs():
    private = Ed25519PrivateKey.from_private_bytes(bytes(32))
    asked: list[bytes] = []

    def sign(text: bytes) -> bytes:
        asked.append(text)
        return private.sign(text)

    here = world()
    checkpoints = signing(here, SigningKey(KEY.public, sign))
    assert checkpoints.newest().checked(checkpoints.verifiers)
    assert len(asked) == 2


def test_one_that_signs_wrongly_is_found_out():
    here = world()
    with pytest.raises(BadSignature):
        signing(here, SigningKey(KEY.public, lambda text: bytes(64)))
    assert not log_keys(here.store, here.catalog)


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
    assert receipt.proof.note == note
    with pytest.raises(NotCovered):
        checkpoints.receipt(here.store.head.position, note)


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


# Witnesses


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
