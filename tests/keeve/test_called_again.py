"""An effect of unknown outcome that is called again: what everybody tells of it then, and who may ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from keeve.cli.effects import NoOutcome
from tests.cli_runner import keeve
from tests.cli_worlds import Caller, Stuck, leave_waiting
from tests.served_stores import asked, served_store
from vat.crank.chain import Chain
from vat.heap.opcodes import Op
from vat.host.host import Host

STATE = "effects", "--json"


async def test_what_was_called_again_is_told_as_started_from_the_files_and_from_the_server_alike(
    tmp_path: Path,
) -> None:
    store, stuck = tmp_path / "data", Stuck()
    await leave_waiting(store, ("again", "left"))
    async with served_store(store, actors=[Caller], devices={"tool": stuck}, unknown="hold") as there:
        ids = {effect.session: effect.id for effect in there.host.effects()}
        called = stuck.called
        said = await asked("resolve", ids["again"], "--again", "--store", store)
        assert (said.code, said.out) == (0, f"called again {ids['again']}\n"), said.err
        await called.wait()
        ways = ("--store", store), ("--server", there.socket)
        told = [
            {each["session"]: each["state"] for each in (await asked(*STATE, *way)).json["effects"]} for way in ways
        ]
        assert told == [{"again": "started", "left": "unknown"}] * 2
        assert states(there.host) == {"again": "running", "left": "unknown"}
        shown = [await asked("show", "again", *way) for way in ways]
        assert shown[0].out == shown[1].out
        assert "unknown" not in shown[0].out
        doctor = (await asked("doctor", "--store", store)).out
    assert "tool.call of session left has started, and nobody knows its outcome" in doctor
    assert "of session again" not in doctor
    # That host has ended while it ran: the next one does not know either.
    told = [{each["session"]: each["state"] for each in keeve(*STATE, "--store", store).json["effects"]}]
    assert told == [{"again": "unknown", "left": "unknown"}]


def states(host: Host) -> dict[str, str]:
    return {effect.session: effect.state for effect in host.effects()}


async def test_with_nobody_who_carries_it_out_it_is_told_who_would_and_left_as_it_is(tmp_path: Path) -> None:
    await leave_waiting(tmp_path)
    [id] = keeve("effects", "--ids", "--store", tmp_path).out.split()
    said = keeve("resolve", id, "--again", "--store", tmp_path)
    assert said.code == 2
    assert "keeve serve --unknown hold" in said.err
    assert "unknown=" not in said.err
    assert keeve("resolve", id, "--value", '"x"', "--store", tmp_path, "--actors", "tests.cli_worlds:Caller").code == 0


@pytest.mark.parametrize("words", [(), ("--value", "1", "--again"), ("--error", "no", "--again")])
def test_an_outcome_is_one_of_three(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = keeve("resolve", "ab", *words, "--store", tmp_path)
    assert said.code == 2
    assert str(NoOutcome()) in said.err


async def test_a_start_of_which_no_seq_is_recorded_was_before_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of an earlier version have none."""
    with monkeypatch.context() as earlier:
        operate = Chain._operate
        earlier.setattr(
            Chain,
            "_operate",
            lambda chain, draft, op, *args: operate(chain, draft, op, *args[: 1 if op == Op.STARTED else None]),
        )
        await leave_waiting(tmp_path)
    async with served_store(tmp_path, actors=[Caller], devices={"tool": Stuck()}, unknown="hold"):
        [effect] = (await asked(*STATE, "--store", tmp_path)).json["effects"]
    assert effect["state"] == "unknown"
