"""Births: how sessions come to be, by being spawned or forked, and which ids are taken.

A spawn is the first record of a chain. A fork is two records in one commit: one in the parent's chain, and the first
of the child's, whose seq goes on from there. It copies nothing and loads nothing, so it costs the same whatever the
session holds: the child is restored from the log when it is first used, or afterwards if something in it waits for the
outside.

The one rule: an id that was ever used is never used again. While a first record is on its way its id is claimed here;
from then on the catalog knows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.lookups import Leg
from dataspace.drafts import Draft
from dataspace.errors import KeeveError
from dataspace.log.store import Store
from dataspace.records import Kind, Record
from dataspace.remedies import Remedy
from dataspace.values import FrozenDict, Value
from vat.crank.vat import Powers, RequestConflict, Step, Vat
from vat.errors import gone
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.heap.messages import Asker, Call, Outcome
from vat.heap.opcodes import Op
from vat.heap.past import NotYet
from vat.heap.restore import NoSuchPoint
from vat.host.loading import Loader
from vat.host.residents import Residents
from vat.objects.types import Types

_ID: Final = re.compile(r"[^\x00-\x1f\x7f\ufffd]{1,200}")
NOTHING: Final = Outcome(True, None)
"""What is told to who only wants to know that a record is durable, or is not going to be."""


class BadSessionId(KeeveError, ValueError):
    """An id that no session can have."""

    usage = True

    def __init__(self, id: object) -> None:
        super().__init__(
            f"{id!r} cannot be the id of a session: use 1 to 200 characters, none of them control ones, or "
            "U+FFFD, which stands for what is no character"
        )


def may_be_called(id: object) -> bool:
    """Whether a session may have that id: 1 to 200 printable characters, and no U+FFFD, to which several become one."""
    return isinstance(id, str) and _ID.fullmatch(id) is not None and id.isprintable()


def named_after(uid: bytes) -> str:
    """The id of a session for which none was given."""
    return f"s-{uid.hex()[:12]}"


CHOOSE_ID: Final = Remedy("choose-id", "get it with host.get({id}), or choose another id")


class IdInUse(KeeveError):
    """A session has that id already."""

    usage = True

    def __init__(self, id: str) -> None:
        super().__init__(f"there is a session {id!r} already: {CHOOSE_ID(id=repr(id))}")
        self.id = id


class Meanwhile:
    """The records to which sessions go back that are forked for as long as somebody asks.

    They are noted in the thread in which sessions are made; who asks may be in another.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._upto: dict[bytes, int] = {}

    def note(self, legs: list[Leg], seq: int) -> None:
        """A session with this lineage is forked at a seq."""
        with self._lock:
            for leg in legs:
                self._upto[leg.uid] = max(self._upto.get(leg.uid, 0), min(leg.upto, seq))
                if seq <= leg.upto:
                    break

    def need(self, uid: bytes, seq: int) -> bool:
        """Whether one of them goes back to a record."""
        return seq <= self._upto.get(uid, 0)

    def exchange(self, firsts: Mapping[bytes, int], act: Callable[[], None]) -> bool:
        """Do what takes records away, of each of these chains some from a seq on, unless one of them is needed by now;
        whether it was done. Nobody is forked while it is."""
        with self._lock:
            if any(self.need(uid, seq) for uid, seq in firsts.items()):
                return False
            act()
            return True


class Births:
    """Makes sessions."""

    def __init__(
        self, store: Store, catalog: Catalog, types: Types, powers: Powers, loader: Loader, residents: Residents
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._types = types
        self._powers = powers
        self._loader = loader
        self._residents = residents
        self._claimed: dict[str, tuple[bytes, int] | None] = {}
        """The ids of those that are on their way, and where forks leave their parents."""
        self._unclaiming: list[Callable[[], None]] = []
        """Who is told when the next of those is there, or is not going to be."""
        self._meanwhile: list[Meanwhile] = []

    def spawn(
        self,
        uid: bytes,
        id: str | None,
        cls: type,
        fields: Mapping[str, Value],
        asker: Asker,
        request: tuple[str, bytes] | None,
    ) -> Step | None:
        """The first record of a session; its vat is in memory then. None when there is a session of that uid already.

        Raises `BadSessionId`, `IdInUse`, `Deleted`, `TypeError` or `NotAValue`, and has done nothing then.
        """
        if self.begun(uid):
            return None
        name = self._claim(named_after(uid) if id is None else id)
        try:
            memory = self._loader.memory(uid)
            past = self._loader.past(uid, memory)
            vat, step = Vat.spawn(uid, name, Heap(memory), self._types, self._powers, cls, fields, asker, request, past)
        except BaseException:
            self._unclaim(name)
            raise
        step.replies.append((lambda _: self._unclaim(name), NOTHING))
        resident = self._residents.use(uid)
        resident.install(vat, memory)
        return step

    def begun(self, uid: bytes) -> bool:
        """Whether there is a session of that uid, or one on its way, or there was one."""
        resident = self._residents.get(uid)
        return (resident is not None and resident.vat is not None) or self._catalog.by_uid(uid) is not None

    def fork(self, vat: Vat, call: Call, at: int | None, into: str | None) -> tuple[Step, bytes]:
        """The records of a fork of a vat at a seq (default: now), as one step, and the uid of the child.

        Raises `NoSuchPoint`, `PastDamaged`, `IdInUse`, `Deleted` or `BadSessionId`, and has done nothing then; `NotYet`
        when the seq is not durable yet, or a session of that id is being made, `Archived` where the child could not be
        loaded. Costs at most the reading of one record, but for what `Loader.point` says.
        """
        row = self._catalog.by_uid(vat.uid)
        head = vat.seq if row is None else max(vat.seq, row.seq)  # of a damaged one less is in memory
        here = head if at is None else at
        damaged = self._loader.damage_before(vat.uid, here) if here <= head else None
        if damaged is not None:
            raise damaged
        if not 1 <= here <= vat.seq:
            raise NoSuchPoint(vat.id, here, 1, head)
        for each in self._meanwhile:  # before anything is read: from here on it stays, or is away already
            each.note(self._catalog.lineage(vat.uid), here)
        hash, pending = vat.hash, vat.heap.pending
        resident = self._residents.get(vat.uid)
        assert resident is not None
        if here != vat.seq:
            if here > resident.durable:
                raise NotYet
            hash, pending = self._loader.point(vat.uid, here)
        if into in self._claimed:  # nobody is refused for what may not become durable
            raise NotYet(self._unclaiming.append)
        uid = self._powers.entropy(16)
        name = self._claim(f"{vat.id[:190]}-{uid.hex()[:8]}" if into is None else into, (vat.uid, here))
        try:
            born = forked_record(vat, call.asker, uid, name, here, hash, pending, self._powers)
            step = Step(None, born=born) if resident.damage is not None else vat.forked(call, born, name, here)
        except BaseException:
            self._unclaim(name)
            raise
        step.replies.append((lambda _: self._unclaim(name), NOTHING))
        return step, uid

    def asked_with(self, uid: bytes) -> tuple[str | None, bytes | None]:
        """The request that a session was asked for with, and its digest. Raises `Deleted`. Costs a reading."""
        said = self._loader.first_message(self._loader.row(uid))
        return said.get("request"), said.get("digest")

    def same(self, uid: bytes, request: str, digests: Sequence[bytes], session: str) -> None:
        """Check that a session was asked for with this request, by one of these digests. Raises `RequestConflict` or
        `Deleted`.
        """
        asked, digest = self.asked_with(uid)
        if asked != request or digest not in digests:
            raise RequestConflict(session, self._loader.row(uid).id)

    @contextmanager
    def meanwhile(self) -> Iterator[Meanwhile]:
        """To which records forks go back that are not in the catalog yet, or are born while the block lasts."""
        found = Meanwhile()
        for left in self._claimed.values():
            if left is not None:
                found.note(self._catalog.lineage(left[0]), left[1])
        self._meanwhile.append(found)
        try:
            yield found
        finally:
            self._meanwhile.remove(found)

    def _claim(self, id: str, left: tuple[bytes, int] | None = None) -> str:
        """Take an id for a session that is being made."""
        if not may_be_called(id):
            raise BadSessionId(id)
        known = self._catalog.session(id)
        if known is not None and known.deleted:
            raise gone(id)
        if known is not None or id in self._claimed:
            raise IdInUse(id)
        self._claimed[id] = left
        return id

    def _unclaim(self, id: str) -> None:
        """A session is made, or is not going to be."""
        self._claimed.pop(id, None)
        waiting, self._unclaiming = self._unclaiming, []
        for tell in waiting:
            tell()

    async def settled(self, id: str) -> None:
        """Wait until a session of that id that is being made is there, or is not going to be: before that nobody is
        refused for it."""
        while id in self._claimed:
            over = trio.Event()
            self._unclaiming.append(over.set)
            await over.wait()


def forked_record(
    parent: Vat, asker: Asker, uid: bytes, id: str, at: int, hash: bytes, pending: int, powers: Powers
) -> Record:
    """A fork's first record: `(forked c #:from s #:at seq #:hash …)`.

    `hash` and `pending` are of the parent's record at `at`.
    """
    type = parent.heap.state(ROOT_ACTOR).type
    draft = Draft(uid, at + 1, Kind.FORKED, max(powers.clock(), parent.heap.time))
    said: dict[str, Any] = {"id": id, "type": type, "parent": parent.uid, "seq": at}
    draft.message = FrozenDict({**said, "by": asker.by, "via": asker.via})
    draft.pending = pending
    stated = draft.operation(Op.STATED, 0)
    draft.stated(stated, "forked", [id], FrozenDict({"from": parent.id, "at": at, "hash": hash.hex()}))
    return draft.seal(hash, powers.entropy)
