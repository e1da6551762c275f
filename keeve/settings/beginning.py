"""Beginning: what a session made here begins with, by whichever door: its model by its name, the tools that there are.

    keeve.session, or a type of one's own that is one    `tools`, unless they are given
    another type of one's own                            its field of the kind `Toolbox`, where it has one such
    what names a model                                   the device behind the name, which has to be there

Servers of tools (`McpTools`) are asked for theirs when they are wanted first, and not where tools are given.

The one rule: every door asks here, so that the same session comes of the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from actors.session import Session
from actors.talking import Model
from actors.toolbox import Toolbox
from actors.tools import Tools
from dataspace.errors import KeeveError
from dataspace.values import Ref
from snapshots.tree import Tree
from vat.devices.vault import Vault
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.objects.types import type_of


class NoSuchModel(KeeveError, LookupError):
    """What a session is to have as its model (`field` names it) is none that there is."""

    usage: ClassVar[bool] = True

    def __init__(self, model: str, field: str, known: Mapping[str, str]) -> None:
        self.model = model
        self.field = field
        super().__init__(f"there is no model {model!r:.100} here: use one that is there, {', '.join(known)}")


async def begins_with(
    kind: type, fields: Mapping[str, Any], named: Mapping[str, str] | None, tools: Tools | None, vault: Vault
) -> dict[str, Any]:
    """The fields that a session of that type begins with, where these are given.

    named: the device behind the name of each model; None: which there are is not known. vault: what servers of tools
    are given their credentials from.

    Raises `NoSuchModel`; and `ServerUnavailable` or `NoCredential` where a server of tools has not told its tools yet.
    """
    begins = dict(fields)
    for name in _names(kind, "model", Model):
        if named is not None and isinstance(asked := begins.get(name), str):
            if asked not in named:
                raise NoSuchModel(asked, name, named)
            begins[name] = named[asked]
    holds = _holds(kind, begins)
    if tools is not None and holds is not None:
        await tools.ready(vault)
        begins[holds] = tools.schemas
    return begins


def began_with(kind: type, fields: Mapping[str, Any], named: Mapping[str, str], heap: Heap) -> dict[str, Any]:
    """The fields that a session of that type began with where these were given, by its heap after its first record.

    Older records know a request by them. Where it has no tools, none were put to what was given.
    """
    begins = dict(fields)
    for name in _names(kind, "model", Model):
        if isinstance(asked := begins.get(name), str):
            begins[name] = named.get(asked, asked)
    holds = _holds(kind, begins)
    if holds is not None and (held := _tools_in(heap, holds)):
        begins[holds] = held
    return begins


def _holds(kind: type, begins: Mapping[str, Any]) -> str | None:
    """The field that is given the tools that there are; None where it has some, or no field is the one for it."""
    holds = _names(kind, "tools", Toolbox)
    # With several, only who wrote them knows which is for what.
    return holds[0] if len(holds) == 1 and holds[0] not in begins else None


def _tools_in(heap: Heap, field: str) -> list[Any]:
    held = heap.state(ROOT_ACTOR).fields.get(field)
    if isinstance(held, Ref):
        held = heap.state(held.actor).fields.get("schemas")
    return [heap.read(item) for item in held.walked(heap.page)] if isinstance(held, Tree) else []


def _names(kind: type, of_session: str, part: type) -> list[str]:
    """The fields that hold such a thing."""
    if issubclass(kind, Session):
        return [of_session]
    fields = type_of(kind).fields.values()
    return [field.name for field in fields if isinstance(field.kind, type) and issubclass(field.kind, part)]
