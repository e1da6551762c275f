"""A vat's heap: its actors' fields and what the runtime must remember, as persistent trees with a working set.

The whole heap is a table of actors (by id, a `MapTree`), the runtime's own collections (`SYSTEM`), and a few
numbers. Actors in use stand in the working set as `State`, a plain dict of stored fields; `flush` puts those
that changed back into the table. Every change goes through `put`, which notes what was there before, so that
`rollback` to a mark costs what was changed.

The one rule: a heap changes only by operations (`vat.heap.operations`), live and restored alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from dataspace.values import CellRef, Erased, FrozenDict, FrozenList, Value, thaw
from dataspace.values.encoding import decode, encode
from snapshots.keyed import MapTree, SetTree
from snapshots.nodes import Node, PageRef
from snapshots.pages import BadPage, decode_tree
from snapshots.tree import Tree
from vat.errors import NoSuchActor
from vat.heap.entries import HELD, KEPT, STATE, Facet
from vat.heap.refs import Promise, Ref

ROOT_ACTOR: Final = 1
"""The id of a session's first actor, which `host.get` refers to."""

SYSTEM: Final[dict[str, type[Tree]]] = {  # where there is more than one value, `vat.heap.entries` has the places
    "promises": MapTree,  # id -> a promise
    "requests": MapTree,  # principal and request id -> [digest of the content, promise | None, ok, payload]
    "outbox": MapTree,  # number -> [uid, message]
    "awaiting": MapTree,  # promise -> the uid of the vat that is to settle it
    "senders": MapTree,  # uid -> the number of its last message
    "effects": MapTree,  # number -> an effect
    "handed": SetTree,  # actors that others may refer to
    "facets": MapTree,  # actor id of a narrowed ref -> what it reaches
    "facts": MapTree,  # handle of what may be retracted -> whether it is presence
    "subscriptions": MapTree,  # number -> [pattern, actor, method, cursor]
    "fibers": MapTree,  # number -> a fiber (`vat.heap.fibers`)
    "owned": MapTree,  # promise -> the fiber that it is kept for
}

PARENTAL: Final = ("outbox", "awaiting", "effects", "requests", "subscriptions")
"""What a fork does not inherit."""

COUNTERS: Final = ("actor", "promise", "message", "effect", "subscription", "fiber")
"""What is counted up and never reused: the last number given."""

LIFE: Final = ("forking", "born", "swept")
"""What else is remembered. See the properties of these names."""

ABSENT: Final = object()
"""What stands in an undo for what was not there."""


class Memory(Protocol):
    """Where what is not in memory comes from."""

    trouble: Exception | None
    """Why something could not be read: whatever user code made of it, the crank does not count."""

    def page(self, ref: PageRef) -> Node:
        """The node of a page, checked against its digest."""

    def cell(self, cell: CellRef) -> str | bytes | Erased:
        """The content of a cell."""


class State:
    """An actor in the working set. `fields` are stored values and trees, by name."""

    __slots__ = ("fields", "id", "type", "version")

    def __init__(self, id: int, type: str, version: int, fields: dict[str, Any]) -> None:
        self.id = id
        self.type = type
        self.version = version
        self.fields = fields


class Heap:
    """The heap of one vat. `time` is that of the last crank, in microseconds since 1970."""

    __slots__ = (
        "_dirty",
        "_life",
        "_loose",
        "_states",
        "_table",
        "_undo",
        "counters",
        "indexes",
        "memory",
        "system",
        "time",
        "types",
        "views",
    )

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.system: dict[str, Any] = {name: kind() for name, kind in SYSTEM.items()}
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        self.types: dict[str, tuple[int, int]] = {}
        """The types that its actors have: the version, and how many there are."""
        self.time = 0
        self.views: list[Tree] = []
        """The views taken by this crank, by number."""
        self.indexes: dict[str, dict[int, Any]] = {}
        """Those that somebody has asked for (`vat.heap.indexes`)."""
        self._life: dict[str, int] = dict.fromkeys(LIFE, 0)
        self._loose: list[int] = []
        self._table = MapTree()
        self._states: dict[int, State | None] = {}
        self._dirty: dict[int, None] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    # What is there.

    def page(self, ref: PageRef) -> Node:
        """The node of a page: what trees load with."""
        try:
            return self.memory.page(ref)
        except Exception as error:
            self.memory.trouble = error
            raise

    def cell(self, cell: CellRef) -> str | bytes | Erased:
        """The content of a cell."""
        try:
            return self.memory.cell(cell)
        except Exception as error:
            self.memory.trouble = error
            raise

    def state(self, actor: int) -> State:
        """The actor of that id. Raises `NoSuchActor`."""
        found = self._states.get(actor)
        if found is None and actor not in self._states:
            stored = self._table.get(actor, loader=self.page)
            found = None if stored is None else State(actor, stored[0], stored[1], dict(stored[2]))
            self._states[actor] = found
        if found is None:
            raise NoSuchActor(f"there is no actor {actor} in this session: its ref is out of date; ask for a new one")
        return found

    def actors(self) -> list[int]:
        """The ids of all actors, in order. Costs all of them."""
        self.flush()
        return [actor for actor, _ in self._table.items(loader=self.page)]

    @property
    def size(self) -> int:
        """How many actors there are."""
        return sum(count for _, count in self.types.values())

    def find(self, name: str, key: Value) -> Any:
        """What a system map holds under a key, or None."""
        tree = self.system[name]
        return tree.get(key, None, self.page) if tree.count else None

    def may_have(self, name: str) -> bool:
        """Whether a system map may hold anything. O(1)."""
        return bool(self.system[name].count)

    def entries(self, name: str) -> list[tuple[Any, Any]]:
        """All that a system map holds, in key order. Costs all of it."""
        return list(self.system[name].items(loader=self.page))

    def narrowed(self, actor: int) -> Iterator[Sequence[Any]]:
        """The narrowed refs by which an id leads to its actor, the last one narrowed first; none for an actor's own."""
        while (facet := self.find("facets", actor)) is not None:
            yield facet
            actor = facet[Facet.TARGET]

    def behind(self, actor: int) -> int:
        """The actor that an id leads to, narrowed and revoked as it may be."""
        for facet in self.narrowed(actor):
            actor = facet[Facet.TARGET]
        return actor

    def read(self, stored: Value) -> Value:
        """The read form of a stored value; loads the cells that are not in memory."""
        return thaw(stored, self.cell)

    @property
    def forking(self) -> bool:
        """Whether this is a fork before its first crank, which breaks what waits for the outside."""
        return bool(self._life["forking"])

    @property
    def born(self) -> int:
        """The seq of the crank in which this fork parted from its parent; 0 for no fork."""
        return self._life["born"]

    @property
    def swept(self) -> int:
        """How many actors and promises had been made when what nothing reaches was collected last."""
        return self._life["swept"]

    # What changes it.

    def put(self, where: dict[Any, Any], key: Any, value: Any) -> None:
        """Set `where[key]`, so that a rollback undoes it."""
        self._undo.append((where, key, where.get(key, ABSENT)))
        where[key] = value

    def take(self, where: dict[Any, Any], key: Any) -> None:
        """Take a key out, if it is there, so that a rollback undoes it."""
        if key in where:
            self._undo.append((where, key, where.pop(key)))

    def set_life(self, what: str, number: int) -> None:
        """Set one of `LIFE`."""
        self.put(self._life, what, number)

    def touch(self, state: State, field: str, value: Any) -> None:
        """Set a field of an actor."""
        fields = state.fields
        self._undo.append((fields, field, fields.get(field, ABSENT)))
        fields[field] = value
        self._touched(state.id)

    def _touched(self, actor: int) -> None:
        if actor not in self._dirty:
            self.put(self._dirty, actor, None)

    def add(self, state: State) -> None:
        """A new actor, or one in another version."""
        old = self._states.get(state.id)
        if old is not None:
            self._uncount(old.type)
        self.put(self._states, state.id, state)
        self._touched(state.id)
        self.put(self.types, state.type, (state.version, self.types.get(state.type, (0, 0))[1] + 1))

    def remove(self, actor: int) -> None:
        """Take an actor away."""
        self._uncount(self.state(actor).type)
        self.put(self._states, actor, None)
        self._touched(actor)

    def _uncount(self, type: str) -> None:
        version, count = self.types[type]
        self.put(self.types, type, (version, count - 1))

    def put_entry(self, name: str, key: Value, value: Value) -> None:
        """Put an entry into a system map."""
        system = self.system
        tree = system[name]
        self._undo.append((system, name, tree))
        system[name] = tree.put(key, value, self.page)

    def drop(self, name: str, key: Value) -> None:
        """Take an entry out of a system map or set, if it is there."""
        tree = self.system[name]
        less = tree.discard(key, self.page) if tree.count else None
        if less is not None:
            self.put(self.system, name, less)

    def count(self, what: str) -> int:
        """The next number of a counter."""
        number = self.counters[what] + 1
        self.put(self.counters, what, number)
        return number

    def counted(self, what: str, number: int) -> None:
        """A number was given: no later one is at or below it."""
        if number > self.counters[what]:
            self.put(self.counters, what, number)

    def loosen(self, promise: int) -> None:
        """A promise is settled and nothing in the heap refers to it: it goes at the end of this crank."""
        self._loose.append(promise)

    def leave(self) -> None:
        """This heap is a fork's from now on: what belongs to its parent goes with its first crank, if there is any."""
        system = self.system
        self._life["forking"] = any(system[name].count for name in (*PARENTAL, "facts"))

    # Savepoints.

    def mark(self) -> int:
        """A savepoint for `rollback`."""
        return len(self._undo)

    def rollback(self, mark: int) -> None:
        """Undo all changes since `mark`, the newest first."""
        undo = self._undo
        while len(undo) > mark:
            where, key, old = undo.pop()
            if old is ABSENT:
                del where[key]
            else:
                where[key] = old

    def complete(self) -> None:
        """The record is complete: nothing of it is undone any more."""
        if self._loose:
            for promise in self._loose:
                entry = self.find("promises", promise)
                if entry is None or entry[STATE] < KEPT or entry[HELD] or self.find("owned", promise) is not None:
                    continue
                self.drop("promises", promise)
            self._loose.clear()
        self._undo.clear()
        if self.views:
            self.views = []
        if len(self._states) > 1024:
            self._states = {key: state for key, state in self._states.items() if key in self._dirty}

    def abandon(self) -> None:
        """Undo everything since the last record."""
        self.rollback(0)
        self._loose.clear()
        self.views = []

    # The whole of it.

    @property
    def pending(self) -> int:
        """How many things must be woken after a restart."""
        system = self.system
        waiting: int = system["effects"].count + system["outbox"].count + system["subscriptions"].count
        return waiting

    def flush(self) -> None:
        """Put the actors that changed back into the table."""
        table = self._table
        for actor in sorted(self._dirty):
            state = self._states.get(actor)
            if state is not None:
                table = table.put(actor, _stored(state), self.page)
            elif table.contains(actor, self.page):
                table = table.remove(actor, self.page)
        self._table = table
        self._dirty.clear()

    def trees(self) -> dict[str, Tree]:
        """The table and the system's collections by name, the table as `actors`: what a snapshot writes."""
        self.flush()
        return {"actors": self._table, **self.system}

    def root(self, trees: dict[str, Tree]) -> bytes:
        """The root page: everything that is not in a page of its own. `trees` are those of `trees()`, written."""
        types = {name: known for name, known in self.types.items() if known[1]}
        return encode(
            {"trees": trees, "counters": self.counters, "time": self.time, "life": self._life, "types": types}
        )

    @classmethod
    def load(cls, root: bytes, memory: Memory) -> Heap:
        """The heap of a root page. Raises `BadEncoding` or `BadPage`."""
        stored = decode(root, ref=Ref, promise=Promise, tree=decode_tree)
        heap = cls(memory)
        try:
            trees = stored["trees"]
            heap._table = trees["actors"]
            heap.system.update({name: trees[name] for name in SYSTEM if name in trees})
            heap.counters.update(stored["counters"])
            heap.time = stored["time"]
            heap._life.update(stored["life"])
            heap.types = {name: (version, count) for name, (version, count) in stored["types"].items()}
        except (KeyError, TypeError, ValueError) as error:
            raise BadPage(f"a heap's root without {error}") from error
        return heap


def _stored(state: State) -> FrozenList:
    return FrozenList([state.type, state.version, FrozenDict(state.fields)])
