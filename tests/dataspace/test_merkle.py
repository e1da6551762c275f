"""The Merkle tree: its roots and proofs, against the recursive definition and against vectors from outside."""

from __future__ import annotations

import json
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.proofs.merkle import (
    EMPTY,
    Tree,
    Ways,
    beside,
    consistency,
    extends,
    grown,
    includes,
    inclusion,
    leaf_hash,
    root,
)

VECTORS = Path(__file__).parents[3] / "shared" / "data" / "vectors"


def vectors(name: str) -> list[Any]:
    path = VECTORS / name
    found = json.loads(path.read_text()) if path.exists() else []
    return [pytest.param(case, id=case["case"]) for case in found] or [None]


needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="the RFC 6962 vectors are not beside this checkout")


def hashes(listed: list[str] | None) -> list[bytes]:
    return [b64decode(each) for each in listed or []]


@needs_vectors
@pytest.mark.parametrize("case", vectors("rfc6962-inclusion.json"))
def test_inclusion_is_judged_as_others_judge_it(case: dict[str, Any]) -> None:
    leaf, over = b64decode(case["leafHash"]), b64decode(case["root"])
    found = includes(over, case["treeSize"], leaf, case["leafIdx"], hashes(case["proof"]))
    assert found is not case["wantErr"]


@needs_vectors
@pytest.mark.parametrize("case", vectors("rfc6962-consistency.json"))
def test_consistency_is_judged_as_others_judge_it(case: dict[str, Any]) -> None:
    old, new = b64decode(case["root1"]), b64decode(case["root2"])
    found = extends(case["size1"], old, case["size2"], new, hashes(case["proof"]))
    assert found is not case["wantErr"]


def leaf(number: int) -> bytes:
    return leaf_hash(sha256(b"record %d" % number).digest())


LEAVES = [leaf(number) for number in range(130)]
TREE = Tree(LEAVES)


def defined(leaves: list[bytes]) -> bytes:
    """The root as RFC 6962 defines it."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return sha256(b"\x01" + defined(leaves[:k]) + defined(leaves[k:])).digest()


def test_the_root_is_that_of_the_definition_at_every_size():
    for size in range(len(LEAVES) + 1):
        assert TREE.root(size) == defined(LEAVES[:size])
    assert TREE.root(0) == EMPTY


def test_every_leaf_is_proven_in_every_tree():
    for size in range(1, 70):
        over = TREE.root(size)
        for index in range(size):
            proof = inclusion(index, size, TREE.node)
            assert includes(over, size, LEAVES[index], index, proof)
            assert not includes(over, size, leaf(999), index, proof)
            assert len(proof) <= (size - 1).bit_length()


def test_leaves_that_are_proven_together_are_proven_as_each_alone_and_go_on_being_so():
    levels: list[list[bytes]] = [[] for _ in range(4)]
    made = []
    for size in range(1, 70):
        if size % 8 == 1:
            levels = [[] for _ in range(4)]
        grown(levels, [LEAVES[size - 1]])
        place = (size - 1) // 8
        ways = Ways(8 * place, size - 8 * place, levels[:3], beside(3, place, size, TREE.node))
        made += [(ways, index, size) for index in range(8 * place, size)]
    for ways, index, size in made:  # the tree has grown since
        assert ways.proof(index) == tuple(inclusion(index, size, TREE.node))


def test_every_tree_is_proven_to_go_on_from_every_earlier_one():
    for new in range(1, 70):
        for old in range(1, new + 1):
            proof = consistency(old, new, TREE.node)
            assert extends(old, TREE.root(old), new, TREE.root(new), proof)
            assert len(proof) <= (new - 1).bit_length() + 1


@given(st.data())
def test_a_changed_proof_proves_nothing(data: st.DataObject):
    size = data.draw(st.integers(2, 130))
    old = data.draw(st.integers(1, size - 1))
    index = data.draw(st.integers(0, size - 1))
    for proof, holds in (
        (inclusion(index, size, TREE.node), lambda p: includes(TREE.root(size), size, LEAVES[index], index, p)),
        (consistency(old, size, TREE.node), lambda p: extends(old, TREE.root(old), size, TREE.root(size), p)),
    ):
        at = data.draw(st.integers(0, len(proof) - 1))
        wrong = bytearray(proof[at])
        wrong[data.draw(st.integers(0, 31))] ^= data.draw(st.integers(1, 255))
        changed = [
            [*proof[:at], bytes(wrong), *proof[at + 1 :]],
            [*proof[:at], *proof[at + 1 :]],
            [*proof, proof[at]],
            [proof[at], *proof],
        ]
        assert holds(proof)
        assert not any(holds(each) for each in changed)


@given(st.integers(1, 129), st.integers(0, 128), st.integers(0, 129))
def test_a_tree_with_another_record_in_it_does_not_go_on(old: int, changed: int, more: int):
    changed %= old
    new = min(130, old + more)
    other = Tree([*LEAVES[:changed], leaf(999), *LEAVES[changed + 1 : new]])
    proof = consistency(old, new, other.node)
    assert not extends(old, TREE.root(old), new, other.root(new), proof)


@given(st.binary(max_size=200), st.integers(0, 1 << 70), st.integers(0, 1 << 70))
def test_no_proof_takes_long_to_refuse(proof: bytes, one: int, other: int):
    path = [proof[at : at + 32] for at in range(0, len(proof), 32)] * 40
    assert not includes(leaf(1), other, EMPTY, one, path)
    assert not extends(one, EMPTY, other, leaf(1), path)


def test_no_proof_is_made_of_what_is_not_there():
    for index, size in ((0, 0), (5, 5), (-1, 5)):
        with pytest.raises(IndexError):
            inclusion(index, size, TREE.node)
    for old, new in ((0, 5), (6, 5)):
        with pytest.raises(IndexError):
            consistency(old, new, TREE.node)


def test_a_root_asks_for_few_nodes():
    """Invariant 36: a root or a proof costs the logarithm of the log's length."""
    for size in (1_000, 100_000, (1 << 40) + 12_345):
        asked: list[tuple[int, int]] = []

        def node(level: int, index: int, asked: list[tuple[int, int]] = asked) -> bytes:
            asked.append((level, index))
            return bytes(32)

        root(size, node)
        inclusion(size // 3, size, node)
        consistency(size // 3, size, node)
        assert len(asked) <= 6 * size.bit_length()


@given(st.lists(st.integers(0, 40), max_size=8))
def test_many_leaves_at_once_make_the_same_tree(pieces: list[int]) -> None:
    at_once, one_by_one = Tree(), Tree()
    for piece in pieces:
        leaves = [leaf_hash(bytes([one_by_one.size % 256, n])) for n in range(piece)]
        at_once.extend(leaves)
        for leaf in leaves:
            one_by_one.append(leaf)
    assert at_once.levels == one_by_one.levels
