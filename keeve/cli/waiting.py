"""What sessions wait for, in words: made of what is told of it in JSON (`keeve.looking`), where it is read.

The one rule: a function of what was told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keeve.cli.text import local_time, time_said

Told = Mapping[str, Any]
"""An object in JSON."""


def state_in_words(effect: Told, owner: int | None) -> str:
    """How far an open effect is: what nobody carries out waits for a host that has its device, but for a timer's, which
    all have."""
    if owner is None and effect["state"] == "wanted" and not effect["due"]:
        return f"waits for a host with the device {effect['device']}"
    return str(effect["state"])


def called(effect: Told) -> str:
    """An open effect: what is called, and which tool."""
    if effect["due"]:
        return f"a timer until {local_time(time_said(effect['due']))}"
    first = effect["args"][0] if effect["args"] else None
    function = first.get("function") if isinstance(first, Mapping) else None
    tool = f" {function.get('name')}" if isinstance(function, Mapping) else ""
    return f"{effect['device']}.{effect['method']}{tool}"


def with_words(told: dict[str, Any]) -> dict[str, Any]:
    """The same, with words for what each fiber and each promise in it waits for."""

    def worded(each: dict[str, Any]) -> dict[str, Any]:
        return {**each, "waits_for": [_source(each, source, told) for source in each["waits_for"]]}

    return {**told, **{kind: [worded(each) for each in told[kind]] for kind in ("fibers", "promises") if kind in told}}


def waits_for(fiber: Told) -> str:
    """What a fiber waits for, or a promise. It has words already."""
    said, mode = [str(source["what"]) for source in fiber["waits_for"]], fiber.get("mode", "all")
    if mode.endswith("-within") and len(said) > 1:
        said[-2:] = [f"{said[-2]}, or {said[-1]}"]
    return (", or " if mode == "first" else ", ").join(said) or "nothing: it is about to go on"


def _source(waits: Told, source: dict[str, Any], told: Told) -> dict[str, Any]:
    return {**source, "what": _what(waits["session"], source, told)}


def _what(session: str, source: Told, told: Told) -> str:
    kind = source["kind"]
    if kind == "effect":
        if "effect" not in source:
            return "what its parent has asked for, and answers it with Forked"
        effect = _find(told["effects"], session, "id", source["effect"])
        return f"effect {source['effect']}" if effect is None else called(effect)  # that may be on an earlier page
    if kind == "approval":
        call = _find(told["approvals"], session, "id", source["approval"])
        return f"approval of {'?' if call is None else call['name']} ({source['approval']})"
    if kind == "actor":
        return f"actor {source['actor']}, which owes it"
    if kind == "fiber":
        other = _find(told["fibers"], session, "fiber", source["fiber"])
        return f"fiber {source['fiber']} ({'' if other is None else other['method']})"
    if kind == "session":
        return f"session {source['session']}"
    return "a message on its way"


def _find(rows: Sequence[Told], session: str, name: str, wanted: Any) -> Told | None:
    return next((row for row in rows if row["session"] == session and row[name] == wanted), None)
