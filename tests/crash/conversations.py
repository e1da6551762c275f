"""Recorded conversations, as they are played: whole or shortened, and with calls made beside each other.

The one rule: what a tool has answered is never changed, only which answer of the model asked for it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "data" / "transcripts"
NAMES = sorted(path.stem for path in TRANSCRIPTS.glob("*.jsonl"))
MISSING = f"the recorded conversations are not at {TRANSCRIPTS}; they are not part of the project"

Message = dict[str, Any]


def read_transcript(path: str | Path, messages: int) -> list[Message]:
    """The first `messages` messages of a transcript, ended by an answer that calls a tool."""
    said: list[Message] = [json.loads(line) for line in Path(path).read_text().splitlines()[:messages]]
    while said[-1]["role"] != "assistant":
        said.pop()
    return said


def beside_each_other(transcript: Sequence[Message], seed: int) -> list[Message]:
    """A transcript in which some consecutive answers, each with one call, are one answer with all of their calls.

    The last answer stays what it is.
    """
    chance = random.Random(seed)
    said = list(transcript[:2])
    steps = [transcript[at : at + 2] for at in range(2, len(transcript) - 1, 2)]
    at = 0
    while at < len(steps):
        several = steps[at : at + chance.choice([1, 2, 3, 4])]
        at += len(several)
        calls = [call for answer, _ in several for call in answer["tool_calls"]]
        said.append({**several[0][0], "tool_calls": calls})
        said += [told for _, told in several]
    return [*said, transcript[-1]]


def ended(transcript: Sequence[Message]) -> list[Message]:
    """A transcript whose last answer calls nothing, so that a loop ends there."""
    last = {key: value for key, value in transcript[-1].items() if key != "tool_calls"}
    return [*transcript[:-1], last]


def outputs_in(transcript: Sequence[Message]) -> Mapping[str, str]:
    """What the tools have answered, by the id of the call."""
    return {said["tool_call_id"]: said["content"] for said in transcript if said["role"] == "tool"}


def calls_in(transcript: Sequence[Message]) -> Iterator[str]:
    """The ids of the calls that have an answer."""
    yield from outputs_in(transcript)
