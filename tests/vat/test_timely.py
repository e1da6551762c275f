"""The timers that a vat takes before what they may end: which are due, and till when they are not on record."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from vat.devices.timers import Due
from vat.heap.messages import Ended
from vat.host.residents import Job, Residents
from vat.host.timely import Timely

SECOND = 1_000_000


def test_those_that_are_due_come_in_the_order_of_their_times_and_once() -> None:
    due = Due()
    for number, at in [(1, 3.0), (2, 1.0), (3, 2.0), (4, 2.0)]:
        due.add(number, at)
    due.discard(3)
    due.discard(3)
    assert due.any(1 * SECOND - 1, math.inf) is False
    assert due.any(1 * SECOND, math.inf) is True
    assert due.any(1 * SECOND, upto=1) is False
    assert due.take(2 * SECOND) == [2, 4]
    due.put_back()
    assert due.take(3 * SECOND) == [2, 4, 1]
    assert due.take(3 * SECOND) == []
    assert due.newest == 4


def some(**fields: Any) -> Any:
    """Something with these."""
    return SimpleNamespace(**fields)


def a_vat(seq: int) -> Any:
    return some(seq=seq, heap=some(find=lambda name, number: number == 7 or None))


def test_one_that_was_taken_is_overdue_until_that_is_durable() -> None:
    residents, store = Residents(10), some(readonly=False, fault=None)
    timely = Timely(residents, store, lambda: 9 * SECOND, lambda *method: True)
    uid = b"s" * 16
    assert timely.overdue(uid, math.inf) == 0  # nobody knows
    assert timely.overdue(uid, 0) is None  # it was asked, and has left memory again
    resident = residents.use(uid)
    resident.vat = a_vat(4)
    resident.durable = 4
    assert timely.overdue(uid, math.inf) is None
    resident.due.add(7, 8.0)
    resident.due.add(8, 9.5)
    assert timely.overdue(uid, math.inf) == 8
    assert timely.overdue(uid, 6) is None
    resident.first.extend(timely.before(resident, resident.vat, Job(None, timely=True)))
    [job] = resident.first
    assert isinstance(job.message, Ended)
    assert (job.message.effect, job.timely) == (7, True)
    assert timely.overdue(uid, math.inf) == 8
    resident.first.clear()
    resident.vat.seq = 5
    timely.note(resident, resident.vat, some(cancelled=(), wanted=()), Job(None, timely=True))
    assert timely.overdue(uid, math.inf) == 8
    resident.durable = 5
    assert timely.overdue(uid, math.inf) is None


def test_what_only_looks_and_what_cannot_write_takes_none() -> None:
    residents, store = Residents(10), some(readonly=False, fault=None)
    timely = Timely(residents, store, lambda: 9 * SECOND, lambda *method: True)
    resident = residents.use(b"s" * 16)
    resident.due.add(7, 8.0)
    assert timely.before(resident, a_vat(4), Job(None)) == []
    store.readonly = True
    assert timely.before(resident, a_vat(4), Job(None, timely=True)) == []
    store.readonly, store.fault = False, OSError()
    assert timely.before(resident, a_vat(4), Job(None, timely=True)) == []
    store.fault, resident.damage = None, some()
    assert timely.before(resident, a_vat(4), Job(None, timely=True)) == []
    assert resident.due.any(9 * SECOND, math.inf)
