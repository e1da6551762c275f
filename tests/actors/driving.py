"""A session without a host: one vat on a store in memory, whose effects are carried out when a test says so.

`Driven` is what a host does at its simplest: it appends each record before anything leaves the vat, calls devices and
feeds back what came of it. `restart` throws the vat away and restores it from the store, with the code that hosts
use. The one rule: everything happens at once and in order; there is no event loop.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from itertools import count
from typing import Any

from dataspace.catalog.lookups import Leg, SnapshotRow
from dataspace.drafts import Assertion, Draft
from dataspace.facts import Fact
from dataspace.log.memory import MemoryStore
from dataspace.records import Kind, Record
from dataspace.values import FrozenDict, freeze
from snapshots.cache import PageCache
from snapshots.tree import Tree
from tests.actors.scenes import schema
from vat.crank.vat import Powers, Step, Vat, request_digest
from vat.devices.devices import Effect, methods_of
from vat.devices.outcomes import OutcomeUnknown
from vat.failures import exception_of, failure_of
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.heap.memory import VatMemory
from vat.heap.messages import Asker, Call, Detach, Ended, Outcome
from vat.heap.restore import Lineage, restore
from vat.objects.types import Types, type_of
from vat.objects.views import view_of


class World:
    """A store in memory with an index of it (`vat.heap.restore.Index`), and a host's powers."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.cache = PageCache(8 << 20)
        self.addresses: dict[tuple[bytes, int], int] = {}
        self.legs: dict[bytes, list[Leg]] = {}
        self.snapshot_seqs: dict[bytes, list[int]] = {}
        ticks, blocks = count(1_000_000), count(1)
        self.powers = Powers(
            self.store.log_id,
            lambda: next(ticks),
            lambda size: next(blocks).to_bytes(8).rjust(16, b"\1") * (size // 16) + bytes(size % 16),
            lambda: "head",
            self.begun,
        )
        self.recorded: set[tuple[bytes, int]] = set()
        """Effects whose start would be recorded."""

    def begun(self, uid: bytes, effect: int) -> bool:
        return (uid, effect) not in self.recorded

    def append(self, record: Record) -> None:
        self.store.append([record])
        self.addresses[record.uid, record.seq] = record.address
        if record.kind == Kind.SNAPSHOT:
            self.snapshot_seqs.setdefault(record.uid, []).append(record.seq)

    def lineage(self, uid: bytes) -> list[Leg]:
        return self.legs.get(uid, [])

    def locate(self, uid: bytes, seq: int) -> int | None:
        for leg in self.lineage(uid):
            if seq <= leg.upto:
                return self.addresses.get((leg.uid, seq))
        return self.addresses.get((uid, seq))

    def snapshots(self, uid: bytes, upto: int) -> Iterator[SnapshotRow]:
        for owner, most in [(uid, upto), *((leg.uid, min(leg.upto, upto)) for leg in reversed(self.lineage(uid)))]:
            for seq in reversed(self.snapshot_seqs.get(owner, [])):
                if seq <= most:
                    yield SnapshotRow(owner, seq, base=False)

    def memory(self, uid: bytes) -> VatMemory:
        return VatMemory(Lineage(uid, self, self.store.read), self.cache)


class Driven:
    """A session. `records` are its own, in order; `open` the effects that nobody has carried out yet."""

    def __init__(
        self,
        cls: type,
        devices: Mapping[str, object],
        *,
        types: Types | None = None,
        world: World | None = None,
        id: str = "s1",
        vat: Vat | None = None,
        snapshot_every: int = 0,
        **fields: Any,
    ) -> None:
        self.world = World() if world is None else world
        self.cls = cls
        self.types = Types([cls]) if types is None else types
        self.devices = {name: methods_of(device) for name, device in devices.items()}
        self.given = devices
        self.records: list[Record] = []
        self.open: list[int] = []
        self.cancelled: list[int] = []
        self.snapshot_every = snapshot_every
        if vat is not None:
            self.vat = vat
        else:
            if "tools" in devices and "tools" in self.types[type_of(cls).name].fields:
                fields = {"tools": [schema("look")], **fields}
            uid = id.encode().rjust(16, b"-")
            heap = Heap(self.world.memory(uid))
            self.vat, step = Vat.spawn(uid, id, heap, self.types, self.world.powers, cls, fields, Asker())
            self.note(step)

    # What a host does.

    def note(self, step: Step) -> Step:
        """The step's record becomes durable."""
        record = step.record
        if record is not None:
            self.world.append(record)
            self.records.append(record)
        if step.settle is not None:
            step.settle()
        for reply, outcome in step.replies:
            reply(outcome)
        self.open.extend(step.wanted)
        self.world.recorded |= {(self.vat.uid, number) for number in step.wanted if self.records_start(number)}
        self.cancelled.extend(step.cancelled)
        for number in step.cancelled:
            if number in self.open:
                self.open.remove(number)
        return step

    def call(self, method: str, *args: Any, asker: Asker | None = None, **keywords: Any) -> Answer:
        """Call a method of the session's actor, as somebody outside."""
        answer = Answer()
        asker = Asker("local", "python") if asker is None else asker
        digest = None if asker.request is None else request_digest(method, freeze(list(args)), freeze(keywords))
        call = Call(ROOT_ACTOR, method, freeze(list(args)), freeze(keywords), asker, digest, reply=answer.take)
        self.note(self.vat.take(call))
        return answer

    def read(self, field: str) -> Any:
        """What a field holds."""
        return self.call(field).value

    def records_start(self, number: int) -> bool:
        """Whether it is recorded that an effect starts, before it does."""
        entry = self.vat.heap.find("effects", number)
        how = None if entry is None else self.devices.get(entry[1], {}).get(entry[2])
        return how is not None and how.policy.on_crash == "unknown"

    def start(self, number: int) -> None:
        """Record that an effect starts, if its device wants that."""
        if self.records_start(number):
            step = self.vat.started(number)
            assert step is not None
            self.note(step)

    def carry_out(self, number: int) -> Outcome:
        """Call the device for an effect."""
        heap = self.vat.heap
        id, device, method, args, keywords, _, started, *_ = heap.find("effects", number)
        how = self.devices[device][method]
        if started and how.policy.on_crash == "unknown":
            return Outcome(False, freeze(failure_of(OutcomeUnknown(f"{device}.{method}", id.hex()))))
        self.start(number)
        effect = Effect(
            id=id.hex(),
            device=device,
            method=method,
            session=self.vat.id,
            attempt=1,
            progress=lambda value: None,
            credential=lambda name: name,
        )
        read = [view_of(heap, arg) if isinstance(arg, Tree) else heap.read(arg) for arg in args]
        named = {name: view_of(heap, arg) if isinstance(arg, Tree) else heap.read(arg) for name, arg in keywords}
        try:
            return Outcome(True, freeze(at_once(how.function(effect, *read, **named))))
        except Exception as error:  # noqa: BLE001  # whatever a device raises is its outcome
            return Outcome(False, freeze(failure_of(error)))

    def end(self, number: int, outcome: Outcome) -> None:
        """An effect has its outcome."""
        if number in self.open:
            self.open.remove(number)
        self.note(self.vat.take(Ended(number, outcome)))

    def advance(self) -> bool:
        """Carry out the oldest open effect; False when there is none."""
        if not self.open:
            return False
        number = self.open[0]
        self.end(number, self.carry_out(number))
        if self.snapshot_every and len(self.records) % self.snapshot_every == 0:
            self.snapshot()
        return True

    def run(self) -> None:
        """Carry out effects until none is open."""
        while self.advance():
            pass

    def snapshot(self) -> None:
        self.note(self.vat.snapshot()[0])

    def restart(self) -> None:
        """The process dies: the vat is restored from the store, and what it waits for is open again."""
        hash = self.vat.hash
        self.vat = self._restored(self.vat.uid, self.vat.id, self.vat.seq)
        assert self.vat.hash == hash
        self.open = [number for number, _ in self.vat.heap.entries("effects")]

    def fork(self, id: str = "s2") -> Driven:
        """Another session from this one's state now: two records, and the child is restored from the store."""
        parent, world, uid = self.vat, self.world, id.encode().rjust(16, b"-")
        at, hash = parent.seq, parent.hash
        born = Draft(uid, at + 1, Kind.FORKED, parent.heap.time)
        born.message = FrozenDict({"id": id, "type": "keeve.session", "parent": parent.uid, "seq": at, "hash": hash})
        first = born.seal(hash, world.powers.entropy)
        self.note(parent.forked(Call(ROOT_ACTOR, "fork"), first, id, at))
        world.append(first)
        world.legs[uid] = [*world.lineage(parent.uid), Leg(parent.uid, at)]
        child = Driven(self.cls, self.given, types=self.types, world=world, vat=self._restored(uid, id, at + 1))
        child.note(child.vat.take(Detach()))
        return child

    def _restored(self, uid: bytes, id: str, seq: int) -> Vat:
        world = self.world
        restored = restore(Lineage(uid, world, world.store.read), world, world.cache, seq)
        return Vat(uid, id, restored.heap, restored.seq, restored.hash, self.types, world.powers)

    # What a test asks.

    @property
    def facts(self) -> list[Fact]:
        """Everything that the session has stated, in order."""
        return [said.fact for record in self.records for said in record.statements if isinstance(said, Assertion)]

    def stated(self, *labels: str) -> list[Fact]:
        """Those facts that have one of these labels."""
        return [fact for fact in self.facts if fact.label in labels]


class Answer:
    """What a call gave, once there is something."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None

    def take(self, outcome: Outcome) -> None:
        assert self.outcome is None, "answered twice"
        self.outcome = outcome

    @property
    def value(self) -> Any:
        assert self.outcome is not None, "there is no answer yet"
        if not self.outcome.succeeded:
            raise exception_of(self.outcome.payload)
        return self.outcome.payload


def at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("this device waits for something: use a host")


def size_of(record: Record) -> int:
    """Bytes of a record's body and cells."""
    return len(record.deeds) + len(record.facts) + sum(map(len, record.cells))
