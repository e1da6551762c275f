"""A vat's place in its chain: its head, and the records that the runtime makes itself.

A `Step` is what comes of a message or of one of these records: the record, and what may leave the vat once that is
durable. Heap and head are those after the newest step, durable or not.

The one rule: a record takes effect by being sealed. If that fails, nothing has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import attrs

from dataspace.drafts import Draft
from dataspace.records import Kind, Record, Salts
from dataspace.values import FrozenDict, FrozenList, Value
from snapshots.nodes import PageRef
from snapshots.writing import PageDraft, WholeDraft
from vat.crank.powers import Powers
from vat.errors import Reentered, gone
from vat.failures import failure_of
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.heap.memory import salted
from vat.heap.messages import Asker, Call, Outcome, Reply, said_by
from vat.heap.opcodes import Op
from vat.heap.operations import APPLY, complete, fact_handle
from vat.heap.refs import Ref


@attrs.define(eq=False)
class Step:
    """A record, and what it lets go when it is durable. `record` is None when nothing was recorded.

    Whoever seals the record makes its step whole. Only `replies` are added to, by whoever answers or has to be told
    when it is durable, and before `Commits.add` takes the step.
    """

    record: Record | None
    sent: Sequence[tuple[int, bytes, Value]] = ()
    wanted: Sequence[int] = ()
    cancelled: Sequence[int] = ()
    """Effects that are given up; what comes of them is not waited for."""
    ended: int | None = None
    """The effect whose outcome this brings."""
    replies: list[tuple[Reply, Outcome]] = attrs.field(factory=list)
    acknowledged: tuple[bytes, int] | None = None
    """The message of another vat that is now recorded here: its sender's uid, and its number."""
    subscriptions: bool = False
    """Whether subscriptions began or ended."""
    settle: Callable[[], None] | None = None
    """To be called when it is let go: a snapshot's trees let go of what is written; who asked is refused."""
    born: Record | None = None
    """A fork's first record, by which a session is born: both are one commit."""
    failure: BaseException | None = None
    """What the user's code raised, with its traceback, for the host's log."""
    unheard: Sequence[str] = ()
    """What failed and nobody waits for, in words, for the host's log as well."""


class Chain:
    """The chain of a session. `seq` and `hash` are its head."""

    __slots__ = (
        "acked",
        "bytes_since_snapshot",
        "deleted",
        "hash",
        "heap",
        "id",
        "powers",
        "records_since_snapshot",
        "seq",
        "snapshot_seq",
        "spent",
        "uid",
        "waiters",
    )

    def __init__(self, uid: bytes, id: str, heap: Heap, seq: int, hash: bytes, powers: Powers) -> None:
        self.uid = uid
        self.id = id
        self.heap = heap
        self.seq = seq
        self.hash = hash
        self.powers = powers
        self.waiters: dict[int, list[Reply]] = {}
        """Callers outside of all vats who wait for a promise."""
        self.acked: set[int] = set()
        """Messages in the outbox that their receivers have recorded."""
        self.snapshot_seq = 0
        self.records_since_snapshot = 0
        self.bytes_since_snapshot = 0
        self.deleted = False
        self.spent = False
        """Whether its next snapshots would refer to pages before its base: it is to be loaded again."""

    @property
    def busy(self) -> bool:
        """Whether a crank is running now."""
        raise NotImplementedError

    def snapshot(self, said: Mapping[str, Any] | None = None) -> tuple[Step, dict[str, Any]]:
        """Write the pages that changed since the last snapshot; and the small value that names the result.

        Costs what changed. The trees let go of what was written once the step's `settle` is called.
        """
        pages = _PageWriter(self.seq + 1, self.powers.entropy)
        written = PageDraft(pages)
        heap = _written(self.heap, pages, written)
        step = self._paged(Kind.SNAPSHOT, "snapshot", heap, said)
        step.settle = written.settle
        named = {"session": self.id, "seq": self.seq, "root": heap.root.digest.hex(), "hash": self.hash.hex()}
        return step, named

    def base(self, heap: HeapPages) -> Step:
        """A snapshot of pages that lead to no other record's, so that nothing before it is needed to restore from it.

        `heap` is the `whole` of what the records up to the newest one give, for the next seq. The chain is
        `spent` then.
        """
        assert heap.seq == self.seq + 1, "its pages are named for another record"
        self.spent = True
        return self._paged(Kind.BASE, "base", heap, None)

    def _paged(self, kind: Kind, label: str, heap: HeapPages, said: Mapping[str, Any] | None) -> Step:
        """The record of a snapshot."""
        root = heap.root
        draft = self._draft(kind)
        draft.pages = heap.data
        draft.message = FrozenDict({"root": [root.number, root.digest], "seq": self.seq, **(said or {})})
        self._state(draft, label, {"root": root.digest.hex(), "seq": heap.seq})
        step = Step(self._append(draft))
        self.snapshot_seq = heap.seq
        self.records_since_snapshot = 0
        self.bytes_since_snapshot = 0
        return step

    def forked(self, call: Call, born: Record, into: str, at: int) -> Step:
        """The parent's record of a fork: `(fork s #:into c #:at seq)`, and the child's first one, `born`.

        Answers the call's request id, if it has one.
        """
        child = born.uid
        draft = self._draft(Kind.FORK)
        draft.message = FrozenDict({"child": child})  # whose first record says who asked
        self._state(draft, "fork", {"into": into, "at": at})
        key = request_key(call.asker)
        if key is not None:
            self._operate(draft, Op.ANSWERED, key, call.digest, True, Ref(child, ROOT_ACTOR))
        return Step(self._append(draft), born=born)

    def asked_to_restore(self, seq: int, asker: Asker) -> Step:
        """Somebody asked for this session to be restored, from the snapshot at `seq` (0: from the beginning)."""
        draft = self._draft(Kind.RESTORE)
        draft.message = FrozenDict({"from": seq, "by": asker.by, "via": asker.via})
        self._state(draft, "restore", {"from": seq})
        return Step(self._append(draft))

    def started(self, effect: int, by: Asker | None = None) -> Step | None:
        """An effect is about to be carried out; None when it is not wanted any more.

        `by`: who has had it run again, and their request, which this answers.
        """
        if self.heap.find("effects", effect) is None:
            return None
        draft = self._draft(Kind.STARTED)
        draft.message = FrozenDict({"effect": effect, **said_by(by)})
        self._operate(draft, Op.STARTED, effect, self.seq + 1)
        if by is not None and (key := request_key(by)) is not None:
            self._operate(draft, Op.ANSWERED, key, by.sent, True, None)
        return Step(self._append(draft))

    def forget(self, cursors: Mapping[int, str] | None = None) -> Step | None:
        """Take what its receivers have out of the outbox, and note how far subscriptions have read.

        None when there is nothing of either.
        """
        if not self.acked and not cursors:
            return None
        draft = self._draft(Kind.ACKED)
        if self.acked:
            self._operate(draft, Op.ACKED, FrozenList(sorted(self.acked)))
        for number, cursor in sorted((cursors or {}).items()):
            self._operate(draft, Op.OBSERVED, number, cursor)
        record = self._append(draft)
        self.acked.clear()
        return Step(record)

    def delete(self, asker: Asker, born: Mapping[str, Any] | None = None) -> Step:
        """The tombstone: presence is retracted, and callers learn of it.

        `born` is what the first record said of the session, so that the tombstone tells when nothing else is left.
        """
        draft = self._draft(Kind.DELETE)
        draft.message = FrozenDict({"id": self.id, "by": asker.by, "via": asker.via, **(born or {})})
        heap = self.heap
        for key, presence in heap.entries("facts"):
            handle = fact_handle(key)
            # A fork has the presence of its parent in its past; that is the parent's to retract.
            if presence and not heap.forking and handle.seq >= heap.born:
                draft.retracted(draft.operation(Op.RETRACTED, *handle), handle)
        self._state(draft, "deleted", {})
        record = self._append(draft, pending=0)
        self.deleted = True
        over = Outcome(False, failure_of(gone(self.id)))
        told = [(reply, over) for replies in self.waiters.values() for reply in replies]
        self.waiters.clear()
        return Step(record, replies=told)

    # Sealing.

    def _draft(self, kind: Kind) -> Draft:
        if self.busy:
            raise Reentered(f"{self.id!r} is in the middle of a crank, and makes no other record before its end")
        return Draft(self.uid, self.seq + 1, kind, max(self.powers.clock(), self.heap.time))

    def _state(self, draft: Draft, label: str, keywords: Mapping[str, Value]) -> None:
        """State a fact of this session: `(label s #:keyword …)`."""
        draft.stated(draft.operation(Op.STATED, 0), label, [self.id], FrozenDict(keywords))

    def _operate(self, draft: Draft, *operation: Any) -> None:
        APPLY[operation[0]](self.heap, *operation[1:])
        draft.operation(*operation)

    def _append(self, draft: Draft, pending: int | None = None) -> Record:
        heap = self.heap
        draft.pending = heap.pending if pending is None else pending
        try:
            record = draft.seal(self.hash, self.powers.entropy)
        except BaseException:
            heap.abandon()
            raise
        complete(heap, draft.kind, draft.time)
        self.seq, self.hash = record.seq, record.hash
        self.records_since_snapshot += 1
        self.bytes_since_snapshot += len(record.deeds) + sum(map(len, record.cells))
        return record


class HeapPages(NamedTuple):
    """A heap as pages of the record at `seq`; `root` is the last of them."""

    seq: int
    root: PageRef
    data: list[bytes]


def whole(heap: Heap, seq: int, salts: Salts) -> HeapPages:
    """All of a heap that nobody changes meanwhile, as pages of the record at a seq that lead to no other record's.

    Costs all of the heap, some 100 µs for each page; whatever thread does it, no vat is concerned.
    """
    pages = _PageWriter(seq, salts)
    return _written(heap, pages, WholeDraft(pages, heap.page))


def _written(heap: Heap, pages: _PageWriter, draft: PageDraft) -> HeapPages:
    trees = {name: draft.write(tree) for name, tree in heap.trees().items()}
    return HeapPages(pages.seq, pages.put(heap.root(trees)), pages.data)


class _PageWriter:
    """Numbers the pages of a snapshot record."""

    def __init__(self, seq: int, salts: Salts) -> None:
        self.data: list[bytes] = []
        self.seq = seq
        self._salts = salts

    def put(self, data: bytes) -> PageRef:
        page = salted(self._salts, data)
        self.data.append(page)
        return PageRef(self.seq, len(self.data) - 1, sha256(page).digest())


def request_key(asker: Asker) -> str | None:
    """Under which name a vat keeps the request, if it has an id."""
    return None if asker.request is None else f"{asker.by}\0{asker.request}"


def known_request(heap: Heap, asker: Asker) -> Any:
    """What a heap knows of a request: its digest, its promise, whether it succeeded, and with what. None for a new one.

    What the same person has asked with this id at another door counts, unless they have used it at this one as well.
    """
    key = request_key(asker)
    known = None if key is None else heap.find("requests", key)
    if known is None and key is not None and asker.other is not None:
        return heap.find("requests", request_key(asker._replace(by=asker.other)))
    return known
