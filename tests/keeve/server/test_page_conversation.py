"""A conversation as it is read, from what was stated."""

from __future__ import annotations

from typing import Any

from keeve.server.page.conversation import TurnShown, turns_shown


def a_turn(*stated: tuple[str, str, dict[str, Any]]) -> TurnShown:
    """The turn in which this was stated of calls: label, id and keywords."""
    events = [("turn", [1, "s"], {"input": "go"}), *((label, [1, "s", id], said) for label, id, said in stated)]
    [turn] = turns_shown(
        {"kind": "assert", "label": label, "fields": fields, "keywords": said, "seq": seq, "time": ""}
        for seq, (label, fields, said) in enumerate(events, 1)
    )
    return turn


WANTED: dict[str, Any] = {"name": "pay", "arguments": "{}"}


def test_a_call_that_waits_under_a_number_is_the_call_that_was_wanted() -> None:
    turn = a_turn(("tool-call", "c", WANTED), ("approval-wanted", "c.2", WANTED), ("approval-refused", "c.2", {}))
    assert [entry.state for entry in turn.entries[1:]] == ["refused"]


def test_a_call_that_nobody_waits_for_any_more_is_withdrawn() -> None:
    turn = a_turn(("tool-call", "c", WANTED), ("approval-wanted", "c", WANTED), ("approval-withdrawn", "c", {}))
    assert [entry.state for entry in turn.entries[1:]] == ["withdrawn"]


def test_of_two_that_wait_under_one_id_each_has_its_own() -> None:
    both = [("approval-wanted", "c", WANTED), ("approval-wanted", "c.2", WANTED)]
    turn = a_turn(("tool-call", "c", WANTED), *both, ("approval-given", "c.2", {}))
    assert [entry.state for entry in turn.entries[1:]] == ["waits", "approved"]
