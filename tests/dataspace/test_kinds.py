"""The kinds of value: that they do not change, and when two of them are equal."""

from __future__ import annotations

import copy
import json
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from dataspace.values import (
    ERASED,
    Blob,
    CellRef,
    Erased,
    FrozenDict,
    FrozenList,
    FrozenValue,
    NotAValue,
    Promise,
    Ref,
    Symbol,
    freeze,
)

# Frozen


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.append(1),
        lambda x: x.clear(),
        lambda x: x.extend([1]),
        lambda x: x.insert(0, 1),
        lambda x: x.pop(),
        lambda x: x.remove(1),
        lambda x: x.reverse(),
        lambda x: x.sort(),
        lambda x: x.__setitem__(0, 1),
        lambda x: x.__setitem__(slice(None), []),
        lambda x: x.__delitem__(0),
        lambda x: x.__iadd__([1]),
        lambda x: x.__imul__(2),
    ],
)
def test_a_list_refuses_to_be_changed(change: Callable[[Any], Any]) -> None:
    value = freeze([3, 1, 2])
    with pytest.raises(FrozenValue, match="make a changed copy: "):
        change(value)
    assert value == [3, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.clear(),
        lambda x: x.pop("a"),
        lambda x: x.popitem(),
        lambda x: x.setdefault("b", 1),
        lambda x: x.update(b=1),
        lambda x: x.__setitem__("a", 2),
        lambda x: x.__delitem__("a"),
        lambda x: x.__ior__({"b": 1}),
    ],
)
def test_a_dict_refuses_to_be_changed(change: Callable[[Any], Any]) -> None:
    value = freeze({"a": 1})
    with pytest.raises(FrozenValue, match="make a changed copy: "):
        change(value)
    assert value == {"a": 1}


def test_no_mutator_of_list_or_dict_is_forgotten() -> None:
    harmless_list = {"copy", "count", "index", "__add__", "__mul__", "__rmul__"}
    harmless_dict = {"copy", "fromkeys", "get", "items", "keys", "values", "__or__", "__ror__"}
    special = {"__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__"}
    for frozen, base, harmless in ((FrozenList, list, harmless_list), (FrozenDict, dict, harmless_dict)):
        could_change = {name for name in vars(base) if not name.startswith("__") or name in special} - harmless
        assert could_change <= set(vars(frozen))


def test_the_refusal_is_a_type_error_and_names_the_operation() -> None:
    with pytest.raises(TypeError, match=r"^append: a value cannot be changed in place; make a changed copy"):
        freeze([]).append(1)


def test_what_is_changed_outside_does_not_reach_the_value() -> None:
    inner = [1]
    outer = {"inner": inner}
    value = freeze(outer)
    inner.append(2)
    outer["more"] = []
    assert value == {"inner": [1]}


@pytest.mark.parametrize(
    "make",
    [copy.copy, copy.deepcopy, lambda x: x.copy(), lambda x: pickle.loads(pickle.dumps(x))],
)
def test_copies_are_plain_and_can_be_changed(make: Callable[[Any], Any]) -> None:
    for value in (freeze([1]), freeze({"a": 1})):
        assert type(make(value)) in (list, dict)
        assert make(value) == value


def test_a_deep_copy_is_plain_at_all_depths() -> None:
    changed = copy.deepcopy(freeze({"a": [{"b": 1}]}))
    changed["a"][0]["b"] = 2
    assert changed == {"a": [{"b": 2}]}


def test_sums_slices_and_unions_are_plain() -> None:
    assert type(operator.add(freeze([1]), [2])) is list
    assert type(operator.add([2], freeze([1]))) is list
    assert type(freeze([1])[:]) is list
    assert type(freeze([1]) * 2) is list
    assert type(freeze({"a": 1}) | {"b": 2}) is dict


def test_json_isinstance_and_match_take_values_for_what_they_are() -> None:
    value = freeze({"a": [1, {"b": None}]})
    assert json.loads(json.dumps(value)) == value
    assert isinstance(value, dict)
    match value:
        case {"a": [1, {"b": b}]}:
            assert b is None
        case _:
            pytest.fail("the pattern did not match")


@pytest.mark.parametrize(
    "change",
    [
        lambda: setattr(Symbol("a"), "name", "b"),
        lambda: setattr(Ref(None, 1), "actor", 2),
        lambda: setattr(Promise(1), "id", 2),
        lambda: setattr(Blob("a/b", b""), "content", b"c"),
    ],
)
def test_symbols_refs_promises_and_blobs_cannot_change(change: Callable[[], None]) -> None:
    with pytest.raises(AttributeError):
        change()


# Symbols, refs, promises, the erased


@pytest.mark.parametrize("name", ["turn", "turn-done", "shop.order", "_x", "é", "a1", "a/b:c*", "x!"])
def test_a_word_is_a_symbol(name: str) -> None:
    assert str(Symbol(name)) == name


@pytest.mark.parametrize("name", ["", "_", "1a", "-a", "?a", "#t", "two words", "a(", 'a"', "a\n", ".", "a;", "\ud800"])
def test_what_could_not_be_written_bare_is_no_symbol(name: str) -> None:
    with pytest.raises(NotAValue, match="use a str instead"):
        Symbol(name)


def test_a_symbol_is_not_its_name() -> None:
    assert Symbol("turn") != "turn"
    assert Symbol("turn") == Symbol("turn")
    assert len({Symbol("turn"), Symbol("turn"), "turn"}) == 2


def test_a_promise_equals_by_its_number() -> None:
    assert Promise(1) == Promise(1)
    assert Promise(1) != Promise(2)
    assert Promise(1) != Ref(None, 1)


def test_there_is_one_erased() -> None:
    assert Erased() is ERASED
    assert copy.deepcopy(ERASED) is ERASED
    assert repr(ERASED) == "Erased"
    assert ERASED


def test_a_cell_equals_by_its_place() -> None:
    assert CellRef(1, 2, "a") == CellRef(1, 2)
    assert CellRef(1, 2, "a") != CellRef(1, 3, "a")
    assert CellRef(1, 2, "a") != CellRef(2, 2, "a")
    assert CellRef(1, 2) != "a"
    assert len({CellRef(1, 2, "a"), CellRef(1, 2)}) == 1
