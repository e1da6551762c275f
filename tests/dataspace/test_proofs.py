"""Proofs that come from outside: whatever stands in them, they prove what their record says, or nothing."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from value_strategies import celled, containers, scalars
from worlds import World

from dataspace.facts import fact
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Event, NotProven, Opened, Proof
from dataspace.patterns import Captures
from dataspace.records import Header, body_digest, part_digest
from dataspace.values.encoding import encode

anything = st.one_of(
    st.none(), st.integers(), st.binary(max_size=40), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)


def of_one_turn() -> tuple[Event, Proof]:
    world = World()
    world.spawn("ada")
    world.say("ada", fact("turn", 1, "ada", input="ask " * 100), fact("turn-done", 1, "ada", output="short"))
    event = next(iter(world.space.query("(turn-done . _)")))
    return event, world.space.proof(event)


EVENT, PROOF = of_one_turn()


def from_outside(facts: bytes) -> tuple[Event, Proof]:
    """An event and a proof whose hashes fit, and whose facts are these bytes."""
    salt = bytes(16)
    deeds, digest = bytes(32), part_digest(salt, facts)
    header = Header(1, 1, bytes(16), 1, 5, 0, bytes(32), body_digest(deeds, digest))
    cursor = Cursor.start(bytes(16))
    event = Event(1, "s", bytes(16), 1, 0, "assert", fact("turn"), Captures({}, ()), 0, header.hash, cursor)
    return event, Proof(header, deeds, digest, Opened(salt, facts, {}))


@given(st.sampled_from([*Header._fields, "deeds", "facts"]), anything)
def test_what_a_hash_covers_cannot_be_changed(field: str, value: Any) -> None:
    """Invariant 42."""
    if field in Header._fields:
        changed = attrs.evolve(PROOF, header=PROOF.header._replace(**{field: value}))
    else:
        changed = attrs.evolve(PROOF, **{field: value})
    # Where a record lies, and who wrote it there, is of the store and in no hash.
    with nullcontext() if field in ("position", "epoch") or changed == PROOF else pytest.raises(NotProven):
        changed.verify(EVENT)


@given(st.sampled_from(["salt", "facts", "cells"]), anything)
def test_what_is_opened_cannot_be_changed(field: str, value: Any) -> None:
    """Invariant 42."""
    assert PROOF.opened is not None
    with pytest.raises(NotProven):
        attrs.evolve(PROOF, opened=attrs.evolve(PROOF.opened, **{field: value})).verify(EVENT)


@given(st.binary(max_size=60) | containers(scalars | celled).map(encode))
def test_facts_of_any_form_raise_their_own_error(facts: bytes) -> None:
    """Invariant 42."""
    event, proof = from_outside(facts)
    with pytest.raises(NotProven):
        proof.verify(event)


def test_a_length_bomb_in_a_proof_is_refused_before_anything_is_made_of_it() -> None:
    """Invariant 42: each of these lists announces as many items as there are bytes."""
    bomb = (b"\xdd" + (1 << 17).to_bytes(4, "big")) * (1 << 15)
    event, proof = from_outside(bomb)
    with pytest.raises(NotProven, match="more items are announced"):
        proof.verify(event)


def test_a_second_encoding_of_the_same_facts_proves_nothing() -> None:
    shortest = encode([[[0, "turn", [], {}]], [], b""])
    event, proof = from_outside(shortest)
    proof.verify(event)
    event, proof = from_outside(b"\xdc\x00\x03" + shortest[1:])
    with pytest.raises(NotProven, match="a form longer than it must be"):
        proof.verify(event)
