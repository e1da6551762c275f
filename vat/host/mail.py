"""Mail: messages between the vats of a store, from the sender's durable record to the receiver's.

A message stays in its sender's outbox until the receiver has recorded it; until then it is brought again whenever
either of the two comes into memory. The receiver keeps one number for each sender, so what comes twice takes effect
once, and so messages must come in order: when one cannot be brought (the receiver cannot be loaded, or its batch
failed), those after it wait too (`_stuck`), and all are brought again, in order, once the receiver is in memory.

The one rule: nothing is kept here that is not in an outbox; a message is never lost by forgetting what is in here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from weakref import WeakValueDictionary

from dataspace.catalog.catalog import Catalog
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.files import ReadFailed
from dataspace.observe.dataspace import NoSuchSession
from dataspace.values import Value
from vat.crank.vat import Step, Vat
from vat.errors import Deleted, gone
from vat.failures import failure_of
from vat.heap.entries import REACTIONS
from vat.heap.messages import UNIVERSAL, Call, Outcome, Settled
from vat.heap.opcodes import To
from vat.host.carrying import arriving
from vat.host.residents import Job, Resident, Residents

log = logging.getLogger("keeve")

WAKE = Job(None)
"""A job that does nothing but bring a vat into memory."""


class _Round:
    """Messages of one sender to one receiver that are brought in order; `void` when they are to be brought again."""

    __slots__ = ("__weakref__", "void")

    def __init__(self) -> None:
        self.void = False


class Mail:
    """Carries messages.

    post: puts a job into a mailbox. universal: carries out what every vat understands. later: brings a session into
    memory when the store writes again.
    """

    def __init__(
        self,
        residents: Residents,
        catalog: Catalog,
        *,
        post: Callable[[bytes, Job], None],
        universal: Callable[[Vat, Call], Sequence[Step]],
        later: Callable[[bytes], None],
    ) -> None:
        self._residents = residents
        self._catalog = catalog
        self._post = post
        self._universal = universal
        self._later = later
        self._stuck: dict[bytes, set[bytes]] = {}
        """By receiver, the senders whose messages to it wait."""
        self._rounds: WeakValueDictionary[tuple[bytes, bytes], _Round] = WeakValueDictionary()
        """By receiver and sender, for as long as a message of the round is on its way."""

    def waits_for(self, uid: bytes) -> bool:
        """Whether messages wait for a session to come into memory."""
        return bool(self._stuck.get(uid))

    def carry(self, resident: Resident, number: int, uid: bytes, message: Mapping[str, Value]) -> None:
        """Bring a message whose record is durable."""
        sender = resident.uid
        if sender in self._stuck.get(uid, ()):
            self._post(uid, WAKE)  # if it can be loaded by now, it gets this one behind those that wait
            return
        resident.unacknowledged.add(number)
        vat = resident.vat
        assert vat is not None
        this = self._rounds.get((uid, sender))
        if this is None:
            this = self._rounds[uid, sender] = _Round()
        try:
            said = arriving(vat, number, message)
        except KeeveError as error:  # of the sender's own records one cannot be read
            self._failed(this, sender, number, uid, message, error)
            if isinstance(error, ReadFailed):
                self._later(sender)
            return
        universal = said if isinstance(said, Call) and said.method in UNIVERSAL else None

        def work(receiver: Vat) -> Sequence[Step]:
            if this.void:
                return ()
            if universal is not None:
                return self._universal(receiver, universal)
            return (receiver.take(said),)

        def failed(error: BaseException) -> None:
            if not this.void:
                self._failed(this, sender, number, uid, message, error)

        self._post(uid, Job(None, failed, work, timely=isinstance(said, Call)))

    def _failed(
        self, this: _Round, sender: bytes, number: int, uid: bytes, message: Mapping[str, Value], error: BaseException
    ) -> None:
        resident = self._residents.get(sender)
        if isinstance(error, Deleted | NoSuchSession):
            if resident is not None:
                resident.unacknowledged.discard(number)
            self._post(sender, Job(None, None, lambda vat: _answered_for(vat, number, uid, message, error)))
            return
        # From here on nothing of this sender is brought to the receiver until all of it is brought again.
        if sender not in self._stuck.get(uid, ()):
            why = "session %s: messages from %s wait: %s"
            log.warning(why, self._name(uid), self._name(sender), in_log(error))
        self._stuck.setdefault(uid, set()).add(sender)
        this.void = True
        self._rounds.pop((uid, sender), None)
        if resident is not None and resident.vat is not None:
            for waiting, _ in _to(resident.vat, uid):
                resident.unacknowledged.discard(waiting)

    def _name(self, uid: bytes) -> str:
        row = self._catalog.by_uid(uid)
        return uid.hex() if row is None else row.id

    def acknowledge(self, uid: bytes, number: int) -> None:
        """The receiver's record of a message is durable."""
        resident = self._residents.get(uid)
        if resident is not None:
            resident.unacknowledged.discard(number)
            if resident.vat is not None and resident.vat.heap.find("outbox", number) is not None:
                resident.vat.acked.add(number)

    def take_up(self, resident: Resident) -> None:
        """A vat has come into memory: bring what it has in its outbox, and what waited for it."""
        vat = resident.vat
        assert vat is not None
        heap = vat.heap
        waiting = self._stuck.pop(vat.uid, set())
        outbox = list(heap.system["outbox"].items(loader=heap.page))
        for uid in {uid for _, (uid, _) in outbox}:
            senders = self._stuck.get(uid)
            if senders is not None:
                senders.discard(vat.uid)
                if not senders:
                    del self._stuck[uid]
        for number, (uid, message) in outbox:
            self.carry(resident, number, uid, message)
        for sender in waiting:
            self._bring_again(sender, vat.uid)
        outgoing = {message.get("promise") for _, (_, message) in outbox}
        for promise, uid in list(heap.system["awaiting"].items(loader=heap.page)):
            if promise not in outgoing:
                row = self._catalog.by_uid(uid)
                if row is None or row.deleted:
                    self._never(vat.uid, promise, uid, gone(row.id) if row else NoSuchSession(uid.hex()))

    def _bring_again(self, sender: bytes, receiver: bytes) -> None:
        resident = self._residents.get(sender)
        if resident is None or resident.vat is None:
            self._post(sender, WAKE)
            return
        vat = resident.vat
        for number, message in _to(vat, receiver):
            if number <= resident.released and number not in vat.acked:
                self.carry(resident, number, receiver, message)

    def bury(self, vat: Vat) -> None:
        """A session has been deleted: what others wait for from it never comes."""
        try:
            promises = list(vat.heap.system["promises"].items(loader=vat.heap.page))
        except KeeveError:  # who waits for it cannot be read there, and is found where it waits
            self.bury_unread(vat.uid, gone(vat.id))
            return
        for _, entry in promises:
            for reaction in entry[REACTIONS]:
                if reaction[0] == To.REPLY:
                    self._never(reaction[1], reaction[2], vat.uid, gone(vat.id))

    def bury_unread(self, uid: bytes, error: BaseException) -> None:
        """The same of a session whose heap cannot be read: whoever waits for it is found among those in memory, and
        the others when they come there. Costs a look at each of those."""
        for sender in self._stuck.pop(uid, set()):
            self._bring_again(sender, uid)
        for resident in self._residents:
            vat = resident.vat
            if vat is None or not vat.heap.system["awaiting"].count:
                continue
            with suppress(KeeveError):  # what cannot be read now is looked at when the vat is loaded again
                outgoing = {message.get("promise") for number, message in _to(vat, uid) if number not in vat.acked}
                for promise, receiver in list(vat.heap.system["awaiting"].items(loader=vat.heap.page)):
                    if receiver == uid and promise not in outgoing:
                        self._never(vat.uid, promise, uid, error)

    def _never(self, uid: bytes, promise: int, receiver: bytes, error: BaseException) -> None:
        settled = Settled(receiver, None, promise, Outcome(False, failure_of(error)))
        # When it cannot be recorded now, it follows again from what the promise waits for.
        self._post(uid, Job(settled, lambda _: self._later(uid)))


def _to(vat: Vat, receiver: bytes) -> list[tuple[int, Mapping[str, Value]]]:
    """What a vat's outbox holds for one receiver."""
    outbox = vat.heap.system["outbox"].items(loader=vat.heap.page)
    return [(number, message) for number, (uid, message) in outbox if uid == receiver]


def _answered_for(
    vat: Vat, number: int, uid: bytes, message: Mapping[str, Value], error: BaseException
) -> Sequence[Step]:
    """Answer a message for a receiver that is not there; the same record forgets the message."""
    if vat.heap.find("outbox", number) is None:
        return ()
    vat.acked.add(number)
    promise = message.get("promise")
    if promise is None:
        step = vat.forget()
        return () if step is None else (step,)
    return (vat.take(Settled(uid, None, promise, Outcome(False, failure_of(error)))),)
