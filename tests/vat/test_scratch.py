"""A heap to run something again on says what the one that it was made of would say."""

from hypothesis import given
from hypothesis import strategies as st

from snapshots.keyed import MapTree
from vat.heap.heap import SYSTEM, Heap
from vat.heap.scratch import Scratch

NAMES = ("promises", "owned", "senders")
KEYS = st.integers(0, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put_entry"), st.sampled_from(NAMES), KEYS, st.integers()),
        st.tuples(st.just("drop"), st.sampled_from(NAMES), KEYS),
        st.tuples(st.just("mark")),
        st.tuples(st.just("rollback")),
    ),
    max_size=40,
)


def made(steps):
    heap = Heap(None)
    for name, key, value in steps:
        heap.put_entry(name, key, value)
    heap.complete()
    return heap


def told(heap):
    maps = [name for name, kind in SYSTEM.items() if kind is MapTree]
    found = {name: [heap.find(name, key) for key in range(10)] for name in maps}
    return found, {name: heap.entries(name) for name in maps}, {name: heap.system[name].count for name in maps}


@given(st.lists(st.tuples(st.sampled_from(NAMES), KEYS, st.integers()), max_size=12), STEPS)
def test_whatever_is_done_and_undone_it_says_what_a_heap_would_say(before, steps):
    heaps = made(before), Scratch.of(made(before))
    marks = [(0, 0)]
    for what, *args in steps:
        if what == "mark":
            marks.append(tuple(heap.mark() for heap in heaps))
        elif what == "rollback":
            for heap, mark in zip(heaps, marks[-1], strict=True):
                heap.rollback(mark)
        else:
            for heap in heaps:
                getattr(heap, what)(*args)
        assert told(heaps[0]) == told(heaps[1])
    assert all(heap.may_have(name) for heap in heaps for name in NAMES if heap.entries(name))


def test_a_heap_that_is_one_already_is_taken_as_it_is():
    scratch = Scratch.of(made([("senders", 1, 2)]))
    assert Scratch.of(scratch) is scratch
    assert scratch.entries("senders") == [(1, 2)]
