"""Collecting: which actors and promises nothing reaches any more.

What is reached: the session's first actor; those that were handed out, until the ref is revoked; those that a promise
which is not settled will call, those that observe, and those whose fibers wait; and whatever is referred to from there,
or from the locals of fibers. Of promises, those that are not settled, and those that are referred to.

A history is text, and pages of it are passed by (`snapshots.leading`): the cost is that of the actors and promises
there are, and of what changed since the last snapshot.

The one rule: when in doubt, it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from dataspace.values import Value
from snapshots.leading import leading
from snapshots.tree import Tree
from vat.errors import NoSuchActor
from vat.heap.entries import KEPT, PAYLOAD, REACTIONS, SETTLER, STATE, Facet, Then
from vat.heap.fibers import ACTOR, WAITING
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.heap.opcodes import To
from vat.heap.refs import Promise, Ref
from vat.heap.stored import PLAIN

FEWEST: Final = 256
"""So many actors and promises must have been made before it is worth looking."""


def worthwhile(made: int, looked: int, there: int) -> bool:
    """Whether to look for what nothing reaches: when half as much was made since the last time as there is now.

    `made` and `looked` count the actors and promises that were ever made, now and when somebody looked last. So all
    looking together costs no more than twice what the making did.
    """
    return made - looked >= max(FEWEST, there // 2)


class Locals(NamedTuple):
    """What the locals of fibers hold: actors, promises, and trees of views."""

    actors: Iterable[int] = ()
    promises: Iterable[int] = ()
    trees: Iterable[Tree] = ()


def unreached(heap: Heap, inside: Locals = Locals()) -> tuple[list[int], list[int]]:  # noqa: B008  # it cannot change
    """The actors (narrowed refs among them) and the settled promises that nothing reaches, in order."""
    walk = _Walk(heap)
    walk.begin(inside)
    walk.finish()
    facets = [facet for facet, _ in heap.entries("facets")]
    actors = [actor for actor in sorted([*heap.actors(), *facets]) if actor not in walk.actors]
    promises = [
        promise for promise, entry in heap.entries("promises") if entry[STATE] >= KEPT and promise not in walk.promises
    ]
    return actors, promises


def owed_by(heap: Heap, actors: Iterable[int]) -> list[int]:
    """The promises that these actors were to settle, in order."""
    gone = set(actors)
    return [
        promise
        for promise, entry in heap.entries("promises")
        if entry[STATE] < KEPT and entry[SETTLER][0] == "actor" and entry[SETTLER][1] in gone
    ]


class _Walk:
    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self.actors: set[int] = set()
        self.promises: set[int] = set()
        self.todo: list[tuple[bool, int]] = []

    def begin(self, inside: Locals) -> None:
        heap = self.heap
        for actor in inside.actors:
            self.actor(actor)
        for promise in inside.promises:
            self.promise(promise)
        for tree in inside.trees:
            self.tree(tree)
        for _, fiber in heap.entries("fibers"):
            self.actor(fiber[ACTOR])
            for promise in fiber[WAITING][1:]:
                self.promise(promise)
        for promise, _ in heap.entries("owned"):
            self.promise(promise)
        self.actor(ROOT_ACTOR)
        for actor in heap.system["handed"].iterate(loader=heap.page):
            self.actor(actor)
        for _, (_, actor, _, _) in heap.entries("subscriptions"):
            self.actor(actor)
        for promise, entry in heap.entries("promises"):
            if entry[STATE] < KEPT:
                self.promise(promise)
        for name in ("effects", "outbox"):
            self.tree(heap.system[name])

    def finish(self) -> None:
        heap = self.heap
        while self.todo:
            is_actor, number = self.todo.pop()
            if not is_actor:
                self._promised(heap.find("promises", number))
                continue
            facet = heap.find("facets", number)
            if facet is not None:
                if not facet[Facet.REVOKED]:
                    self.actor(facet[Facet.TARGET])
                continue
            try:
                fields = heap.state(number).fields
            except NoSuchActor:
                continue
            for value in fields.values():
                self.value(value)

    def _promised(self, entry: Any) -> None:
        if entry is None:
            return
        if entry[STATE] >= KEPT:
            self.value(entry[PAYLOAD])
        for reaction in entry[REACTIONS]:
            if reaction[0] == To.THEN:
                for actor in (reaction[Then.KEPT_ACTOR], reaction[Then.BROKEN_ACTOR]):
                    if actor is not None:
                        self.actor(actor)
            self.value(reaction)

    def actor(self, actor: int) -> None:
        if actor not in self.actors:
            self.actors.add(actor)
            self.todo.append((True, actor))

    def promise(self, promise: int) -> None:
        if promise not in self.promises:
            self.promises.add(promise)
            self.todo.append((False, promise))

    def tree(self, tree: Tree) -> None:
        for value in leading(tree, self.heap.page):
            self.value(value)

    def value(self, value: Value) -> None:
        kind = type(value)
        if kind in PLAIN:
            return
        if kind is Ref:
            if value.session is None:
                self.actor(value.actor)
        elif kind is Promise:
            self.promise(value.id)
        elif isinstance(value, Tree):
            self.tree(value)
        elif isinstance(value, dict):
            for item in value.values():
                self.value(item)
        elif isinstance(value, list | tuple):
            for item in value:
                self.value(item)
