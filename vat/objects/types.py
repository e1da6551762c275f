"""Actor types: what a class declares about its state and its methods, and the registry that finds it by name.

State is the declared fields, nothing else. The annotation decides what a field is: `List[...]`, `Map[...]` and
`Set[...]` are collections that belong to the vat, `Device` names a device of the host, a `Part` is an actor of its own
that is made with the one that has the field, everything else is a value. What is annotated `Text` (a field, the items
of a collection, a parameter, a result) is kept as a cell, however short.

The one rule: a type is found by its registered name, never by an import path.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import FunctionType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, get_args, get_origin

import attrs

from dataspace.errors import KeeveError
from dataspace.values import Text, Value, freeze

F = TypeVar("F", bound=Callable[..., Any])

TYPE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_-]*)+")
"""What an actor type may be called: words with dots between them, `chat.counter`."""


PLAIN: Final = (bool, int, float, str, bytes, list, dict, set, tuple, type(None))
"""Types of what a class attribute without an annotation may have been meant as a field with."""


class BadActorType(KeeveError, TypeError):
    """A class cannot be an actor type; says what about it and what to do."""

    usage: ClassVar[bool] = True

    def __init__(self, cls: Any, problem: str) -> None:
        named = cls if hasattr(cls, "__qualname__") else type(cls)
        super().__init__(f"{named.__module__}.{named.__qualname__}: {problem}")


class UnknownActorType(KeeveError, LookupError):
    """A heap or a caller names an actor type that this host was not given."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(
            f"unknown actor type {name!r}: this host runs {listed}. "
            f"Pass its class to open_host(..., actors=[...]); nothing was touched"
        )
        self.name = name


class NewerVersion(KeeveError):
    """A heap was written by a newer version of an actor type than the code has."""

    def __init__(self, name: str, found: int, known: int) -> None:
        super().__init__(f"{name} is at version {found} in this session and the code has {known}: update the code")


class Shape(IntEnum):
    """What a field holds."""

    VALUE = 0
    LIST = 1
    MAP = 2
    SET = 3
    DEVICE = 4
    PART = 5


Mark: TypeAlias = Callable[[Any], Any]
"""Gives a value with `Text` where there is content in it, however short. It must take any value, and not raise."""


@attrs.frozen
class Field:
    """A declared field. `required` ones must be given when an actor is spawned."""

    name: str
    shape: Shape
    mark: Mark | None
    """How its values, or the items of the collection, are marked before they are frozen."""
    required: bool
    default: Value
    kind: Any = attrs.field(default=None, eq=False, repr=False)
    """The class that the annotation names, where it says what the actor is given in the field's place."""
    inside: str = attrs.field(init=False, repr=False)
    """What an item of it is called in errors."""

    @inside.default
    def _inside(self) -> str:
        return f"{self.name}[…]"

    @property
    def public(self) -> bool:
        """Whether a ref may read it: its name does not begin with an underscore."""
        return not self.name.startswith("_")


@attrs.frozen
class Keep:
    """How a parameter or a result is kept: `Annotated[dict, Keep(mark)]`. `Text` alone is the common case."""

    mark: Mark


@attrs.frozen
class Method:
    """A method of an actor."""

    name: str
    function: Callable[..., Any]
    read: bool
    waits: bool
    """Whether it is an `async def`, and may become a fiber."""
    marks: Mapping[str | int, Mark]
    """How arguments are marked before they are frozen: by name, and by place (from 0, without `self`)."""
    mark_result: Mark | None
    answer: str
    """What its result is called in errors."""


@attrs.frozen(eq=False)
class ActorType:
    """A class that can run in vats, taken apart."""

    name: str
    version: int
    cls: type
    fields: Mapping[str, Field]
    methods: Mapping[str, Method]
    """What a ref reaches."""
    inner: Mapping[str, Method]
    """What only the actor's own reactions reach: names with one underscore before them."""

    @property
    def public(self) -> list[str]:
        """The names that a ref reaches: methods and public fields."""
        return [*self.methods, *(field.name for field in self.fields.values() if field.public)]


def read(function: F) -> F:
    """Mark a method that changes nothing: it writes no record, and raises `ReadOnly` when it tries to."""
    function.__keeve_read__ = True  # type: ignore[attr-defined]  # a mark on the function itself
    return function


def describe_type(cls: type, name: str, version: int, reserved: frozenset[str]) -> ActorType:
    """Take a class apart. Raises `BadActorType`."""
    if not isinstance(name, str) or not TYPE_NAME.fullmatch(name):
        raise BadActorType(cls, f"{name!r} is no name for an actor type: use words with dots, like 'chat.counter'")
    if type(version) is not int or version < 1:
        raise BadActorType(cls, f"version {version!r} is not a whole number from 1 on; give one")
    fields = _fields(cls, reserved)
    methods: dict[str, Method] = {}
    inner: dict[str, Method] = {}
    for base in _declared(cls):
        for key, function in vars(base).items():
            if key == "__init__":
                raise BadActorType(cls, "an actor has no __init__: declare fields, and give them to spawn(...)")
            if key.startswith("__"):
                continue
            if not isinstance(function, FunctionType):
                _no_lost_field(cls, base, key, function)
                continue
            if key in reserved:
                raise BadActorType(
                    cls, f"the method {key} has the name of something that every actor has; give it another"
                )
            if inspect.isasyncgenfunction(function) and not key.startswith("_"):
                raise BadActorType(
                    cls, f"{key} is an async generator: nobody can iterate it through a ref; give a list"
                )
            if inspect.iscoroutinefunction(function) and getattr(function, "__keeve_read__", False):
                raise BadActorType(
                    cls,
                    f"{key} is marked @read and async: what only reads has nothing to wait for; make it a plain def",
                )
            (inner if key.startswith("_") else methods)[key] = _method(cls, key, function)
    clash = fields.keys() & (methods.keys() | inner.keys())
    if clash:
        raise BadActorType(cls, f"{min(clash)} is a field and a method; give one of them another name")
    return ActorType(name, version, cls, fields, methods, inner)


def _no_lost_field(cls: type, base: type, name: str, value: Any) -> None:
    """Raise for what looks like a field and is none, since it has no annotation: it would be the same for all."""
    if name in vars(base).get("__annotations__", {}) or name.isupper() or type(value) not in PLAIN:
        return
    kind = "<type>" if value is None else type(value).__name__
    raise BadActorType(
        cls,
        f"{name} = {value!r:.40} is no field without a type: write `{name}: {kind} = ...`; or, for a constant of the "
        f"class, {name.upper()}, or `{name}: ClassVar[{kind}] = ...`",
    )


def _declared(cls: type) -> Iterable[type]:
    """The classes that declare something of an actor type, the bases first: not `Actor`, which is the runtime's."""
    return [base for base in reversed(cls.__mro__[:-1]) if "__keeve_root__" not in vars(base)]


def _fields(cls: type, reserved: frozenset[str]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for base in _declared(cls):
        names = vars(sys.modules[base.__module__])
        for name, annotation in vars(base).get("__annotations__", {}).items():
            kind = _kind(annotation, names)
            if kind is ClassVar or (isinstance(annotation, str) and annotation.startswith("ClassVar")):
                continue
            if name in reserved:
                raise BadActorType(
                    cls, f"the field {name} has the name of something that every actor has; give it another"
                )
            if name.startswith("__"):
                raise BadActorType(cls, f"the field {name} has a name of Python's or the runtime's: use another one")
            if name == "request":
                raise BadActorType(cls, "spawn(..., request=...) is the id of a request: give the field another name")
            fields[name] = _field(cls, base, name, kind, annotation)
    return fields


def _field(cls: type, base: type, name: str, kind: Any, annotation: Any) -> Field:
    shape: Shape = getattr(kind, "__keeve_shape__", Shape.VALUE)
    given = name in vars(base)
    if given and hasattr(vars(base)[name], "__keeve_field__"):  # the base is an actor type itself
        inherited: Field = vars(base)[name].__keeve_field__
        return inherited
    default: Value = None
    if given and shape in (Shape.LIST, Shape.MAP, Shape.SET):
        raise BadActorType(cls, f"the collection {name} begins empty: take its default away")
    if given and shape is Shape.PART:
        raise BadActorType(cls, f"{name} is an actor of its own, made with this one: take its default away")
    if given:
        default = freeze(vars(base)[name], None, f"{cls.__name__}.{name}")
    required = not given and shape in (Shape.VALUE, Shape.DEVICE)
    mark = _mark(annotation, vars(sys.modules[base.__module__])) if shape is not Shape.PART else None
    return Field(name, shape, mark, required, default, kind if shape in (Shape.DEVICE, Shape.PART) else None)


def _method(cls: type, name: str, function: FunctionType) -> Method:
    marks: dict[str | int, Mark] = {}
    names = function.__globals__
    parameters = list(inspect.signature(function).parameters.values())
    for place, parameter in enumerate(parameters[1:]):
        mark = _mark(parameter.annotation, names)
        if mark is not None:
            marks[parameter.name] = mark
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                marks[place] = mark
    result = _mark(function.__annotations__.get("return"), names)
    return Method(
        name,
        function,
        getattr(function, "__keeve_read__", False),
        inspect.iscoroutinefunction(function),
        marks,
        result,
        f"the result of {cls.__name__}.{name}",
    )


def _mark(annotation: Any, names: Mapping[str, Any]) -> Mark | None:
    """How what is annotated so is kept: by the first `Text` or `Keep` in it."""
    if isinstance(annotation, str):
        named = (_resolved(word, names) for word in WORD.findall(annotation))
        return next((mark for part in named if (mark := _mark(part, names)) is not None), None)
    if annotation is Text:
        return _text
    for part in (*getattr(annotation, "__metadata__", ()), *get_args(annotation)):
        if isinstance(part, Keep):
            return part.mark
        if (mark := None if isinstance(part, str) else _mark(part, names)) is not None:
            return mark
    return None


def _text(value: Any) -> Any:
    return Text(value) if type(value) is str else value


WORD: Final = re.compile(r"[^\W\d][\w.]*")


def _kind(annotation: Any, names: Mapping[str, Any]) -> Any:
    """What an annotation names, its parameters aside; None when that cannot be found here."""
    if isinstance(annotation, str):
        word = WORD.match(annotation)
        annotation = None if word is None else _resolved(word[0], names)
    return get_origin(annotation) or annotation


def _resolved(word: str, names: Mapping[str, Any]) -> Any:
    """What a name in an annotation stands for; None when that cannot be found here, or is a string itself."""
    head, *rest = word.split(".")
    found = names.get(head)
    for part in rest:
        found = getattr(found, part, None)
    return None if isinstance(found, str) else found


class Types:
    """The actor types that a host may run, by name.

    Of several versions of a type the newest one is the type; the older ones only finish what their async methods began.
    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._by_name: dict[str, ActorType] = {}
        self._versions: dict[tuple[str, int], ActorType] = {}
        for cls in classes:
            self.add(cls)

    def add(self, cls: type) -> ActorType:
        """Let the host run a class that `@actor` decorated. Raises `BadActorType` for another."""
        described = type_of(cls)
        name, version = described.name, described.version
        same = self._versions.setdefault((name, version), described)
        if same.cls is not cls:
            raise BadActorType(
                cls, f"the name {name!r} belongs to {same.cls.__qualname__}, in the same version; give one another"
            )
        known = self._by_name.get(name)
        if known is None or version > known.version:
            self._by_name[name] = described
        for field in described.fields.values():
            if field.shape is Shape.PART:
                self.add(field.kind.__keeve_part__)
        return described

    def __getitem__(self, name: str) -> ActorType:
        """The type of that name. Raises `UnknownActorType`."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownActorType(name, self._by_name) from None

    def of(self, cls: type) -> ActorType:
        """The type of a class that new actors may be of. Raises `UnknownActorType` or `BadActorType`."""
        described = type_of(cls)
        newest = self[described.name]
        if newest.cls is not cls:
            raise BadActorType(
                cls,
                f"this host runs {newest.cls.__qualname__}, version {newest.version}, as {described.name!r}: "
                "make new actors of that class",
            )
        return described

    def fit(self, name: str, version: int) -> ActorType:
        """The type in that version, or else the newest. Raises `UnknownActorType`."""
        newest = self[name]
        return newest if newest.version == version else self._versions.get((name, version), newest)

    def has(self, name: str, version: int) -> bool:
        """Whether the type is known in that version."""
        return (name, version) in self._versions

    def version_with(self, name: str, field: Field, other: int) -> int:
        """The version of a type, another than that one, whose class declares this very field."""
        versions = (version for kind, version in self._versions if kind == name and version != other)
        return next((one for one in versions if self._versions[name, one].fields.get(field.name) is field), other)

    def __iter__(self) -> Any:
        return iter(self._by_name.values())


def type_of(cls: type) -> ActorType:
    """The description that `@actor` left on a class. Raises `BadActorType` when there is none."""
    described = vars(cls).get("__keeve_type__") if isinstance(cls, type) else None
    if described is None:
        raise BadActorType(
            cls if isinstance(cls, type) else type(cls),
            "not an actor type: derive it from Actor and decorate it with @actor('some.name', version=1)",
        )
    assert isinstance(described, ActorType)
    return described
