"""Fibers: `async def` methods that wait, each part between two waits a delivery of its own.

    start ──> suspended ──> a promise settles ──> resume ──> suspended … ──> returned

What there is of a fiber in the heap (`vat.heap.fibers`) is enough to go on after a restart. The coroutine that a fiber
has in memory is a convenience: it is dropped whenever what it did is undone or its vat leaves memory, and `rerun` makes
another one when it is needed again.

A coroutine that is dropped is closed when no crank runs, so that whatever its `finally` does has no effect.

The one rule: a coroutine in memory is exactly as far as the heap says. Whoever advances one notes it in `advanced`, and
what is undone takes it away.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextvars import copy_context
from typing import Any, Final
from weakref import ref

from dataspace.values import FrozenList, Text, Value
from snapshots.tree import Tree
from vat.crank.acting import Acting
from vat.crank.awaiting import drive, promises_of
from vat.crank.closing import close
from vat.crank.deliveries import Resume
from vat.crank.fiber import Fiber
from vat.crank.holding import in_locals
from vat.crank.rerun import bring_back
from vat.errors import FiberDiverged, Forked
from vat.failures import exception_of
from vat.heap.entries import HELD, KEPT, PAYLOAD, STATE
from vat.heap.fibers import ACTOR, ALL, EVERY, FIRST, METHOD, OPERATION, PLAIN, RESULT, SEQ, WAITING, over, waiting_for
from vat.heap.fibers import outcomes as outcomes_of
from vat.heap.indexes import owned_by
from vat.heap.messages import Outcome
from vat.heap.opcodes import Op, To
from vat.heap.past import Past
from vat.heap.refs import Promise, running
from vat.objects.types import Method
from vat.objects.waiting import Wait

_SUSPENDED: Final = Op.SUSPENDED
_RESUMED: Final = Op.RESUMED


class Fibers:
    """The fibers of a crank."""

    def __init__(self, crank: Acting, past: Past | None = None) -> None:
        self._crank = crank
        self.past = past
        """Where the records of earlier parts are."""
        self.live: dict[int, Fiber] = {}
        """The coroutines in memory, by the fiber's number."""
        self.gone: list[Coroutine[Any, Any, Any]] = []
        """Coroutines to be closed when the crank is over."""
        self.runs = 0
        """The fiber whose part runs now; its entry in the heap stands for a wait that is over. 0 for none, or a new
        one."""
        self.diverged: dict[int, FiberDiverged] = {}
        """Fibers that were run again beside others, and cannot come: they break when it is their turn."""
        self._missing: dict[int, int] = {}
        """By fiber, the place of a promise that had no outcome when somebody looked: where to look first."""

    # Parts.

    def start(self, found: Method, actor: int, coroutine: Coroutine[Any, Any, Any]) -> Outcome | Promise:
        """Run the first part of an async method: gives what it returned, or the promise of a fiber that waits."""
        crank = self._crank
        progress = crank.progress
        outer, progress.making = progress.making, []
        fiber = Fiber(coroutine, found)
        try:
            try:
                fiber.wait = drive(crank, fiber, 0, None)
            except StopIteration as stop:
                if outer is not None:
                    outer += progress.making  # what it gives may be one of them: it is its caller's then
                return crank.returned(found, stop.value)
            made, progress.making = progress.making, outer
            number = crank.number("fiber")
            result = crank.make("fiber", number)
            version = crank.heap.state(actor).version
            self._suspend(number, fiber, made, actor, found.name, version, result.id)
        except BaseException:
            self.gone.append(coroutine)
            raise
        finally:
            progress.making = outer
        return result

    def resume(self, item: Resume) -> None:
        """Run the next part of a fiber, if it still waits there and what it waits for has come."""
        crank = self._crank
        heap = crank.heap
        number = item.fiber
        entry = heap.find("fibers", number)
        if entry is None or entry[SEQ] != item.seq or entry[OPERATION] != item.operation:
            return
        outcomes = outcomes_of(heap, entry[WAITING])
        if item.failure is None and not over(entry[WAITING][0], outcomes):
            return
        diverged = None
        fiber = self.live.get(number)
        if fiber is None:
            try:
                fiber = self.live[number] = self._again(number)
            except FiberDiverged as error:
                diverged = error
        result, progress = entry[RESULT], crank.progress
        progress.new_moment()
        progress.advanced.append(number)
        told = () if item.failure is None else (item.failure,)
        crank.note(_RESUMED, number, item.seq, item.operation, *told)
        savepoint = crank.savepoint()
        progress.at = (entry[ACTOR], entry[METHOD])
        try:
            if fiber is None:
                assert diverged is not None
                raise diverged
            outcome = self.advance(number, fiber, result, outcomes, item.failure)
            if outcome is None:
                return
            let_go = owned_by(heap, number)
        except BaseException as error:  # noqa: BLE001  # as in any delivery
            outcome = crank.failed_at(savepoint, error, entry[ACTOR])
            let_go = owned_by(heap, number)
        self._missing.pop(number, None)
        crank.note(Op.RETURNED, number, FrozenList(let_go))
        if isinstance(outcome, Outcome) and not outcome.succeeded:
            if diverged is not None or self._from_outside(outcome, item.failure):
                crank.forsake(entry[ACTOR], entry[WAITING][1:], let_go, outcome)
            self._tell(number, entry, outcome, item.failure, lost=diverged)
        crank.resolve(outcome, (To.FOLLOW, result))

    def advance(
        self, number: int, fiber: Fiber, result: int, outcomes: Sequence[Sequence[Any] | None], failure: Value
    ) -> Outcome | Promise | None:
        """Run a part up to the next wait, and give None, or to the end, and give what the method returned."""
        crank = self._crank
        progress = crank.progress
        self.live.pop(number, None)
        before, progress.making, self.runs = self.runs, [], number
        try:
            # By number, and weakly: only the fiber's own locals are to keep a promise.
            fiber.awaited = {promise.id: ref(promise) for promise in promises_of(fiber.wait)}
            if fiber.kept:
                for promise, entry in zip([promise.id for promise in promises_of(fiber.wait)], outcomes, strict=True):
                    if entry is not None:
                        fiber.kept.pop(promise, None)
            fiber.wait = None
            try:
                if failure is None:
                    fiber.wait = drive(crank, fiber, result, [self._read(entry) for entry in outcomes])
                else:
                    fiber.wait = drive(crank, fiber, result, None, exception_of(crank.heap.read(failure)))
            except StopIteration as stop:
                came: Outcome | Promise | None = crank.returned(fiber.found, stop.value)
            else:
                self._suspend(number, fiber, progress.making)
                came = None
            if progress.torn is not None:
                raise progress.torn
            return came
        except BaseException:
            self.gone.append(fiber.coroutine)
            raise
        finally:
            progress.making, self.runs = None, before

    def _read(self, entry: Sequence[Any] | None) -> tuple[bool, Any] | None:
        """An outcome as it is sent to who waits for it."""
        if entry is None:
            return None
        value = self._crank.heap.read(entry[PAYLOAD])
        return (True, value) if entry[STATE] == KEPT else (False, exception_of(value))

    def _suspend(self, number: int, fiber: Fiber, made: list[Promise], *new: Any) -> None:
        """A part ends with a wait. `made` are the promises that it has made; what follows is given for a new fiber."""
        crank = self._crank
        let_go = fiber.forget()
        keep = self._fresh(fiber, made)
        fiber.kept.update(keep)
        mode = fiber.wait.mode if isinstance(fiber.wait, Wait) else ALL
        waiting = FrozenList([mode, *[promise.id for promise in promises_of(fiber.wait)]])
        moment = crank.record.seq, crank.progress.moment
        crank.note(_SUSPENDED, number, *moment, waiting, FrozenList(keep), FrozenList(let_go), *new)
        if new:
            crank.progress.advanced.append(number)
            self._missing.pop(number, None)
        self.live[number] = fiber
        if over(mode, outcomes_of(crank.heap, waiting)):  # it goes on in this crank
            crank.progress.queue.append(Resume(number, *moment, fiber.found.name))

    def _fresh(self, fiber: Fiber, made: list[Promise]) -> dict[int, ref[Promise]]:
        """What is to be kept for a fiber from now on: what a local has of `made` and of what was awaited, and several
        that are waited for.

        What was awaited and is held by the heap may have been read there: then it is in memory for as long as the heap
        has it so, whatever locals have, and after a restart it is not. It stays in any case, until a collection, which
        looks into the locals itself.

        Empties `made`, since who is in no list but that has gone.
        """
        find, wait = self._crank.heap.find, fiber.wait
        alone = None if isinstance(wait, Wait) else wait.id  # its outcome is taken in the crank in which it comes
        there = {promise.id: ref(promise) for promise in made}
        made.clear()
        awaited, fiber.awaited = fiber.awaited, {}
        keep: dict[int, ref[Promise]] = {}
        for promise, its in (awaited | there).items():
            if its() is None or promise == alone or promise in fiber.kept:
                continue
            entry = find("promises", promise)
            if entry is not None and (promise in there or not entry[HELD]):
                keep[promise] = its
        if alone is not None:
            return keep
        for promise in wait.promises:
            if promise.id not in fiber.kept and promise.id not in keep and not find("promises", promise.id)[HELD]:
                keep[promise.id] = ref(promise)
        return keep

    # What wakes them.

    def wake(self, number: int, outcome: Outcome) -> None:
        """Something that a fiber waits for has an outcome: its next part is to come, if that was all."""
        entry = self._crank.heap.find("fibers", number)
        mode, *waits = entry[WAITING]
        if mode in PLAIN:
            limit = waits.pop()
            mode = FIRST if self._crank.heap.find("promises", limit)[STATE] >= KEPT else PLAIN[mode]
        if not (mode == FIRST or (mode == EVERY and not outcome.succeeded)) and self._lacks(number, waits):
            return
        self._crank.progress.queue.append(Resume(number, entry[SEQ], entry[OPERATION], entry[METHOD]))

    def _lacks(self, number: int, waits: Sequence[int]) -> bool:
        """Whether any of these promises has no outcome. All looks for one wait together cost as many as there are."""
        count = len(waits)
        if count == 1:
            return False
        find = self._crank.heap.find
        first = self._missing.get(number, 0)
        for step in range(count):
            at = (first + step) % count
            if find("promises", waits[at])[STATE] < KEPT:
                self._missing[number] = at
                return True
        return False

    def throw(self, number: int, failure: Outcome) -> Sequence[int] | None:
        """Have a failure raised where a fiber waits. Gives what it waits for, or None when it does not wait."""
        crank = self._crank
        entry = crank.heap.find("fibers", number)
        if entry is None or number == self.runs:
            return None
        crank.progress.queue.append(Resume(number, entry[SEQ], entry[OPERATION], entry[METHOD], failure.payload))
        waits: Sequence[int] = entry[WAITING][1:]
        return waits

    def give_up(self, item: Resume, outcome: Outcome) -> None:
        """A fiber does not go on: its result is settled with that."""
        entry = self._crank.heap.find("fibers", item.fiber)
        if entry is not None and entry[SEQ] == item.seq and entry[OPERATION] == item.operation:
            self.end(item.fiber, outcome)

    def end(self, number: int, outcome: Outcome, lost: FiberDiverged | None = None) -> None:
        """A fiber is over without having come to its end; `lost`: why it cannot come back."""
        crank = self._crank
        entry = crank.heap.find("fibers", number)
        self.undone([number])
        held = owned_by(crank.heap, number)
        crank.note(Op.RETURNED, number, FrozenList(held))
        crank.forsake(entry[ACTOR], entry[WAITING][1:], held, outcome)
        self._tell(number, entry, outcome, lost=lost)
        crank.settle(entry[RESULT], outcome)

    def _from_outside(self, outcome: Outcome, thrown: Value) -> bool:
        """Whether a fiber has failed with what was raised in it from outside: it was given up, or is a fork's."""
        read = self._crank.heap.read
        failed = read(outcome.payload)["error"]
        return bool(failed == Forked.__name__ or (thrown is not None and failed == read(thrown)["error"]))

    def _tell(
        self, number: int, entry: Sequence[Any], outcome: Outcome, thrown: Value = None, *, lost: FiberDiverged | None
    ) -> None:
        """A fiber has failed: if nobody waits for it, or it is `lost`, a fact says so. One that was told to give up has
        just done so."""
        crank = self._crank
        if lost is None:
            if crank.heard(entry[RESULT]):
                return
            read = crank.heap.read
            if thrown is not None and read(thrown)["error"] == read(outcome.payload)["error"]:
                return
        actor, method = entry[ACTOR], entry[METHOD]
        error = crank.unheard(actor, method, outcome, lost=lost)
        told = {**error, "message": Text(error["message"])}  # it may say what a person has said, and can be erased
        said = {"type": crank.heap.state(actor).type, "actor": actor, "method": method, "error": told}
        crank.state_fact(0, "fiber-failed", [number, crank.id], said)

    # Before it counts that one can go on.

    def look_after(self, promise: int) -> list[FiberDiverged]:
        """Bring those back that wait for a promise, through whatever comes of it. Gives why some cannot, and are over.

        Looks for nothing where a fiber itself asks: that is run again without its others. Raises what reading raises.
        """
        crank = self._crank
        if crank.progress.making is not None:
            return []
        waiting = waiting_for(crank.heap, promise)
        away = [number for number in waiting if number not in self.live and number not in self.diverged]
        if away:
            try:
                self._bring(away)
            except BaseException as error:
                crank.progress.torn = error  # whatever user code makes of it: the delivery cannot stand
                raise
        lost = {number: self.diverged.pop(number) for number in waiting if number in self.diverged}
        for number, why in lost.items():
            self.end(number, crank.failed(why), why)
        return list(lost.values())

    # Coroutines that go.

    def _again(self, number: int) -> Fiber:
        """The fiber once more, by running what it did again. Raises `FiberDiverged`, or what reading raises.

        Brings those along whose turn comes next, since what lies between their parts is read once for all of them.
        """
        if number not in self.diverged:
            self._bring(self._next(number))
        error = self.diverged.pop(number, None)
        if error is not None:
            raise error
        return self.live[number]

    def _next(self, number: int) -> list[int]:
        """A fiber, and those that are to go on after it and are not in memory."""
        find = self._crank.heap.find
        found = {number: None}
        for item in self._crank.progress.queue:
            if type(item) is not Resume or item.fiber in self.live or item.fiber in self.diverged:
                continue
            if find("fibers", item.fiber) is not None:
                found[item.fiber] = None
        return list(found)

    def _bring(self, numbers: Sequence[int]) -> None:
        """Run fibers again that are not in memory: each is `live` then, or `diverged`. Raises what reading raises."""
        assert self.past is not None, "a vat whose fibers are to go on after a restart must be given its past"
        crank = self._crank
        bring_back(crank, self.past, numbers, lambda: Fibers(crank), self)

    def in_locals(self) -> tuple[set[int], set[int], list[Tree]]:
        """The actors, promises and trees in the locals of all fibers. Runs those again that are not in memory."""
        self.bring()  # what has diverged holds nothing any more, and breaks when it is to go on
        return in_locals([fiber.coroutine for fiber in self.live.values()])

    def bring(self) -> list[FiberDiverged]:
        """Run all fibers again that are not in memory. Gives why some cannot come. There must be no crank."""
        crank = self._crank
        diverged: list[FiberDiverged] = []
        if not crank.heap.system["fibers"].count:
            return diverged
        before, running.crank = running.crank, crank  # type: ignore[assignment]  # it is a whole one
        try:
            there = [number for number, _ in crank.heap.entries("fibers") if number not in self.live]
            if there:
                self._bring(there)
            diverged = [self.diverged.pop(number) for number in there if number in self.diverged]
        finally:
            running.crank = before
            self.bury()
        return diverged

    def undone(self, numbers: Sequence[int]) -> None:
        """What these fibers did is undone."""
        for number in numbers:
            fiber = self.live.pop(number, None)
            if fiber is not None:
                self.gone.append(fiber.coroutine)

    def close(self) -> None:
        """The vat leaves memory."""
        self.undone(list(self.live))
        self._missing.clear()
        self.diverged.clear()
        self.bury()

    def bury(self) -> None:
        """Close what is gone. There must be no crank."""
        while self.gone:
            copy_context().run(close, self.gone.pop())
