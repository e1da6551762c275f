"""Writes what each file is into docs/architecture.md, from the first sentence of the file itself.

Each folder has a table there, in which a file comes after those that it uses. As far as that allows, its rows keep the
order in which somebody put them; a file that is new comes before the first that uses it, or last, and one that is gone
goes. The one rule: what a file is, it says itself, and the page repeats it. `make docs` runs this file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("keeve", "actors", "vat", "snapshots", "dataspace")

ROW = re.compile(rf"^\| `((?:{'|'.join(PACKAGES)})(?:/\w+)*\.py)` \|.*\|$")


def first_sentence(text: str) -> str:
    """What a file says first, as a table can hold it.

    >>> first_sentence('Pages: nodes as bytes,\\nand back. More.\\n\\nAnd more.')
    'Pages: nodes as bytes, and back'
    """
    sentence = re.split(r"(?<=[.?!])\s+(?=[A-Z`])", " ".join(text.partition("\n\n")[0].split()), maxsplit=1)[0]
    return sentence.rstrip(".:").replace("|", r"\|")


def rooms() -> dict[str, str]:
    """The path of every file of the packages from the top of the project, and what it says first."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return {
        str(file.relative_to(ROOT)): first_sentence(ast.get_docstring(ast.parse(file.read_text())) or "")
        for file in files
        if file.name != "__init__.py"
    }


def uses(paths: Iterable[str]) -> dict[str, set[str]]:
    """By the path of each of these files, the paths of those that it imports."""
    found: dict[str, set[str]] = {}
    for path in paths:
        named: set[str] = set()
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        found[path] = {f"{name.replace('.', '/')}.py" for name in named} - {path}
    return found


def ordered(paths: Sequence[str], uses: Mapping[str, Set[str]]) -> list[str]:
    """The same paths, each after those of them that it uses.

    >>> ordered(["host", "shop", "till"], {"host": {"till"}})
    ['till', 'host', 'shop']
    """
    placed: dict[str, None] = {}

    def place(path: str) -> None:
        used = uses.get(path, set())
        for other in paths:
            if other in used and other not in placed:
                place(other)
        placed[path] = None

    for path in paths:
        if path not in placed:
            place(path)
    return list(placed)


def filled(page: str, said: Mapping[str, str], uses: Mapping[str, Set[str]]) -> str:
    """The page with its tables written anew."""
    lines: list[str] = []
    for is_table, group in groupby(page.split("\n"), key=lambda line: ROW.match(line) is not None):
        rows = list(group)
        if is_table:
            named = [match[1] for row in rows if (match := ROW.match(row))]
            folder = named[0].rpartition("/")[0]
            new = [path for path in said if path.rpartition("/")[0] == folder and path not in named]
            there = [path for path in (*named, *new) if path in said]
            rows = [f"| `{path}` | {said[path]} |" for path in ordered(there, uses)]
        lines += rows
    return "\n".join(lines)


if __name__ == "__main__":
    said = rooms()
    PAGE.write_text(filled(PAGE.read_text(), said, uses(said)))
