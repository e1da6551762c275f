"""Receipts of many records that became durable together: what each costs, and that each is all that it needs."""

from __future__ import annotations

import gc
import pickle
import sys
from copy import copy
from hashlib import sha256
from typing import Any

import pytest
from signed_worlds import kept, signing
from worlds import World

import dataspace.checkpoints.checkpoints
from dataspace.checkpoints.checkpoints import Checkpoints
from dataspace.facts import fact
from dataspace.proofs import merkle
from dataspace.proofs.proofs import Receipt
from dataspace.records import Header


def signed(turns: int) -> tuple[World, Checkpoints]:
    world = World()
    world.spawn("ada")
    checkpoints = signing(world)
    said(world, turns)
    checkpoints.newest()
    return world, checkpoints


def said(world: World, count: int) -> list[Header]:
    """The headers of so many records, of one batch."""
    return [record.header for record in world.append(*[_sealed(world, turn) for turn in range(count)])]


def _sealed(world: World, turn: int) -> Any:
    return world.seal(world.saying("ada", fact("turn", turn)))


def proven(checkpoints: Checkpoints, headers: list[Header]) -> list[Receipt]:
    return [checkpoints.receipt(header.position, header=header) for header in headers]


def test_the_records_of_a_batch_are_hashed_once_for_its_root_and_all_receipts(monkeypatch: pytest.MonkeyPatch):
    """Invariant 36: a receipt for each call costs little more than one for the batch."""
    world, checkpoints = signed(298)
    hashed: list[bytes] = []
    headers = said(world, 200)
    monkeypatch.setattr(merkle, "sha256", lambda data: hashed.append(data) or sha256(data))
    receipts = proven(checkpoints, headers)
    assert receipts[0].checkpoint.size == receipts[-1].checkpoint.size == headers[-1].position
    assert 2 * 200 - 9 <= len(hashed) <= 2 * 200 + 4 * 9  # a leaf and a node for each; and what is not whole yet


def test_a_receipt_of_a_batch_takes_five_calls_and_what_all_share_is_made_for_32_at_once():
    """Invariant 36."""
    world, checkpoints = signed(40)
    headers = said(world, 320)
    checkpoints.newest()
    count = 0

    def called(_: Any, event: str, what: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # what it calls when it collects is nobody's cost here
    sys.setprofile(called)
    try:
        for header in headers:
            checkpoints.receipt(header.position, header=header)
    finally:
        sys.setprofile(before)
        gc.enable()
    assert 320 <= count <= 320 * 5 + 11 * 50


def test_a_receipt_is_all_that_it_needs_whatever_becomes_of_the_log():
    world, checkpoints = signed(40)
    headers = said(world, 50)
    receipts = proven(checkpoints, headers)
    again = [pickle.loads(pickle.dumps(each)) for each in receipts]
    texts = [str(each) for each in receipts]
    verifiers = checkpoints.verifiers
    said(world, 100)
    checkpoints.newest()  # the tree has grown under them
    kept(checkpoints, world)
    world.catalog.tree.forget()
    world.catalog.close()
    world.store.close()
    world.log.records.clear()
    for header, receipt, other, text in zip(headers, receipts, again, texts, strict=True):
        assert str(receipt) == str(other) == str(copy(receipt)) == text
        assert receipt == other == Receipt.parse(text)
        assert hash(receipt) == hash(other)
        assert receipt.verify(verifiers)
        assert receipt.header == header
    assert len(set(receipts)) == 50
    assert receipts[0] != receipts[1]
    assert receipts[0] != texts[0]


def test_what_is_pickled_of_a_receipt_is_its_own_proof_alone():
    world, checkpoints = signed(40)
    receipts = proven(checkpoints, said(world, 50))
    assert len(pickle.dumps(receipts[9])) < len(str(receipts[9])) + 600
    shared = receipts[9]._covered.ways
    assert shared is receipts[10]._covered.ways
    assert pickle.loads(pickle.dumps(receipts[9]))._covered.ways._levels == ()


def test_a_receipt_cannot_be_changed():
    world, checkpoints = signed(3)
    (receipt,) = proven(checkpoints, said(world, 1))
    for name in ("header", "checkpoint", "note", "hashes", "other"):
        with pytest.raises(AttributeError):
            setattr(receipt, name, None)


def test_what_is_remembered_for_receipts_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dataspace.checkpoints.checkpoints, "_REMEMBERED", 2)
    _, checkpoints = signed(200)
    for position in range(1, 200):
        checkpoints.receipt(position)
        assert len(checkpoints._newest.covered) <= 2
