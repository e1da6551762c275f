"""A value as text: one term, readable, different for different values."""

from __future__ import annotations

import math
from struct import unpack
from typing import Any

import pytest

from dataspace.values import ERASED, Blob, CelledBlob, CellRef, NotAValue, Promise, Ref, Symbol, freeze, render


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "#nil"),
        (True, "#t"),
        (False, "#f"),
        (-12, "-12"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e22, "1e+22"),
        (math.inf, "+inf.0"),
        (-math.inf, "-inf.0"),
        (math.nan, "+nan.0"),
        (unpack(">d", bytes.fromhex("fff8000000000001"))[0], '#nan(#"fff8000000000001")'),
        ("", '""'),
        ('say "hé"\n\0', r'"say \"hé\"\n\u0000"'),
        (b"h\xff", '#"68ff"'),
        (Symbol("turn-done"), "turn-done"),
        ([], "()"),
        ([1, ["two", Symbol("three")]], '(1 ("two" three))'),
        ({}, "{}"),
        ({"b": 1, "a c": [None]}, '{"b": 1, "a c": (#nil)}'),
        (Ref(None, 3), "#ref(3)"),
        (Ref(bytes(16), 3), '#ref(#"00000000000000000000000000000000" 3)'),
        (Promise(4), "#promise(4)"),
        (Blob("text/plain", b"hi"), '#blob("text/plain" #"6869")'),
        (ERASED, "#erased"),
        (CellRef(12, 3, "secret"), "#cell(12 3)"),
        (CelledBlob("a/b", CellRef(12, 3)), '#blob("a/b" #cell(12 3))'),
    ],
)
def test_each_kind_has_its_text(value: Any, text: str) -> None:
    assert render(value) == text


def test_an_int_too_large_for_decimal_is_written_in_hex() -> None:
    assert render(-(2**20000)) == f'#int("-1{"0" * 5000}")'


def test_a_frozen_value_renders_as_the_plain_one() -> None:
    assert render(freeze({"a": [1]})) == render({"a": [1]})


def test_what_is_no_value_has_no_text() -> None:
    with pytest.raises(NotAValue):
        render(object())
