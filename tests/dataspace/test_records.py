"""Records: what a hash covers, and bodies and cells taken apart again."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.records import (
    DOMAIN,
    SALT,
    ZERO_HASH,
    Cell,
    Header,
    Kind,
    Record,
    body_digest,
    content_digest,
    part_digest,
    split_body,
    split_cell,
)

UID = bytes(range(16))
SALTS = b"s" * SALT + b"t" * SALT


def record(**changes: object) -> Record:
    parts = {"uid": UID, "seq": 1, "kind": Kind.SPAWN, "time": 5, "previous": ZERO_HASH}
    contents = {"salts": SALTS, "deeds": b"did", "facts": b"said"}
    return Record(**{**parts, **contents, **changes})  # type: ignore[arg-type]  # the parts have many types


def header(of: Record) -> Header:
    return Header(1, 1, of.uid, of.seq, of.kind, of.time, of.previous, of.body_digest)


def test_a_hash_is_what_the_formula_says():
    body = sha256(sha256(b"s" * 16 + b"did").digest() + sha256(b"t" * 16 + b"said").digest()).digest()
    linked = UID + (1).to_bytes(8) + b"\x03" + (5).to_bytes(8) + bytes(32) + body
    assert record().hash == sha256(DOMAIN + linked).digest()


@pytest.mark.parametrize(
    "change",
    [
        {"uid": bytes(16)},
        {"seq": 2},
        {"kind": Kind.CRANK},
        {"time": -5},
        {"previous": b"p" * 32},
        {"salts": b"s" * 32},
        {"deeds": b"didsaid", "facts": b""},
        {"facts": b"Said"},
    ],
    ids=lambda change: ",".join(change),
)
def test_a_hash_covers_each_part(change: dict[str, object]):
    assert record(**change).hash != record().hash


def test_a_hash_holds_nothing_of_storage():
    stored = record(cells=[b"cell"], pages=[b"page"])
    stored.position, stored.address = 12, 345
    assert stored.hash == record().hash


def test_who_may_see_only_one_part_can_verify_it():
    whole = record()
    withheld = part_digest(SALTS[:SALT], b"did")
    assert body_digest(withheld, part_digest(SALTS[SALT:], b"said")) == whole.body_digest


def test_a_header_has_the_hash_of_its_record():
    assert header(record()).hash == record().hash


@given(st.binary(), st.binary())
def test_a_body_is_taken_apart_as_it_was_put_together(deeds: bytes, facts: bytes):
    whole = record(deeds=deeds, facts=facts)
    body = split_body(whole.body())
    assert body == (SALTS, deeds, facts)
    assert body is not None
    assert body.digest == whole.body_digest


@given(st.binary(max_size=80))
def test_any_bytes_are_a_body_or_none(data: bytes):
    body = split_body(data)
    if body is not None:
        assert len(body.salts) == 2 * SALT
        assert len(body.deeds) + len(body.facts) == len(data) - 2 * SALT - 4


def test_a_body_whose_length_does_not_fit_is_none():
    whole = record().body()
    assert split_body(whole[:35]) is None
    assert split_body(whole[:38]) is None


@given(st.text() | st.binary())
def test_a_cell_is_read_as_it_was_written(content: str | bytes):
    assert split_cell(Cell(b"s" * SALT, content).encoded()) == (b"s" * SALT, content)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_cell_or_a_value_error(data: bytes):
    try:
        cell = split_cell(data)
    except ValueError:
        return
    assert cell.encoded() == data


def test_text_and_bytes_of_the_same_content_are_two_cells():
    salt = b"s" * SALT
    assert content_digest(Cell(salt, "a").encoded()) != content_digest(Cell(salt, b"a").encoded())


def test_a_record_is_shown_by_its_place():
    assert repr(record()) == "Record(00010203 seq 1 SPAWN at 0)"
