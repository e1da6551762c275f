"""What the crank of a vat has done so far, and how it is undone.

A transaction collects what one record will say (`draft`) while it changes the heap by the same operations, and the
deliveries that are still to come. It is used again for each crank: `begin`, then all of it or parts of it undone by
`rollback` and `abandon`, then `end`.

The one rule: whatever a crank changes can be undone to a savepoint, and a savepoint costs a few numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final, TypeAlias

from dataspace import values
from dataspace.drafts import Draft
from dataspace.drafts import Savepoint as DraftSavepoint
from dataspace.records import Kind
from dataspace.values import NotAValue, Text, Value, freeze, scalar_key
from vat.crank.deliveries import Delivery, Parts, Resume
from vat.crank.powers import Powers
from vat.crank.whole import whole
from vat.errors import OutsideCrank, ReadOnly
from vat.heap.entries import HELD
from vat.heap.heap import COUNTERS, ROOT_ACTOR, Heap
from vat.heap.messages import NOBODY, Asker, Outcome
from vat.heap.opcodes import Op
from vat.heap.operations import APPLY
from vat.heap.refs import Promise, Ref
from vat.objects.collections import plain
from vat.objects.types import Types

HERE, OUTWARD, INWARD, STATED = range(4)
"""Where a value goes that is frozen: it stays, it leaves the vat, it has come to it, it is a fact."""


Savepoint: TypeAlias = tuple[int, DraftSavepoint, int, int, int, int, int, int, int, "bytes | None"]
"""How far a crank had come. A plain tuple, since each delivery and each near call makes one."""


class CrankDraft(Draft):
    """The record of a crank; hands the refs and promises in what it is given to the crank."""

    __slots__ = ("crank",)
    crank: Transaction

    def reference(self, value: values.Ref | values.Promise) -> Value:
        return self.crank.reference(value)


_AS_IT_IS: Final = frozenset({int, bool, float, type(None)})
_SHORT: Final = 64
"""Characters of a string that is surely not kept apart."""

_NO_CRANK: Final = "an actor or a collection was used when its crank was over"
_OTHER_THREAD: Final = "an actor was changed from another thread than the one that its crank runs in"


class Transaction:
    """The cranks of vat `uid`, one at a time. `draft` is None while there is none."""

    __slots__ = (
        "_mode",
        "advanced",
        "answer",
        "asker",
        "cancelled",
        "draft",
        "failure",
        "fibers",
        "heap",
        "id",
        "lent",
        "making",
        "powers",
        "previous",
        "queue",
        "read_only",
        "seed",
        "sent",
        "settled",
        "settling",
        "silent",
        "subscriptions",
        "thread",
        "torn",
        "types",
        "uid",
        "wanted",
        "watched",
    )

    fibers: Parts

    def __init__(self, heap: Heap, types: Types, uid: bytes, id: str, powers: Powers) -> None:
        self.heap = heap
        self.types = types
        self.uid = uid
        self.id = id
        self.powers = powers
        self.draft: CrankDraft | None = None
        self.thread = 0
        """The thread that the crank runs in."""
        self.watched: Mapping[int, Any] = {}
        """The promises that callers outside wait for."""
        self.queue: deque[Delivery | Resume] = deque()
        self.settling: deque[tuple[int, Outcome]] = deque()
        self._mode = HERE
        self.sent: list[tuple[int, bytes, Value]] = []
        """Messages to other vats: number, uid, message (stored)."""
        self.wanted: list[int] = []
        """Numbers of the effects that it wants."""
        self.cancelled: list[int] = []
        """Numbers of the effects that it gives up."""
        self.settled: list[tuple[int, Outcome]] = []
        """The promises that got their outcome."""
        self.lent: list[int] = []
        """Actors that a silent crank hands out the first refs to."""
        self.advanced: list[int] = []
        """The fibers whose coroutines were started or resumed, in order."""
        self._clear()

    def _clear(self) -> None:
        self.asker = NOBODY
        self.previous = b""
        """The hash of the record before this crank's."""
        self.read_only = False
        """Whether what runs now must not change anything."""
        self.silent = False
        """Whether this crank writes no record."""
        # Who took one of these with something in it keeps it.
        if self.sent:
            self.sent = []
        if self.wanted:
            self.wanted = []
        if self.cancelled:
            self.cancelled = []
        if self.settled:
            self.settled = []
        if self.lent:
            self.lent = []
        self.advanced.clear()
        self.making: list[Promise] | None = None
        """The promises that were made since an async method runs."""
        self.answer: Outcome | Promise | None = None
        """What the caller outside gets: an outcome, or the promise that will have it."""
        self.failure: BaseException | None = None
        """The last exception that a delivery was undone for, with its traceback."""
        self.subscriptions = False
        """Whether it may have begun or ended subscriptions."""
        self.seed: bytes | None = None
        self.torn: BaseException | None = None
        """What cut something off in the middle: the delivery fails with it, whatever user code made of it."""

    # From beginning to end.

    def begin(self, seq: int, previous: bytes, asker: Asker, *, silent: bool = False) -> CrankDraft:
        """A crank begins, which will make record `seq`. There must be no other."""
        assert self.draft is None
        self._clear()
        heap = self.heap
        draft = CrankDraft(self.uid, seq, Kind.CRANK, max(self.powers.clock(), heap.time))
        draft.crank = self
        self.draft = draft
        self.thread = get_ident()
        self.previous = previous
        self.asker = asker
        self.silent = self.read_only = silent
        return draft

    def end(self) -> None:
        """The crank is over."""
        self.draft = None

    def abandon(self) -> None:
        """The crank has never been."""
        self.heap.abandon()
        self.unwind(0)
        self.draft = None
        self.queue.clear()
        self.settling.clear()
        self._mode = HERE

    def sound(self) -> None:
        """Raise what could not be read, if anything: the crank went by something that is not so."""
        trouble = self.heap.memory.trouble
        if trouble is not None:
            raise trouble

    def unwind(self, since: int) -> None:
        """What fibers did is undone, from that place in `advanced` on."""
        self.fibers.undone(self.advanced[since:])
        del self.advanced[since:]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Put the crank that runs aside, whole; in the block this is a transaction without a crank."""
        names = [name for base in type(self).__mro__ for name in getattr(base, "__slots__", ())]
        kept = {name: getattr(self, name) for name in names}
        try:
            self.draft = None
            self.queue, self.settling = deque(), deque()
            self.sent, self.wanted, self.cancelled, self.settled, self.lent, self.advanced = [], [], [], [], [], []
            self.watched = {}
            self._mode = HERE
            yield
        finally:
            for name, value in kept.items():
                setattr(self, name, value)

    @property
    def record(self) -> CrankDraft:
        """The draft of the crank that runs. Raises `OutsideCrank`."""
        if self.draft is None:
            raise OutsideCrank(_NO_CRANK)
        return self.draft

    @property
    def time(self) -> int:
        """The time of this crank, in µs since 1970; never before that of an earlier one."""
        return self.record.time

    # Operations.

    def do(self, *operation: Any) -> None:
        """Apply an operation that an actor asked for, and write it down. Raises `ReadOnly` or `OutsideCrank`."""
        draft = self.draft
        if self.read_only or draft is None or get_ident() != self.thread:
            self.changes()
        assert draft is not None
        try:
            APPLY[operation[0]](self.heap, *operation[1:])
            draft.operations.append(operation)
        except BaseException as error:
            self.torn = error
            raise

    def note(self, *operation: Any) -> None:
        """Apply an operation that belongs to the running of the crank itself, and write it down."""
        if not self.silent:
            try:
                APPLY[operation[0]](self.heap, *operation[1:])
                self.record.operations.append(operation)
            except BaseException as error:
                self.torn = error
                raise

    def changes(self) -> None:
        """Raise `ReadOnly` or `OutsideCrank` unless something may be changed now."""
        if self.draft is None:
            raise OutsideCrank(_NO_CRANK)
        if get_ident() != self.thread:
            raise OutsideCrank(_OTHER_THREAD)
        if self.read_only:
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
        if self.draft is None:
            raise OutsideCrank(_NO_CRANK)
        return self.heap.state(actor).fields

    # Values.

    def keep(self, value: Any, path: str, mode: int = HERE) -> Value:
        """The stored form of a value; views and collections in it are copied. Raises `NotAValue`, without a trace."""
        kind = type(value)
        if kind in _AS_IT_IS or (kind is str and len(value) <= _SHORT and value.isascii()):
            return value
        draft = self.record
        if kind is str or kind is Text:  # nothing to undo: it is kept, or refused, as one
            return self._frozen(value, draft, path)
        undo, mark = self.heap.mark(), draft.mark()
        self._mode = mode
        try:
            try:
                return freeze(value, draft, path)
            except NotAValue:
                copied = plain(value)
                if copied is value:
                    raise
                return freeze(copied, draft, path)
        except BaseException as error:
            before, self.torn = self.torn, error
            self.heap.rollback(undo)
            draft.rollback(mark)
            self.torn = before
            raise
        finally:
            self._mode = HERE

    @whole
    def _frozen(self, value: str, draft: CrankDraft, path: str) -> Value:
        return freeze(value, draft, path)

    def key(self, value: Any, path: str) -> Value:
        """The stored form of a key, which is never a cell. Raises `NotAValue` for what is no scalar."""
        if self.draft is None:
            raise OutsideCrank(_NO_CRANK)
        kept = self.reference(value) if isinstance(value, values.Ref) else freeze(value, None, path)
        scalar_key(kept)
        return kept

    def word(self, name: Any, what: str) -> str:
        """A name that goes into the record: of a method, a device, a keyword. Raises `TypeError` unless it is a str."""
        if not isinstance(name, str):
            raise TypeError(f"{what} is named by a str, not by {name!r}")
        return name if type(name) is str and name.isascii() else str(freeze(name, None, what))

    def reference(self, value: values.Ref | values.Promise) -> Value:
        """How a ref or promise is kept where the value that is being frozen goes."""
        mode = self._mode
        if isinstance(value, values.Promise):
            if mode == HERE:
                return self._held(value)
            if mode == OUTWARD:
                return self.carried(value)
            why = "a promise stays in its vat: give what came of it, in a reaction"
            raise NotAValue("", type(value), why)
        session = None if value.session == self.uid else value.session
        if session is None and mode in (OUTWARD, STATED):
            self.hand(value.actor)
            session = self.uid
        return Ref(session, value.actor)

    def hand(self, actor: int) -> None:
        """A ref to an actor leaves the vat: what it refers to stays, for as long as it is not revoked."""
        if actor == ROOT_ACTOR or self.heap.system["handed"].contains(actor, self.heap.page):
            return
        if self.silent:
            self.lent.append(actor)
        else:
            self.note(Op.HANDED, actor)

    def _held(self, promise: values.Promise) -> Promise:
        entry = self.heap.find("promises", promise.id)
        if entry is None:
            raise NotAValue("", type(promise), f"promise {promise.id} is over, and nothing has kept what came of it")
        if not entry[HELD]:
            self.note(Op.HELD, promise.id)
        return Promise(promise.id)

    def carried(self, promise: values.Promise) -> Value:
        """What a promise that leaves the vat is there, in stored form: its value."""
        raise NotImplementedError

    # Savepoints.

    def savepoint(self) -> Savepoint:
        """A point to `rollback` to."""
        heap = self.heap
        return (
            heap.mark(),
            self.record.mark(),
            len(self.queue),
            len(self.sent),
            len(self.wanted),
            len(self.cancelled),
            len(self.settled),
            len(heap.views),
            len(self.advanced),
            self.seed,
        )

    def rollback(self, savepoint: Savepoint) -> None:
        """Undo all that came after a savepoint, but for the numbers that were given: they are not given again."""
        heap, queue = self.heap, self.queue
        changes, mark, queued, sent, wanted, cancelled, settled, views, advanced, self.seed = savepoint
        given = tuple(heap.counters.values())
        heap.rollback(changes)
        self.record.rollback(mark)
        while len(queue) > queued:
            queue.pop()
        del self.sent[sent:]
        del self.wanted[wanted:]
        del self.cancelled[cancelled:]
        del self.settled[settled:]
        del heap.views[views:]
        self.settling.clear()
        if len(self.advanced) > advanced:
            self.unwind(advanced)
        for what, number in zip(COUNTERS, given, strict=True):
            if number != heap.counters[what]:
                self.note(Op.COUNTED, what, number)
