"""`keeve fork`, `keeve effects` and `keeve resolve`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from keeve import open_host
from tests.cli_runner import keeve
from tests.cli_worlds import Asking, leave_a_turn_waiting, leave_waiting
from vat.devices.devices import Effect, effect


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


def chat(store: Path, id: str, *lines: str) -> None:
    assert keeve("chat", id, "--store", store, input="".join(f"{line}\n" for line in lines)).code == 0


def inputs(store: Path, id: str) -> list[str]:
    return [turn["input"] for turn in keeve("show", id, "--store", store, "--json").json["turns"]]


def test_a_fork_has_the_name_that_was_given_and_says_it(store: Path) -> None:
    chat(store, "s1", "hello")
    assert keeve("fork", "s1", "--into", "s2", "--store", store)[:2] == (0, "s2\n")
    chat(store, "s2", "elsewhere")
    chat(store, "s1", "straight on")
    assert inputs(store, "s1") == ["hello", "straight on"]
    assert inputs(store, "s2") == ["hello", "elsewhere"]


def test_a_fork_without_a_name_gets_one_which_is_said(store: Path) -> None:
    chat(store, "s1", "hello")
    name = keeve("fork", "s1", "--store", store).out.strip()
    assert inputs(store, name) == ["hello"]


def test_a_fork_at_a_seq_has_what_was_before_it(store: Path) -> None:
    """Invariant 28: the seq is the one that `show` tells."""
    chat(store, "s1", "hello", "again", "and on")
    third = keeve("show", "s1", "--store", store, "--json").json["turns"][2]["seq"]
    said = keeve("fork", "s1", "--at", str(third - 1), "--into", "s2", "--store", store, "--json")
    assert {**said.json, "uid": ""} == {"session": "s2", "uid": "", "from": "s1", "at": third - 1}
    assert inputs(store, "s2") == ["hello", "again"]


async def test_a_fork_leaves_the_pending_work_of_others_alone(store: Path) -> None:
    """A device that this command does not have is no reason to break what waits for it."""
    await leave_a_turn_waiting(store, "mailer")
    before = keeve("effects", "--store", store, "--json").json["effects"]
    chat(store, "s1", "hello")
    assert keeve("fork", "s1", "--store", store).code == 0
    assert keeve("fork", "mailer", "--store", store).code == 0
    assert [each["session"] for each in before] == ["mailer"]
    assert keeve("effects", "--store", store, "--json").json["effects"] == before


async def test_effects_without_an_outcome_are_listed(store: Path) -> None:
    await leave_waiting(store, ["c1", "c2"])
    said = keeve("effects", "--store", store, "--json").json
    assert said["owner"] is None
    assert [(each["session"], each["device"], each["args"]) for each in said["effects"]] == [
        ("c1", "tool", ["a stone"]),
        ("c2", "tool", ["a stone"]),
    ]
    assert keeve("effects", "--store", store).out.count("unknown  tool.call") == 2


def test_no_effects_are_said_to_be_none(store: Path) -> None:
    chat(store, "s1", "hello")
    assert keeve("effects", "--store", store) == (0, "", "nothing waits for an outcome\n")


class Counting:
    """Tools that count their calls."""

    def __init__(self) -> None:
        self.calls = 0

    @effect()
    async def run(self, effect: Effect, call: Any) -> str:
        self.calls += 1
        return "called"


async def last_turn_after(store: Path, *words: str) -> tuple[Any, int]:
    """What became of the turn that waited, once its call was settled with these words; and how often it was called."""
    [waiting] = keeve("effects", "--store", store, "--json").json["effects"]
    said = keeve("resolve", waiting["id"], *words, "--store", store)
    assert (said.code, said.out) == (0, f"settled {waiting['id']}\n")
    tools = Counting()
    async with open_host(store, devices={"model": Asking(), "tools": tools}) as host:
        async for event in host.observe('(turn-done 1 "s1" . _)'):
            return event.value.keywords["output"], tools.calls
    raise AssertionError("unreachable")


async def test_a_call_of_unknown_outcome_is_settled_with_a_value_and_not_run_again(store: Path) -> None:
    """Invariant 13."""
    await leave_a_turn_waiting(store)
    assert await last_turn_after(store, "--value", '"sent"') == ("it said: sent", 0)


async def test_a_call_of_unknown_outcome_is_settled_with_an_error(store: Path) -> None:
    await leave_a_turn_waiting(store)
    output, calls = await last_turn_after(store, "--error", "it was not sent")
    assert "it was not sent" in output
    assert calls == 0


async def test_what_was_settled_is_not_there_to_be_settled_again(store: Path) -> None:
    await leave_a_turn_waiting(store)
    [waiting] = keeve("effects", "--store", store, "--json").json["effects"]
    assert keeve("resolve", waiting["id"], "--value", "1", "--store", store, "--json").json["settled"] == "value"
    said = keeve("resolve", waiting["id"], "--value", "2", "--store", store)
    assert said.code == 2
    assert re.search(r"it was settled at \S+Z by local \(cli\), with a value; ", said.err)


async def test_a_value_that_is_not_one_settles_nothing(store: Path) -> None:
    await leave_a_turn_waiting(store)
    [waiting] = keeve("effects", "--store", store, "--json").json["effects"]
    for value in ("sent", "NaN", "[" * 100_000, '{"deep": ' + "[" * 100 + "]" * 100 + "}"):
        said = keeve("resolve", waiting["id"], "--value", value, "--store", store)
        assert said.code == 2, value[:20]
        assert "Traceback" not in said.err
    assert keeve("effects", "--store", store, "--json").json["effects"] == [waiting]


@pytest.mark.parametrize("words", [(), ("--value", "1", "--error", "no")])
def test_an_outcome_is_a_value_or_an_error(store: Path, words: tuple[str, ...]) -> None:
    said = keeve("resolve", "abc", *words, "--store", store)
    assert said.code == 2
    assert "--value" in said.err
    assert "--error" in said.err
    assert not store.exists()


def test_a_fork_after_a_turn_has_that_turn_whole_and_none_after_it(store: Path) -> None:
    chat(store, "s1", "hello", "again", "and on")
    turns = keeve("show", "s1", "--store", store, "--json").json["turns"]
    said = keeve("fork", "s1", "--turn", "2", "--into", "s2", "--store", store, "--json")
    assert said.json["at"] == turns[1]["end"] == turns[2]["seq"] - 1
    assert f"seq {turns[1]['seq']}–{turns[1]['end']}\n" in keeve("show", "s1", "--store", store).out
    assert inputs(store, "s2") == ["hello", "again"]
    assert keeve("chat", "s2", "--store", store, input="elsewhere\n").out == "elsewhere\n"


async def test_a_turn_that_is_not_over_is_no_place_for_a_fork(store: Path) -> None:
    await leave_a_turn_waiting(store, "mailer")
    for turn in ("1", "7"):
        said = keeve("fork", "mailer", "--turn", turn, "--store", store)
        assert (said.code, f"turn {turn} of session 'mailer' is not over" in said.err) == (2, True)
        assert "give --at, a seq that keeve chain mailer tells" in said.err
    said = keeve("fork", "mailer", "--turn", "1", "--at", "1", "--store", store)
    assert (said.code, "either --at" in said.err) == (2, True)
