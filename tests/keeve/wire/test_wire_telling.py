"""What is observed comes to the other end as it was."""

from __future__ import annotations

import re

import pytest

from dataspace.catalog.recent import SessionRow
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Away, Unreadable
from keeve.wire.telling import ROW, item_of, piece_said, row_of, row_said, unreadable_said
from tests.pages import ROOT
from vat.host.pieces import Piece

CURSOR = Cursor(bytes(16), 7, bytes(32))


@pytest.mark.parametrize("kind", [Away, Unreadable])
def test_what_is_archived_away_is_told_from_what_is_damaged(kind: type[Unreadable]) -> None:
    item = kind(7, "s", bytes(16), 2, "gone", CURSOR)
    told = item_of(unreadable_said(item))
    assert (type(told), told) == (kind, item)


def test_what_is_told_of_a_session_is_what_the_page_says_in_that_order() -> None:
    [said] = re.findall(r"rows: `\[(.*?)\]`", (ROOT / "docs" / "wire.md").read_text())
    assert tuple(said.split(", ")) == ROW
    row = SessionRow(**{name: n for n, name in enumerate(reversed(SessionRow._fields))})  # type: ignore[arg-type]  # a number for each
    assert row_of(row_said(row)) == row


def test_a_piece_comes_as_it_was() -> None:
    piece = Piece("s", "e", "model", "chat", "x", 3, 4)
    assert item_of(piece_said(piece)) == piece
