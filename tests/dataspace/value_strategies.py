"""Values to try things with, and what it means that two are the same."""

from __future__ import annotations

from struct import pack
from typing import Any

from hypothesis import strategies as st

from dataspace.values import (
    ERASED,
    Blob,
    CelledBlob,
    CellRef,
    Promise,
    Ref,
    Symbol,
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
celled = st.builds(CellRef, numbers, numbers) | st.builds(CelledBlob, st.text(), st.builds(CellRef, numbers, numbers))


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
