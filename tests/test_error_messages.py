"""Every error that Keeve raises can be met by name, and says what to do.

Errors are looked at in two ways: as classes, all that the packages define; and as the texts with which they are raised,
read from the code. A message that names no remedy is a question at three in the morning.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from keeve import errors

ROOT = Path(__file__).parent.parent
PACKAGES = ("dataspace", "snapshots", "vat", "actors", "keeve")

INSIDE = {
    "WrongHead": "a store's word to the runtime, which makes every record itself",
    "NoSuchRecord": "addresses are the catalog's and the store's own",
    "NoSuchPart": "cells and pages are asked for as their records name them",
    "Unwritten": "the runtime writes trees before it encodes them",
    "NoLoader": "the runtime gives a loader to each call",
    "MissingPage": "of pages in memory, which only tests have",
    "BadPage": "a restore passes the snapshot over and reports it",
    "NoSuchKey": "actors get a KeyError",
    "OutOfRange": "actors get an IndexError",
    "Reentered": "a host gives a vat one message at a time",
    "NotUpgraded": "a host upgrades a session before anything else",
    "NoPart": "the words of an `UpgradeFailed`",
    "PartDropped": "as the one before",
    "AlreadyRunning": "a host starts one runner",
    "BadTokenFile": "a server tells it at its start, and ends; a program of users has no part of it",
    "NotListening": "as the one before",
    "BadServerSetting": "as the one before",
    "BadSocket": "a server goes on without its Unix socket, and its log says why",
}
"""Errors that stay between our own parts, and why users do not meet them."""

VERBS = frozenset(
    re.findall(
        r"\w+",
        """
        add annotate ask await bring call change choose clear close compare copy correct declare decorate
        delete derive do end find free get give go have install keep leave load look make mark mend mount
        name observe open pass put raise read rename repeat restore retry return run see send set settle
        shorten spawn split start state take try unset update upgrade use wait widen write export fork place
        """,
    )
)
"""What a reader is told to do."""

LATER = {"a", "an", "it", "its", "only", "then", "or", "and", "to", "otherwise", "please", "first", "nothing"}


def classes() -> dict[str, list[type[KeeveError]]]:
    """All of ours that are public, by name."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found: dict[str, list[type[KeeveError]]] = {}
    todo: list[type[KeeveError]] = [KeeveError]
    seen: set[type] = set()
    while todo:
        for kind in todo.pop().__subclasses__():
            if kind not in seen:
                seen.add(kind)
                todo.append(kind)
                ours = kind.__module__.partition(".")[0] in PACKAGES and not kind.__name__.startswith("_")
                if ours and not any(base.__name__ == "_Revived" for base in kind.__mro__):
                    found.setdefault(kind.__name__, []).append(kind)
    return found


def test_every_error_that_users_can_meet_is_among_the_errors() -> None:
    public = {
        name: kinds
        for name, kinds in classes().items()
        if not kinds[0].__module__.startswith(("keeve.cli", "keeve.testing"))
    }
    assert public.keys() - set(errors.__all__) - INSIDE.keys() == set()
    assert INSIDE.keys() <= public.keys()
    assert not INSIDE.keys() & set(errors.__all__)


def test_a_name_stands_for_one_error() -> None:
    """An error comes back after a restart by its name."""
    assert {name: kinds for name, kinds in classes().items() if len(kinds) > 1} == {}


def test_what_is_listed_is_there() -> None:
    assert all(issubclass(getattr(errors, name), KeeveError) for name in errors.__all__)


def texts() -> Iterator[tuple[str, str, str]]:
    """The messages of our errors as the code has them: place, class and text, with `…` for what is filled in.

    That is what `super().__init__` and `__str__` of a class say, and for those that are given their message what each
    `raise` says. What a class puts together from parts is looked at where it is put together.
    """
    ours = {name: kinds for name, kinds in classes().items() if name not in INSIDE}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            place = file.relative_to(ROOT)
            for node in ast.walk(ast.parse(file.read_text())):
                where = f"{place}:{getattr(node, 'lineno', 0)}"
                if isinstance(node, ast.ClassDef) and node.name in ours:
                    yield from ((where, node.name, text) for text in _said_by(node))
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
                    kinds = ours.get(node.func.id)
                    text = _text(node.args[0]) if kinds and _takes_a_message(kinds[0]) else None
                    if text is not None:
                        yield where, node.func.id, text


def _takes_a_message(kind: type[KeeveError]) -> bool:
    code = getattr(kind.__init__, "__code__", None)
    return code is not None and code.co_varnames[: code.co_argcount] == ("self", "message")


def _said_by(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if not isinstance(part, ast.FunctionDef) or part.name not in ("__init__", "__str__"):
            continue
        for inner in ast.walk(part):
            given: ast.expr | None = None
            if isinstance(inner, ast.Return) and part.name == "__str__":
                given = inner.value
            elif isinstance(inner, ast.Call) and ast.unparse(inner.func) == "super().__init__" and len(inner.args) == 1:
                given = inner.args[0]
            text = None if given is None else _text(given)
            if text is not None and " " in text.strip("… "):
                yield text


def _text(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else _filled_in(part) for part in values)
        case ast.Call(func=ast.Name()):
            return _remedies().get(node.func.id)
        case ast.BinOp(left=left, right=right):
            return f"{_text(left) or '…'}{_text(right) or '…'}"
    return None


def _filled_in(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.FormattedValue) else node
    said = _text(value) if isinstance(value, ast.Call) else None
    return said or "…"


@cache
def _remedies() -> dict[str, str]:
    """The words of remedies, by the names that they have in our modules."""
    classes()
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    named = ((name, value) for module in modules for name, value in vars(module).items() if isinstance(value, Remedy))
    return {name: re.sub(r"{\w+}", "…", remedy.words) for name, remedy in named}


def says_what_to_do(text: str) -> bool:
    """Whether a clause of it begins with a verb, or ends with what is filled in from where the remedy is written."""
    if text.rstrip("]) ").endswith("…") or "?" in text:
        return True
    clauses = re.split(r"[;:,.?(—]\s+|\bor\b|\band\b|\bthen\b|\bthus\b|\n", text.lower())
    for clause in clauses:
        words = [word for word in re.findall(r"[a-z@]+", clause) if word not in LATER]
        if words and words[0] in VERBS:
            return True
    return False


def test_a_message_says_what_to_do() -> None:
    """Invariant 43: every refusal names what was wrong and what to do."""
    messages = list(texts())
    assert len(messages) > 80, "the messages are not found"
    assert [message for message in messages if not says_what_to_do(message[2])] == []


@pytest.mark.parametrize(
    "text", ["the ref was revoked", "promise … is over: nothing kept it", "… has no part …, which is not there"]
)
def test_a_message_without_a_remedy_is_recognized(text: str) -> None:
    assert not says_what_to_do(text)
