"""Values: what is one, what it becomes when it enters, and that it does not change from then on."""

from __future__ import annotations

import collections
import copy
import datetime
import enum
import json
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Erased,
    FrozenDict,
    FrozenList,
    FrozenValue,
    NotAValue,
    Promise,
    Ref,
    Symbol,
    Text,
    freeze,
    thaw,
)

LONG = "x" * 257


class Cells:
    """A sink that remembers what it was given."""

    def __init__(self) -> None:
        self.contents: list[str | bytes] = []

    def cell(self, content: str | bytes) -> Cell:
        self.contents.append(content)
        return Cell(7, len(self.contents) - 1, content)


def unloaded(cell: Cell) -> str:
    raise AssertionError(f"{cell} was to be loaded")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
long_ones = st.text(min_size=60, max_size=300) | st.binary(min_size=250, max_size=260)
stored_or_not = st.recursive(
    plain | long_ones | st.text().map(Text) | long_ones.filter(lambda x: isinstance(x, str)).map(Text),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


# What is a value


@given(plain)
def test_a_plain_value_comes_back_equal(value: Any) -> None:
    assert freeze(value) == value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        2**80,
        -0.0,
        "a",
        b"a",
        Symbol("turn"),
        Ref(None, 1),
        Promise(3),
        ERASED,
        Blob("a/b", b"c"),
    ],
)
def test_each_scalar_is_a_value(value: Any) -> None:
    frozen = freeze(value)
    assert frozen == value
    assert type(frozen) is type(value)


def test_a_nan_comes_back_as_it_is() -> None:
    nan = float("nan")
    assert freeze(nan) is nan


def test_a_tuple_becomes_a_list() -> None:
    assert freeze((1, (2,))) == [1, [2]]


class Colour(enum.IntEnum):
    RED = 3


class Role(enum.StrEnum):
    USER = "user"


class Shouting(str):
    def __str__(self) -> str:
        return self.upper()


class Grams(float):
    pass


class Packet(bytes):
    pass


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        (Colour.RED, 3),
        (Role.USER, "user"),
        (Shouting("quiet"), "quiet"),
        (Grams(1.5), 1.5),
        (Packet(b"ab"), b"ab"),
        (Text("said"), "said"),
    ],
)
def test_a_subclass_becomes_its_plain_value(value: Any, becomes: Any) -> None:
    for frozen in (freeze(value), freeze([value])[0], freeze({"key": value})["key"]):
        assert type(frozen) is type(becomes)
        assert frozen == becomes


def test_a_key_of_a_subclass_becomes_a_plain_str() -> None:
    (key,) = freeze({Role.USER: 1})
    assert type(key) is str
    assert key == "user"


def test_ordered_and_default_dicts_are_dicts_in_their_order() -> None:
    ordered = collections.OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    assert list(freeze(ordered)) == ["b", "a"]
    assert freeze(collections.defaultdict(list, a=[1])) == {"a": [1]}


def test_a_subclass_of_a_ref_stays_what_it_is_and_equals_the_plain_one() -> None:
    class Near(Ref):
        __slots__ = ()

    near = Near(None, 4)
    assert freeze([near])[0] is near
    assert near == Ref(None, 4)
    assert hash(near) == hash(Ref(None, 4))
    assert near != Ref(b"u" * 16, 4)


# What is not


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"messages": [0, 1, 2, {"content": datetime.datetime(2020, 1, 1)}]},
            "value.messages[3].content: datetime",
        ),
        ({"a b": {1, 2}}, "value['a b']: set"),
        (object(), "value: object"),
        ([bytearray(b"a")], "value[0]: bytearray"),
        ((1, 1j), "value[1]: complex"),
        ({"f": unloaded}, "value.f: function"),
        ([Cell(1, 1)], "value[0]: Cell"),
        ({"k" * 100: 1j}, f"value['{'k' * 60}'…]: complex"),
    ],
)
def test_what_is_no_value_is_named_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(NotAValue) as caught:
        freeze(value)
    assert str(caught.value).startswith(f"{message} is not a value")


def test_the_path_begins_with_what_the_caller_calls_the_value() -> None:
    with pytest.raises(NotAValue) as caught:
        freeze([0, 1, 2, {"content": datetime.datetime(2020, 1, 1)}], path="messages")
    assert caught.value.path == "messages[3].content"
    assert caught.value.kind is datetime.datetime
    assert str(caught.value) == "messages[3].content: datetime is not a value (keep its .isoformat())"


def test_not_a_value_is_a_type_error_and_ours() -> None:
    assert issubclass(NotAValue, TypeError)
    assert issubclass(NotAValue, KeeveError)


@pytest.mark.parametrize("key", [1, None, b"a", ("a",)])
def test_a_key_that_is_no_str_is_refused_where_it_is(key: Any) -> None:
    with pytest.raises(NotAValue, match=r"^value\.a\[0\]: the keys of a dict are str, and one is "):
        freeze({"a": [{key: 1}]})


def test_a_key_too_large_to_be_printed_is_refused_all_the_same() -> None:
    with pytest.raises(NotAValue, match=r"^value: the keys of a dict are str, and one is int$"):
        freeze({10**5000: 1})


@pytest.mark.parametrize(
    ("blob", "path"), [(Blob("a/b", "text"), "value.content"), (Blob(1, b"c"), "value.media_type")]
)
def test_a_blob_of_something_else_than_bytes_is_refused(blob: Blob, path: str) -> None:
    with pytest.raises(NotAValue) as caught:
        freeze(blob)
    assert caught.value.path == path


def test_nesting_is_allowed_up_to_64_and_refused_beyond() -> None:
    """Invariant 41: nesting 1,000 deep has a defined answer."""
    assert freeze(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert freeze({"a": nested(MAX_DEPTH - 1)})
    for too_deep in (nested(MAX_DEPTH + 1), {"a": nested(MAX_DEPTH)}, nested(1000)):
        with pytest.raises(NotAValue, match="nested more than 64 deep"):
            freeze(too_deep)


def test_what_is_frozen_counts_its_depth_again() -> None:
    inner = freeze(nested(MAX_DEPTH))
    with pytest.raises(NotAValue, match="nested more than 64 deep"):
        freeze([inner])


def test_a_cycle_is_refused_at_the_container_that_contains_itself() -> None:
    """Invariant 41: cycles have a defined answer."""
    cycle: dict[str, Any] = {}
    cycle["inner"] = [1, {"back": cycle}]
    with pytest.raises(NotAValue, match=r"^value\.here: dict that contains itself$"):
        freeze({"here": cycle})


# Strings


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("\ud800", "\ufffd"),
        ("a\udfffb\ud83d", "a\ufffdb\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("nul\0", "nul\0"),
        ("\ufeffé", "\ufeffé"),
    ],
)
def test_a_lone_surrogate_is_stored_as_the_replacement_character(text: str, stored: str) -> None:
    """Invariant 41: lone surrogates and NUL have a defined answer."""
    assert freeze(text) == stored
    assert freeze([text]) == [stored]
    assert freeze({text: text}) == {stored: stored}
    assert freeze(Text(text)) == stored
    assert freeze(Blob(text, b"")) == Blob(stored, b"")


@given(st.text(st.characters(exclude_categories=())))
def test_every_string_becomes_one_that_utf8_can_carry(text: str) -> None:
    freeze(text).encode()


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
    assert Cell(1, 2, "a") == Cell(1, 2)
    assert Cell(1, 2, "a") != Cell(1, 3, "a")
    assert Cell(1, 2, "a") != Cell(2, 2, "a")
    assert Cell(1, 2) != "a"
    assert len({Cell(1, 2, "a"), Cell(1, 2)}) == 1


# Cells


@pytest.mark.parametrize(
    ("content", "is_cell"),
    [
        ("x" * 256, False),
        ("x" * 257, True),
        ("é" * 128, False),
        ("é" * 129, True),
        ("\U0001f600" * 64, False),
        ("\U0001f600" * 65, True),
        (b"x" * 256, False),
        (b"x" * 257, True),
        ("\ud800" * 85, False),  # each becomes three bytes
        ("\ud800" * 86, True),
        (Text(""), True),
        (Text("short"), True),
    ],
)
def test_content_over_256_bytes_and_every_text_becomes_a_cell(content: Any, is_cell: bool) -> None:
    for value in (content, [content], {"key": content}):
        cells = Cells()
        frozen = freeze(value, cells)
        assert len(cells.contents) == is_cell
        assert (type(frozen) in CELLED) == is_cell


def test_the_cells_content_is_plain_and_valid() -> None:
    cells = Cells()
    freeze([Text("\ud800"), Packet(LONG.encode()), Shouting(LONG)], cells)
    assert [type(content) for content in cells.contents] == [str, bytes, str]
    assert cells.contents == ["\ufffd", LONG.encode(), LONG]


def test_without_a_sink_nothing_becomes_a_cell() -> None:
    value = freeze({"a": [LONG, LONG.encode(), Text("t"), Blob("a/b", LONG.encode())]})
    assert type(value) is FrozenDict
    assert type(value["a"]) is FrozenList
    assert value == {"a": [LONG, LONG.encode(), "t", Blob("a/b", LONG.encode())]}


def test_keys_never_become_cells() -> None:
    assert type(freeze({LONG: 1}, Cells())) is FrozenDict


def test_the_same_content_twice_is_two_cells() -> None:
    one, other = freeze([LONG, LONG], Cells())
    assert one != other


def test_a_long_blob_keeps_its_content_in_a_cell() -> None:
    stored = freeze(Blob("a/b", b"x" * 257), Cells())
    assert stored == CelledBlob("a/b", Cell(7, 0))
    assert thaw(stored, unloaded) == Blob("a/b", b"x" * 257)
    assert type(freeze(Blob("a/b", b"x"), Cells())) is Blob


def holds_a_cell(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(holds_a_cell, value))
    if isinstance(value, dict):
        return any(map(holds_a_cell, value.values()))
    return isinstance(value, Cell | CelledBlob)


@given(stored_or_not)
def test_the_type_says_whether_a_cell_is_inside_at_all_depths(value: Any) -> None:
    def check(stored: Any) -> None:
        assert (type(stored) in CELLED) == holds_a_cell(stored)
        if isinstance(stored, FrozenList | FrozenDict):
            assert stored.celled == holds_a_cell(stored)
        for item in stored if isinstance(stored, list) else stored.values() if isinstance(stored, dict) else ():
            check(item)

    check(freeze(value, Cells()))


@given(stored_or_not)
def test_what_is_stored_and_thawed_reads_as_what_is_frozen_without_cells(value: Any) -> None:
    read = thaw(freeze(value, Cells()), unloaded)
    assert read == freeze(value)
    assert type(read) not in CELLED


def test_thaw_gives_the_same_object_when_there_is_no_cell_in_it() -> None:
    value = freeze({"a": ["short"]}, Cells())
    assert thaw(value, unloaded) is value


def test_thaw_leaves_the_parts_without_cells_as_they_are() -> None:
    value = freeze({"a": ["short"], "b": LONG}, Cells())
    assert thaw(value, unloaded)["a"] is value["a"]


def test_thaw_loads_the_content_that_a_cell_does_not_have() -> None:
    stored = CelledDict({"a": CelledList([Cell(3, 0), Cell(3, 1, "here")])})
    asked = []

    def load(cell: Cell) -> str:
        asked.append(cell)
        return "loaded"

    assert thaw(stored, load) == {"a": ["loaded", "here"]}
    assert asked == [Cell(3, 0)]


def test_erased_content_reads_as_erased_in_a_string_and_in_a_blob() -> None:
    stored = freeze([LONG, Blob("a/b", b"x" * 257)], Cells())
    for cell in (stored[0], stored[1].content):
        cell.content = None
    assert thaw(stored, lambda cell: ERASED) == [ERASED, ERASED]


def test_stored_forms_are_no_input() -> None:
    stored = freeze({"a": [LONG]}, Cells())
    with pytest.raises(NotAValue, match=r"^value\.a\[0\]: Cell is not a value"):
        freeze(stored)


def test_a_hundred_megabytes_are_one_cell_and_no_copy() -> None:
    """Invariant 41: a 100 MB string has a defined answer."""
    content = "x" * 100_000_000
    cells = Cells()
    freeze({"content": content}, cells)
    assert cells.contents[0] is content
