"""What callers give a host that it cannot take: each has an answer that says so, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dataspace.observe.cursor import BadCursor, WrongCursor
from dataspace.observe.dataspace import NoSuchSession, ObserverFailed
from dataspace.patterns import BadPattern
from dataspace.values import NotAValue
from keeve.testing.hosts import memory_host
from tests.vat.hosts import Counter
from vat.heap.messages import BadRequestId
from vat.host.host import Host
from vat.host.settings import BadHostSetting, Settings
from vat.objects.actor import Actor, actor
from vat.objects.collections import List

SURROGATE = "s\ud800"


@actor("arguments.keeper", version=1)
class Keeper(Actor):
    items: List[Any]
    value: Any = None

    def cycle(self) -> None:
        items: list[Any] = [1, self.items]
        items += [items, items]
        self.value = items


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with memory_host(actors=[Counter, Keeper]) as host:
        await host.spawn(Counter, "s")
        yield host


@pytest.mark.parametrize("request_id", ["", 5, SURROGATE, "x" * 1001, ["r"]])
async def test_what_is_no_request_id_is_refused(host: Host, request_id: Any) -> None:
    s = await host.get("s")
    with pytest.raises(BadRequestId):
        await s.add(request=request_id)
    with pytest.raises(BadRequestId):
        await host.spawn(Counter, "t", request=request_id)
    assert await s.count == 0
    assert [row.id for row in host.sessions()] == ["s"]
    assert await s.add(request="x" * 1000) == await s.add(request="x" * 1000) == 1


@pytest.mark.parametrize("name", ["a\0b", SURROGATE, 5])
async def test_a_name_of_who_asks_that_could_be_taken_for_another_is_refused(host: Host, name: Any) -> None:
    """Invariant 30: the requests of `a` and of `a\\0b` must never be one."""
    with pytest.raises(ValueError, match="cannot be the name"):
        host.asking(name)


@pytest.mark.parametrize("id", [SURROGATE, "", 5, None, ["s"], "s" * 100_000])
async def test_an_id_that_no_session_can_have_names_none(host: Host, id: Any) -> None:
    for ask in (host.get, host.restore_latest, host.delete):
        with pytest.raises(NoSuchSession):
            await ask(id)
    with pytest.raises(NoSuchSession):
        host.observe("(a)", session=SURROGATE)


async def test_a_page_of_the_list_takes_any_text_and_any_number(host: Host) -> None:
    assert host.sessions(SURROGATE) == []
    assert host.sessions(after=SURROGATE) == []
    assert len(host.sessions(limit=1 << 80)) == 1
    assert host.sessions(limit=-1) == []
    for wrong in ({"prefix": 5}, {"after": None}, {"limit": "1"}, {"limit": 1.5}):
        with pytest.raises(TypeError, match="a page of the list"):
            host.sessions(**wrong)


@pytest.mark.parametrize(
    "snapshot", [{}, 5, None, "s", {"session": "s", "seq": "1", "root": "", "hash": ""}, {"session": "s", "more": 1}]
)
async def test_what_is_no_snapshot_is_refused(host: Host, snapshot: Any) -> None:
    with pytest.raises(TypeError, match="is no snapshot"):
        await host.restore(snapshot)


async def test_places_that_there_are_not_are_refused(host: Host) -> None:
    for wrong in ("x", None, [], 1.5):
        with pytest.raises(BadCursor):
            host.observe("(a)", after=wrong)
        with pytest.raises(BadCursor):
            host.facts("(a)", at=wrong or "y")
    with pytest.raises(WrongCursor):
        host.observe("(a)", after=-1)


@pytest.mark.parametrize("pattern", [None, 5, ["a"], object()])
async def test_what_is_no_pattern_is_refused(host: Host, pattern: Any) -> None:
    for ask in (host.observe, host.facts, host.query):
        with pytest.raises(BadPattern):
            ask(pattern)


async def test_a_handler_that_exits_stops_its_observer_alone(host: Host) -> None:
    def leave(event: Any) -> None:
        raise SystemExit

    observer = host.observe("(spawn . _)", leave)
    with pytest.raises(ObserverFailed):
        await observer.wait()
    assert await (await host.get("s")).add() == 1


async def test_a_cycle_with_a_collection_in_it_is_refused_at_once(host: Host) -> None:
    with pytest.raises(NotAValue):
        await (await host.spawn(Keeper, "k")).cycle()


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("vats", -1, "a whole number, 0 or more"),
        ("vats", True, "a whole number, 0 or more"),
        ("cache", 1.5, "a whole number, 0 or more"),
        ("first_snapshot", 0, "a whole number, 1 or more"),
        ("grace", float("nan"), "a number of seconds, 0 or more"),
        ("retry", -1, "a number of seconds, 0 or more"),
        ("slow", None, "a number of seconds, 0 or more"),
        ("reclaim", "soon", "a number of seconds, 0 or more"),
        ("hold_unknown", "hold", "True or False"),
        ("takes_up", "All", "one of 'all', 'asked', 'nothing'"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_by_name(name: str, given: Any, says: str) -> None:
    with pytest.raises(BadHostSetting, match=rf"Settings\({name}=.*\): it is {says}"):
        Settings(**{name: given})


def test_settings_without_an_end_can_be_meant() -> None:
    assert Settings(grace=0, closing=float("inf"), reclaim=None, vats=0).closing == float("inf")


@pytest.mark.parametrize("which", [{"seq": 1.5}, {"seq": "1"}, {"seq": [1]}, {"turn": True}, {"turn": 2.0}])
async def test_what_is_no_number_of_a_record_or_a_turn_erases_nothing(host: Host, which: dict[str, Any]) -> None:
    (name,) = which
    with pytest.raises(TypeError, match=rf"^{name} is the .*: give a whole number, and not "):
        await host.erase("s", **which)


@pytest.mark.parametrize("session", [[1], 5, 1.5, {"id": "s"}])
async def test_what_is_no_session_is_asked_nothing(host: Host, session: Any) -> None:
    """Invariant 43."""
    for asked in (host.query, host.facts, host.observe):
        with pytest.raises(TypeError, match="session is the id of a session or its uid"):
            asked("(_ . _)", session=session)
    with pytest.raises(TypeError, match="session is the id of a session or its uid"):
        host.reader().narrow(session=session)


@pytest.mark.parametrize(
    ("args", "keywords"),
    [
        ((), {"turn": 1}),
        ((1, "f", 2), {}),
        ((1,), {"at": 1}),
        (("f",), {}),
        ((), {"into": 1}),
    ],
)
async def test_what_a_fork_cannot_take_is_told_with_what_it_takes(host: Host, args: Any, keywords: Any) -> None:
    s: Any = await host.get("s")
    with pytest.raises(TypeError, match=r"^fork\(at=None, into=None\): .* turn, give the seq of .*turn-done"):
        await s.fork(*args, **keywords)
    with pytest.raises(TypeError, match=r"^snapshot\(\) takes no arguments"):
        await s.snapshot(1)
    assert len(host.sessions()) == 1
