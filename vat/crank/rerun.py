"""Running a fiber again: how its coroutine comes back after its vat has left memory.

    1. its parts are followed back through the records, each of which names the one before it
    2. each is run again, in order, on a heap as it was at its moment, with what the record says of time, chance and
       what came of the promises that it awaited; what it sends and wants goes nowhere
    3. what it did is held against what was recorded, operation by operation, up to where it waits

It runs on the same crank object, put aside for as long as it takes, so that what its locals hold (collections, actors)
finds the heap of the next crank by itself.

What user code raises here and did not when it was recorded is another thing done, whatever it is: so it has more of the
stack here than it can have had then.

The one rule: nothing that it does has an effect. It comes back exactly as it was, or raises `FiberDiverged`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from operator import itemgetter
from threading import get_ident
from typing import Any, Final, Protocol

from dataspace.drafts import Statement, read_statements
from dataspace.interrupts import is_interrupt
from dataspace.log.store import BodyErased
from dataspace.records import Kind
from dataspace.values.encoding import encode
from vat.crank.acting import Acting
from vat.crank.comparing import alike, same
from vat.crank.deliveries import Parts
from vat.crank.places import Traced, waits_at
from vat.crank.powers import Powers
from vat.crank.progress import CrankDraft, Progress
from vat.crank.room import room
from vat.crank.wording import Words, apart, facts_told, plainly, told
from vat.errors import FiberDiverged
from vat.failures import exception_of, place_of
from vat.heap.fibers import ACTOR, METHOD, OPERATION, PARTS, RESULT, SEQ, VERSION, WAITING, outcomes
from vat.heap.heap import Heap
from vat.heap.messages import Asker, Outcome, asker_of
from vat.heap.opcodes import Op
from vat.heap.operations import APPLY, follow
from vat.heap.past import Past, Recorded
from vat.heap.refs import Promise, Ref
from vat.heap.scratch import Scratch
from vat.objects.actor import facade

_SEEDED: Final = int(Op.SEEDED)
_PARTING: Final = frozenset({int(Op.RESUMED), int(Op.SUSPENDED), int(Op.RETURNED)})
"""What a part of a fiber begins or ends with."""
PARTS_AT_ONCE: Final = 10_000
"""When fibers have so many parts, no more of them are run again together: their records are in memory meanwhile."""


class Brings(Parts, Protocol):
    """Where fibers are in memory, or why they cannot be; `gone` are the coroutines that are to be closed."""

    diverged: dict[int, FiberDiverged]
    gone: list[Coroutine[Any, Any, Any]]


class _Replayed:
    """The powers of a crank that is done again: what the record says that they gave."""

    __slots__ = ("draft", "recorded")
    draft: CrankDraft
    recorded: Recorded

    def clock(self) -> int:
        """The time."""
        said: int = self._next(Op.CLOCKED, 1, self.recorded.time)
        return said

    def entropy(self, count: int) -> bytes:
        """Random bytes."""
        said: bytes = self._next(Op.SEEDED, 1, bytes(count))
        return said

    def cursor(self) -> str:
        """Where the log ended."""
        said: str = self._next(Op.SUBSCRIBED, 5, "start")
        return said

    def begun(self, uid: bytes, effect: int) -> bool:
        """Whether an effect may have begun."""
        said: bool = self._next(Op.LOOKED, 2, True)
        return said

    def _next(self, kind: int, place: int, instead: Any) -> Any:
        """What the operation says that was recorded next, if it is of that kind."""
        number, operations = len(self.draft.operations), self.recorded.operations
        here = operations[number] if number < len(operations) else (None,)
        return here[place] if here[0] == kind else instead


class Rerun:
    """Runs one fiber again. `scratch` has its coroutine in the end, unless it has `diverged`; where in the code it did
    is known if it is `traced`."""

    def __init__(self, crank: Acting, scratch: Parts, past: Past, number: int, *, traced: bool = False) -> None:
        self._crank = crank
        self._traced = traced
        self._scratch = scratch
        self._past = past
        self.number = number
        self._entry = crank.heap.find("fibers", number)
        self._session = crank.id
        self._type: str = crank.heap.state(self._entry[ACTOR]).type
        self._part = 0
        self._replayed = powers = _Replayed()
        self._powers = Powers(crank.powers.log_id, powers.clock, powers.entropy, powers.cursor, powers.begun)
        self.diverged: FiberDiverged | None = None

    def parts(self, known: dict[int, Recorded]) -> list[tuple[Recorded, int]]:
        """The records and the operations with which its parts begin, in order. Raises what reading raises."""
        try:
            return self._parts(known)
        except BodyErased:
            self.diverged = self._diverged(plainly("did what was erased since"), plainly("cannot be told of it"))
        return []

    def run(self, heap: Heap, recorded: Recorded, at: int, asker: Asker, seed: bytes | None, runs: int) -> int:
        """Run the part that begins at an operation. Gives up to where the record is done then.

        `runs` is the fiber in whose part that was, 0 for none. One that does something else is `diverged`, and has done
        nothing.
        """
        self._part += 1
        undo, views = heap.mark(), len(heap.views)
        crank = self._crank
        crank.fibers = self._scratch
        crank.fibers.runs = runs
        draft = self._scene(heap, recorded, at, asker, seed)
        try:
            self._run(heap, recorded, at)
            self._hold(draft, recorded, at)
        except FiberDiverged as error:
            self.diverged = error
            heap.rollback(undo)
            del heap.views[views:]
            return at
        return len(draft.operations)

    def _parts(self, known: dict[int, Recorded]) -> list[tuple[Recorded, int]]:
        found: list[tuple[Recorded, int]] = []
        seq, at = self._entry[SEQ], self._entry[OPERATION]
        while True:
            recorded = known.get(seq)
            if recorded is None:
                recorded = known[seq] = self._past.record(seq)
            found.append((recorded, at))
            operation = recorded.operations[at]
            if operation[0] != Op.RESUMED:
                break
            seq, at = operation[2], operation[3]
        found.reverse()
        return found

    def _scene(self, heap: Heap, recorded: Recorded, at: int, asker: Asker, seed: bytes | None) -> CrankDraft:
        """The crank as it was when a part began, the operation with which it begins not done yet."""
        crank = self._crank
        draft = CrankDraft(recorded.uid, recorded.seq, Kind.CRANK, recorded.time)
        draft.crank = crank
        before = recorded.operations[:at]
        draft.operations = Traced(before, _run_part) if self._traced else list(before)
        crank.heap, crank.uid, crank.id = heap, recorded.uid, recorded.id
        crank.powers = self._powers
        self._replayed.draft, self._replayed.recorded = draft, recorded
        crank.progress = progress = Progress(draft, get_ident(), recorded.previous, asker)
        progress.seed = seed
        progress.new_moment()
        progress.at = (self._entry[ACTOR], self._entry[METHOD])
        return draft

    def _run(self, heap: Heap, recorded: Recorded, at: int) -> None:
        """Run a part. Raises `FiberDiverged` unless it waits in the end."""
        begins = recorded.operations[at]
        came: Outcome | Promise | None
        waiting: Sequence[Any] = ()
        if begins[0] == Op.RESUMED:
            waiting = outcomes(heap, heap.find("fibers", self.number)[WAITING])
        APPLY[begins[0]](heap, *begins[1:])
        self._crank.record.operations.append(begins)
        try:
            if begins[0] == Op.RESUMED:
                failure = begins[4] if len(begins) > 4 else None
                fiber = self._scratch.live[self.number]
                came = self._scratch.advance(self.number, fiber, self._entry[RESULT], waiting, failure)
            else:
                came = self._begin(heap, recorded, begins)
        except FiberDiverged:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            self._crank.sound()
            place = place_of(error).removeprefix("at ")
            raises = f"raises {type(error).__name__}"
            raise self._otherwise(recorded, at, Words(f"{raises}: {error}", raises), place) from error
        self._crank.sound()
        if came is not None:
            raise self._otherwise(recorded, at, plainly("comes to its end"))

    def _begin(self, heap: Heap, recorded: Recorded, begins: Sequence[Any]) -> Outcome | Promise | None:
        crank, entry = self._crank, self._entry
        actor, name, version = entry[ACTOR], entry[METHOD], entry[VERSION]
        if not crank.types.has(self._type, version):
            ran = plainly(f"ran in version {version} of {self._type}")
            raise self._diverged(ran, plainly("has no such version any more"))
        described = crank.types.fit(self._type, version)
        found = described.methods.get(name) or described.inner.get(name)
        if found is None or not found.waits:
            ran = plainly(f"ran the async method {name}")
            raise self._diverged(ran, plainly(f"has no async method {name} any more"))
        if len(begins) > 3:
            args, keywords = list(begins[3]), begins[4] if len(begins) > 4 else {}
        elif "event" in recorded.message:
            args, keywords = [recorded.message["event"]], {}
        else:
            args, keywords = list(recorded.message["args"]), recorded.message.get("keywords", {})
        read = [heap.read(arg) for arg in args]
        if len(begins) > 5:
            read.insert(0, exception_of(heap.read(begins[5])))
        named = {name: heap.read(value) for name, value in keywords.items()}
        came = self._scratch.start(found, actor, found.function(facade(crank, actor), *read, **named))
        return None if self.number in self._scratch.live else came

    # Held against the record.

    def _hold(self, draft: CrankDraft, recorded: Recorded, at: int) -> None:
        """Raise `FiberDiverged` unless the part did what was recorded."""
        did, said = draft.operations, recorded.operations
        load = self._crank.heap.memory.cell
        # Without content of its own it says the same if its bytes are the same, and mostly they are.
        at_once = not draft.cells and encode(did[at + 1 :]) == encode(said[at + 1 : len(did)])
        for place in () if at_once else range(at + 1, len(did)):
            if place >= len(said):
                raise self._diverged(*apart(_NO_MORE, told(did[place], load)), self._place(did, place))
            if not same(did[place], said[place], load):
                words = apart(told(said[place], load), told(did[place], load))
                raise self._diverged(*words, self._place(did, place))
        if draft.statements:
            span = range(at + 1, len(did))
            before = [one for one in read_statements(recorded.facts, load, ref=Ref, promise=Promise) if one.at in span]
            for now, then in zip(draft.statements, before, strict=True):
                if not alike(_plain(now), _plain(then), load):
                    raise self._diverged(facts_told(then), facts_told(now), self._place(did, now.at))

    def _otherwise(self, recorded: Recorded, at: int, how: Words, where: str = "") -> FiberDiverged:
        """What is wrong with a part that did not wait in the end: what it did otherwise first, or that it is over."""
        did = self._crank.record
        try:
            self._hold(did, recorded, at)
        except FiberDiverged as first:
            return first
        place = len(did.operations)
        said = recorded.operations
        load = self._crank.heap.memory.cell
        return self._diverged(*apart(told(said[place], load) if place < len(said) else _NO_MORE, how), where)

    def _place(self, did: Sequence[Any], at: int) -> str:
        """Where in the users' code an operation comes from that the part has done."""
        if not isinstance(did, Traced):
            return ""
        operation = did[at]
        fiber = self._scratch.live.get(operation[1]) if operation[0] == Op.SUSPENDED else None
        return did.place(at) if fiber is None else waits_at(fiber.coroutine)

    def _diverged(self, recorded: Words, did: Words, where: str = "") -> FiberDiverged:
        return FiberDiverged(
            *(self._session, self.number, self._type, self._entry[METHOD], max(self._part, 1)),
            recorded=recorded.whole,
            did=did.whole,
            at=where,
            outline=(recorded.outline, did.outline),
        )


_NO_MORE: Final = plainly("did no more")

_run_part: Final = Rerun.run.__code__
"""Beneath it, no code is of the part."""


def bring_back(crank: Acting, past: Past, numbers: Sequence[int], make: Callable[[], Brings], goal: Brings) -> None:
    """Run fibers again: each is `live` in the goal then, or `diverged`. `make` makes a place for one to run in.

    Raises what reading raises.
    """
    todo = deque(numbers)
    while todo:
        some = [todo.popleft()]
        parts = 0
        while todo and (parts := parts + crank.heap.find("fibers", some[-1])[PARTS]) < PARTS_AT_ONCE:
            some.append(todo.popleft())
        scratches = {number: make() for number in some}
        begun = list(scratches.values())
        reruns = [Rerun(crank, scratch, past, number) for number, scratch in scratches.items()]
        try:
            left = {rerun.number for rerun in _run_together(crank, past, reruns)}
            again: list[Rerun] = []
            for rerun in reruns:
                number = rerun.number
                if rerun.diverged is not None:
                    goal.diverged[number] = rerun.diverged
                    begun.append(make())
                    again.append(Rerun(crank, begun[-1], past, number, traced=True))
                elif number not in left:
                    goal.live[number] = scratches[number].live.pop(number)
            _run_together(crank, past, again)  # where in the code costs a part a fifth more, which others do not pay
            goal.diverged |= {rerun.number: rerun.diverged for rerun in again if rerun.diverged is not None}
        finally:
            past.let_go()
            for scratch in begun:
                goal.gone += scratch.gone
                goal.gone += [fiber.coroutine for fiber in scratch.live.values()]
        todo.extend(sorted(left))


def _run_together(crank: Acting, past: Past, reruns: Sequence[Rerun]) -> list[Rerun]:
    """Run fibers again, all their parts in the order of their moments, on one heap that goes forward once.

    Gives those that were left out: they begin in the middle of a part of another one, and are to be run alone. Raises
    what reading raises.
    """
    known: dict[int, Recorded] = {}
    todo = [(recorded.seq, at, rerun, recorded) for rerun in reruns for recorded, at in rerun.parts(known)]
    todo.sort(key=itemgetter(0, 1))
    left: dict[Rerun, None] = {}
    heap: Heap | None = None
    here: Recorded | None = None
    done, asker = 0, crank.progress.asker
    seed: bytes | None = None
    runs = 0
    with crank.aside(), room(), ExitStack() as over:
        for seq, at, rerun, recorded in todo:
            if rerun.diverged is not None or rerun in left:
                continue
            if heap is None or here is None or seq != here.seq:
                if heap is not None and here is not None:
                    follow(heap, here.kind, here.operations[done:], here.time)
                then = Scratch.of(past.before(seq, heap, 0 if here is None else here.seq))
                if then is not heap:
                    heap = then
                    over.callback(then.forget)
                here, done, seed, runs = recorded, 0, None, 0
                asker = asker_of(recorded.message, heap)
            if at < done:
                left[rerun] = None
                continue
            for operation in recorded.operations[done:at]:
                kind = operation[0]
                APPLY[kind](heap, *operation[1:])
                if kind in _PARTING:
                    runs = _running(operation, runs)
                elif kind == _SEEDED:
                    seed = operation[1]
            done = rerun.run(heap, recorded, at, asker, seed, runs)
            if done > at:
                seed = crank.progress.seed
    return list(left)


def _running(operation: Sequence[Any], runs: int) -> int:
    """The fiber whose part runs after an operation, when `runs` did before it."""
    kind = operation[0]
    if kind == Op.RESUMED:
        return int(operation[1])
    # Its part ends with its next wait, or its end. That of another one was begun in it.
    return 0 if kind in (Op.SUSPENDED, Op.RETURNED) and operation[1] == runs else runs


def _plain(statement: Statement) -> list[Any]:
    fact = getattr(statement, "fact", None)
    if fact is None:
        return list(statement)
    return [statement.at, fact.label, list(fact.fields), dict(fact.keywords)]
