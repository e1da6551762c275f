"""Trees against plain lists, dicts and sets, written and loaded again at random points.

Each machine runs a twin that is never written: the same operations must give it the same shape.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dataspace.values import scalar_key
from snapshots import ListTree, MapTree, PageRef, SetTree, write
from snapshots.memory import MemoryPages
from snapshots.nodes import HALF, WIDTH, Branch, KeyedBranch, KeyedLeaf, ListBranch, ListLeaf, MapLeaf, nowhere

positions = st.floats(0, 1, exclude_max=True)
runs = st.integers(1, 90)


def shape(child, loader):
    """What a node holds, whether it is written or not."""
    node = loader(child) if type(child) is PageRef else child
    if isinstance(node, ListLeaf):
        return node.items
    if isinstance(node, KeyedLeaf):
        return node.entries
    marks = node.ends if isinstance(node, ListBranch) else node.bounds
    return [marks, [shape(inner, loader) for inner in node.children]]


def assert_sound(tree, loader):
    """Widths, heights, counts and bounds of a whole tree."""
    if tree.root is None:
        assert tree.count == 0
        return
    _, count, _, _ = _sound(tree.root, loader, root=True, edge=True)
    assert count == tree.count


def _sound(child, loader, root, edge):
    """(height, count, least, greatest) of what is under a child."""
    node = loader(child) if type(child) is PageRef else child
    least_width = (2 if isinstance(node, Branch) else 1) if root else 1 if edge else HALF
    assert least_width <= node.width() <= WIDTH
    if isinstance(node, ListLeaf):
        return 1, len(node.items), None, None
    if isinstance(node, KeyedLeaf):
        keys = [entry[0] for entry in node.entries] if isinstance(node, MapLeaf) else node.entries
        assert node.order == [scalar_key(key) for key in keys]
        assert all(one < other for one, other in pairwise(node.order))
        return 1, len(node.order), node.order[0], node.order[-1]
    last = len(node.children) - 1
    under = [_sound(inner, loader, False, edge and at == last) for at, inner in enumerate(node.children)]
    assert len({height for height, _, _, _ in under}) == 1
    count = 0
    for at, (_, inner, least, greatest) in enumerate(under):
        count += inner
        if isinstance(node, ListBranch):
            assert node.ends[at] == count
        else:
            assert isinstance(node, KeyedBranch)
            assert node.order[at] == scalar_key(node.bounds[at]) <= least
            assert at == last or greatest < node.order[at + 1]
    return under[0][0] + 1, count, under[0][2], under[-1][3]


class Machine(RuleBasedStateMachine):
    """What the three have in common: a tree, its twin, a model, and a place for pages."""

    empty = None

    def __init__(self):
        super().__init__()
        self.pages = MemoryPages()
        self.load = self.pages.load
        self.tree = self.empty
        self.twin = self.empty
        self.model = self.start()
        self.kept = []

    def change(self, operation):
        self.tree = operation(self.tree, self.load)
        self.twin = operation(self.twin, nowhere)

    @rule()
    def write(self):
        self.tree = write(self.tree, self.pages)

    @rule()
    def keep(self):
        """A view of the tree as it is now, which no later change may touch."""
        self.kept.append((self.tree, self.listed()))

    @invariant()
    def it_holds_what_the_model_holds(self):
        assert list(self.tree.walked(self.load)) == self.listed()
        assert len(self.tree) == len(self.model)

    @invariant()
    def it_is_in_shape(self):
        assert_sound(self.tree, self.load)

    def teardown(self):
        if self.tree.root is not None:
            assert shape(self.tree.root, self.load) == shape(self.twin.root, nowhere)
        for tree, listed in self.kept:
            assert list(tree.walked(self.load)) == listed


class ListMachine(Machine):
    empty = ListTree()
    start = list

    def listed(self):
        return list(self.model)

    @rule(run=runs)
    def append(self, run):
        for item in range(run):
            self.change(lambda tree, load, item=item: tree.append(item, load))
            self.model.append(item)

    @rule(run=st.integers(0, 1500))
    def extend(self, run):
        self.change(lambda tree, load: tree.extend(range(run), load))
        self.model.extend(range(run))

    @rule(where=positions, run=runs)
    def insert(self, where, run):
        at = int(where * (len(self.model) + 1))
        for item in range(run):
            self.change(lambda tree, load, item=item: tree.insert(at, item, load))
            self.model.insert(at, item)

    @precondition(lambda self: self.model)
    @rule(where=positions, run=runs)
    def delete(self, where, run):
        at = int(where * len(self.model))
        for _ in range(min(run * 3, len(self.model) - at)):
            self.change(lambda tree, load: tree.delete(at, load))
            del self.model[at]

    @precondition(lambda self: self.model)
    @rule(where=positions)
    def set(self, where):
        at = int(where * len(self.model))
        self.change(lambda tree, load: tree.set(at, "set", load))
        self.model[at] = "set"

    @precondition(lambda self: self.model)
    @rule(where=positions, length=st.integers(0, 200))
    def read(self, where, length):
        at = int(where * len(self.model))
        assert self.tree.get(at, self.load) == self.model[at]
        assert list(self.tree.iterate(at, at + length, self.load)) == self.model[at : at + length]


keys = st.integers(0, 3000) | st.sampled_from([None, True, False, 1.0, -0.0, 0.0, "1", b"1"])


class MapMachine(Machine):
    empty = MapTree()
    start = dict

    def listed(self):
        return [pair for _, pair in sorted(self.model.items())]

    def put_one(self, key, value):
        self.change(lambda tree, load: tree.put(key, value, load))
        self.model[scalar_key(key)] = (key, value)

    @rule(key=keys, value=st.integers(0, 9))
    def put(self, key, value):
        self.put_one(key, value)

    @rule(start=st.integers(0, 3000), run=runs, step=st.sampled_from([1, -1, 7]))
    def put_many(self, start, run, step):
        for at in range(run * 3):
            self.put_one(start + at * step, at)

    @precondition(lambda self: self.model)
    @rule(where=positions, run=runs)
    def remove(self, where, run):
        listed = self.listed()
        at = int(where * len(listed))
        for key, _ in listed[at : at + run * 3]:
            self.change(lambda tree, load, key=key: tree.remove(key, load))
            del self.model[scalar_key(key)]

    @rule(key=keys, stop=keys)
    def read(self, key, stop):
        first, last = scalar_key(key), scalar_key(stop)
        there = self.model.get(first)
        assert self.tree.get(key, "none", self.load) == (there[1] if there else "none")
        assert self.tree.contains(key, self.load) == (there is not None)
        wanted = [pair for place, pair in sorted(self.model.items()) if first <= place < last]
        assert list(self.tree.items(key, stop, self.load)) == wanted


class SetMachine(Machine):
    empty = SetTree()
    start = dict

    def listed(self):
        return [key for _, key in sorted(self.model.items())]

    @rule(start=st.integers(0, 3000), run=runs, step=st.sampled_from([1, -1, 7]))
    def add(self, start, run, step):
        for key in range(start, start + run * step, step):
            self.change(lambda tree, load, key=key: tree.add(key, load))
            self.model[scalar_key(key)] = key

    @precondition(lambda self: self.model)
    @rule(where=positions, run=runs)
    def remove(self, where, run):
        listed = self.listed()
        at = int(where * len(listed))
        for key in listed[at : at + run]:
            self.change(lambda tree, load, key=key: tree.remove(key, load))
            del self.model[scalar_key(key)]

    @rule(key=keys)
    def read(self, key):
        assert self.tree.contains(key, self.load) == (scalar_key(key) in self.model)


quick = settings(max_examples=50, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TestList = ListMachine.TestCase
TestMap = MapMachine.TestCase
TestSet = SetMachine.TestCase
TestList.settings = TestMap.settings = TestSet.settings = quick
