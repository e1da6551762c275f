"""Pieces of one turn: which are told, and which are not."""

from __future__ import annotations

from math import inf

import pytest

from keeve.looking import TurnSpans
from keeve.server.openai.drafts import Draft
from keeve.server.pieces import TurnPieces
from vat.host import pieces
from vat.host.pieces import Piece


def piece(text: str, after: int, attempt: int = 1) -> Piece:
    value = {"attempt": attempt, "delta": {"content": text}}
    return Piece("s1", "effect", "model", "complete", value, after)


def told(of: TurnPieces, before: float = 99) -> str:
    return "".join(each.text for each in of.before(before))


def test_pieces_are_of_a_turn_once_all_turns_before_it_are_over() -> None:
    of = TurnPieces(over=3)
    of.accepted(6, 20)
    of.hear(piece("four", 21))
    of.ended(5, 22)  # it was interrupted while it waited
    of.hear(piece("four", 23))
    assert told(of) == ""
    of.ended(4, 24)
    of.hear(piece("s", 24))
    of.hear(piece("ix", 26))
    assert told(of, 25) == "s"
    assert told(of) == "ix"


def test_a_turn_that_was_over_when_it_is_heard_of_has_no_pieces() -> None:
    of = TurnPieces(over=3)
    of.accepted(2, 10)
    of.hear(piece("four", 21))
    assert told(of) == ""


def test_what_ended_between_the_look_and_the_input_is_over() -> None:
    of = TurnPieces(over=3)
    of.ended(4, 18)
    of.hear(piece("four", 17))
    of.hear(piece("five", 20))
    of.accepted(5, 20)
    assert told(of) == "five"


def test_a_turn_begins_where_the_last_one_before_it_was_over_whatever_ended_while_it_waited() -> None:
    for over in (3, None):
        spans = TurnSpans(over)
        spans.ended(4, 20)
        spans.ended(6, 23)  # it was interrupted while it waited
        assert (spans.of(5), spans.newest) == ((20, inf), 23)
        assert spans.of(7)[0] == (inf if over else 23)
        spans.ended(5, 25)
        assert (spans.of(5, accepted=21), spans.of(7)) == ((21, 25), (25, inf))


def draft(*said: Piece, begins: bool = True) -> list[str | None]:
    of = Draft()
    if begins:
        of.begins()
    for each in said:
        of.hear(each)
    return [None if each is None else each.text for each in of.upto(99)]


def test_nothing_is_told_before_the_turn_begins_in_whatever_attempt() -> None:
    assert draft(piece("a", 1), piece("b", 1, attempt=2), begins=False) == []
    assert draft(piece("a", 1), piece("b", 1, attempt=2)) == ["a", None, "b"]


def test_an_attempt_whose_first_pieces_were_lost_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "WAITING", 2)
    lost = [piece("a", 1), piece("b", 1, attempt=2), piece("c", 1, attempt=2), piece("d", 1, attempt=2)]
    assert draft(*lost) == [None]
