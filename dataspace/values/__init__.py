"""Values: what may enter a heap, a message, an assertion or a record, and nothing else may.

A `Value` is `None`, a `bool`, `int`, `float`, `str` or `bytes`, a list, a dict with `str` keys, a `Symbol`, a `Ref`, a
`Promise`, a `Blob`, or `ERASED`, the one `Erased`. It is immutable through and through, and `1`, `1.0` and `True` are
three.

This is the front door of five rooms, and the one rule is to import values from here. `kinds` has the types: those
above; lists and dicts as they are when they have entered, `FrozenList` and `FrozenDict`, which raise `FrozenValue`;
`Text`, which declares content that is kept in a cell, the reference to one, `CellRef`, and what holds such references:
`CelledList`, `CelledDict`, `CelledBlob`, and the types of all of them, `CELLED`; `with_items`, a list or dict made anew
where it changes; `SYMBOL_TEXT`, what a symbol may look like. `freezing` goes into a value, `freeze` (up to `MAX_DEPTH`
and `MAX_SIZE`; else `NotAValue`; with content from `CELL_BYTES` on to a `CellSink`), and out of it, `thaw`. `encoding`
gives its bytes, `digest_of` them and the `key_of` a value in an index; `ordering` the order of the keys of maps and
sets, `scalar_key`; `rendering` its text, `render`.
"""

from dataspace.values.encoding import digest_of, key_of
from dataspace.values.freezing import CELL_BYTES, MAX_DEPTH, MAX_SIZE, CellSink, freeze, thaw
from dataspace.values.kinds import (
    CELLED,
    ERASED,
    SYMBOL_TEXT,
    Blob,
    CelledBlob,
    CelledDict,
    CelledList,
    CellRef,
    Erased,
    FrozenDict,
    FrozenList,
    FrozenValue,
    NotAValue,
    Promise,
    Ref,
    Symbol,
    Text,
    Value,
    with_items,
)
from dataspace.values.ordering import scalar_key
from dataspace.values.rendering import render

__all__ = [
    "CELLED",
    "CELL_BYTES",
    "ERASED",
    "MAX_DEPTH",
    "MAX_SIZE",
    "SYMBOL_TEXT",
    "Blob",
    "CellRef",
    "CellSink",
    "CelledBlob",
    "CelledDict",
    "CelledList",
    "Erased",
    "FrozenDict",
    "FrozenList",
    "FrozenValue",
    "NotAValue",
    "Promise",
    "Ref",
    "Symbol",
    "Text",
    "Value",
    "digest_of",
    "encoding",
    "freeze",
    "key_of",
    "render",
    "scalar_key",
    "thaw",
    "with_items",
]
