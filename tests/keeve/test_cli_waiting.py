"""What waits, as `keeve show`, `effects` and `doctor` tell it: fibers, calls that want approval, timers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keeve import Actor, Approvals, actor, open_host
from keeve.cli.waiting import called, state_in_words
from keeve.looking import effect_face
from tests.cli_runner import keeve
from tests.cli_worlds import Waiter, leave_fibers, leave_promises
from vat.heap.pending import OpenEffect


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


def effects(store: Path) -> Any:
    return keeve("effects", "--store", store, "--json").json


def awaited(store: Path, session: str) -> list[list[dict[str, Any]]]:
    """What each fiber of a session waits for."""
    shown = keeve("show", session, "--store", store, "--json").json
    return [fiber["waits_for"] for fiber in shown["fibers"]]


async def test_a_fiber_is_shown_with_its_method_since_when_and_for_what_it_waits(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"))
    shown = keeve("show", "w1", "--store", store, "--json").json
    [fiber] = shown["fibers"]
    assert (fiber["fiber"], fiber["type"], fiber["method"], fiber["parts"]) == (1, "test.waiter", "for_a_person", 1)
    assert fiber["since"] == shown["updated"]
    assert fiber["waits_for"] == [{"kind": "approval", "approval": "c1", "what": "approval of pay (c1)"}]
    said = keeve("show", "w1", "--store", store).out
    assert "  fiber    1, for_a_person, since 2" in said
    assert "waits for approval of pay (c1)\n" in said


async def test_a_call_that_waits_for_a_person_is_shown_until_somebody_has_decided(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"))
    [call] = keeve("show", "w1", "--store", store, "--json").json["approvals"]
    assert (call["id"], call["session"], call["turn"], call["name"], call["arguments"]) == ("c1", "w1", 0, "pay", "40")
    assert "  approval c1 of pay, since 2" in keeve("show", "w1", "--store", store).out
    assert effects(store)["approvals"] == [call]
    async with open_host(store, actors=[Waiter]) as host:
        await (await (await host.get("w1")).approvals).approve("c1")
    nothing = {
        "effects": [],
        "approvals": [],
        "fibers": [],
        "promises": [],
        "unreadable": [],
        "truncated": [],
        "next": None,
    }
    assert effects(store) == {"owner": None, **nothing}


async def test_a_fork_waits_for_a_word_of_its_own(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"))
    async with open_host(store, actors=[Waiter]) as host:
        w1 = await host.get("w1")
        await w1.fork(into="w2")
        await (await w1.approvals).approve("c1")
    assert [call["session"] for call in effects(store)["approvals"]] == ["w2"]


async def test_a_timer_is_shown_with_the_time_at_which_it_is_due(store: Path) -> None:
    await leave_fibers(store, w1=("for_tomorrow",))
    [timer] = effects(store)["effects"]
    assert timer["due"] > keeve("show", "w1", "--store", store, "--json").json["updated"]
    [[source]] = awaited(store, "w1")
    assert (source["kind"], source["effect"]) == ("effect", timer["id"])
    assert source["what"].startswith("a timer until 2")
    assert "pending  a timer until 2" in keeve("show", "w1", "--store", store).out


async def test_what_is_called_is_no_timer(store: Path) -> None:
    await leave_fibers(store, w1=("for_one_of_two",))
    shown = keeve("show", "w1", "--store", store, "--json").json
    assert [fiber["mode"] for fiber in shown["fibers"]] == ["first"]
    assert {effect["device"]: effect["due"] is None for effect in shown["effects"]} == {"tool": True, "timer": False}
    assert "waits for tool.call, or a timer until 2" in keeve("show", "w1", "--store", store).out


async def test_a_fiber_that_waits_for_another_one_names_it(store: Path) -> None:
    await leave_fibers(store, w1=("for_itself",))
    assert {"kind": "fiber", "fiber": 2, "what": "fiber 2 (for_tomorrow)"} in [
        source for sources in awaited(store, "w1") for source in sources
    ]


async def test_a_fiber_that_waits_for_another_session_is_listed_with_it(store: Path) -> None:
    await leave_fibers(store, w1=("for_tomorrow",), w2=("for_another", "w1"))
    assert awaited(store, "w2") == [[{"kind": "session", "session": "w1", "what": "session w1"}]]
    assert {fiber["session"] for fiber in effects(store)["fibers"]} == {"w1", "w2"}


async def test_a_session_that_waits_without_a_fiber_is_told_with_what_it_waits_for(store: Path) -> None:
    await leave_promises(store)
    own = {"kind": "actor", "actor": 1, "what": "actor 1, which owes it"}
    other = {"kind": "session", "session": "w1", "what": "session w1"}
    for session, source in (("asks", other), ("owes", own)):
        told = keeve("effects", "--session", session, "--store", store, "--json").json
        [promise] = told["promises"]
        assert (promise["session"], promise["waits_for"]) == (session, [source])
        said = keeve("effects", "--session", session, "--store", store).out
        assert said.split()[:4] == ["PROMISE", "SESSION", "WAITS", "FOR"]
        assert f"  {source['what']}\n" in said
    assert [each["session"] for each in effects(store)["promises"]] == ["asks"]  # behind the one for which it waits


async def test_a_session_that_waits_without_a_fiber_is_shown_with_what_it_waits_for(store: Path) -> None:
    await leave_promises(store)
    for session, what in (("asks", "session w1"), ("owes", "actor 1, which owes it")):
        said = keeve("show", session, "--store", store)
        assert "  pending  nothing but what stands below\n" in said.out
        [promise] = keeve("show", session, "--store", store, "--json").json["promises"]
        assert f"  promise  {promise['promise']}, waits for {what}\n" in said.out
        assert promise["waits_for"][0]["what"] == what


async def test_what_something_else_is_told_of_has_no_promises(store: Path) -> None:
    await leave_promises(store)
    told = keeve("effects", "--session", "w1", "--store", store, "--json").json
    assert (len(told["fibers"]), len(told["approvals"]), told["promises"]) == (1, 1, [])
    assert keeve("show", "asks", "--store", store, "--json").json["truncated"] == []


async def test_a_fiber_that_waits_for_what_an_actor_owes_names_the_actor(store: Path) -> None:
    await leave_fibers(store, w1=("for_what_is_owed",))
    assert awaited(store, "w1") == [[{"kind": "actor", "actor": 1, "what": "actor 1, which owes it"}]]


async def test_what_waits_is_listed_in_words(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"), w2=("for_tomorrow",))
    said = keeve("effects", "--store", store)
    assert said.code == 0
    first, second, third = [table.splitlines() for table in said.out.split("\n\n")]
    assert (first[0].split()[0], first[1].split()[1:4]) == ("EFFECT", ["w2", "wanted", "timer.until"])
    assert (second[0].split()[0], second[1].split()[:2], second[1].split()[-2:]) == (
        "APPROVAL",
        ["c1", "w1"],
        ["pay", "40"],
    )
    assert third[0].split()[0] == "FIBER"
    assert sorted(line.split()[1] for line in third[1:]) == ["w1", "w2"]


async def test_what_waits_is_told_a_page_after_another(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"), w2=("for_tomorrow",))
    whole, found = effects(store), keeve("effects", "--limit", "3", "--store", store, "--json").json
    rest = keeve("effects", "--after", found["next"], "--store", store, "--json").json
    for kind in ("effects", "approvals"):
        assert found[kind] + rest[kind] == whole[kind]
    assert rest["next"] is None
    [[source]] = [fiber["waits_for"] for fiber in rest["fibers"]]
    assert source["what"] == f"effect {found['effects'][0]['id']}"  # which is on the page before
    said = keeve("effects", "--session", "w1", "--limit", "1", "--store", store)
    assert said.err == "there may be more: --after 2.2.1:w1\n"
    assert keeve("effects", "--after", "nowhere", "--store", store).code == 2


async def test_the_doctor_tells_what_waits(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"), w2=("for_tomorrow",))
    said = keeve("doctor", "--store", store, "--json").json
    assert said["healthy"]
    signs = {sign["of"]: sign for sign in said["signs"]}
    assert signs["approvals"]["seen"].startswith("pay of session w1 waits for a person since 2")
    assert signs["timers"]["seen"].startswith("1 timer, the first is due at 2")
    assert signs["fibers"]["seen"].startswith("2 methods waiting, for_a_person of session w1 the longest, since 2")
    assert {signs[of]["state"] for of in ("approvals", "timers", "fibers")} == {"note"}


async def test_a_session_that_cannot_be_read_hides_no_approval(store: Path) -> None:
    """Invariant 23: a damaged session never stops another from being listed."""
    await leave_fibers(store, w1=("for_a_person", "a stone"), w2=("for_a_person", "40"))
    [segment] = (store / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.index(b"a stone")] ^= 1
    segment.write_bytes(data)
    said = keeve("effects", "--store", store, "--json")
    assert said.code == 1
    assert [each["session"] for each in said.json["unreadable"]] == ["w1"]
    assert [call["session"] for call in said.json["approvals"]] == ["w2"]


@pytest.mark.parametrize("at", [-1e300, -1, 0, 1e300, 10**300, 10**400, float("inf")])
def test_a_timer_is_shown_whatever_its_time_is(at: Any) -> None:
    told = effect_face(OpenEffect("0" * 32, "s", b"u", 1, "timer", "until", (at,), {}, False), "wanted")
    assert told["due"] is None or "1970" <= told["due"] < "9999-01-02"
    assert called(told)


def test_what_nobody_carries_out_is_said_to_wait_for_its_device() -> None:
    effect = effect_face(OpenEffect("e1", "s1", b"", 1, "tools", "run", (), {}, False), "wanted")
    assert state_in_words(effect, None) == "waits for a host with the device tools"
    assert state_in_words(effect, 17) == "wanted"
    assert state_in_words({**effect, "state": "unknown"}, None) == "unknown"


async def test_show_lists_a_fiber_that_failed_while_nobody_waited_for_it(store: Path) -> None:
    await leave_fibers(store, w1=("for_tomorrow",))
    [timer] = effects(store)["effects"]
    actors = ("--actors", "tests.cli_worlds:Waiter")
    assert keeve("resolve", timer["id"], "--error", "no day", "--store", store, *actors).code == 0
    said = keeve("show", "w1", "--store", store).out
    assert "fiber-failed" in said
    assert "no day" in said


@actor("test.waiter", version=2)
class NewWaiter(Actor):
    approvals: Approvals


async def test_doctor_tells_of_a_method_that_could_not_go_on(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"))
    async with open_host(store, actors=[NewWaiter]) as host:
        await (await host.get("w1")).describe()
    said = keeve("doctor", "--store", store).out
    assert "warn  fibers: test.waiter.for_a_person of session w1 could not go on where it waited" in said
