"""`--actors module[:Class]`, `--tools module:NAME`: actor types and tools of the person who types the command.

What is named there is imported, from where Python finds it or from the current folder; a module stands for all the
actor types in it.

The one rule: only what a person names is imported, never what a store names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from actors.tools import Tools
from dataspace.errors import KeeveError
from vat.objects.types import BadActorType, type_of


class NoSuchActors(KeeveError, LookupError):
    """What `--actors` names cannot be had; says why."""

    usage = True

    def __init__(self, named: str, problem: str) -> None:
        super().__init__(
            f"--actors {named}: {problem}; name a module that has actor types, or one of them: shop.actors:Cart"
        )


class NoSuchTools(KeeveError, LookupError):
    """What `--tools` names cannot be had; says why."""

    usage = True

    def __init__(self, named: str, problem: str) -> None:
        super().__init__(f"--tools {named}: {problem}; name a Tools in a module: shop.tools:tools")


def named_types(names: Sequence[str]) -> list[type]:
    """The actor types that are named. Raises `NoSuchActors`, whatever importing them raises."""
    found: dict[type, None] = {}
    for named in names:
        found |= dict.fromkeys(_types(named))
    return list(found)


def named_tools(named: str) -> Tools:
    """The tools that are named. Raises `NoSuchTools`, whatever importing them raises."""
    module_name, _, name = named.partition(":")
    try:
        found = getattr(_imported(module_name), name or "tools")
    except Exception as error:  # the module is the user's code
        raise NoSuchTools(named, f"they cannot be had ({type(error).__name__}: {error})") from error
    if not isinstance(found, Tools):
        raise NoSuchTools(named, f"{name or 'tools'} is a {type(found).__name__}, and not a Tools")
    return found


def _imported(module_name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # the last one, so that nothing there hides what is installed
    return import_module(module_name)


def _types(named: str) -> list[type]:
    module_name, _, path = named.partition(":")
    try:
        module = _imported(module_name)
    except Exception as error:  # the module is the user's code
        raise NoSuchActors(named, f"it cannot be imported ({type(error).__name__}: {error})") from error
    if path:
        thing = module
        for part in path.split("."):
            thing = getattr(thing, part, None)  # type: ignore[assignment]  # a class in the end, which is looked at below
        if thing is None:
            raise NoSuchActors(named, f"{module_name} has no {path}")
        found = [thing]
    else:
        found = [thing for thing in vars(module).values() if _is_type(thing)]
    if not found or not all(map(_is_type, found)):
        raise NoSuchActors(
            named, "there is no class in it that @actor decorates" if not path else "@actor does not decorate it"
        )
    return found  # type: ignore[return-value]  # they are classes: `_is_type` has said so


def _is_type(thing: object) -> bool:
    try:
        type_of(thing)  # type: ignore[arg-type]  # it is asked for whatever it is, and refuses what is no class
    except BadActorType:
        return False
    return True
