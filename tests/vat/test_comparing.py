"""What a fiber did then and does now, held against each other: every difference in an operation counts, but in a
failure the place in the code."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from struct import pack, unpack
from typing import Any, Final

import pytest
from waits import SCRIPTS, Agent, Fiberworld, cancel, script

from dataspace.values import Blob, CellRef, FrozenDict, FrozenList, Symbol
from snapshots.keyed import MapTree
from snapshots.lists import ListTree
from snapshots.nodes import PageRef
from vat.crank.comparing import alike, same
from vat.errors import FiberDiverged
from vat.heap.opcodes import Op, Verb
from vat.heap.refs import Promise, Ref

ORDER: Final = {"in": "EUR", "error": "", "message": "for tea", "amount": 10, "rates": [0.0, 1.5, nan]}
"""A value of a user's that looks like a failure."""

FAILURE: Final = {
    "error": "ValueError",
    "message": "given up",
    "class": "shop.GivenUp",
    "at": "at shop.py:12 in pay",
    "in": "session 'a' at seq 3",
    "undone": ["orders"],
}

OPERATIONS: Final[list[list[Any]]] = [
    [Op.BEGIN, 1, "pay", [ORDER], {"order": ORDER}, FAILURE],
    [Op.FAILED, FAILURE],
    [Op.SET, 1, "orders", ORDER],
    [Op.CHANGE, 1, "orders", Verb.APPEND, ORDER],
    [
        Op.SPAWNED,
        2,
        "shop.order",
        1,
        {"order": ORDER, "lines": ListTree(), "log": ListTree(PageRef(1, 2, b"d" * 32), 3)},
    ],
    [Op.UPGRADED, 1, 2, ["orders"], {"order": ORDER}],
    [Op.COLLECTED, [2, 3], [4]],
    [Op.COUNTED, "promise", 4],
    [Op.MADE, 1, ["effect", "bank", "pay"]],
    [Op.HELD, 1],
    [Op.FOLLOWS, 1, 2],
    [Op.REACTS, 1, [0, 1, "paid", 1, "failed", [ORDER], {"order": ORDER}, 2]],
    [Op.FULFILLED, 1, ORDER],
    [Op.BROKE, 1, FAILURE],
    [
        Op.SENT,
        1,
        b"u" * 16,
        {"to": 1, "method": "pay", "args": [ORDER], "keywords": {"succeeded": False}, "promise": 2},
    ],
    [Op.SENT, 1, b"u" * 16, {"settle": 2, "succeeded": True, "payload": ORDER}],
    [Op.SENT, 1, b"u" * 16, {"settle": 2, "succeeded": False, "payload": FAILURE}],
    [Op.RECEIVED, b"u" * 16, 1],
    [Op.ACKED, [1, 2]],
    [Op.WANTED, 1, "id", "bank", "pay", [ORDER], {"order": ORDER}, [0], 2],
    [Op.STARTED, 1, 2],
    [Op.ENDED, 1],
    [Op.ASKED, "key", b"digest", 1],
    [Op.ANSWERED, "key", b"digest", True, ORDER],
    [Op.ANSWERED, "key", b"digest", False, FAILURE],
    [Op.STATED, 1, 2, 3],
    [Op.RETRACTED, 2, 3],
    [Op.HANDED, 1],
    [Op.NARROWED, 2, 1, ["pay"], True],
    [Op.REVOKED, 2],
    [Op.SUBSCRIBED, 1, "(turn . _)", 1, "heard", "cursor"],
    [Op.OBSERVED, 1, "cursor"],
    [Op.UNSUBSCRIBED, 1],
    [Op.VIEWED, 1, "orders"],
    [Op.SEEDED, b"seed"],
    [Op.DETACHED, 3],
    [Op.PASSED, 1, 2],
    [Op.UNDONE, 1, "pay", FAILURE],
    [Op.SUSPENDED, 1, 2, 3, [0, 4], [5], [6], 1, "go", 1, 7],
    [Op.RESUMED, 1, 2, 3, FAILURE],
    [Op.RETURNED, 1, [2]],
    [Op.CALLED, 1, "pay", [ORDER], {"order": ORDER}],
    [Op.CLOCKED, 12.5],
    [Op.LOOKED, 1, False],
]

NOT_COUNTING: Final = {"class", "at", "in", "undone"}
"""Of a failure."""


def test_all_operations_are_here():
    assert {operation[0] for operation in OPERATIONS} == set(Op)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation[0].name)
def test_whatever_differs_counts_but_the_place_of_a_failure(operation):
    assert same(operation, copied(operation), CellRef)
    for path, other in changed(operation):
        assert same(operation, other, CellRef) == same(other, operation, CellRef) == passed_over(operation, path), path


def test_a_failure_in_each_operation_that_has_one_and_no_other_has_a_place_that_is_passed_over():
    having = [one for one in OPERATIONS if any(passed_over(one, path) for path, _ in changed(one))]
    assert [one[0] for one in having] == [
        *(Op.BEGIN, Op.FAILED, Op.BROKE, Op.SENT, Op.ANSWERED, Op.UNDONE, Op.SUSPENDED, Op.RESUMED)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (nan, unpack("d", pack("Q", 0x7FF8_0000_0000_0001))[0]),
        (nan, -nan),
        (1.0, 1),
        (1, True),
        (0, False),
        (0.0, False),
        ("a", b"a"),
        ("a", Symbol("a")),
        (None, False),
        ((), {}),
        (Ref(None, 1), Ref(b"u" * 16, 1)),
        (Promise(1), Ref(None, 1)),
        (Blob("text/plain", b"a"), Blob("text/html", b"a")),
        (Blob("text/plain", b"a"), b"a"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_values_that_only_look_alike_are_told_apart(one, other):
    for hold in (lambda value: value, lambda value: [value], lambda value: {"a": [value]}):
        assert not alike(hold(one), hold(other), CellRef)
        assert not alike(hold(other), hold(one), CellRef)
        assert alike(hold(one), hold(copied(one)), CellRef)


@script
async def pays(me: Agent) -> None:
    me.spawn(Agent)
    me.log.append({"in": "EUR", "error": "", "message": "for tea", "amount": 10})
    me.value = 0.0
    cancel(me.want("gone"), ValueError("given up"))
    await me.want("first")
    me.log.append("paid")


async def pays_more(me: Agent) -> None:
    me.spawn(Agent)
    me.log.append({"in": "EUR", "error": "", "message": "for tea", "amount": 999_999})
    me.value = 0.0
    cancel(me.want("gone"), ValueError("given up"))
    await me.want("first")


async def has_another_zero(me: Agent) -> None:
    me.spawn(Agent)
    me.log.append({"in": "EUR", "error": "", "message": "for tea", "amount": 10})
    me.value = -0.0
    cancel(me.want("gone"), ValueError("given up"))
    await me.want("first")


async def gives_up_with_another_word(me: Agent) -> None:
    me.spawn(Agent)
    me.log.append({"in": "EUR", "error": "", "message": "for tea", "amount": 10})
    me.value = 0.0
    cancel(me.want("gone"), ValueError("taken back"))
    await me.want("first")


async def has_moved(me: Agent) -> None:
    me.spawn(Agent)
    me.log.append({"in": "EUR", "error": "", "message": "for tea", "amount": 10})
    me.value = 0.0
    cancel(me.want("gone"), ValueError("given up"))
    await me.want("first")
    me.log.append("paid")


@pytest.mark.parametrize(
    ("other", "recorded", "did"),
    [
        (pays_more, '"amount": 10', '"amount": 999999'),
        (has_another_zero, "sets value of actor 1 to 0.0", "sets value of actor 1 to -0.0"),
        (gives_up_with_another_word, "given up", "taken back"),
        (has_moved, None, None),
    ],
)
def test_code_that_does_otherwise_does_not_go_on(other, recorded, did):
    """Invariant 16: what users keep may look like a failure, and zeros differ in their sign."""
    world = Fiberworld()
    world.go("pays")
    world.restart()
    before, SCRIPTS["pays"] = SCRIPTS["pays"], other
    try:
        world.give(effect=2)
    finally:
        SCRIPTS["pays"] = before
    failure = world.agent.steps[-1].failure
    if recorded is None:
        assert world.seen()[1:] == ["paid"]
        return
    assert isinstance(failure, FiberDiverged)
    assert recorded in failure.recorded
    assert did in failure.did
    assert world.seen()[1:] == []


def copied(value: Any) -> Any:
    """The same in other objects, as it is when it was read back."""
    if isinstance(value, dict):
        return FrozenDict({key: copied(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList([copied(item) for item in value])
    if isinstance(value, ListTree):
        return ListTree(value.root, value.count)
    return unpack("d", pack("d", value))[0] if isinstance(value, float) else value


def changed(value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """A value with one thing in it another, and the path to that."""
    if not isinstance(value, dict | list):
        yield (), other_than(value)
        return
    for key in list(value if isinstance(value, dict) else range(len(value))):
        for path, item in changed(value[key]):
            made = copied(value)
            if isinstance(made, dict):
                made = FrozenDict({**made, key: item})
            else:
                made = [*made[:key], item, *made[key + 1 :]]
            yield (key, *path), made


def other_than(value: Any) -> Any:
    """As little changed as can be."""
    if isinstance(value, float):
        return unpack("d", pack("Q", unpack("Q", pack("d", value))[0] ^ 1 << 63))[0]
    if isinstance(value, ListTree):
        return ListTree(PageRef(1, 2, b"e" * 32), value.count) if value.root else MapTree()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Op):
        return Op((value + 1) % len(Op))
    return value + (1 if isinstance(value, int) else b"." if isinstance(value, bytes) else ".")


def passed_over(operation: Any, path: tuple[Any, ...]) -> bool:
    """Whether what is at a path does not count: of a failure the place, and what follows from what is in memory."""
    if operation[0] == Op.SUSPENDED and path[0] in (5, 6):
        return True
    for key in path:
        if operation is FAILURE:
            return key in NOT_COUNTING
        operation = operation[key]
    return False
