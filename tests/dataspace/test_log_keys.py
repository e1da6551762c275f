"""The keys of a log: in its own chain, each vouched for by the one before it."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from signed_worlds import KEY, OTHER, kept, signing, size_of, world

from dataspace.checkpoints.keys import WrongKey, introduction, log_keys
from dataspace.log.verdicts import LogTampered
from dataspace.proofs.notes import BadSignature
from dataspace.proofs.signers import SigningKey
from dataspace.records import Kind


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
