"""The timers that a vat takes before what they may end: which are due, and till when they are not on record."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from keeve.errors import KeeveError
from vat.heap.messages import Ended
from vat.host.due import Due
from vat.host.residents import Job, Residents
from vat.host.timely import Timely

SECOND = 1_000_000


def test_those_that_are_due_come_in_the_order_of_their_times() -> None:
    due = Due()
    for number, at in [(1, 3.0), (2, 1.0), (3, 2.0), (4, 2.0)]:
        due.add(number, at)
    due.leave(3, seq=1, durable=1)
    due.leave(3, seq=1, durable=1)
    assert due.numbers(1 * SECOND - 1) == []
    assert due.numbers(1 * SECOND) == [2]
    assert due.numbers(3 * SECOND) == [2, 4, 1]
    assert due.waits(1 * SECOND, math.inf, durable=1)
    assert not due.waits(1 * SECOND, upto=1, durable=1)
    assert due.newest == 4


def test_one_that_is_over_is_waited_for_until_that_is_on_record_and_forgotten_then() -> None:
    due = Due()
    for number in range(1, 101):
        due.add(number, 1.0)
        due.leave(number, seq=number, durable=number - 2)
        assert len(due) <= 2
    due.add(101, 9.0)
    due.leave(101, seq=101, durable=98)
    assert due.waits(1 * SECOND, upto=99, durable=98)
    assert not due.waits(1 * SECOND, upto=98, durable=98)
    assert not due.waits(1 * SECOND, math.inf, durable=100)  # the one of 101 would not be due yet
    assert due.waits(9 * SECOND, math.inf, durable=100)
    assert not due.waits(9 * SECOND, math.inf, durable=101)
    assert len(due) == 0


def some(**fields: Any) -> Any:
    """Something with these."""
    return SimpleNamespace(**fields)


def a_vat(seq: int) -> Any:
    return some(seq=seq, heap=some(forking=False, find=None))


def test_one_that_was_taken_is_overdue_until_that_is_durable() -> None:
    residents, store = Residents(10), some(readonly=False, fault=None)
    timely = Timely(residents, store, lambda: 9 * SECOND, lambda *method: True)
    uid = b"s" * 16
    assert timely.overdue(uid, math.inf) == math.inf  # nobody knows
    resident = residents.use(uid)
    assert timely.overdue(uid, 6) == math.inf
    resident.vat = a_vat(4)
    resident.durable = 4
    assert timely.overdue(uid, math.inf) is None
    resident.due.add(7, 8.0)
    resident.due.add(8, 9.5)
    assert timely.overdue(uid, math.inf) == 8
    assert timely.overdue(uid, 6) is None
    [job] = timely.before(resident, Job(None, timely=True))
    assert isinstance(job.message, Ended)
    assert (job.message.effect, job.timely) == (7, True)
    assert timely.overdue(uid, math.inf) == 8
    resident.vat.seq = 5
    timely.note(resident, resident.vat, some(cancelled=(), wanted=(), ended=7))
    assert timely.before(resident, Job(None, timely=True)) == []
    assert timely.overdue(uid, math.inf) == 8
    resident.durable = 5
    assert timely.overdue(uid, math.inf) is None


def test_where_none_can_be_taken_it_is_said_why() -> None:
    residents, store = Residents(10), some(readonly=False, fault=None)
    timely = Timely(residents, store, lambda: 9 * SECOND, lambda *method: True)
    resident = residents.use(b"s" * 16)
    resident.vat = a_vat(4)
    resident.due.add(7, 8.0)
    resident.damage = KeeveError("damaged")
    with pytest.raises(KeeveError, match="damaged"):
        timely.overdue(resident.uid, math.inf)
    resident.damage, store.fault = None, KeeveError("disk")
    with pytest.raises(KeeveError, match="disk"):
        timely.overdue(resident.uid, math.inf)


def test_what_only_looks_and_what_cannot_write_takes_none() -> None:
    residents, store = Residents(10), some(readonly=False, fault=None)
    timely = Timely(residents, store, lambda: 9 * SECOND, lambda *method: True)
    resident = residents.use(b"s" * 16)
    resident.due.add(7, 8.0)
    assert timely.before(resident, Job(None)) == []
    store.readonly = True
    assert timely.before(resident, Job(None, timely=True)) == []
    store.readonly, store.fault = False, OSError()
    assert timely.before(resident, Job(None, timely=True)) == []
    store.fault, resident.damage = None, some()
    assert timely.before(resident, Job(None, timely=True)) == []
    assert resident.due.numbers(9 * SECOND) == [7]
