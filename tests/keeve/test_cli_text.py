"""Text for terminals, and values in JSON."""

from __future__ import annotations

import json
import math
import re
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.values import ERASED, Blob, Promise, Ref, Symbol
from keeve.cli.output import Output
from keeve.cli.text import Cleaner, local_time, plain, shortened, visible
from keeve.faces import face, utc_time
from tests.dataspace.value_strategies import containers, scalars

HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
ESCAPES = [
    "\x1b[31m",
    "\x1b]8;;http://x\x1b\\",
    "\x1b]0;t\x07",
    "\x9b2J",
    "\x1bc",
    "\x1bPq\x1b\\",
    "\r",
    "\x07",
    "\u202e",
]
LINES = st.lists(st.one_of(st.text(max_size=5), st.sampled_from([*ESCAPES, "\x1b", "[", "]", "\n", "\t"])), max_size=12)


@given(LINES)
def test_nothing_that_a_terminal_obeys_is_left(pieces: list[str]) -> None:
    assert not HOSTILE.search(plain("".join(pieces)))
    assert not HOSTILE.search(visible("".join(pieces)).replace("\n", ""))
    assert "\n" not in visible("".join(pieces))


@given(st.lists(st.sampled_from([*ESCAPES, "a", "b\n", "é", "👩‍👩‍👧"]), max_size=12), st.data())
def test_cleaning_in_pieces_leaves_what_cleaning_the_whole_leaves(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cleaner = Cleaner()
    shown, at = "", 0
    while at < len(text):
        end = data.draw(st.integers(at + 1, len(text)))
        shown += cleaner.of(text[at:end])
        at = end
    assert shown == plain(text)


def test_what_is_no_control_stays_as_it_is() -> None:
    text = "naïve 日本語 👩‍👩‍👧 سلام\u200cدنیا\n\tindented"
    assert plain(text) == text


def test_a_sequence_that_never_ends_does_not_hold_the_text_back_for_ever() -> None:
    cleaner = Cleaner()
    shown = cleaner.of("\x1b]0;") + "".join(cleaner.of("x" * 100) for _ in range(100))
    assert len(shown) + 5000 > 10_000


@given(st.text())
def test_what_is_made_visible_is_the_same_in_json(text: str) -> None:
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text


def test_a_text_is_shortened_to_one_line() -> None:
    assert shortened("a\nb\x1b[1mc " + "d" * 100, 10) == "a bc dddd…"


@given(containers(scalars))
def test_every_value_has_a_face_that_json_can_carry(value: Any) -> None:
    json.loads(json.dumps(face(value), allow_nan=False))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"\x00\xff", {"$bytes": "AP8="}),
        (Symbol("turn"), {"$symbol": "turn"}),
        (math.inf, {"$float": "inf"}),
        (Ref(None, 3), {"$ref": "#ref(3)"}),
        (Promise(4), {"$promise": 4}),
        (Blob("text/plain", b"hi"), {"$blob": {"media_type": "text/plain", "content": "aGk="}}),
        (ERASED, {"$erased": True}),
        ({"$bytes": "AP8="}, {"$object": [["$bytes", "AP8="]]}),
        ({"b": 1, "a": [True, None, 1.5]}, {"b": 1, "a": [True, None, 1.5]}),
        (2**80, 2**80),
    ],
)
def test_what_json_has_no_kind_for_is_an_object_that_says_so(value: Any, shown: Any) -> None:
    assert face(value) == shown
    assert face(math.nan) == {"$float": "nan"}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_is_cut_at_the_edge_of_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("NO_COLOR", "1")
    for stream, last in ((Terminal(), "a  " + "b" * 16 + "…"), (StringIO(), "a  " + "b" * 40)):
        Output(out=stream).table(("X", "Y"), [("a", "b" * 40)])
        assert plain(stream.getvalue()).splitlines()[1] == last


def test_prose_is_broken_between_words_at_a_terminal_and_what_is_copied_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    for stream, lines in (
        (Terminal(), ["s1 with a model.", "Ctrl-D ends."]),
        (StringIO(), ["s1 with a model. Ctrl-D ends."]),
    ):
        Output(err=stream).note("s1 with a model. Ctrl-D ends.", style="", prose=True)
        Output(err=stream).note("keeve chat s1 --store somewhere", style="")
        assert [line.rstrip() for line in stream.getvalue().splitlines()] == [*lines, "keeve chat s1 --store somewhere"]


def test_columns_stand_under_each_other_whatever_the_width_of_their_characters() -> None:
    stream = StringIO()
    Output(out=stream).table(("X", "Y"), [("日本", "1"), ("a", "2")])
    assert stream.getvalue() == "X     Y\n日本  1\na     2\n"


def test_what_looks_like_markup_is_printed_as_it_is() -> None:
    stream = StringIO()
    Output(out=stream).say("[red]:smile:[/red] [link=http://x]y[/link]")
    assert stream.getvalue() == "[red]:smile:[/red] [link=http://x]y[/link]\n"


@pytest.mark.parametrize("time", [-(1 << 63), -1, (1 << 63) - 1, ((1 << 64) - 1) * 1_000_000])
def test_a_time_that_no_calendar_has_is_shown(time: int) -> None:
    """A record's is any number of 64 bits, a witness's one of seconds."""
    assert re.fullmatch(r"\d{1,4}-\d\d-\d\d \d\d:\d\d:\d\d", local_time(time))
    assert utc_time(time).endswith("Z")
