"""Values: what may enter a heap, a message, an assertion or a record, and nothing else may.

A value is `None`, a `bool`, `int`, `float`, `str` or `bytes`, a list, a dict with `str` keys, a `Symbol`, a
`Ref`, a `Promise`, a `Blob`, or `ERASED`. It is immutable through and through, and `1`, `1.0` and `True`
are three.

This is the front door of five rooms: `kinds` (the types), `freezing` (into a value and out of it),
`encoding` (its bytes), `ordering` (of map and set keys) and `rendering` (its text). The one rule: import
values from here.
"""

from dataspace.encoding import digest_of, key_of
from dataspace.freezing import CELL_BYTES, MAX_DEPTH, CellSink, freeze, thaw
from dataspace.kinds import (
    CELLED,
    ERASED,
    SYMBOL_TEXT,
    Blob,
    Cell,
    CelledBlob,
    CelledDict,
    CelledList,
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
)
from dataspace.ordering import scalar_key
from dataspace.rendering import render

__all__ = [
    "CELLED",
    "CELL_BYTES",
    "ERASED",
    "MAX_DEPTH",
    "SYMBOL_TEXT",
    "Blob",
    "Cell",
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
    "freeze",
    "key_of",
    "render",
    "scalar_key",
    "thaw",
]
