"""What a record says as a text: whoever has a key of the log is told that and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_notes import signature, verifier
from worlds import World

from dataspace.drafts import Assertion
from dataspace.facts import fact
from dataspace.observe.events import NotProven
from dataspace.observe.words import Words
from dataspace.proofs.merkle import Tree, inclusion, leaf_hash
from dataspace.proofs.notes import Checkpoint, Note, NotSigned
from dataspace.proofs.proofs import BadReceipt, Receipt

LOG = "example.com/log"
LONG = "a long text " * 50
FACTS = [fact("turn", 1, "ada", input=LONG), fact("turn-done", 1, "ada", output="short")]


def words() -> Words:
    world = World()
    world.spawn("ada")
    world.say("ada", *FACTS)
    event = next(iter(world.space.query("(turn-done . _)")))
    proof = world.space.proof(event)
    tree = Tree(leaf_hash(world.catalog.stored(n).header.hash) for n in range(1, event.position + 1))
    checkpoint = Checkpoint(LOG, tree.size, tree.root(tree.size))
    note = Note(checkpoint.text, (signature(LOG, checkpoint.text),))
    hashes = inclusion(event.position - 1, tree.size, tree.node)
    return Words.of(proof, Receipt.of(proof.header, hashes, note, checkpoint))


TEXT = str(words())


def test_whoever_has_a_key_is_told_what_the_record_says() -> None:
    read = Words.parse(TEXT)
    assert str(read) == TEXT
    assert read.verify([verifier(LOG)]) == [Assertion(0, FACTS[0]), Assertion(1, FACTS[1])]


def test_without_a_key_of_the_log_nothing_is_proven() -> None:
    with pytest.raises(NotSigned):
        Words.parse(TEXT).verify([verifier("example.com/other")])


@pytest.mark.parametrize("line", [1, 2, 3, 4])
def test_no_line_can_be_another_one(line: int) -> None:
    lines = TEXT.split("\n")
    lines[line] = lines[line].rpartition(" ")[0] + " " + "QUJD" * 8
    with pytest.raises(NotProven):
        _ = Words.parse("\n".join(lines)).statements


def test_a_text_that_was_erased_is_told_as_that() -> None:
    without = "\n".join(line for line in TEXT.split("\n") if not line.startswith("cell "))
    first, _ = Words.parse(without).statements
    assert isinstance(first, Assertion)
    assert str(first.fact) != str(FACTS[0])
    assert "erased" in str(first.fact)


@given(st.binary(max_size=200), st.integers(0, len(TEXT) - 1), st.integers(0, 20))
def test_a_mutilated_text_is_refused_or_says_the_same(data: bytes, at: int, more: int) -> None:
    """Invariant 42."""
    changed = TEXT.encode()[:at] + data[:more] + TEXT.encode()[at + len(data) :]
    try:
        said = Words.parse(changed).statements
    except (BadReceipt, NotProven):
        return
    assert len(said) == 2
