"""Writes the tests of each invariant into docs/invariants.md.

A test says which invariants it shows in its docstring, or in that of its class or its file: "Invariant 4",
"Invariants 31 and 32", "Invariants 1 to 3". The one rule: that is the only place where the two are joined;
the last column of the table is derived from it. `make docs` runs this file.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "invariants.md"
TO_COME = "to come"

MENTION = re.compile(r"\bInvariants?\s+(\d+(?:(?:,\s*|\s+and\s+|,\s+and\s+|\s+to\s+|\s*[-–]\s*)\d+)*)")
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.*) \|$")


def numbers_in(text: str) -> set[int]:
    """The invariants that a docstring names.

    >>> sorted(numbers_in("Invariants 1 to 3, 7 and 9: all of it. See Invariant 12."))
    [1, 2, 3, 7, 9, 12]
    """
    found: set[int] = set()
    for mention in MENTION.finditer(text):
        for first, last in re.findall(r"(\d+)(?:(?:\s+to\s+|\s*[-–]\s*)(\d+))?", mention[1]):
            found.update(range(int(first), int(last or first) + 1))
    return found


def by_invariant(files: Iterable[tuple[str, str]]) -> dict[int, list[str]]:
    """For each invariant the tests that show it, as pytest names them, from (path, text) of each file."""
    found: dict[int, list[str]] = defaultdict(list)
    for path, text in files:
        for name, docstring in _docstrings(path, ast.parse(text)):
            for number in sorted(numbers_in(docstring)):
                if not any(name.startswith(f"{wider}::") for wider in found[number]):
                    found[number].append(name)
    return found


def filled(page: str, tests: dict[int, list[str]]) -> str:
    """The page with the last column of its table written anew."""

    def row(line: str) -> str:
        match = ROW.match(line)
        if match is None:
            return line
        names = [f"`{name}`" for name in tests.get(int(match[1]), [])]
        return f"| {match[1]} | {match[2]} | {'<br>'.join(names) or TO_COME} |"

    return "\n".join(map(row, page.split("\n")))


def sources() -> Iterator[tuple[str, str]]:
    """The path from the top of the project, and the text, of each test file, in order."""
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        yield str(file.relative_to(ROOT)), file.read_text()


def _docstrings(name: str, node: ast.Module | ast.ClassDef) -> Iterator[tuple[str, str]]:
    yield name, ast.get_docstring(node) or ""
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _docstrings(f"{name}::{child.name}", child)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name}::{child.name}", ast.get_docstring(child) or ""


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(), by_invariant(sources())))
