"""Vats without a host: records in lists, a clock that ticks, chance from a seed; heaps as plain data, to compare."""

from __future__ import annotations

import itertools
from collections import deque
from hashlib import sha256

from dataspace.drafts import read_deeds
from dataspace.records import Kind, content_digest, split_cell
from dataspace.values import CELLED, freeze
from dataspace.values.encoding import encode
from snapshots.pages import decode_node, decode_tree
from snapshots.tree import Tree
from vat.crank.vat import Powers, Vat, request_digest
from vat.failures import exception_of
from vat.heap.heap import SYSTEM, Heap
from vat.heap.memory import SALT
from vat.heap.messages import NOBODY, Asker, Call, Detach, Ended, Observed, Outcome
from vat.heap.operations import follow
from vat.heap.past import Recorded
from vat.heap.refs import Promise, Ref
from vat.host.births import forked_record
from vat.host.carrying import arriving
from vat.objects.types import Types

ROOT = 1


class Log:
    """The records of a session and of what it was forked from, by seq; and the memory of its heap."""

    def __init__(self, records=()):
        self.records = list(records)
        self.loads = 0
        self.read = []
        self.trouble = None
        self._looked = 0
        self._snapshots = []

    @property
    def snapshots(self):
        """The seqs of the snapshots in it."""
        for record in self.records[self._looked :]:
            if record.kind == Kind.SNAPSHOT:
                self._snapshots.append(record.seq)
        self._looked = len(self.records)
        return self._snapshots

    def page(self, ref):
        data = self.records[ref.seq - 1].pages[ref.number]
        assert content_digest(data) == ref.digest
        self.loads += 1
        return decode_node(data[SALT:], ref=Ref, promise=Promise)

    def cell(self, cell):
        self.loads += 1
        return split_cell(self.records[cell.seq - 1].cells[cell.number]).content


class Past:
    """The past of a session (`vat.heap.past.Past`), from its log; counts what is read."""

    def __init__(self, world, session):
        self.world = world
        self.session = session
        self.log = session.log

    def record(self, seq):
        record = self.log.records[seq - 1]
        self.log.read.append(seq)
        deeds = read_deeds(record.deeds, ref=Ref, promise=Promise, tree=decode_tree)
        id = self.world.sessions[record.uid].vat.id
        return Recorded(
            *(record.uid, id, record.seq, record.kind, record.time, record.previous),
            *(deeds.message, deeds.operations, record.facts),
        )

    def before(self, seq, heap, at):
        snapshot = max((one for one in self.log.snapshots if one < seq), default=0)
        if heap is None or snapshot > at:
            heap = self.world.restored(self.session, snapshot=snapshot, upto=snapshot, log=self.log)
            at = snapshot
        for between in range(at + 1, seq):
            recorded = self.record(between)
            follow(heap, recorded.kind, recorded.operations, recorded.time)
        return heap

    def let_go(self):
        pass


class Session:
    """A vat with its log."""

    def __init__(self, world, vat, log):
        self.vat = vat
        self.log = log
        self.steps = []
        vat.crank.fibers.past = Past(world, self)

    @property
    def heap(self):
        return self.vat.heap

    @property
    def records(self):
        return self.log.records

    def keep(self, step):
        """What a host does with a step, but for what leaves."""
        if step is not None and step.record is not None:
            assert step.record.seq == len(self.log.records) + 1
            self.log.records.append(step.record)
            if step.settle is not None:
                step.settle()
        self.steps.append(step)
        return step

    def take(self, message):
        return self.keep(self.vat.take(message))

    def snapshot(self):
        return self.keep(self.vat.snapshot()[0])


class World:
    """Vats of some actor types. `sent` and `wanted` wait to be carried by hand."""

    def __init__(self, *types):
        self.types = Types(types)
        self.now = 1_000_000_000
        self.chance = itertools.count()
        self.sessions = {}
        self.sent = deque()
        self.wanted = deque()
        self.powers = Powers(b"L" * 16, self.clock, self.entropy, lambda: "cursor")

    def clock(self):
        self.now += 1_000
        return self.now

    def entropy(self, count):
        made = b""
        while len(made) < count:
            made += sha256(b"%d" % next(self.chance)).digest()
        return made[:count]

    def spawn(self, cls, id="s1", **fields):
        uid = sha256(id.encode()).digest()[:16]
        log = Log()
        vat, step = Vat.spawn(uid, id, Heap(log), self.types, self.powers, cls, fields, NOBODY)
        session = self.sessions[uid] = Session(self, vat, log)
        session.keep(step)
        return session

    def tell(self, session, method, *args, to=ROOT, request=None, by="local", **keywords):
        """Call a method from outside; what comes of it is an Outcome, or None while nobody knows."""
        got = []
        args = [freeze(arg) for arg in args]
        keywords = {name: freeze(arg) for name, arg in keywords.items()}
        digest = None if request is None else request_digest(method, args, keywords)
        call = Call(to, method, args, keywords, Asker(by, "test", request), digest, reply=got.append)
        self.take(session, call)
        session.answers = got
        return got[0] if got else None

    def ask(self, session, method, *args, **keywords):
        """As `tell`, giving the value or raising the error."""
        outcome = self.tell(session, method, *args, **keywords)
        assert outcome is not None, "it is not known yet"
        if not outcome.succeeded:
            raise exception_of(outcome.payload)
        return outcome.payload

    def take(self, session, message):
        step = session.take(message)
        vat = session.vat
        self.sent.extend((vat, number, uid, message) for number, uid, message in step.sent)
        self.wanted.extend((vat, number) for number in step.wanted)
        for reply, outcome in step.replies:
            reply(outcome)
        return step

    def carry(self):
        """Deliver the oldest message."""
        sender, number, uid, message = self.sent.popleft()
        receiver = self.sessions[uid]
        self.take(receiver, self.arriving(sender, number, message))
        sender.acked.add(number)
        return receiver

    def carry_all(self):
        while self.sent:
            self.carry()

    arriving = staticmethod(arriving)

    def settle(self, session, value=None, error=None, effect=None):
        """Give the oldest effect (or that one) its outcome."""
        if effect is None:
            effect = next(number for number, _ in session.heap.entries("effects"))
        outcome = Outcome(True, value) if error is None else Outcome(False, error)
        return self.take(session, Ended(effect, outcome))

    def observed(self, session, subscription, event, cursor="on"):
        return self.take(session, Observed(subscription, freeze(event), cursor))

    def fork(self, session, id="fork"):
        """Fork at the head, as hosts do: two records, and the child's heap is restored from them."""
        parent = session.vat
        uid = sha256(id.encode()).digest()[:16]
        at, hash, pending = parent.seq, parent.hash, session.heap.pending
        record = forked_record(parent, NOBODY, uid, id, at, hash, pending, self.powers)
        log = Log([*session.records, record])
        session.keep(parent.forked(Call(ROOT, "fork"), record, id, at))
        heap = self.restored(session, snapshot=max(log.snapshots, default=0), log=log)
        child = Vat(uid, id, heap, record.seq, record.hash, self.types, self.powers)
        forked = self.sessions[uid] = Session(self, child, log)
        self.take(forked, Detach())
        return forked

    def restored(self, session, snapshot=0, upto=None, log=None):
        """The session's heap from its records, from the beginning or from the snapshot at a seq."""
        log = Log(session.records) if log is None else log
        heap = Heap(log)
        if snapshot:
            record = log.records[snapshot - 1]
            number, digest = read_deeds(record.deeds).message["root"]
            assert content_digest(record.pages[number]) == digest
            heap = Heap.load(record.pages[number][SALT:], log)
        for record in log.records[snapshot : len(log.records) if upto is None else upto]:
            deeds = read_deeds(record.deeds, ref=Ref, promise=Promise, tree=decode_tree)
            follow(heap, record.kind, deeds.operations, record.time)
        return heap

    def reload(self, session):
        """The same session again from what is stored, as after a restart."""
        old = session.vat
        old.close()
        heap = self.restored(session, snapshot=max(self.snapshots(session), default=0))
        vat = Vat(old.uid, old.id, heap, old.seq, old.hash, self.types, self.powers)
        again = self.sessions[old.uid] = Session(self, vat, session.log)
        heap.memory = session.log
        return again

    def snapshots(self, session):
        """The seqs of the snapshots in a session's own chain and those of its ancestors."""
        return [record.seq for record in session.records if record.kind == Kind.SNAPSHOT]


def dump(heap):
    """A heap as plain data: equal for equal heaps, whatever is loaded, written or shared."""
    return {
        "actors": {
            actor: (
                state.type,
                state.version,
                {name: shown(heap, value) for name, value in sorted(state.fields.items())},
            )
            for actor in heap.actors()
            for state in [heap.state(actor)]
        },
        "system": {name: shown(heap, heap.system[name]) for name in SYSTEM},
        "counters": dict(heap.counters),
        "types": {name: known for name, known in sorted(heap.types.items()) if known[1]},
        "time": heap.time,
        "life": (heap.forking, heap.born, heap.swept),
    }


def shown(heap, value):
    """A stored value as plain data: cells with their places and contents, containers with what they are."""
    if isinstance(value, Tree):
        return (type(value).__name__, [shown(heap, item) for item in value.walked(heap.page)])
    if isinstance(value, dict):
        return {key: shown(heap, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(heap, item) for item in value]
    if type(value) in CELLED:
        return ("cell", encode(value), heap.read(value))
    return (type(value).__name__, repr(value))


def operations(record):
    """A record's operations as a reader of the log has them."""
    return read_deeds(record.deeds, ref=Ref, promise=Promise, tree=decode_tree).operations


def said(record):
    return read_deeds(record.deeds, ref=Ref, promise=Promise, tree=decode_tree).message


def everything(record):
    """All bytes that a record keeps of content."""
    return b"".join([record.deeds, record.facts, *record.cells])


def assert_restores(world, session):
    """The heap that is rebuilt from the records is the live one, from the beginning and from every snapshot."""
    live = dump(session.heap)
    assert_indexed(session.heap)
    assert dump(world.restored(session)) == live
    for seq in world.snapshots(session):
        assert dump(world.restored(session, snapshot=seq)) == live, f"from the snapshot at {seq}"


def assert_indexed(heap):
    """The indexes that a heap has say what its collections say."""
    wanted = {entry[5]: number for number, entry in heap.system["effects"].items(loader=heap.page)}
    assert heap.indexes.get("effects", wanted) == wanted
    owned = {}
    for promise, fiber in heap.system["owned"].items(loader=heap.page):
        owned.setdefault(fiber, {})[promise] = None
    assert heap.indexes.get("owned", owned) == owned
