"""Values as bytes: one encoding for each, the same value back, and keys that tell values apart."""

from __future__ import annotations

import math
from hashlib import sha256
from struct import pack, unpack
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from value_strategies import celled, containers, same, scalars

from dataspace.values import (
    CELLED,
    ERASED,
    Blob,
    CelledBlob,
    CelledDict,
    CelledList,
    CellRef,
    FrozenDict,
    FrozenList,
    NotAValue,
    Promise,
    Ref,
    Symbol,
    encoding,
    freeze,
)
from dataspace.values.encoding import BadEncoding, decode, decode_strict, digest_of, encode, key_of

# There and back


@given(containers(scalars))
def test_a_value_comes_back_the_same_bit_for_bit(value: Any) -> None:
    data = encode(freeze(value))
    assert same(decode(data), value)
    assert same(decode_strict(data), value)


@given(containers(scalars | celled))
def test_a_stored_form_comes_back_the_same_and_its_types_say_where_cells_are(value: Any) -> None:
    data = encode(value)
    decoded = decode(data)
    assert same(decoded, value)
    assert same(decode_strict(data, cells=True), value)
    check_types(decoded)


def check_types(value: Any) -> bool:
    if isinstance(value, list):
        inside = [check_types(item) for item in value]
        assert type(value) is (CelledList if any(inside) else FrozenList)
    elif isinstance(value, dict):
        inside = [check_types(item) for item in value.values()]
        assert type(value) is (CelledDict if any(inside) else FrozenDict)
    return type(value) in CELLED


def test_a_list_is_asked_for_cells_only_where_its_encoding_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    seal = encoding._seal_list
    monkeypatch.setattr(encoding, "_seal_list", lambda items: asked.append(len(items)) or seal(items))
    many = [[n, [n, b"\xff\xff"]] for n in range(100)]
    decode(encode(many))
    assert asked == []
    decode(encode([*many, CellRef(1, 1)]))
    assert len(asked) == 201


@pytest.mark.parametrize(
    "value",
    [
        ["turn", [1, 2.5], {"at": b"\xff\xff\x06"}],
        ["turn", CellRef(1, 0), {"text": CellRef(300, 2**20)}],
        [CelledBlob("image/png", CellRef(7, 300))],
        [CellRef(2**40, 1), 1024 * b"\xd6\xff"],
    ],
)
def test_a_record_is_decoded_once_whether_it_has_cells_or_none(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bytes] = []
    unpack = msgpack.unpackb
    monkeypatch.setattr(msgpack, "unpackb", lambda data, **options: calls.append(data) or unpack(data, **options))
    check_types(decode(encode(value)))
    assert calls == [encode(value)]


@pytest.mark.parametrize(
    "cell",
    [
        *(CellRef(*at) for at in ((1, 1), (1, 128), (128, 128), (2**28, 2**21), (2**50, 2**50))),
        *(CelledBlob(kind, CellRef(5, 128)) for kind in ("", "a/b", "a/bcd", "application/pdf")),
    ],
)
def test_a_cell_is_found_however_the_length_of_its_encoding_is_written(cell: CellRef | CelledBlob) -> None:
    ext = msgpack.unpackb(encode(cell))
    code, content = bytes([ext.code]), ext.data
    for width, head in ((1, b"\xc7"), (2, b"\xc8"), (4, b"\xc9")):
        written = head + len(content).to_bytes(width, "big") + code + content
        assert type(decode(b"\x91" + written)) is CelledList
        assert type(decode(b"\x81\xa1a" + written)) is CelledDict
    assert type(decode(encode([cell]))) is CelledList
    assert type(decode(encode({"a": cell}))) is CelledDict


@pytest.mark.parametrize("bits", ["7ff8000000000000", "fff8000000000001", "7ff0000000000001", "8000000000000000"])
def test_floats_are_kept_bit_for_bit(bits: str) -> None:
    """Invariant 41: NaN has a defined answer."""
    (number,) = unpack(">d", bytes.fromhex(bits))
    assert encode(number).hex() == "cb" + bits
    assert pack(">d", decode_strict(encode(number))).hex() == bits


def test_a_frozen_value_and_the_plain_one_have_the_same_encoding() -> None:
    value = {"b": [1, (2.0, None)], "a": {"c": b"d"}}
    assert encode(freeze(value)) == encode(value)


def test_keys_keep_their_order() -> None:
    assert encode({"b": 1, "a": 2}) == bytes.fromhex("82a16201a16102")
    assert list(decode(encode({"b": 1, "a": 2}))) == ["b", "a"]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (2**64 - 1, "cf ffffffffffffffff"),
        (2**64, "c7 09 01 010000000000000000"),
        (2**80, "c7 0b 01 0100000000000000000000"),
        (-(2**63), "d3 8000000000000000"),
        (-(2**63) - 1, "c7 09 01 ff7fffffffffffffff"),
        (-(2**71), "c7 09 01 800000000000000000"),
        (Symbol("turn"), "d6 02 7475726e"),
        (Ref(None, 1), "d4 03 01"),
        (Ref(None, 300), "d5 03 ac02"),
        (Ref(bytes(range(16)), 1), "c7 11 03 000102030405060708090a0b0c0d0e0f 01"),
        (Promise(127), "d4 04 7f"),
        (Blob("a/b", b"hi"), "c7 07 05 03612f62 00 6869"),
        (CelledBlob("a/b", CellRef(5, 128)), "d7 05 03612f62 01 05 8001"),
        (CellRef(5, 128), "c7 03 06 05 8001"),
        (ERASED, "c7 00 07"),
    ],
)
def test_each_type_of_ours_has_its_bytes(value: Any, data: str) -> None:
    expected = bytes.fromhex(data)
    assert encode(value) == expected
    assert same(decode_strict(expected, cells=True), value)


@pytest.mark.parametrize("value", [object(), [1j], {"a": {1}}, Ref(b"short", 1)])
def test_what_is_no_value_has_no_encoding(value: Any) -> None:
    with pytest.raises(NotAValue):
        encode(value)


def test_the_caller_says_what_refs_and_promises_become() -> None:
    data = encode([Ref(None, 1), Ref(b"u" * 16, 2), Promise(3)])
    made = decode(data, ref=lambda session, actor: f"{session} {actor}", promise=lambda id: f"promise {id}")
    assert made == ["None 1", f"{b'u' * 16} 2", "promise 3"]


class Near(Ref):
    __slots__ = ()


def test_a_ref_with_behaviour_is_encoded_as_the_plain_one() -> None:
    assert encode(Near(None, 1)) == encode(Ref(None, 1))
    assert type(decode(encode(Near(None, 1)), ref=Near)) is Near


class Root:
    def __init__(self, place: bytes) -> None:
        self.place = place

    def __tree_ext__(self) -> bytes:
        return encode([self.place])  # an encoding within an encoding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Root) and self.place == other.place


def root(data: bytes) -> Root:
    return Root(decode(data)[0])


def test_a_tree_stands_in_a_value_as_the_place_of_its_root() -> None:
    value = {"tree": Root(b"here"), "cell": CellRef(1, 1)}
    assert decode(encode(value), tree=root) == value
    assert decode_strict(encode(value), cells=True, tree=root) == value


def test_a_tree_is_refused_where_nobody_makes_trees() -> None:
    for read in (decode, decode_strict):
        with pytest.raises(BadEncoding, match="unknown ext type, 8"):
            read(encode([Root(b"here")]))


@given(st.recursive(st.none(), lambda inside: st.lists(inside) | st.dictionaries(st.text(max_size=2), inside)))
def test_more_items_than_may_be_are_refused_and_as_many_as_may_be_are_not(value: Any) -> None:
    def items(value: Any) -> int:
        inside = [*value, *value.values()] if isinstance(value, dict) else value or []
        return len(inside) + sum(map(items, inside)) if isinstance(value, (list, dict)) else 0

    count = items(value)
    assert decode_strict(encode(value), max_items=count) == value
    if count:
        with pytest.raises(BadEncoding, match=f"more than {count - 1} items"):
            decode_strict(encode(value), max_items=count - 1)


# Keys and digests


def test_types_are_told_apart() -> None:
    values = [
        1,
        1.0,
        True,
        0,
        0.0,
        -0.0,
        False,
        None,
        "turn",
        Symbol("turn"),
        b"turn",
        [],
        {},
        "",
        b"",
        ERASED,
    ]
    assert len({key_of(value) for value in values}) == len(values)


def test_the_order_of_keys_does_not_matter_at_any_depth() -> None:
    one = {"a": [{"b": 1, "c": {"d": 2, "e": 3}}], "f": ()}
    other = {"f": [], "a": [{"c": {"e": 3, "d": 2}, "b": 1}]}
    assert key_of(freeze(one)) == key_of(other)
    assert digest_of(one) == digest_of(freeze(other))


@given(st.dictionaries(st.text(), st.integers(), max_size=8))
def test_keys_are_sorted_by_their_utf8_bytes(value: dict[str, int]) -> None:
    keys = list(decode(key_of(value)))
    assert keys == sorted(value, key=str.encode)


@given(containers(scalars), containers(scalars))
def test_two_values_have_one_key_only_if_they_are_the_same(one: Any, other: Any) -> None:
    def unordered(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: unordered(value[key]) for key in sorted(value)}
        return [unordered(item) for item in value] if isinstance(value, list) else value

    assert (key_of(one) == key_of(other)) == same(unordered(one), unordered(other))


def test_a_nan_has_the_key_of_its_bits() -> None:
    assert key_of(math.nan) == key_of(math.nan)
    assert key_of(math.nan) != key_of(-math.nan)


def test_a_digest_is_the_sha256_of_the_key() -> None:
    assert digest_of({"a": 1}) == sha256(bytes.fromhex("81a16101")).digest()


def test_plain_msgpack_reads_what_is_no_type_of_ours() -> None:
    value = {"role": "user", "content": ["x" * 300, 1, -1.5, None, True, b"raw"]}
    assert msgpack.unpackb(encode(freeze(value))) == value
