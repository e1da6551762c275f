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
from dataspace.values import ERASED, Ref, freeze
from snapshots.tree import Tree
from vat.devices.vault import Vault
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.objects.fields import given
from vat.objects.types import Shape, type_of


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


def began_with(kind: type, fields: Mapping[str, Any], named: Mapping[str, str], heap: Heap) -> dict[str, Any] | None:
    """The fields that a session of that type began with where these were given, by its heap after its first record;
    None where that cannot be told any more, since what it had as tools is erased.

    Older records know a request by them. Where it has no tools, none were put to what was given.
    """
    begins = _with_devices(kind, fields, named)
    holds = _holds(kind, begins)
    if holds is not None and (held := _tools_in(heap, holds)):
        if _lost(held):
            return None
        begins[holds] = held
    return begins


def may_have_begun_with(kind: type, fields: Mapping[str, Any], named: Mapping[str, str], heap: Heap) -> bool:
    """Whether a session of that type may have begun with these, by its heap after its first record: what is erased in
    it may have been any text, and the tools that were put to them any tools."""
    begins = _with_devices(kind, fields, named)
    holds, described, state = _holds(kind, begins), type_of(kind), heap.state(ROOT_ACTOR)
    try:
        begins = dict(given(kind, begins))
    except (TypeError, ValueError):  # who makes it says what is wrong
        return False
    if state.version == described.version:  # of another one nobody knows what was given, and what came by itself
        plain = {name: field.default for name, field in described.fields.items() if field.shape is Shape.VALUE}
        begins = {**plain, **begins}
    return all(
        name in state.fields and _alike(heap, state.fields[name], value)
        for name, value in begins.items()
        if name != holds
    )


def _alike(heap: Heap, stored: Any, value: Any) -> bool:
    if isinstance(stored, Ref) and isinstance(value, Mapping):  # a part, and what that was given
        fields = heap.state(stored.actor).fields
        return all(name in fields and _alike(heap, fields[name], item) for name, item in value.items())
    if isinstance(stored, Tree):
        if not isinstance(value, list | tuple):
            return stored.count == len(value)
        items = [heap.read(item) for item in stored.walked(heap.page)]
        return _may_be(items, freeze(value))
    return _may_be(heap.read(stored), freeze(value))


def _may_be(read: Any, value: Any) -> bool:
    if read is ERASED:
        return isinstance(value, str | bytes)
    if isinstance(read, Mapping) and isinstance(value, Mapping):
        return read.keys() == value.keys() and all(_may_be(read[key], value[key]) for key in read)
    if isinstance(read, list) and isinstance(value, list):
        return len(read) == len(value) and all(map(_may_be, read, value))
    return bool(read == value)


def _lost(value: Any) -> bool:
    """Whether anything in it is erased."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return value is ERASED or any(map(_lost, inside))


def _with_devices(kind: type, fields: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    """These fields, with devices in the place of the names of models."""
    begins = dict(fields)
    for name in _names(kind, "model", Model):
        if isinstance(asked := begins.get(name), str):
            begins[name] = named.get(asked, asked)
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
