"""An actor's fields at its beginning, and in a new version of its type.

The one rule: a field that holds a collection holds its tree; what goes into the tree is operations of their own, and so
is making the actor that a part is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from dataspace.remedies import Remedy
from dataspace.values import Value, scalar_key
from vat.errors import BadCall
from vat.heap.opcodes import Verb
from vat.heap.operations import COLLECTIONS
from vat.heap.refs import Ref
from vat.objects.types import ActorType, Field, Shape, type_of
from vat.objects.views import View

TREES: Final = frozenset(COLLECTIONS) - {None}
"""What only a field that holds a collection holds."""

_GIVEN: Final[dict[Shape, tuple[str, Any]]] = {
    Shape.LIST: ("list", Sequence),
    Shape.MAP: ("dict", Mapping),
    Shape.SET: ("set, or a list of its members", AbstractSet | Sequence),  # from outside a set comes as a list
}
"""What a collection can be filled from."""


def given(cls: Any, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an actor begins with, as its type takes it (`Actor.given`); for a part, what that begins with."""
    taken: Mapping[str, Any] = cls.given(fields)
    parts = {
        name: field.kind.__keeve_given__(taken[name])
        for name, field in type_of(cls).fields.items()
        if field.shape is Shape.PART and name in taken
    }
    return {**taken, **parts} if parts else taken


GIVE_FIELD: Final = Remedy("give-field", ": give it one, as in spawn(..., {field}=...)")


def checked(described: ActorType, given: Mapping[str, Any], *, new: bool = False) -> None:
    """Raise `BadCall` unless `given` are fields of the type, fit for them, and all that it needs. `new`: they are what
    somebody has given a new actor."""
    for name, value in given.items():
        field = described.fields.get(name)
        if field is None:
            public = [known.name for known in described.fields.values() if known.public]
            raise BadCall(f"{described.name} has no field {name!r}; it has {', '.join(public) or 'none'}")
        called, wanted = _GIVEN.get(field.shape, ("", object))
        if called and (not isinstance(value, wanted | View) or isinstance(value, str | bytes)):
            raise BadCall(f"{described.name}.{name} begins with a {called}, not with a {type(value).__name__}")
    for name, field in described.fields.items():
        if field.required and name not in given:
            raise BadCall(
                f"{described.name} needs a value for its field {name!r}{GIVE_FIELD(field=name) if new else ''}"
            )


def shape_of(field: Field, held: Value) -> Shape:
    """The shape of what is stored for a field: what it declares, wherever that cannot be told from what is there."""
    shape = field.shape
    if type(held) is COLLECTIONS[shape]:
        return shape
    if type(held) in TREES:
        return Shape(COLLECTIONS.index(type(held)))
    if shape is Shape.VALUE or (shape is Shape.DEVICE and isinstance(held, str)):
        return shape
    if shape is Shape.PART and isinstance(held, Ref | None):
        return shape
    return Shape.VALUE


def stored(field: Field, value: Any, keep: Callable[[Any, str], Value]) -> Value:
    """The stored form of a field's value. Raises `NotAValue`, or `BadCall` for what names no device."""
    if field.shape is Shape.DEVICE:
        if not isinstance(value, str) and getattr(type(value), "__keeve_shape__", None) is not Shape.DEVICE:
            raise BadCall(f"{field.name} names a device: give its name, a str, not a {type(value).__name__}")
        value = str(value)
    return keep(value if field.mark is None else field.mark(value), field.name)


def beginning(field: Field, given: Mapping[str, Any], keep: Callable[[Any, str], Value]) -> Value:
    """What a field holds at first: a collection or a part nothing, another what was given for it, or its default."""
    tree = COLLECTIONS[field.shape]
    if tree is not None:
        return tree()
    if field.shape is Shape.PART:
        return None
    return stored(field, given[field.name], keep) if field.name in given else field.default


def filling(field: Field, value: Any, keep: Callable[[Any, str], Value], key: Callable[[Any, str], Value]) -> Any:
    """The changes that put `value` into an empty collection: pairs of a verb and its arguments."""
    mark = field.mark or (lambda item: item)
    if field.shape is Shape.LIST:
        items = keep([mark(item) for item in value], field.name)
        return [(Verb.EXTEND, (items,))] if items else []
    if field.shape is Shape.MAP:
        return [
            (Verb.PUT, (key(name, field.name), keep(mark(item), field.inside))) for name, item in dict(value).items()
        ]
    # Sets of Python have no order; this one has, so that the same members make the same record.
    members = {key(member, field.name) for member in value}
    return [(Verb.ADD, (member,)) for member in sorted(members, key=scalar_key)]
