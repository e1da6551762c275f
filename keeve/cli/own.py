"""`--actors module[:Class]`, `--tools module:NAME`: actor types and tools of the person who types the command.

What is named there is imported, from where Python finds it or from the current folder; a module stands for all the
actor types in it.

The one rule: only what a person names is imported, never what a store names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import attrs

from actors.tools import Tools
from dataspace.errors import KeeveError
from keeve.api import OURS
from keeve.settings import LoadedSettings, settings_from
from keeve.variables import ACTORS, CONFIG
from vat.objects.types import BadActorType, Types, type_of

_KNOWN: Final = frozenset(described.name for described in Types(OURS))
"""The actor types that commands run without being told."""


class NoSuchActors(KeeveError, LookupError):
    """Actor types that are named cannot be had; says why, and where they are named (`said`)."""

    usage = True

    def __init__(self, said: str, named: str, problem: str) -> None:
        super().__init__(
            f"{said} {named}: {problem}; name a module that has actor types, or one of them: shop.actors:Cart"
        )


class NoSuchTools(KeeveError, LookupError):
    """Tools that are named cannot be had; says why, and where they are named (`said`)."""

    usage = True

    def __init__(self, said: str, named: str, problem: str) -> None:
        super().__init__(f"{said} {named}: {problem}; name a Tools in a module: shop.tools:tools")


@attrs.frozen
class Own:
    """What a command is told of the host that it may have to be: types and tools by name, and a file of settings.

    It is read as `keeve serve` reads it, when such a host is needed, and not where a server has the store.
    """

    actors: Sequence[str] | None = None
    tools: str | None = None
    config: Path | None = None
    environ: Mapping[str, str] = attrs.field(factory=lambda: os.environ, repr=False)

    def loaded(self) -> LoadedSettings:
        """The settings. Raises `BadServerSetting`."""
        flags = {"actors": list(self.actors) if self.actors else None, "tools": self.tools}
        return settings_from(flags, self.environ, self.config)

    def types(self) -> list[type]:
        """The actor types. Raises `BadServerSetting`, `NoSuchActors`, whatever importing them raises."""
        return types_of(self.loaded())

    def words(self) -> list[str]:
        """The options of the command line that say it, where the environment does not."""
        actors = [] if self.environ.get(ACTORS) else [word for name in self.actors or () for word in ("--actors", name)]
        config = None if self.config is None else str(self.config)
        file = [] if config in (None, self.environ.get(CONFIG)) else ["--config", str(config)]
        return [*file, *actors, *([] if self.tools is None else ["--tools", self.tools])]

    def passed_over(self) -> list[str]:
        """The options of the command line that name types and tools, which a server has of its own."""
        actors = self.actors if self.actors and list(self.actors) != self.environ.get(ACTORS, "").split() else ()
        return [*(f"--actors {name}" for name in actors), *([] if self.tools is None else [f"--tools {self.tools}"])]


def module_for(type: str | None) -> str | None:
    """What stands for `--actors` in a command that needs it, for a session of that type where no server has the
    store."""
    return None if type in _KNOWN else "MODULE"


def types_of(loaded: LoadedSettings) -> list[type]:
    """The actor types that settings name. Raises `NoSuchActors`, whatever importing them raises."""
    return named_types(loaded.settings.actors, loaded.said("actors"))


def tools_of(loaded: LoadedSettings) -> Tools | None:
    """The tools that settings name. Raises `NoSuchTools`, whatever importing them raises."""
    named = loaded.settings.tools
    return None if named is None else named_tools(named, loaded.said("tools"))


def named_types(names: Sequence[str], said: str = "--actors") -> list[type]:
    """The actor types that are named. Raises `NoSuchActors`, whatever importing them raises."""
    found: dict[type, None] = {}
    for named in names:
        found |= dict.fromkeys(_types(said, named))
    return list(found)


def named_tools(named: str, said: str = "--tools") -> Tools:
    """The tools that are named. Raises `NoSuchTools`, whatever importing them raises."""
    module_name, _, name = named.partition(":")
    try:
        found = getattr(_imported(module_name), name or "tools")
    except Exception as error:  # the module is the user's code
        raise NoSuchTools(said, named, f"they cannot be had ({type(error).__name__}: {error})") from error
    if not isinstance(found, Tools):
        raise NoSuchTools(said, named, f"{name or 'tools'} is a {type(found).__name__}, and not a Tools")
    return found


def _imported(module_name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # the last one, so that nothing there hides what is installed
    return import_module(module_name)


def _types(said: str, named: str) -> list[type]:
    module_name, _, path = named.partition(":")
    try:
        module = _imported(module_name)
    except Exception as error:  # the module is the user's code
        raise NoSuchActors(said, named, f"it cannot be imported ({type(error).__name__}: {error})") from error
    if path:
        thing = module
        for part in path.split("."):
            thing = getattr(thing, part, None)  # type: ignore[assignment]  # a class in the end, which is looked at below
        if thing is None:
            raise NoSuchActors(said, named, f"{module_name} has no {path}")
        found = [thing]
    else:
        found = [thing for thing in vars(module).values() if _is_type(thing)]
    if not found or not all(map(_is_type, found)):
        problem = "@actor does not decorate it" if path else "there is no class in it that @actor decorates"
        raise NoSuchActors(said, named, problem)
    return found  # type: ignore[return-value]  # they are classes: `_is_type` has said so


def _is_type(thing: object) -> bool:
    try:
        type_of(thing)  # type: ignore[arg-type]  # it is asked for whatever it is, and refuses what is no class
    except BadActorType:
        return False
    return True
