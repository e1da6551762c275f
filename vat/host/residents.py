"""Residents: the sessions that have something to do or are in memory, each with its mailbox; and who leaves memory.

A job is what a mailbox holds: a message for the vat, or a function of it, that gives the steps it made. A resident
without a vat is one that has not been loaded yet: that is done when its turn comes, so that posting never fails.

The one rule: a vat may leave memory whenever nothing of it is on its way; what it was is in the log.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from dataspace.errors import KeeveError
from dataspace.records import Record
from vat.crank.vat import Step, Vat
from vat.heap.memory import VatMemory
from vat.heap.messages import Call, Message, Reply
from vat.host.due import Due

GLANCES: Final = 256
"""How many residents are looked at in one search for idle ones."""

Work: TypeAlias = "Callable[[Vat], Sequence[Step]]"
Failed: TypeAlias = Callable[[BaseException], None]


class Job(NamedTuple):
    """One thing for a vat to do: take a `message`, or `work`.

    `failed` is told, once or more often, when it could not be done or what it recorded did not become durable. One that
    raises `NotYet`, since it needs what is not durable yet, is done again when it is. Before a `timely` one, and before
    any call, the vat takes those timers whose time has come as its turn comes (`Timely`).
    """

    message: Message | None
    failed: Failed | None = None
    work: Work | None = None
    timely: bool = False


class Resident:
    """A session with something to do, or whose vat is in memory.

    | state | what it means | from where, to where |
    |---|---|---|
    | without a vat | its next job loads it | given by `install`, taken by `let_go`, whoever calls that |
    | idle | nothing of it is on its way; it may be evicted | follows from the rest |
    | `ready` | it has its place in the queue of `Turns` | set and taken by `Turns` |
    | `paused` | it waits: for what of it is `flying`, or for an id | set by `Turns`, taken by that and by `Commits` |
    | `stale` | its vat is not what it should be | set by `Turns`, which has it let go of; taken by that |
    | damaged | it takes no more input: `damage` says why | set by `Loader`, at each load |

    Dropped, it is no resident any more (`Commits.drop`, `Residents.drop`), and the session gets another one.
    """

    __slots__ = (
        "coming",
        "damage",
        "due",
        "durable",
        "first",
        "flying",
        "mailbox",
        "memory",
        "newest",
        "paused",
        "ready",
        "records",
        "released",
        "snapshot",
        "stale",
        "timed",
        "uid",
        "unacknowledged",
        "vat",
        "waiters",
        "waiting",
    )

    def __init__(self, uid: bytes) -> None:
        self.uid = uid
        self.vat: Vat | None = None
        self.memory: VatMemory | None = None
        self.durable = 0
        """The seq of its newest durable record."""
        self.newest: Record | None = None
        """That record, while what waited for it is let go."""
        self.flying = 0
        """How many of its steps are on their way to the log."""
        self.coming: set[int] = set()
        """The effects that those want: no device has been given them."""
        self.first: deque[Job] = deque()
        """What the vat has to do before anything in the mailbox, since it was loaded."""
        self.mailbox: deque[Job] = deque()
        self.due = Due()
        """The timers of the vat in memory."""
        self.timed: Job | None = None
        """The job in the mailbox before which those come that were due as its turn came."""
        self.ready = False
        """Whether it stands in the queue of those that have something to do."""
        self.paused = False
        """Whether its jobs wait until nothing of it is on its way to the log, or until an id is free or taken."""
        self.stale = False
        """Whether the vat holds what must not be recorded, or refers to what may go, and is loaded again before it does
        anything else."""
        self.waiting: deque[tuple[int, Step, Job]] = deque()
        """Steps without a record, which wait until what they read (up to a seq) is durable: answers, and refusals."""
        self.waiters: dict[int, list[Reply]] = {}
        """The callers who wait for promises, while the vat is loaded again."""
        self.released = 0
        """The number of the last message to another vat whose record is durable."""
        self.unacknowledged: set[int] = set()
        """Messages that are on their way to other vats."""
        self.snapshot = 0
        """The seq of the snapshot that the vat was restored from, 0 for none."""
        self.records = 0
        """How many records were read after that."""
        self.damage: KeeveError | None = None
        """Why it takes no more input."""

    @property
    def idle(self) -> bool:
        """Whether nothing of it is on its way."""
        if self.mailbox or self.ready or self.flying or self.waiting or self.unacknowledged:
            return False
        return self.vat is None or not self.vat.waiters

    def install(self, vat: Vat, memory: VatMemory) -> None:
        """Its vat is in memory, with those who wait for promises of it."""
        self.vat = vat
        self.memory = memory
        vat.waiters.update(self.waiters)
        self.waiters = {}

    def let_go(self) -> None:
        """The vat leaves memory, if it is there. Callers who wait for its promises go on waiting, here."""
        vat, self.vat = self.vat, None
        self.stale = False
        self.timed = None
        if vat is not None:
            vat.close()
            self.waiters.update(vat.waiters)
            vat.waiters = {}

    def forget(self, promise: int, reply: Reply) -> None:
        """A caller waits for a promise no more."""
        for waiters in (self.waiters, {} if self.vat is None else self.vat.waiters):
            replies = waiters.get(promise, [])
            if reply in replies:
                replies.remove(reply)
                if not replies:
                    del waiters[promise]


class Residents:
    """The residents by uid, the least recently used first; at most `limit` of them, as far as they are idle.

    name: what a session is called, by its uid.
    """

    def __init__(self, limit: int, name: Callable[[bytes], str] = bytes.hex) -> None:
        self.limit = limit
        self._name = name
        self._by_uid: OrderedDict[bytes, Resident] = OrderedDict()

    def get(self, uid: bytes) -> Resident | None:
        """The resident of that uid, if there is one."""
        return self._by_uid.get(uid)

    def name(self, uid: bytes) -> str:
        """What a session is called in a line of a log: its id, or its uid in hex where nobody knows that now."""
        found = self._by_uid.get(uid)
        return self._name(uid) if found is None or found.vat is None else found.vat.id

    def durable(self, uid: bytes) -> int:
        """The seq of a resident's newest durable record; 0 for what is no resident."""
        found = self._by_uid.get(uid)
        return 0 if found is None else found.durable

    def certain(self, uid: bytes, effect: int) -> bool:
        """Whether surely no device has been given an effect: it is wanted by what is not durable yet, or by the crank
        that runs now. Once that has given it up, none will be."""
        found = self._by_uid.get(uid)
        if found is None or found.vat is None:
            return False
        return effect in found.coming or effect in found.vat.crank.progress.wanted

    def use(self, uid: bytes) -> Resident:
        """The resident of that uid, made if need be; now the most recently used."""
        found = self._by_uid.get(uid)
        if found is None:
            found = self._by_uid[uid] = Resident(uid)
        else:
            self._by_uid.move_to_end(uid)
        return found

    def abandoned(self, uid: bytes, call: Call) -> None:
        """Nobody waits for a call's answer any more: that is no reason to keep its session in memory."""
        resident = self.get(uid)
        if resident is not None and call.waits is not None and call.reply is not None:
            resident.forget(call.waits, call.reply)
        call.reply = None

    def drop(self, resident: Resident) -> None:
        """A resident leaves memory, whatever is on its way."""
        if self._by_uid.get(resident.uid) is resident:
            del self._by_uid[resident.uid]
        resident.let_go()

    def superfluous(self) -> list[Resident]:
        """Some of those that may leave now because there are too many, the least recently used first.

        One that is not idle counts as used, so that it is not looked at again and again. Costs at most `GLANCES` looks.
        """
        excess = len(self._by_uid) - self.limit
        found: list[Resident] = []
        for _ in range(min(len(self._by_uid), GLANCES)):
            if len(found) >= excess:
                break
            resident = next(iter(self._by_uid.values()))
            self._by_uid.move_to_end(resident.uid)
            if resident.idle:
                found.append(resident)
        return found

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Resident]:
        return iter(list(self._by_uid.values()))
