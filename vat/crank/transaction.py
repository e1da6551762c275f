"""What the crank of a vat has done so far, and how it is undone.

A transaction collects what one record will say (`Progress.draft`) while it changes the heap by the same operations, and
the deliveries that are still to come. It is used for one crank after the other: `begin`, then all of it or parts of it
undone by `rollback` and `abandon`, then `end`.

The one rule: whatever a crank changes can be undone to a savepoint, and a savepoint costs a few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final, TypeAlias

from dataspace import values
from dataspace.drafts import Savepoint as DraftSavepoint
from dataspace.records import Kind
from dataspace.values import Value
from vat.crank.deliveries import Parts
from vat.crank.powers import Powers
from vat.crank.progress import NOBODY_WAITS, CrankDraft, Progress
from vat.errors import OutsideCrank, ReadOnly
from vat.heap.heap import COUNTERS, Heap
from vat.heap.messages import Asker
from vat.heap.opcodes import Op
from vat.heap.operations import APPLY
from vat.objects.types import Types

Savepoint: TypeAlias = tuple[int, DraftSavepoint, int, int, int, int, int, int, int, "bytes | None"]
"""How far a crank had come. A plain tuple, since each delivery and each near call makes one."""

NO_CRANK: Final = "an actor or a collection was used when its crank was over"
_CHANGING: Final = (Op.SET, Op.CHANGE)
_OTHER_THREAD: Final = "an actor was changed from another thread than the one that its crank runs in"


class Transaction:
    """The cranks of vat `uid`, one at a time."""

    __slots__ = ("fibers", "heap", "id", "powers", "progress", "types", "uid")

    fibers: Parts

    def __init__(self, heap: Heap, types: Types, uid: bytes, id: str, powers: Powers) -> None:
        self.heap = heap
        self.types = types
        self.uid = uid
        self.id = id
        self.powers = powers
        self.progress = Progress()
        """The crank that runs, or what is left of the last one."""

    # From beginning to end.

    def begin(
        self,
        seq: int,
        previous: bytes,
        asker: Asker,
        *,
        silent: bool = False,
        watched: Mapping[int, Any] = NOBODY_WAITS,
    ) -> CrankDraft:
        """A crank begins, which will make record `seq`. There must be no other."""
        assert self.progress.draft is None
        draft = CrankDraft(self.uid, seq, Kind.CRANK, max(self.powers.clock(), self.heap.time))
        draft.crank = self
        self.progress = Progress(draft, get_ident(), previous, asker, silent, watched)
        return draft

    def end(self) -> None:
        """The crank is over."""
        self.progress.draft = None

    def abandon(self) -> None:
        """The crank has never been."""
        self.heap.abandon()
        self.unwind(0)
        self.progress = Progress()

    def sound(self) -> None:
        """Raise what could not be read, if anything: the crank went by something that is not so."""
        trouble = self.heap.memory.trouble
        if trouble is not None:
            raise trouble

    def unwind(self, since: int) -> None:
        """What fibers did is undone, from that place in `advanced` on."""
        advanced = self.progress.advanced
        self.fibers.undone(advanced[since:])
        del advanced[since:]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Put the crank that runs aside; in the block this is a transaction without one, whatever heap it is given."""
        kept = self.progress, self.heap, self.uid, self.id, self.powers, self.fibers
        try:
            self.progress = Progress()
            yield
        finally:
            self.progress, self.heap, self.uid, self.id, self.powers, self.fibers = kept

    @property
    def record(self) -> CrankDraft:
        """The draft of the crank that runs. Raises `OutsideCrank`."""
        draft = self.progress.draft
        if draft is None:
            raise OutsideCrank(NO_CRANK)
        return draft

    @property
    def time(self) -> int:
        """The time of this crank, in µs since 1970; never before that of an earlier one."""
        return self.record.time

    # Operations.

    def do(self, *operation: Any) -> None:
        """Apply an operation that an actor asked for, and write it down. Raises `ReadOnly` or `OutsideCrank`."""
        progress = self.progress
        draft = progress.draft
        if progress.read_only or draft is None or get_ident() != progress.thread:
            self.changes()
        self.carry_out(operation)

    def note(self, *operation: Any) -> None:
        """Apply an operation that belongs to the running of the crank itself, and write it down."""
        if not self.progress.silent:
            self.carry_out(operation)

    def carry_out(self, operation: Sequence[Any]) -> None:
        """Apply an operation, and write it down as it stands."""
        progress = self.progress
        try:
            APPLY[operation[0]](self.heap, *operation[1:])
            progress.draft.operations.append(operation)  # type: ignore[union-attr]  # a crank runs
        except BaseException as error:
            progress.torn = error
            raise

    def changes(self) -> None:
        """Raise `ReadOnly` or `OutsideCrank` unless something may be changed now."""
        progress = self.progress
        if progress.draft is None:
            raise OutsideCrank(NO_CRANK)
        if get_ident() != progress.thread:
            raise OutsideCrank(_OTHER_THREAD)
        if progress.read_only:
            raise ReadOnly(
                "this method is marked @read, or was called through a read-only ref, and changes something: "
                "take the mark away, or call it through a wider ref"
            )

    def number(self, what: str) -> int:
        """The next number of a counter, for an operation that follows."""
        self.changes()
        return self.heap.count(what)

    def fields(self, actor: int) -> dict[str, Any]:
        """The stored fields of an actor, for reading. Raises `OutsideCrank` or `NoSuchActor`."""
        if self.progress.draft is None:
            raise OutsideCrank(NO_CRANK)
        return self.heap.state(actor).fields

    # Savepoints.

    def savepoint(self) -> Savepoint:
        """A point to `rollback` to."""
        heap, progress = self.heap, self.progress
        return (
            heap.mark(),
            self.record.mark(),
            len(progress.queue),
            len(progress.sent),
            len(progress.wanted),
            len(progress.cancelled),
            len(progress.settled),
            len(heap.views),
            len(progress.advanced),
            progress.seed,
        )

    def changed(self, savepoint: Savepoint, actor: int) -> list[str]:
        """The fields of an actor that were changed after a savepoint."""
        since = self.record.operations[savepoint[1][0] :]
        return list(dict.fromkeys(each[2] for each in since if each[0] in _CHANGING and each[1] == actor))

    def rollback(self, savepoint: Savepoint) -> None:
        """Undo all that came after a savepoint, but for the numbers that were given: they are not given again."""
        heap, progress = self.heap, self.progress
        changes, mark, queued, sent, wanted, cancelled, settled, views, advanced, progress.seed = savepoint
        given = tuple(heap.counters.values())
        heap.rollback(changes)
        self.record.rollback(mark)
        queue = progress.queue
        while len(queue) > queued:
            queue.pop()
        del progress.sent[sent:]
        del progress.wanted[wanted:]
        del progress.cancelled[cancelled:]
        del progress.settled[settled:]
        del heap.views[views:]
        progress.settling.clear()
        if len(progress.advanced) > advanced:
            self.unwind(advanced)
        for what, number in zip(COUNTERS, given, strict=True):
            if number != heap.counters[what]:
                self.note(Op.COUNTED, what, number)

    # What others know.

    def reference(self, value: values.Ref | values.Promise) -> Value:
        """How a ref or promise is kept where the value that is being frozen goes."""
        raise NotImplementedError
