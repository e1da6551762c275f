"""The page of invariants names each one once, and only tests that there are."""

from __future__ import annotations

import re

from docs.fill_invariants import PAGE, ROW, TO_COME, by_invariant, filled, sources

ROWS = {int(match[1]): match[3] for line in PAGE.read_text().splitlines() if (match := ROW.match(line))}


def test_each_invariant_has_one_row_in_order() -> None:
    numbers = [int(match[1]) for line in PAGE.read_text().splitlines() if (match := ROW.match(line))]
    assert numbers == list(range(1, 46))


def test_every_test_that_the_page_names_exists_and_names_the_invariant() -> None:
    known = by_invariant(sources())
    wrong = [
        f"{number}: {name}"
        for number, tests in ROWS.items()
        for name in re.findall(r"`(.+?)`", tests)
        if name not in known[number]
    ]
    assert not wrong, "run make docs: " + "\n".join(wrong)


def test_a_row_says_tests_or_that_they_are_to_come() -> None:
    odd = [number for number, tests in ROWS.items() if not re.fullmatch(rf"{TO_COME}|(`[^`]+`(<br>)?)+", tests)]
    assert odd == []


def test_the_column_is_filled_from_docstrings() -> None:
    whole = '"""Invariant 2."""'
    function = 'def test_a():\n    "Invariants 1 to 2: so."'
    method = 'class TestB:\n    def test_c(self):\n        "Invariant 1."'
    found = by_invariant([("tests/test_x.py", f"{whole}\n{function}\n{method}")])
    assert found == {
        1: ["tests/test_x.py::test_a", "tests/test_x.py::TestB::test_c"],
        2: ["tests/test_x.py"],  # the whole file, so none of its tests apart
    }
    page = "| 1 | One | to come |\n| 2 | Two | `old` |\n| 3 | Three | `gone` |\nprose"
    assert filled(page, found) == (
        "| 1 | One | `tests/test_x.py::test_a`<br>`tests/test_x.py::TestB::test_c` |\n"
        "| 2 | Two | `tests/test_x.py` |\n| 3 | Three | to come |\nprose"
    )
