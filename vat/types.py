"""Actor types: what a class declares about its state and its methods, and the registry that finds it by name.

State is the declared fields, nothing else. The annotation decides what a field is: `List[...]`, `Map[...]` and
`Set[...]` are collections that belong to the vat, `Device` names a device of the host, everything else is a
value. A field or parameter annotated `Text` is kept as a cell, however short.

The one rule: a type is found by its registered name, never by an import path.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import FunctionType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, get_origin

import attrs

from dataspace.errors import KeeveError
from dataspace.values import Text, Value, freeze

F = TypeVar("F", bound=Callable[..., Any])

TYPE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_-]*)+")
"""What an actor type may be called: words with dots between them, `chat.counter`."""


class BadActorType(KeeveError, TypeError):
    """A class cannot be an actor type; says what about it and what to do."""

    usage: ClassVar[bool] = True

    def __init__(self, cls: type, problem: str) -> None:
        super().__init__(f"{cls.__module__}.{cls.__qualname__}: {problem}")


class UnknownActorType(KeeveError, LookupError):
    """A heap or a caller names an actor type that this host was not given."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(
            f"unknown actor type {name!r}: this host runs {listed}. "
            f"Pass its class to open_host(..., actors=[...]); the session is untouched"
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


@attrs.frozen
class Field:
    """A declared field. `required` ones must be given when an actor is spawned."""

    name: str
    shape: Shape
    text: bool
    required: bool
    default: Value

    @property
    def public(self) -> bool:
        """Whether a ref may read it: its name does not begin with an underscore."""
        return not self.name.startswith("_")


Mark: TypeAlias = Callable[[Any], Any]
"""Gives a value with `Text` where there is content in it, however short. It must take any value, and not raise."""


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
    marks: Mapping[str | int, Mark]
    """How arguments are marked before they are frozen: by name, and by place (from 0, without `self`)."""
    mark_result: Mark | None


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


def read(function: F) -> F:
    """Mark a method that changes nothing: it writes no record, and raises `ReadOnly` when it tries to."""
    function.__keeve_read__ = True  # type: ignore[attr-defined]  # a mark on the function itself
    return function


def describe_type(cls: type, name: str, version: int, reserved: frozenset[str]) -> ActorType:
    """Take a class apart. Raises `BadActorType`."""
    if not TYPE_NAME.fullmatch(name):
        raise BadActorType(cls, f"{name!r} is no name for an actor type: use words with dots, like 'chat.counter'")
    if not isinstance(version, int) or version < 1:
        raise BadActorType(cls, f"version {version!r} is not a whole number from 1 on")
    fields = _fields(cls, reserved)
    methods: dict[str, Method] = {}
    inner: dict[str, Method] = {}
    for base in reversed(cls.__mro__[:-1]):
        for key, function in vars(base).items():
            if key.startswith("__") or key in reserved or not isinstance(function, FunctionType):
                continue
            if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
                raise BadActorType(
                    cls,
                    f"{key} is an async method, which this version does not run: "
                    "go on with a promise reaction, promise.then(self.method)",
                )
            (inner if key.startswith("_") else methods)[key] = _method(cls, key, function)
    clash = fields.keys() & methods.keys()
    if clash:
        raise BadActorType(cls, f"{min(clash)} is a field and a method")
    return ActorType(name, version, cls, fields, methods, inner)


def _fields(cls: type, reserved: frozenset[str]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__[:-1]):
        if "__keeve_root__" in vars(base):  # what is annotated in Actor itself is the runtime's
            continue
        for name, annotation in vars(base).get("__annotations__", {}).items():
            kind = _named(annotation, base)
            if kind is ClassVar or (isinstance(annotation, str) and annotation.startswith("ClassVar")):
                continue
            if name in reserved:
                raise BadActorType(cls, f"the field {name} has the name of something that every actor has")
            fields[name] = _field(cls, base, name, annotation, kind)
    return fields


def _field(cls: type, base: type, name: str, annotation: Any, kind: Any) -> Field:
    shape = getattr(kind, "__keeve_shape__", Shape.VALUE)
    given = name in vars(base) and not hasattr(vars(base)[name], "__keeve_field__")
    default: Value = None
    if given and shape in (Shape.LIST, Shape.MAP, Shape.SET):
        raise BadActorType(cls, f"the collection {name} begins empty: take its default away")
    if given:
        default = freeze(vars(base)[name], None, f"{cls.__name__}.{name}")
    elif name in vars(base):
        inherited: Field = vars(base)[name].__keeve_field__
        return inherited
    required = not given and shape in (Shape.VALUE, Shape.DEVICE)
    return Field(name, shape, _is_text(annotation, base), required, default)


def _method(cls: type, name: str, function: FunctionType) -> Method:
    marks: dict[str | int, Mark] = {}
    parameters = list(inspect.signature(function).parameters.values())
    for place, parameter in enumerate(parameters[1:]):
        mark = _mark(parameter.annotation, cls, function.__globals__)
        if mark is not None:
            marks[parameter.name] = mark
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                marks[place] = mark
    result = _mark(function.__annotations__.get("return"), cls, function.__globals__)
    return Method(name, function, getattr(function, "__keeve_read__", False), marks, result)


def _mark(annotation: Any, cls: type, names: Mapping[str, Any]) -> Mark | None:
    """How what is annotated so is kept."""
    named = names.get(annotation) if isinstance(annotation, str) else annotation
    for part in getattr(named, "__metadata__", ()):
        if isinstance(part, Keep):
            return part.mark
    return _text if _is_text(annotation, cls, names) else None


def _text(value: Any) -> Any:
    return Text(value) if type(value) is str else value


def _named(annotation: Any, cls: type, names: Mapping[str, Any] | None = None) -> Any:
    """What an annotation names, its parameters aside; None when that cannot be found here."""
    if not isinstance(annotation, str):
        return get_origin(annotation) or annotation
    where: Any = vars(sys.modules[cls.__module__]) if names is None else names
    head, *rest = annotation.split("[", 1)[0].strip().split(".")
    found = where.get(head)
    for part in rest:
        found = getattr(found, part, None)
    return found


def _is_text(annotation: Any, cls: type, names: Mapping[str, Any] | None = None) -> bool:
    if isinstance(annotation, str):
        return any(_named(part.strip(), cls, names) is Text for part in annotation.split("|"))
    return annotation is Text or Text in getattr(annotation, "__args__", ())


class Types:
    """The actor types that a host may run, by name."""

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._by_name: dict[str, ActorType] = {}
        for cls in classes:
            self.add(cls)

    def add(self, cls: type) -> ActorType:
        """Let the host run a class that `@actor` decorated. Raises `BadActorType` for another."""
        described = type_of(cls)
        known = self._by_name.setdefault(described.name, described)
        if known.cls is not cls:
            raise BadActorType(cls, f"the name {described.name!r} belongs to {known.cls.__qualname__}")
        return described

    def __getitem__(self, name: str) -> ActorType:
        """The type of that name. Raises `UnknownActorType`."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownActorType(name, self._by_name) from None

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
