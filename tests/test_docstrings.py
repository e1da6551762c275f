"""What is public says what it is, and a package names what is public.

A name that is not named in the `__all__` of its package is private to the package.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

from tests.test_architecture import BELOW, imports, modules, texts

PACKAGES = [
    *("dataspace", "dataspace.values", "dataspace.patterns", "dataspace.log", "dataspace.catalog"),
    *("dataspace.proofs", "dataspace.encryption", "dataspace.checkpoints", "dataspace.observe"),
    *("snapshots", "vat", "vat.heap", "vat.objects", "vat.crank", "vat.devices", "vat.host"),
    *("actors", "actors.models", "keeve", "keeve.testing"),
]


def public(package: str) -> Iterator[tuple[str, Any]]:
    """What a package names: things, and modules of its own."""
    top = importlib.import_module(package)
    for name in top.__all__:
        yield name, getattr(top, name) if hasattr(top, name) else importlib.import_module(f"{package}.{name}")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is_and_names_what_is_public(package: str) -> None:
    said = importlib.import_module(package).__doc__ or ""
    assert "\n\n" in said
    unnamed = [name for name, thing in public(package) if not re.search(rf"\b{name}\b", said) and not is_error(thing)]
    assert unnamed == []


def is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseException)


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_package_names_has_a_docstring(package: str) -> None:
    kinds = (type, FunctionType, ModuleType)
    assert [name for name, thing in public(package) if isinstance(thing, kinds) and not said_of(thing)] == []


def test_what_users_import_says_what_each_of_its_methods_does() -> None:
    silent = [
        f"{name}.{member}"
        for name, thing in public("keeve")
        if isinstance(thing, type)
        for member, value in vars(thing).items()
        if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property))
        if not inspect.getdoc(value if isinstance(value, property) else getattr(thing, member))
    ]
    assert silent == []


def said_of(thing: Any) -> str:
    """A docstring that somebody has written; data classes make one of their own, which says nothing."""
    said = inspect.getdoc(thing) or ""
    return "" if said.startswith(f"{getattr(thing, '__name__', '')}(") else said


def test_every_class_and_function_that_a_module_has_for_others_has_a_docstring() -> None:
    silent = [
        f"{file.name}:{node.lineno}: {node.name}"
        for file in modules().values()
        for node in ast.parse(texts()[file]).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        if not ast.get_docstring(node) and "overload" not in {ast.unparse(mark) for mark in node.decorator_list}
    ]
    assert silent == []


def test_a_package_takes_of_another_only_what_that_names() -> None:
    named = {package: set(importlib.import_module(package).__all__) for package in PACKAGES}
    wrong = [
        f"{modules()[name].name}:{line}: {origin}.{taken}"
        for name in modules()
        for line, origin, taken in imports(name)
        if (other := origin.partition(".")[0]) in BELOW and other != name.partition(".")[0] and taken is not None
        if not is_named(named, origin, taken)
    ]
    assert not wrong, "\n".join(wrong)


def is_named(named: dict[str, set[str]], origin: str, taken: str) -> bool:
    """Whether a name that is taken from a module of another package is public: it, or the module."""
    if origin in named:
        return taken in named[origin]
    package, _, module = origin.rpartition(".")
    return package in named and (module in named[package] or taken in named[package])
