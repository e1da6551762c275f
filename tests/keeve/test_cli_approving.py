"""`keeve approve` and `keeve refuse`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from keeve import open_host
from tests.cli_runner import keeve
from tests.cli_worlds import asking_devices, leave_asking, leave_fibers


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def output_of_the_turn(store: Path) -> Any:
    async with open_host(store, devices=asking_devices()) as host:
        async for event in host.observe('(turn-done 1 "s1" . _)'):
            return event.value.keywords["output"]
    raise AssertionError("unreachable")


async def test_a_call_that_was_approved_of_is_made_by_the_next_host(store: Path) -> None:
    await leave_asking(store)
    said = keeve("approve", "s1", "call_1", "--store", store)
    assert (said.code, said.out) == (0, "approved call_1\n")
    assert "goes on with s1" in said.err
    assert keeve("effects", "--store", store, "--json").json["approvals"] == []
    assert await output_of_the_turn(store) == "it said: sent"


async def test_a_call_that_was_refused_is_never_made(store: Path) -> None:
    await leave_asking(store)
    said = keeve("refuse", "s1", "call_1", "not today", "--store", store, "--json")
    assert said.json == {"session": "s1", "id": "call_1", "said": "refused", "reason": "not today"}
    output = await output_of_the_turn(store)
    assert "not today" in output
    assert "sent" not in output


@pytest.mark.parametrize("command", ["approve", "refuse"])
async def test_a_call_that_does_not_wait_is_named_with_those_that_do(store: Path, command: str) -> None:
    await leave_asking(store)
    said = keeve(command, "s1", "call_7", "--store", store)
    assert said.code == 2
    assert "no call 'call_7' waits for approval; these do: call_1" in said.err
    said = keeve(command, "s7", "call_1", "--store", store)
    assert said.code == 2
    assert "no session 's7'" in said.err
    assert len(keeve("effects", "--store", store, "--json").json["approvals"]) == 1


async def test_an_actor_of_ones_own_is_told_where_its_type_is_named(store: Path) -> None:
    await leave_fibers(store, w1=("for_a_person", "40"))
    said = keeve("approve", "w1", "c1", "--store", store)
    assert said.code == 2
    assert "--actors" in said.err
    said = keeve("approve", "w1", "c1", "--store", store, "--actors", "tests.cli_worlds:Waiter")
    assert (said.code, said.out) == (0, "approved c1\n")
    assert keeve("effects", "--store", store, "--json").json["fibers"] == []


async def test_a_store_that_is_owned_is_left_to_its_owner(store: Path) -> None:
    await leave_asking(store)
    async with open_host(store):
        said = keeve("approve", "s1", "call_1", "--store", store)
    assert said.code == 2
    assert "is owned by process" in said.err


async def test_chat_says_what_a_person_has_to_approve_of_and_ends(store: Path) -> None:
    await leave_asking(store)
    said = await trio.to_thread.run_sync(lambda: keeve("chat", "s1", "--store", store, input="and?\n"))
    assert said.code == 1
    assert "a person has to approve of send: keeve approve s1 call_1" in said.err
    assert len(keeve("effects", "--store", store, "--json").json["approvals"]) == 1


def test_who_is_told_to_approve_of_a_call_of_an_agent_of_ones_own_can_type_that(store: Path) -> None:
    own = ("--store", store, "--actors", "tests.cli_worlds:Asker")
    assert keeve("create", "a", "--type", "test.asker", *own).code == 0
    assert "say something to it with `keeve turn`" in keeve("chat", "a", *own, input="40\n").err
    said = keeve("turn", "a", "40", *own)
    assert "keeve approve a c1 --actors MODULE (or keeve refuse" in said.err
    assert keeve("approve", "a", "c1", *own).code == 0


async def test_a_turn_that_waits_is_named_by_its_number_where_no_server_is(tmp_path: Path) -> None:
    store = tmp_path / "data"
    await leave_asking(store)
    said = keeve("turn", "s1", "and then?", "--store", store)
    assert (said.code, said.out) == (1, "")
    waits = "a person has to approve of send: keeve approve s1 call_1"
    assert f"keeve: turn 2 is not over, and stays as it is: {waits}" in said.err
