"""A vat: one session's heap, its place in its chain, and what it does with one message at a time.

`take` runs one message as a crank and gives a `Step`: the record, and what may leave the vat once that record is
durable. `snapshot`, `started`, `forget` and `delete` make the runtime's own records. The vat may go on to the next
message at once: heap and head are those after the newest step, durable or not.

The one rule: no I/O but loading its own pages, no clock, no waiting. Powers are passed in, steps are given out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import attrs

from dataspace.drafts import Draft, Handle
from dataspace.errors import KeeveError
from dataspace.records import ZERO_HASH, Kind, Record, Salts
from dataspace.values import FrozenDict, FrozenList, Value, digest_of
from snapshots.nodes import PageRef
from snapshots.trees import Draft as Pages
from vat.crank import Crank, Delivery, To
from vat.errors import Deleted, Forked, exception_of, failure_of
from vat.heap import ROOT_ACTOR, Heap
from vat.memory import salted
from vat.messages import Asker, Call, Detach, Ended, Message, Observed, Outcome, Reply, Settled
from vat.operations import APPLY, PENDING, Op
from vat.refs import Promise, Ref
from vat.types import Method, Types, type_of


class RequestConflict(KeeveError):
    """A request id came again with other content; the first one's answer stands."""

    usage = True

    def __init__(self, request: str, session: str) -> None:
        super().__init__(
            f"request {request!r} to session {session!r} was already made with other content: "
            "a retry must repeat what was sent; use a new request id for something new"
        )


class Powers:
    """What a vat cannot make itself: time (µs since 1970), randomness, and where the log ends now, as a cursor."""

    __slots__ = ("clock", "cursor", "entropy", "log_id")

    def __init__(self, log_id: bytes, clock: Callable[[], int], entropy: Salts, cursor: Callable[[], str]) -> None:
        self.log_id = log_id
        self.clock = clock
        self.entropy = entropy
        self.cursor = cursor


@attrs.define(eq=False)
class Step:
    """A record, and what it lets go when it is durable. `record` is None when nothing was recorded."""

    record: Record | None
    sent: Sequence[tuple[int, bytes, Value]] = ()
    wanted: Sequence[int] = ()
    cancelled: Sequence[int] = ()
    """Effects that are given up; what comes of them is not waited for."""
    replies: list[tuple[Reply, Outcome]] = attrs.field(factory=list)
    acknowledged: tuple[bytes, int] | None = None
    """The message of another vat that is now recorded here: its sender's uid, and its number."""
    subscriptions: bool = False
    """Whether subscriptions began or ended."""
    settle: Callable[[], None] | None = None
    """To be called when the record is durable: a snapshot's trees let go of what is written."""
    also: tuple[Any, Step] | None = None
    """A fork's first step, with its resident: both records are one commit."""
    failure: BaseException | None = None
    """What the user's code raised, with its traceback, for the host's log."""


class Vat:
    """The vat of a session. `seq` and `hash` are its head."""

    __slots__ = (
        "acked",
        "bytes_since_snapshot",
        "cranks_since_snapshot",
        "deleted",
        "hash",
        "heap",
        "id",
        "powers",
        "seq",
        "snapshot_seq",
        "types",
        "uid",
        "waiters",
    )

    def __init__(self, uid: bytes, id: str, heap: Heap, seq: int, hash: bytes, types: Types, powers: Powers) -> None:
        self.uid = uid
        self.id = id
        self.heap = heap
        self.seq = seq
        self.hash = hash
        self.types = types
        self.powers = powers
        self.waiters: dict[int, list[Reply]] = {}
        """Callers outside of all vats who wait for a promise."""
        self.acked: set[int] = set()
        """Messages in the outbox that their receivers have recorded."""
        self.snapshot_seq = 0
        self.cranks_since_snapshot = 0
        self.bytes_since_snapshot = 0
        self.deleted = False

    def take(self, message: Message) -> Step:
        """Run one message. Raises `RequestConflict`, `NoSuchMethod` and the like to a caller outside, without a trace.

        Everything else that goes wrong is in the step, as a failure.
        """
        if isinstance(message, Call):
            if message.sender is None:
                return self._called(message)
            return self._called_from(message, message.sender)
        if isinstance(message, Settled):
            return self._settled(message)
        if isinstance(message, Ended):
            return self._ended(message)
        if isinstance(message, Observed):
            return self._observed(message)
        return self._detached(message)

    # Messages.

    def _called(self, call: Call) -> Step:
        key = None if call.asker.request is None else f"{call.asker.by}\0{call.asker.request}"
        if key is not None:
            known = self.heap.find("requests", key)
            if known is not None:
                return self._again(call, known)
        found, _ = self._crank(call.asker, read_only=True).find(call.to, call.method)
        reads = isinstance(found, str) or found.read
        crank = self._crank(call.asker, read_only=reads)
        args, keywords = crank.arguments(found, call.args, call.keywords, crank.keep)
        delivery = Delivery(call.to, call.method, args, keywords, (To.OUTSIDE,), stated=False)
        if reads:
            crank.run(delivery)
            step = Step(None, failure=crank.failure)
            if call.reply is not None and isinstance(crank.answer, Outcome):
                step.replies.append((call.reply, self._outside(crank.answer)))
            return step
        crank.draft.message = self._said(call, args, keywords)
        crank.run(delivery)
        answer = crank.answer
        if key is not None:
            if isinstance(answer, Promise):
                crank.do(Op.ASKED, key, call.digest, answer.id)
                crank.do(Op.REACTS, answer.id, FrozenList([To.ANSWER, key, call.digest]))
            elif answer is not None:
                crank.do(Op.ANSWERED, key, call.digest, answer.succeeded, answer.payload)
        if isinstance(answer, Promise):
            if call.reply is not None:
                self.waiters.setdefault(answer.id, []).append(call.reply)
        else:
            assert answer is not None
            self._hand(crank, answer)
        step = self._seal(crank)
        if call.reply is not None and isinstance(answer, Outcome):
            step.replies.append((call.reply, self._outside(answer)))
        return step

    def _again(self, call: Call, known: Sequence[Any]) -> Step:
        digest, promise, succeeded, payload = known
        assert call.asker.request is not None
        if digest != call.digest:
            raise RequestConflict(call.asker.request, self.id)
        step = Step(None)
        if call.reply is not None:
            if promise is None:
                step.replies.append((call.reply, self._outside(Outcome(succeeded, payload))))
            else:
                self.waiters.setdefault(promise, []).append(call.reply)
        return step

    def _said(self, call: Call, args: Sequence[Value], keywords: Mapping[str, Value]) -> FrozenDict:
        said: dict[str, Any] = {"to": call.to, "method": call.method, "args": args}
        if keywords:
            said["keywords"] = keywords
        if call.sender is not None:
            said["from"], said["number"], said["promise"] = call.sender
        else:
            said["by"], said["via"] = call.asker.by, call.asker.via
            if call.asker.request is not None:
                said["request"] = call.asker.request
        return FrozenDict(said)

    def _called_from(self, call: Call, sender: tuple[bytes, int, int]) -> Step:
        uid, number, promise = sender
        if self.has(uid, number):
            return Step(None, acknowledged=(uid, number))
        crank = self._crank(call.asker)
        args, keywords = self._arguments_from(crank, call)
        crank.draft.message = self._said(call, args, keywords)
        crank.do(Op.RECEIVED, uid, number)
        crank.run(Delivery(call.to, call.method, args, keywords, (To.REPLY, uid, promise), stated=False))
        step = self._seal(crank)
        step.acknowledged = (uid, number)
        return step

    def answer(self, call: Call, outcome: Outcome) -> Step:
        """Record another vat's call that was carried out beside the actors, and its answer."""
        assert call.sender is not None
        uid, number, promise = call.sender
        crank = self._crank(call.asker)
        args, keywords = self._arguments_from(crank, call)
        crank.draft.message = self._said(call, args, keywords)
        crank.do(Op.RECEIVED, uid, number)
        crank.reply(uid, promise, Outcome(outcome.succeeded, crank.keep(outcome.payload, "the answer")))
        step = self._seal(crank)
        step.acknowledged = (uid, number)
        return step

    def _arguments_from(self, crank: Crank, call: Call) -> tuple[list[Value], dict[str, Value]]:
        found: Method | str | None = None
        try:
            found = crank.find(call.to, call.method)[0]
        except Exception:  # noqa: BLE001  # the delivery itself will say what is wrong
            found = None
        return crank.arguments(found, call.args, call.keywords, crank.keep)

    def has(self, uid: bytes, number: int) -> bool:
        """Whether the message of that number from vat `uid` is recorded here."""
        last = self.heap.find("senders", uid)
        return last is not None and number <= last

    def _settled(self, message: Settled) -> Step:
        uid, number = message.uid, message.number
        if number is not None and self.has(uid, number):
            return Step(None, acknowledged=(uid, number))
        crank = self._crank(Asker("vat", f"vat:{uid.hex()}"))
        payload = crank.keep(message.outcome.payload)
        said = {"from": uid, "number": number, "settle": message.promise, "succeeded": message.outcome.succeeded}
        crank.draft.message = FrozenDict({**said, "payload": payload})
        if number is not None:
            crank.do(Op.RECEIVED, uid, number)
        crank.settle_and_run(message.promise, Outcome(message.outcome.succeeded, payload))
        step = self._seal(crank)
        step.acknowledged = None if number is None else (uid, number)
        return step

    def _ended(self, message: Ended) -> Step:
        entry = self.heap.find("effects", message.effect)
        if entry is None:  # it was settled before, or belongs to a parent
            return Step(None)
        crank = self._crank(Asker("device", f"device:{entry[1]}"))
        payload = crank.keep(crank.marked(entry[5], message.outcome), f"the outcome of {entry[1]}.{entry[2]}")
        said = {"effect": message.effect, "succeeded": message.outcome.succeeded, "payload": payload}
        crank.draft.message = FrozenDict(said)
        crank.do(Op.ENDED, message.effect)
        crank.settle_and_run(entry[5], Outcome(message.outcome.succeeded, payload))
        return self._seal(crank)

    def _observed(self, message: Observed) -> Step:
        entry = self.heap.find("subscriptions", message.subscription)
        if entry is None:
            return Step(None)
        _, actor, method, _ = entry
        crank = self._crank(Asker("dataspace", "observe"))
        event = crank.keep(message.event)
        crank.draft.message = FrozenDict({"subscription": message.subscription, "event": event})
        crank.do(Op.OBSERVED, message.subscription, message.cursor)
        crank.run(Delivery(actor, method, [event], {}, (To.OUTSIDE,), stated=False))
        return self._seal(crank)

    def _detached(self, message: Detach) -> Step:
        """The first crank of a fork: whatever waits for the outside breaks with `Forked`."""
        heap = self.heap
        if not heap.forking:
            return Step(None)
        crank = self._crank(Asker("runtime", "fork"))
        crank.draft.message = FrozenDict({"detach": True})
        waiting = [
            promise
            for promise, entry in heap.system["promises"].items(loader=heap.memory.page)
            if entry[0] == PENDING and entry[3] is not None and self._waits_outside(promise, entry)
        ]
        crank.do(Op.DETACHED)
        failure = failure_of(Forked(f"this was asked by {self.id!r}'s parent before the fork; ask again from here"))
        for promise in waiting:
            crank.settle_and_run(promise, Outcome(False, crank.keep(failure)))
        return self._seal(crank)

    def _waits_outside(self, promise: int, entry: Sequence[Any]) -> bool:
        if entry[3][0] == "effect":
            return True
        # A send's promise that nothing in the vat settles: neither a delivery (there are none between cranks) nor a
        # promise that it follows. A directory's or a far vat's answer goes to the parent.
        return bool(entry[3][0] == "send")

    # The runtime's own records.

    @classmethod
    def spawn(
        cls,
        uid: bytes,
        id: str,
        heap: Heap,
        types: Types,
        powers: Powers,
        actor: type,
        fields: Mapping[str, Any],
        asker: Asker,
        request: tuple[str, bytes] | None = None,
    ) -> tuple[Vat, Step]:
        """A new session, with its first record. Raises `TypeError` or `NotAValue` for fields that do not fit."""
        vat = cls(uid, id, heap, 0, ZERO_HASH, types, powers)
        described = type_of(actor)
        crank = vat._crank(asker)
        crank.draft.kind = Kind.SPAWN
        said: dict[str, Any] = {"id": id, "type": described.name, "by": asker.by, "via": asker.via}
        if request is not None:
            said["request"], said["digest"] = request
        crank.draft.message = FrozenDict(said)
        crank.begin(ROOT_ACTOR, described, fields)
        crank.state_fact(0, "spawn", [id], {"type": described.name, "by": asker.by, "via": asker.via})
        return vat, vat._seal(crank)

    def snapshot(self, said: Mapping[str, Any] | None = None) -> tuple[Step, dict[str, Any]]:
        """Write the pages that changed since the last snapshot; and the small value that names the result.

        Costs what changed. The trees let go of what was written once the step's `settle` is called.
        """
        seq = self.seq + 1
        draft = self._draft(Kind.SNAPSHOT)
        pages = _PageWriter(seq, self.powers.entropy)
        written = Pages(pages)
        trees = {name: written.write(tree) for name, tree in self.heap.trees().items()}
        root = pages.put(self.heap.root(trees))
        draft.pages = pages.data
        draft.message = FrozenDict({"root": [root.number, root.digest], "seq": self.seq, **(said or {})})
        at = draft.operation(Op.STATED, 0)
        draft.stated(at, "snapshot", [self.id], FrozenDict({"root": root.digest.hex(), "seq": seq}))
        step = self._append(draft)
        step.settle = written.settle
        self.snapshot_seq = seq
        self.cranks_since_snapshot = 0
        self.bytes_since_snapshot = 0
        named = {"session": self.id, "seq": seq, "root": root.digest.hex(), "hash": self.hash.hex()}
        return step, named

    def forked(self, uid: bytes, id: str, at: int, hash: bytes, asker: Asker, said: Mapping[str, Any]) -> Step:
        """The parent's record of a fork: `(fork s #:into c #:at seq)`."""
        draft = self._draft(Kind.FORK)
        draft.message = FrozenDict({"into": id, "child": uid, "at": at, "by": asker.by, "via": asker.via, **said})
        stated = draft.operation(Op.STATED, 0)
        draft.stated(stated, "fork", [self.id], FrozenDict({"into": id, "at": at}))
        return self._append(draft)

    def born(self, parent: Vat, at: int, hash: bytes, type_name: str, asker: Asker, asked: Mapping[str, Any]) -> Step:
        """This fork's first record: `(forked c #:from s #:at seq #:hash …)`."""
        draft = self._draft(Kind.FORKED)
        draft.message = FrozenDict(
            {
                "id": self.id,
                "type": type_name,
                "parent": parent.uid,
                "seq": at,
                "hash": hash,
                "by": asker.by,
                "via": asker.via,
                **asked,
            }
        )
        stated = draft.operation(Op.STATED, 0)
        draft.stated(stated, "forked", [self.id], FrozenDict({"from": parent.id, "at": at, "hash": hash.hex()}))
        self.heap.leave()
        return self._append(draft)

    def asked_to_restore(self, seq: int, asker: Asker) -> Step:
        """Somebody asked for this session to be restored, from the snapshot at `seq` (0: from the beginning)."""
        draft = self._draft(Kind.RESTORE)
        draft.message = FrozenDict({"from": seq, "by": asker.by, "via": asker.via})
        at = draft.operation(Op.STATED, 0)
        draft.stated(at, "restore", [self.id], FrozenDict({"from": seq}))
        return self._append(draft)

    def started(self, effect: int) -> Step | None:
        """An effect is about to be carried out; None when it is not wanted any more."""
        if self.heap.find("effects", effect) is None:
            return None
        draft = self._draft(Kind.STARTED)
        draft.message = FrozenDict({"effect": effect})
        self._operate(draft, Op.STARTED, effect)
        return self._append(draft)

    def forget(self) -> Step | None:
        """Take what its receivers have out of the outbox; None when there is nothing."""
        if not self.acked:
            return None
        draft = self._draft(Kind.ACKED)
        self._operate(draft, Op.ACKED, FrozenList(sorted(self.acked)))
        self.acked.clear()
        return self._append(draft)

    def delete(self, asker: Asker) -> Step:
        """The tombstone: presence is retracted, and callers learn of it."""
        draft = self._draft(Kind.DELETE)
        draft.message = FrozenDict({"id": self.id, "by": asker.by, "via": asker.via})
        for key, presence in list(self.heap.system["facts"].items(loader=self.heap.memory.page)):
            if presence:
                handle = Handle(key >> 24, key & 0xFFFFFF)
                at = draft.operation(Op.RETRACTED, *handle)
                draft.retracted(at, handle)
        at = draft.operation(Op.STATED, 0)
        draft.stated(at, "deleted", [self.id], FrozenDict())
        step = self._append(draft, pending=0)
        self.deleted = True
        gone = Outcome(False, failure_of(Deleted(f"session {self.id!r} has been deleted")))
        step.replies.extend((reply, gone) for replies in self.waiters.values() for reply in replies)
        self.waiters.clear()
        return step

    # Sealing.

    def _crank(self, asker: Asker, *, read_only: bool = False) -> Crank:
        powers = self.powers
        return Crank(
            self.heap,
            self.types,
            self.uid,
            self.seq + 1,
            powers.clock(),
            id=self.id,
            log_id=powers.log_id,
            entropy=powers.entropy,
            head=powers.cursor,
            asker=asker,
            read_only=read_only,
            watched=self.waiters,
        )

    def _draft(self, kind: Kind) -> Draft:
        return Draft(self.uid, self.seq + 1, kind, max(self.powers.clock(), self.heap.time))

    def _operate(self, draft: Draft, *operation: Any) -> None:
        APPLY[operation[0]](self.heap, *operation[1:])
        draft.operation(*operation)

    def _seal(self, crank: Crank) -> Step:
        if self.acked:
            crank.do(Op.ACKED, FrozenList(sorted(self.acked)))
            self.acked.clear()
        replies: list[tuple[Reply, Outcome]] = []
        for promise, outcome in crank.settled.items():
            waiting = self.waiters.pop(promise, None)
            if waiting:
                self._hand(crank, outcome)
                replies.extend((reply, self._outside(outcome)) for reply in waiting)
        self.heap.time = crank.time
        subscriptions = any(
            operation[0] in (Op.SUBSCRIBED, Op.UNSUBSCRIBED, Op.DETACHED) for operation in crank.draft.operations
        )
        step = self._append(crank.draft)
        step.sent = crank.sent
        step.wanted = crank.wanted
        if crank.cancelled:
            step.cancelled = crank.cancelled
            step.wanted = [number for number in crank.wanted if number not in crank.cancelled]
        step.replies = replies
        step.subscriptions = subscriptions
        step.failure = crank.failure
        return step

    def _append(self, draft: Draft, pending: int | None = None) -> Step:
        draft.pending = self.heap.pending if pending is None else pending
        record = draft.seal(self.hash, self.powers.entropy)
        self.heap.settle()
        self.seq, self.hash = record.seq, record.hash
        self.cranks_since_snapshot += 1
        self.bytes_since_snapshot += len(record.deeds) + sum(map(len, record.cells))
        return Step(record)

    # Outside.

    def _hand(self, crank: Crank, outcome: Outcome) -> None:
        """Refs in what goes outside are handed out: what they refer to stays."""
        for ref in refs_in(outcome.payload):
            if ref.session is None and self.heap.system["handed"].contains(ref.actor, self.heap.memory.page) is False:
                crank.do(Op.HANDED, ref.actor)

    def _outside(self, outcome: Outcome) -> Outcome:
        """An outcome as a caller outside sees it: read, its refs with this vat's uid."""
        if not outcome.succeeded:
            return outcome
        return Outcome(True, absolute(self.heap.read(outcome.payload), self.uid))

    def error_of(self, outcome: Outcome) -> Exception:
        """The exception that a failed outcome stands for."""
        return exception_of(self.heap.read(outcome.payload), f"in session {self.id!r}")


class _PageWriter:
    """Numbers the pages of a snapshot record."""

    def __init__(self, seq: int, salts: Salts) -> None:
        self.data: list[bytes] = []
        self._seq = seq
        self._salts = salts

    def put(self, data: bytes) -> PageRef:
        page = salted(self._salts, data)
        self.data.append(page)
        return PageRef(self._seq, len(self.data) - 1, sha256(page).digest())


_SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})


def refs_in(value: Value) -> list[Ref]:
    """The refs in a value, at any depth."""
    kind = type(value)
    if kind in _SCALARS:
        return []
    if kind is Ref:
        return [value]
    if isinstance(value, dict):
        return [ref for item in value.values() if type(item) not in _SCALARS for ref in refs_in(item)]
    if isinstance(value, list):
        return [ref for item in value if type(item) not in _SCALARS for ref in refs_in(item)]
    return []


def absolute(value: Value, uid: bytes) -> Value:
    """A value whose refs name this vat. The very same when there are none to change."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is Ref:
        return Ref(uid, value.actor) if value.session is None else value
    if not refs_in(value):
        return value
    if isinstance(value, dict):
        return FrozenDict({key: absolute(item, uid) for key, item in value.items()})
    return FrozenList([absolute(item, uid) for item in value])


def request_digest(method: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> bytes:
    """What tells whether a request is the same: its method and arguments, whatever the order of their keys."""
    return digest_of([method, list(args), dict(keywords)])
