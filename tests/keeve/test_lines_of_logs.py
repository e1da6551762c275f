"""Every line of a log has an error from `in_log`, and its trace from `traced`: held as a kind, over all packages.

What tells of an error besides is looked for by name: what an `except` names, a parameter that is an error, an attribute
that holds one, and whatever is made of these.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli_runner import ROOT

PACKAGES: Final = ("keeve", "actors", "vat", "snapshots", "dataspace")
LEVELS: Final = frozenset(("debug", "info", "warning", "error", "exception", "critical", "log"))
HELPERS: Final = frozenset(("in_log", "traced", "set_up_of", "isinstance", "type"))
"""What gives of an error nothing that somebody said."""
PLAIN: Final = frozenset(("logged", "named", "ordinary", "strerror"))
"""What an error has that quotes nothing."""
HELD: Final = frozenset(("failure", "fault", "error", "damage", "stopped", "trouble", "__cause__", "__context__"))
"""Attributes that hold errors."""
ERROR: Final = re.compile(r"\b(\w*Error|\w*Exception|\w*ExceptionGroup)\b")


def tells(node: ast.AST, names: set[str]) -> bool:
    """Whether what is written there may have the words of an error in it; `names` are those that have."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in HELPERS:
        return False
    if isinstance(node, ast.Attribute):
        return node.attr not in PLAIN and (node.attr in HELD or tells(node.value, names))
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.IfExp):
        return tells(node.body, names) or tells(node.orelse, names)
    return any(tells(each, names) for each in ast.iter_child_nodes(node))


def set_by(target: ast.AST) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def errors_in(function: ast.AST) -> set[str]:
    """The names in a function that may have the words of an error."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        if isinstance(node, ast.arg) and node.annotation is not None and ERROR.search(ast.unparse(node.annotation)):
            names.add(node.arg)
    while True:
        found = set(names)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if tells(node.value, names):
                    found |= {name for target in targets for name in set_by(target)}
        if found == names:
            return names
        names = found


def calls_of_loggers(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = re.search(r"(^|\.)_?log(ger)?$", ast.unparse(node.func.value))
            if of is not None and node.func.attr in LEVELS:
                yield node


def wrong_lines(source: str) -> list[str]:
    """The calls of loggers in a source that may quote something, as they are written."""
    wrong: dict[int, str] = {}
    tree = ast.parse(source)
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions or [tree]:
        names = errors_in(function)
        for call in calls_of_loggers(function):
            assert isinstance(call.func, ast.Attribute)
            given = [*call.args, *(each.value for each in call.keywords)]
            exception = any(
                each.arg == "exc_info" and isinstance(each.value, ast.Constant) and each.value.value
                for each in call.keywords
            )
            if call.func.attr == "exception" or exception or any(tells(each, names) for each in given):
                wrong[call.lineno] = ast.unparse(call)
    return list(wrong.values())


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def test_no_line_of_a_log_has_an_error_but_from_the_one_that_quotes_nothing() -> None:
    files = {path: path.read_text() for path in sources()}
    assert {
        path.relative_to(ROOT).as_posix(): found for path, text in files.items() if (found := wrong_lines(text))
    } == {}
    lines = sum(len(list(calls_of_loggers(ast.parse(text)))) for text in files.values())
    assert lines > 50, "they are found at all"


@pytest.mark.parametrize(
    "line",
    [
        'log.warning("%s", error)',
        'log.warning("%s", str(error))',
        'log.warning(f"it is {error!r}")',
        'log.warning("%s", error.args)',
        'log.exception("failed")',
        'log.error("failed", exc_info=True)',
        'log.error("failed", exc_info=error)',
        'self._log.info("failed", why=str(error))',
        'said = f"so: {error}"; log.info("%s", said)',
        'later = error; also = [later]; logger.info("%s", also)',
        'log.info("%s", resident.damage)',
        'log.info("%s", given)',
    ],
)
def test_lines_that_may_quote_something_are_found(line: str) -> None:
    source = f"def f(given: BaseException | None):\n try:\n  pass\n except KeeveError as error:\n  {line}\n"
    assert len(wrong_lines(source)) == 1


def test_lines_that_quote_nothing_are_none_of_these() -> None:
    lines = (
        'log.warning("%s", in_log(error))',
        'log.error("failed", exc_info=traced(error) if isinstance(error, OSError) else None)',
        'said = in_log(error); log.info("%s", said)',
        'log.info("%s", error.logged)',
        'log.info("%s", vat.id)',
    )
    source = "def f():\n try:\n  pass\n except KeeveError as error:\n" + "".join(f"  {line}\n" for line in lines)
    assert wrong_lines(source) == []
