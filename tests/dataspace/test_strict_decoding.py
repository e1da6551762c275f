"""What comes from outside: the one encoding of a value, or a refusal in bounded time and memory."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from value_strategies import celled, containers, same, scalars

from dataspace.errors import KeeveError
from dataspace.values import (
    MAX_DEPTH,
    CelledBlob,
    CellRef,
    freeze,
)
from dataspace.values.encoding import BadEncoding, decode, decode_strict, encode


def nested(depth: int) -> bytes:
    return b"\x91" * (depth - 1) + b"\x90"


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


@pytest.mark.parametrize("value", [CellRef(1, 1), [CellRef(1, 1)], {"a": [CelledBlob("a/b", CellRef(1, 1))]}])
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


@pytest.mark.parametrize("size", [4, 8, 12])
@pytest.mark.parametrize("around", [b"%b", b"\x91%b", b"\x91\x81\xa1a%b", b"\x93\x01%b\x02"])
def test_a_timestamp_is_refused_wherever_it_stands_and_however_its_length_is_written(size: int, around: bytes) -> None:
    """Invariant 42: msgpack makes one by itself, and asks nobody."""
    heads = [bytes([0xC7, size]), bytes([0xC8, 0, size]), bytes([0xC9, 0, 0, 0, size])]
    heads += [{4: b"\xd6", 8: b"\xd7"}[size]] if size < 12 else []
    for head in heads:
        with pytest.raises(BadEncoding, match="an unknown ext type, -1"):
            decode(around % (head + b"\xff" + bytes(size)))


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
