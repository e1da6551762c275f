"""What errors say to do: each remedy has its words at every door, and is found again in a text."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest

from dataspace.observe.dataspace import NoSuchSession
from dataspace.remedies import REMEDIES, Remedy, filled
from keeve.client.words import error_of
from keeve.remedies import WORDS, Words, worded
from vat.failures import failure_of

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(r"\bhost\.\w|\w\(\.\.\.|\w=\.\.\.|open_host|@effect|@actor|readonly=|takes_up=|\w\(\)")
"""What only a program can do something with."""


@pytest.fixture(scope="module", autouse=True)
def _all_are_there() -> None:
    """Every module that has a remedy is imported."""
    for package in ("dataspace", "vat", "actors", "keeve"):
        for file in (ROOT / package).rglob("*.py"):
            if "import Remedy" in file.read_text():
                import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def names_in(words: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(words) if name is not None}


def test_every_remedy_has_its_words_at_every_door_and_there_are_no_others() -> None:
    assert WORDS.keys() == REMEDIES.keys() - {"test"}
    assert len(WORDS) > 30


def test_what_is_said_at_a_door_is_nothing_for_programs_and_says_what_is_known() -> None:
    for code, words in WORDS.items():
        for door in Words._fields:
            said = getattr(words, door)
            if said is not None:
                assert names_in(said) <= names_in(REMEDIES[code].words), code
                assert door == "client" or not PYTHON.search(said), code
        if re.search(r"\bhost\.\w+\(", REMEDIES[code].words):  # a client has none
            assert words.client is not None


def test_a_remedy_is_found_in_a_message_with_what_it_says() -> None:
    for code, remedy in REMEDIES.items():
        data = {name: f"<{name} of 's 1'>" for name in names_in(remedy.words)}
        message = f"it is so: {remedy(**data)}, and more"
        assert remedy.data(message) == data, code
        assert remedy.data("it is so, and no more") is None
        for door in Words._fields:
            said = getattr(WORDS[code], door)
            if said is not None:
                assert worded(message, door) == f"it is so: {filled(said, data)}, and more"  # type: ignore[arg-type]  # its fields are the doors
    assert worded(f"no: {WORDS['choose-id'].client}", "http") == "no: choose another id"


def test_two_remedies_of_one_code_are_refused() -> None:
    with pytest.raises(ValueError, match="choose-id"):
        Remedy("choose-id", "choose")


def test_a_client_is_told_of_itself_and_only_by_errors_of_ours() -> None:
    failure = failure_of(NoSuchSession("s1"))
    assert "client.sessions()" in str(error_of(failure))
    assert "host.sessions()" in str(error_of({**failure, "error": "ValueError", "class": ""}))


def test_a_remedy_says_what_the_file_of_what_was_said_has() -> None:
    """Records keep it. Who rewords what a version has said has it found by those words as well, and adds the new ones
    to the file."""
    said = json.loads((ROOT / "tests" / "keeve" / "remedies_said.json").read_text())
    assert {code: [remedy.words] for code, remedy in REMEDIES.items() if code != "test"} == said
