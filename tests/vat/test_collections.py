"""Lists, maps and sets behave as Python's do, in key order, and views stay what they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vatmaker import World, assert_restores, dump, operations

from dataspace.values import FrozenList, NotAValue, Symbol, scalar_key
from vat.heap.opcodes import Op
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set, plain

script: list[Any] = []


@actor("collections.shelf", version=1)
class Shelf(Actor):
    items: List[Any]
    named: Map[Any, Any]
    tags: Set[Any]

    def run(self) -> Any:
        return script[0](self)


@pytest.fixture
def world():
    return World(Shelf)


@pytest.fixture
def shelf(world):
    return world.spawn(Shelf)


def run(world, session, function):
    script[:] = [function]
    return world.ask(session, "run")


values = st.one_of(st.integers(-3, 3), st.text(max_size=3), st.just("long" * 100), st.lists(st.integers(), max_size=2))
keys = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.0]),
    st.text(max_size=2),
    st.binary(max_size=1),
)
list_steps = st.one_of(
    st.tuples(st.just("append"), values),
    st.tuples(st.just("extend"), st.lists(values, max_size=40)),
    st.tuples(st.just("insert"), st.integers(-9, 9), values),
    st.tuples(st.just("set"), st.integers(-9, 9), values),
    st.tuples(st.just("delete"), st.integers(-9, 9)),
    st.tuples(st.just("cut"), st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([1, 2, -1])),
    st.tuples(st.just("clear")),
    st.tuples(st.just("reverse")),
    st.tuples(st.just("pop"), st.integers(-9, 9)),
)


def change_list(items, step):
    """Do a step on a list, or on what should behave like one; gives what it raised, if anything."""
    kind, *args = step
    try:
        if kind == "set":
            items[args[0]] = args[1]
        elif kind == "delete":
            del items[args[0]]
        elif kind == "cut":
            del items[args[0] : args[1] : args[2]]
        else:
            getattr(items, kind)(*args)
    except IndexError:
        return IndexError
    return None


@settings(max_examples=60, deadline=None)
@given(st.lists(list_steps, max_size=12), st.integers(0, 12))
def test_a_list_behaves_like_a_list(steps, snapshot):
    world = World(Shelf)
    shelf = world.spawn(Shelf)
    model: list[Any] = []
    for at, step in enumerate(steps):
        if at == snapshot:
            shelf.snapshot()
        expected = change_list(model, step)
        assert run(world, shelf, lambda me, step=step: change_list(me.items, step) is not None) == (
            expected is not None
        )
        assert world.ask(shelf, "items") == model
    slices = [slice(1, 3), slice(None, None, -1), slice(-2, None), slice(0, 99, 2)]
    assert run(world, shelf, lambda me: [me.items[cut] for cut in slices]) == [model[cut] for cut in slices]
    assert run(world, shelf, lambda me: me.items == model and len(me.items) == len(model))
    assert_restores(world, shelf)


map_steps = st.one_of(
    st.tuples(st.just("put"), keys, values),
    st.tuples(st.just("pop"), keys),
    st.tuples(st.just("clear")),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(map_steps, max_size=20), st.integers(0, 20))
def test_a_map_behaves_like_a_dict_in_key_order(steps, snapshot):
    world = World(Shelf)
    shelf = world.spawn(Shelf)
    model: dict[Any, Any] = {}
    for at, step in enumerate(steps):
        if at == snapshot:
            shelf.snapshot()
        kind, *args = step
        if kind == "put":
            model[scalar_key(args[0])] = (args[0], args[1])
            run(world, shelf, lambda me, args=args: me.named.update([args]))
        elif kind == "pop":
            found = model.pop(scalar_key(args[0]), (None, "missing"))[1]
            assert run(world, shelf, lambda me, args=args: me.named.pop(args[0], "missing")) == found
        else:
            model.clear()
            run(world, shelf, lambda me: me.named.clear())
    ordered = [list(model[key]) for key in sorted(model)]
    assert run(world, shelf, lambda me: [list(pair) for pair in me.named.items()]) == ordered
    assert run(world, shelf, lambda me: len(me.named)) == len(model)
    assert_restores(world, shelf)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), keys), max_size=30), st.integers(0, 30))
def test_a_set_behaves_like_a_set_in_key_order(steps, snapshot):
    world = World(Shelf)
    shelf = world.spawn(Shelf)
    model: dict[Any, Any] = {}
    for at, (add, key) in enumerate(steps):
        if at == snapshot:
            shelf.snapshot()
        if add:
            model[scalar_key(key)] = key
        else:
            model.pop(scalar_key(key), None)
        run(world, shelf, lambda me, add=add, key=key: me.tags.add(key) if add else me.tags.discard(key))
    found = run(world, shelf, lambda me: list(me.tags))
    assert list(map(scalar_key, found)) == sorted(model)
    assert_restores(world, shelf)


def test_one_and_true_are_two_keys_and_so_are_a_word_and_a_symbol(world, shelf):
    def fill(me):
        me.named.update({1: "int", "go": "str"})
        me.named[True] = "bool"
        me.named[1.0] = "float"
        me.named[Symbol("go")] = "symbol"
        return [me.named[key] for key in (1, True, 1.0, "go", Symbol("go"))]

    assert run(world, shelf, fill) == ["int", "bool", "float", "str", "symbol"]


def test_only_scalars_are_keys(world, shelf):
    for change in (lambda me: me.named.update([([1], 2)]), lambda me: me.tags.add({}), lambda me: [1] in me.tags):
        with pytest.raises(NotAValue):
            run(world, shelf, change)


def test_a_range_of_keys_is_read_in_order(world, shelf):
    def look(me):
        me.named.update({n: n * n for n in range(100)})
        return [pair[1] for pair in me.named.between(5, 8)]

    assert run(world, shelf, look) == [25, 36, 49]


def test_a_long_key_stays_a_key(world, shelf):
    long = "k" * 1000
    assert run(world, shelf, lambda me: (me.named.update({long: "v"}), me.named[long])[1]) == "v"
    assert world.ask(shelf, "named") == {long: "v"}
    assert_restores(world, shelf)


def test_adding_what_is_there_is_no_operation(world, shelf):
    run(world, shelf, lambda me: me.tags.add("a"))
    run(
        world,
        shelf,
        lambda me: [me.tags.add("a"), me.tags.discard("b"), me.items.clear(), me.items.extend([])],
    )
    assert not [op for op in operations(shelf.records[-1]) if op[0] == Op.CHANGE]


def test_a_view_stays_what_it_was(world, shelf):
    def look(me):
        me.items.extend([1, 2])
        me.named["a"] = 1
        me.tags.add("x")
        views = me.items.view(), me.named.view(), me.tags.view()
        me.items.append(3)
        me.named.clear()
        me.tags.add("y")
        return [
            list(views[0]),
            views[0][-1],
            views[0][:1],
            dict(views[1]),
            views[1]["a"],
            list(views[2]),
            "y" in views[2],
        ]

    assert run(world, shelf, look) == [[1, 2], 2, [1], {"a": 1}, 1, ["x"], False]
    assert_restores(world, shelf)


def test_a_view_in_a_value_is_copied(world, shelf):
    def keep(me):
        me.items.append(1)
        me.named["seen"] = {"now": me.items.view()}
        me.items.append(2)
        return me.items.view()

    assert run(world, shelf, keep) == [1, 2]
    assert world.ask(shelf, "named") == {"seen": {"now": [1]}}


def test_a_loop_over_a_collection_sees_it_as_it_was(world, shelf):
    def double(me):
        me.items.extend([1, 2, 3])
        for item in me.items:
            me.items.append(item * 10)
        return list(me.items)

    assert run(world, shelf, double) == [1, 2, 3, 10, 20, 30]


def test_a_value_that_is_refused_leaves_nothing_of_itself(world, shelf):
    def attempt(me):
        for value in (["canary " * 100, object()], {"a": "canary " * 99, "b": {1}}):
            with suppress(TypeError):
                me.items.append(value)
        return len(me.items)

    before = dump(shelf.heap)["actors"]
    assert run(world, shelf, attempt) == 0
    assert dump(shelf.heap)["actors"] == before
    assert shelf.records[-1].cells == []


def test_items_read_are_frozen(world, shelf):
    assert run(world, shelf, lambda me: (me.items.append([1]), type(me.items[0]) is FrozenList)[1])


@pytest.mark.parametrize("index", [0, 5, -1])
def test_an_index_that_is_not_there_says_how_many_there_are(world, shelf, index):
    with pytest.raises(IndexError, match="there are 0 items"):
        run(world, shelf, lambda me: me.items[index])


def test_a_missing_key_is_named(world, shelf):
    for look in (lambda me: me.named["nope"], lambda me: me.named.pop("nope")):
        with pytest.raises(KeyError, match="nope"):
            run(world, shelf, look)


def test_collections_page_out_and_load_what_is_looked_at(world, shelf):
    run(world, shelf, lambda me: me.items.extend(f"line {n}" for n in range(5000)))
    shelf.snapshot()
    again = world.reload(shelf)
    again.log.loads = 0
    assert run(world, again, lambda me: me.items[4321]) == "line 4321"
    assert again.log.loads < 10
    run(world, again, lambda me: me.items.append("more"))
    assert again.log.loads < 20, "an append does not load the list"
    assert_restores(world, again)


def test_what_is_held_twice_is_looked_at_once() -> None:
    """Invariant 41: what grows with the power of its depth is refused, and not copied to see whether it should be."""
    looks = 0

    class Looked(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    value: list[Any] = []
    for _ in range(12):
        value = Looked([value, value])
    assert plain(value) is value
    assert looks < 3 * 12
