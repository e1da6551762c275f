"""A conversation as it is read: turns, each with what was said and done in it, put together from what was stated.

It works on events as the API gives them; `conversation.js` does the same with those that come while one reads.

The one rule: nothing is made up. Every line is a fact, and has the seq of its record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from keeve.faces import ENDS
from keeve.server.page.said import as_text

_NUMBERED: Final = re.compile(r"(.*)\.\d+", re.DOTALL)


@attrs.define
class Entry:
    """One thing that was said or done: `kind` is `user`, `model`, `tool` or `note`."""

    kind: str
    seq: int
    title: str
    text: str
    output: str | None = None
    """What came of a call of a tool."""
    state: str = ""
    """Of a call: `wanted`, `answered`, `failed`, `unknown`, `waits`, `approved`,
    `refused` or `withdrawn`."""
    call: str = ""
    """Of a call: its turn and its id."""


@attrs.define
class TurnShown:
    """A turn: see `keeve.faces.Turn`."""

    number: int
    seq: int
    time: str
    by: str
    via: str
    entries: list[Entry]
    state: str = "open"
    end: int | None = None
    limit: str = ""
    error: str = ""
    usage: str = ""
    calls: dict[str, Entry] = attrs.field(factory=dict)


def turns_shown(events: Iterable[Mapping[str, Any]]) -> list[TurnShown]:
    """The turns that these events tell of, in their order."""
    turns: dict[int, TurnShown] = {}
    for event in events:
        label, fields, said = event["label"], event["fields"], event["keywords"]
        number = fields[0] if fields else None
        if event["kind"] != "assert" or type(number) is not int:
            continue
        if label == "turn":
            by = str(said.get("by") or "")
            said_first = Entry("user", event["seq"], by, as_text(said.get("input")))
            turns[number] = TurnShown(number, event["seq"], event["time"], by, str(said.get("via") or ""), [said_first])
        elif number in turns:
            _tell(turns[number], label, event)
    return list(turns.values())


def _tell(turn: TurnShown, label: str, event: Mapping[str, Any]) -> None:
    fields, said, seq = event["fields"], event["keywords"], event["seq"]
    if label == "steered":
        turn.entries.append(Entry("user", seq, str(said.get("by") or ""), as_text(said.get("input"))))
    elif label == "model-output":
        message = said.get("message")
        message = message if isinstance(message, dict) else {"content": message}
        text = as_text(message.get("content")) or as_text(message.get("refusal"))
        if text or not message.get("tool_calls"):
            turn.entries.append(Entry("model", seq, "", text))
    elif label in ("tool-call", "approval-wanted") and len(fields) > 2:
        call = _call_of(turn, str(fields[2]))
        if call is None or (call.state == "waits" and str(fields[2]) not in turn.calls):  # one beside it has its id
            named, given = str(said.get("name", "")), as_text(said.get("arguments"))
            call = Entry("tool", seq, named, given, state="wanted", call=f"{turn.number} {fields[2]}")
            turn.calls[str(fields[2])] = call
            turn.entries.append(call)
        if label == "approval-wanted":
            call.state = "waits"
    elif label in ENDS:
        turn.state, turn.end = ENDS[label], seq
        turn.limit = as_text(said.get("limit"))
        turn.error = _error(said.get("error"))
        turn.usage = _usage(said.get("usage"))
    else:
        _tell_call(turn, label, event)


def _tell_call(turn: TurnShown, label: str, event: Mapping[str, Any]) -> None:
    call = _call_of(turn, str(event["fields"][2])) if len(event["fields"]) > 2 else None
    if call is None:
        return
    said = event["keywords"]
    if label == "tool-result":
        if call.state != "refused":
            call.state = "failed" if said.get("error") is not None else "answered"
        call.output = as_text(said.get("output"))
    elif label == "tool-unknown":
        call.state = "unknown"
    elif label == "approval-given":
        call.state = "approved"
    elif label == "approval-refused":
        call.state = "refused"
        call.output = as_text(said.get("reason"))
    elif label == "approval-withdrawn":
        call.state = "withdrawn"


def _call_of(turn: TurnShown, id: str) -> Entry | None:
    """The call of that id, without the number that was put behind it while it waited for a person."""
    while id not in turn.calls and (numbered := _NUMBERED.fullmatch(id)):
        id = numbered[1]
    return turn.calls.get(id)


def _error(error: Any) -> str:
    if isinstance(error, dict) and "message" in error:
        return f"{error.get('error', 'Error')}: {as_text(error['message'])}"
    return as_text(error)


def _usage(usage: Any) -> str:
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return f"{total} tokens" if isinstance(total, int) else ""
