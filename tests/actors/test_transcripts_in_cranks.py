"""Real conversations, played through a session one crank at a time: nothing is lost, doubled or changed on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from actors.models import ScriptedModel
from actors.session import Session
from dataspace.facts import Fact, fact
from tests.actors.driving import Driven
from tests.actors.scenes import schema
from vat.devices.devices import Effect, effect

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "transcripts"
PATHS = sorted(FOLDER.glob("*.jsonl"))

if not PATHS:
    pytest.skip(f"there are no transcripts in {FOLDER}: they are not part of the project", allow_module_level=True)

each_transcript = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


class RecordedTools:
    """Answers each call with the output that the transcript has for its id, and counts the calls."""

    def __init__(self, transcript: list[dict[str, Any]]) -> None:
        self.outputs = {said["tool_call_id"]: said["content"] for said in transcript if said["role"] == "tool"}
        self.calls: Counter[str] = Counter()

    @effect
    async def run(self, effect: Effect, call: Mapping[str, Any]) -> str:
        self.calls[call["id"]] += 1
        return self.outputs[call["id"]]


@cache
def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def begun(path: Path, snapshot_every: int = 0) -> tuple[Driven, RecordedTools]:
    """A session that has the transcript's first input."""
    transcript = read(path)
    tools = RecordedTools(transcript)
    system, first, *rest = transcript
    driven = Driven(
        Session,
        {"model": ScriptedModel(transcript), "tools": tools},
        snapshot_every=snapshot_every,
        system=system["content"],
        tools=[schema("bash")],
        max_steps=sum(said["role"] == "assistant" for said in rest),
    )
    driven.call("turn", first["content"])
    return driven, tools


def check(driven: Driven, path: Path) -> None:
    """The conversation is the transcript, byte for byte."""
    transcript = read(path)
    assert json.dumps(driven.read("messages")) == json.dumps(transcript)
    assert driven.read("status") == {"accepted": 1, "over": 1, "running": None, "limit": "steps", "stated": True}


@each_transcript
def test_a_transcript_comes_out_as_it_went_in(path: Path) -> None:
    driven, tools = begun(path)
    driven.run()
    check(driven, path)
    assert set(tools.calls.values()) == {1}
    driven.restart()  # from the first record on: there is no snapshot
    check(driven, path)


@each_transcript
def test_a_restart_after_every_record_changes_nothing(path: Path) -> None:
    """Invariants 8 and 14: the same messages as without restarts, and no tool is called twice."""
    driven, tools = begun(path, snapshot_every=16)
    driven.restart()
    while driven.open:
        number = driven.open[0]
        outcome = driven.carry_out(number)
        driven.restart()  # it has started; its outcome comes from who carried it out
        driven.end(number, outcome)
        driven.restart()
        if len(driven.records) % 16 < 2:
            driven.snapshot()
            driven.restart()
    check(driven, path)
    assert set(tools.calls.values()) == {1}


@each_transcript
def test_a_fork_in_the_middle_leaves_the_parent_whole(path: Path) -> None:
    """Invariants 27 and 28: the fork has every byte of what was before it, the parent goes on as if there were none."""
    transcript = read(path)
    driven, _ = begun(path)
    for _ in range(len(transcript) // 2):
        driven.advance()
    said = json.dumps(driven.read("messages"))
    child = driven.fork("s2")
    child.restart()
    grandchild = child.fork("s3")
    for fork in (child, grandchild):
        assert json.dumps(fork.read("messages")).startswith(said[:-1])
        assert fork.read("history") == [transcript[1]["content"]]
    driven.run()
    check(driven, path)
    assert fork.stated("turn-done") == []


@each_transcript
def test_the_facts_of_a_transcript_are_these(path: Path) -> None:
    driven, _ = begun(path)
    driven.run()
    assert driven.facts == expected(read(path))


def expected(transcript: list[dict[str, Any]]) -> list[Fact]:
    session = {"type": "keeve.session", "by": "local", "via": "python"}
    turn = {"input": transcript[1]["content"], "request": None, "by": "local", "via": "python"}
    facts = [fact("spawn", "s1", **session), fact("turn", 1, "s1", **turn)]
    step = 0
    for said in transcript[2:]:
        if said["role"] == "assistant":
            step += 1
            facts.append(fact("model-output", 1, "s1", step, message=said))
            for call in said["tool_calls"]:
                called = {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
                facts.append(fact("tool-call", 1, "s1", call["id"], **called))
        else:
            facts.append(fact("tool-result", 1, "s1", said["tool_call_id"], output=said["content"]))
    # The last call has no recorded output: the limit on steps ends the turn before it.
    facts[-1] = fact("turn-done", 1, "s1", output=transcript[-1]["content"], usage={}, limit="steps")
    return facts
