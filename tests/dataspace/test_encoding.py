"""Values as bytes: one encoding for each, and nothing else is taken from outside."""

from __future__ import annotations

import contextlib
import json
import math
import tracemalloc
from hashlib import sha256
from pathlib import Path
from struct import pack, unpack
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataspace.encoding import BadEncoding, decode, decode_strict, digest_of, encode, key_of
from dataspace.errors import KeeveError
from dataspace.values import (
    CELLED,
    ERASED,
    MAX_DEPTH,
    Blob,
    Cell,
    CelledBlob,
    CelledDict,
    CelledList,
    FrozenDict,
    FrozenList,
    NotAValue,
    Promise,
    Ref,
    Symbol,
    freeze,
)

numbers = st.integers(0, 2**64 - 1) | st.integers(0, 300)
uids = st.binary(min_size=16, max_size=16)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**63 - 2, 2**64 + 2)
    | st.integers(-(2**63) - 2, -(2**63) + 2)
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from(["turn", "shop.order", "é"]).map(Symbol)
    | st.builds(Ref, st.none() | uids, numbers)
    | st.builds(Promise, numbers)
    | st.builds(Blob, st.text(), st.binary())
    | st.just(ERASED)
)
celled = st.builds(Cell, numbers, numbers) | st.builds(CelledBlob, st.text(), st.builds(Cell, numbers, numbers))


def containers(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
        max_leaves=10,
    )


def same(one: Any, other: Any) -> bool:
    """Equal, types and bits and the order of keys included."""
    if isinstance(one, float) and isinstance(other, float):
        return pack(">d", one) == pack(">d", other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return type(one) is type(other) and one == other


def nested(depth: int) -> bytes:
    return b"\x91" * (depth - 1) + b"\x90"


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
        (CelledBlob("a/b", Cell(5, 128)), "d7 05 03612f62 01 05 8001"),
        (Cell(5, 128), "c7 03 06 05 8001"),
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
    value = {"tree": Root(b"here"), "cell": Cell(1, 1)}
    assert decode(encode(value), tree=root) == value
    assert decode_strict(encode(value), cells=True, tree=root) == value


def test_a_tree_is_refused_where_nobody_makes_trees() -> None:
    for read in (decode, decode_strict):
        with pytest.raises(BadEncoding, match="unknown ext type, 8"):
            read(encode([Root(b"here")]))


# The vectors of msgpack's own test suite

VECTORS = Path(__file__).parents[3] / "shared" / "data" / "vectors" / "msgpack-test-suite.json"
if VECTORS.exists():
    suites: dict[str, list[dict[str, Any]]] = json.loads(VECTORS.read_text())
else:
    suites = {}
needs_vectors = pytest.mark.skipif(not suites, reason="msgpack-test-suite.json is not beside this checkout")


def vector_value(case: dict[str, Any]) -> Any:
    if "bignum" in case:
        return int(case["bignum"])
    if "binary" in case:
        return bytes.fromhex(case["binary"].replace("-", ""))
    return next(case[kind] for kind in ("nil", "bool", "number", "string", "array", "map") if kind in case)


def vector_forms(case: dict[str, Any]) -> list[bytes]:
    return [bytes.fromhex(form.replace("-", "")) for form in case["msgpack"]]


cases = [
    pytest.param(vector_value(case), vector_forms(case), id=f"{name} {number}")
    for name, entries in suites.items()
    if name not in ("50.timestamp.yaml", "60.ext.yaml")
    for number, case in enumerate(entries)
]


@needs_vectors
@pytest.mark.parametrize(("value", "forms"), cases or [(None, [])])
def test_of_the_forms_that_msgpack_allows_the_shortest_is_written_and_no_other_accepted(
    value: Any, forms: list[bytes]
) -> None:
    float32, float64 = 0xCA, 0xCB
    # An integer is also listed as the floats of its size: other values, which have a form of their own.
    others = [form for form in forms if form[0] == float64 and not isinstance(value, float)]
    forms = [form for form in forms if form not in others]
    # Where a signed and an unsigned form are equally short, it is the unsigned one.
    shortest = min((form for form in forms if form[0] != float32), key=lambda form: (len(form), form))
    assert encode(value) == shortest
    assert same(decode_strict(shortest), value)
    for form in forms:
        if form != shortest:
            with pytest.raises(BadEncoding):
                decode_strict(form)
    for form in others:
        assert type(decode_strict(form)) is float


@needs_vectors
def test_timestamps_are_no_values() -> None:
    for case in suites["50.timestamp.yaml"]:
        for form in vector_forms(case):
            for read in (decode, decode_strict):
                with pytest.raises(BadEncoding, match="an unknown ext type"):
                    read(form)


# From outside


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "1 more items are announced, and 0 bytes are left"),
        ("9301", "byte 1: 3 more items"),
        ("a3 6161", "byte 0: 1 bytes are missing"),
        ("c4", "bytes are missing"),
        ("c6 ffffffff", "bytes are missing"),
        ("cb 00", "bytes are missing"),
        ("d8 05", "bytes are missing"),
        ("c7", "bytes are missing"),
        ("dd ffffffff", "items are announced"),
        ("df ffffffff", "items are announced"),
        ("c1", "byte 0: 0xc1 begins no value"),
        ("ca 3f800000", "byte 0: 0xca begins no value"),
        ("00 00", "byte 1: 1 bytes after the value"),
        ("cc 01", "byte 0: a form longer than it must be"),
        ("d9 01 61", "byte 0: a form longer than it must be"),
        ("dc 0001 01", "byte 0: a form longer than it must be"),
        ("c7 01 03 01", "byte 0: a form longer than it must be"),
        ("c7 03 03 ac8200", "a form longer than it must be"),
        ("c7 01 01 05", "byte 0: a form longer than it must be"),
        ("c7 0a 01 00010000000000000000", "a form longer than it must be"),
        ("82 a161 01 a161 02", "a dict with a key twice"),
        ("81 01 02", "byte 1: a dict key that is not a string"),
        ("81 c4 01 61 02", "byte 1: a dict key that is not a string"),
        ("81 90 02", "byte 1: a dict key that is not a string"),
        ("81 a161 81 c0 02", "byte 4: a dict key that is not a string"),
        ("82 a161 90 c0 02", "byte 4: a dict key that is not a string"),
        ("d4 00 00", "byte 1: an unknown ext type, 0"),
        ("d4 09 00", "byte 1: an unknown ext type, 9"),
        ("d6 ff 00000000", "byte 1: an unknown ext type, 255"),
        ("a1 ff", "codec can't decode"),
        ("a3 eda080", "codec can't decode"),
        ("d4 02 31", "a symbol is a letter"),
        ("c7 00 02", "a symbol is a letter"),
        ("c7 00 03", ""),
        ("c7 0b 03 8080808080808080808001", "a number of more than 64 bits"),
        ("d5 04 0101", "bytes left over"),
        ("d5 03 0101", "bytes left over"),
        ("d4 07 00", "bytes left over"),
        ("c7 03 06 010101", "bytes left over"),
        ("c7 00 05", ""),
        ("c7 02 05 0561", ""),
        ("c7 02 05 00 02", ""),
        ("c7 04 05 00 02 0101", "a blob that is neither"),
        ("d4 06 01", ""),
    ],
)
def test_from_outside_only_the_one_encoding_is_taken(data: str, reason: str) -> None:
    """Invariant 42: truncated, length bombs, duplicate keys, unknown types."""
    with pytest.raises(BadEncoding) as caught:
        decode_strict(bytes.fromhex(data), cells=True)
    assert reason in str(caught.value)
    assert str(caught.value).startswith("not the encoding of a value: ")


def test_a_bad_encoding_is_a_value_error_and_ours() -> None:
    assert issubclass(BadEncoding, ValueError)
    assert issubclass(BadEncoding, KeeveError)


@pytest.mark.parametrize("value", [Cell(1, 1), [Cell(1, 1)], {"a": [CelledBlob("a/b", Cell(1, 1))]}])
def test_a_cell_from_outside_is_refused_unless_cells_are_expected(value: Any) -> None:
    with pytest.raises(BadEncoding, match="a cell"):
        decode_strict(encode(value))
    assert decode_strict(encode(value), cells=True) == value


def test_nesting_from_outside_is_taken_up_to_64() -> None:
    assert decode_strict(nested(MAX_DEPTH)) == freeze(decode(nested(MAX_DEPTH)))
    for depth in (MAX_DEPTH + 1, 600, 100_000):
        with pytest.raises(BadEncoding, match="byte 64: nested more than 64 deep"):
            decode_strict(nested(depth))


@pytest.mark.parametrize(
    "data", [nested(100_000), b"\xdd\xff\xff\xff\xff" * 50, b"\xd6\xff\0\0\0\0", b"\x91\xd6\xff\0\0\0\0"]
)
def test_our_own_decoder_fails_in_its_own_way_too(data: bytes) -> None:
    with pytest.raises(BadEncoding):
        decode(data)


def test_a_length_bomb_takes_no_memory() -> None:
    """Invariant 42: bounded memory. Each of many nested arrays announces as many items as there are bytes."""
    bomb = b"\xdd\x00\x0f\x00\x00" * 60 + b"\xc0" * 0x100000
    tracemalloc.start()
    try:
        with pytest.raises(BadEncoding, match="items are announced"):
            decode_strict(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(bomb)


@given(st.binary(max_size=60))
@example(b"\xd6\xff\0\0\0\0")
def test_any_bytes_are_a_value_with_that_encoding_or_a_bad_encoding(data: bytes) -> None:
    """Invariant 42: decoders fed anything raise their own error."""
    try:
        value = decode_strict(data, cells=True)
    except BadEncoding:
        return
    assert encode(value) == data


@given(containers(scalars | celled), st.data())
def test_a_changed_encoding_is_a_value_with_that_encoding_or_a_bad_encoding(value: Any, data: st.DataObject) -> None:
    """Invariant 42: fuzzed from valid encodings, which reaches further than random bytes do."""
    encoded = bytearray(encode(value))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    changed = bytes(encoded)
    try:
        decoded = decode_strict(changed, cells=True)
    except BadEncoding:
        return
    assert encode(decoded) == changed


@given(st.binary(max_size=60))
def test_our_own_decoder_raises_nothing_but_bad_encoding(data: bytes) -> None:
    with contextlib.suppress(BadEncoding):
        decode(data)


@given(containers(scalars))
def test_every_cut_of_an_encoding_is_refused(value: Any) -> None:
    data = encode(value)
    for length in range(len(data)):
        for read in (decode, decode_strict):
            with pytest.raises(BadEncoding):
                read(data[:length])


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
