"""What sessions wait for, a page after another: of drawn sessions that wait for one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from dataspace.errors import KeeveError
from keeve.looking import waitlist
from keeve.looking.waiting import Waits
from keeve.looking.waitlist import in_order, order_in, page_in_order
from vat.heap.waits import Source, WaitingFiber

LOOKED_INTO = 3
Awaited = Mapping[str, frozenset[str]]
"""Sessions, and for which others each waits."""


class Looked:
    """Sessions of which those in `own` have pending work. Each has one fiber; `restored` says which were restored."""

    def __init__(self, own: frozenset[str], awaited: Awaited, unreadable: str = "") -> None:
        rows = {id.encode(): SimpleNamespace(id=id, uid=id.encode(), deleted=0) for id in awaited}
        self.catalog = SimpleNamespace(
            with_pending=lambda: [id.encode() for id in own], by_uid=rows.get, positions=lambda label: ()
        )
        self.awaited, self.unreadable = awaited, unreadable
        self.restored: list[str] = []

    def reaches(self, row: Any) -> bool:
        return True

    def name(self, uid: bytes) -> str:
        return uid.decode()

    def state_of(self) -> Any:
        return None

    def waits(self, _store: Any, row: Any, _cache: Any) -> Waits:
        self.restored.append(row.id)
        if row.id == self.unreadable:
            raise KeeveError("damaged")
        sources = tuple(Source(1, "session", uid=other.encode()) for other in self.awaited[row.id])
        fiber = WaitingFiber(row.id, 1, 1, "t", "m", 1, 1, 1, 0, "all", sources)
        askers = frozenset(id.encode() for id, others in self.awaited.items() if row.id in others)
        return Waits(fibers=(fiber,), askers=askers)

    def pages(self, limit: int) -> Iterator[list[str]]:
        """The sessions of each page; each restores what a page may, besides those that lead to its place."""
        after: str | None = ""
        while after is not None:
            place, before = order_in(after), len(self.restored)
            page = trio.run(page_in_order, self, in_order(self, place), place, limit)  # type: ignore[arg-type]  # all that it needs
            assert len(self.restored) - before <= waitlist.LOOKED_INTO + (len(place[0]) if place else 0)
            yield [each["session"] for kind in ("unreadable", "fibers", "promises") for each in page[kind]]
            after = page["next"]


@pytest.fixture(scope="module", autouse=True)
def restores() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waitlist, "waits_of", lambda store, row, cache: store.waits(store, row, cache))
        patch.setattr(waitlist, "LOOKED_INTO", LOOKED_INTO)
        yield patch


IDS = "abc/%é"
DRAWN = st.fixed_dictionaries({id: st.frozensets(st.sampled_from(IDS), max_size=3) for id in IDS})


@settings(max_examples=40)
@given(st.frozensets(st.sampled_from(IDS)), DRAWN, st.integers(1, 4))
def test_pages_have_who_waits_for_whom_in_as_many_restores_as_a_page_may_have(
    own: frozenset[str], awaited: Awaited, limit: int
) -> None:
    found, more = set(own), set(own)
    while more:
        more = {id for id in awaited if awaited[id] & found} - found
        found |= more
    told = [id for page in Looked(own, awaited).pages(limit) for id in page]
    assert set(told) == found
    for id in found:
        assert told.count(id) == 1 or (id not in own and not awaited[id] <= own)


def test_all_pages_restore_no_more_than_a_few_times_what_there_is() -> None:
    own = frozenset(f"s{number:02}" for number in range(30))
    store = Looked(own, {id: frozenset() for id in own} | {f"w{id}": frozenset((id,)) for id in own} | {"all": own})
    assert len([id for page in store.pages(1000) for id in page]) == 61
    assert len(store.restored) < 4 * 61


def test_who_waits_for_one_that_cannot_be_read_is_told_behind_the_next_for_which_it_waits() -> None:
    store = Looked(frozenset("ab"), {"a": frozenset(), "b": frozenset(), "c": frozenset("ab")}, "a")
    assert sorted(id for page in store.pages(1000) for id in page) == ["a", "b", "c"]


def test_who_waits_for_several_without_a_fiber_is_told_behind_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Looked(frozenset("bc"), {"a": frozenset("bc"), "b": frozenset(), "c": frozenset()})
    waits = store.waits

    def without_fiber(_store: Any, row: Any, cache: Any) -> Waits:
        found = waits(_store, row, cache)
        sources = [attrs.evolve(source, promise=n) for n, source in enumerate(found.fibers[0].sources, 1)]
        return attrs.evolve(found, fibers=(), promises=tuple(sources)) if row.id == "a" else found

    monkeypatch.setattr(store, "waits", without_fiber)
    assert [id for page in store.pages(1) for id in page] == ["b", "a", "a", "c"]
