"""Actor types: what a class declares about its state and its methods, and the registry that finds it by name.

The one rule: a type is found by its registered name, never by an import path.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from inspect import Parameter, Signature
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import attrs

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from dataspace.values import Value

F = TypeVar("F", bound=Callable[..., Any])

TYPE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_-]*)+")
"""What an actor type may be called: words with dots between them, `chat.counter`."""


class BadActorType(KeeveError, TypeError):
    """A class cannot be an actor type; says what about it and what to do."""

    usage: ClassVar[bool] = True

    def __init__(self, cls: Any, problem: str) -> None:
        named = cls if hasattr(cls, "__qualname__") else type(cls)
        super().__init__(f"{named.__module__}.{named.__qualname__}: {problem}")


GIVE_TYPE: Final = Remedy(
    "give-type", "this host runs {known}. Pass its class to open_host(..., actors=[...]); nothing was touched"
)


class UnknownActorType(KeeveError, LookupError, quotes=False):
    """A heap or a caller names an actor type that this host was not given."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(f"unknown actor type {name!r}: {GIVE_TYPE(known=listed)}")
        self.name = name


class NewerVersion(KeeveError, quotes=False):
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

    @property
    def words(self) -> str:
        """What it is called in errors."""
        return f"a {self.name.lower()}"


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


@attrs.frozen(eq=False)
class Takes:
    """What a method can be called with, behind what it is always given."""

    signature: Signature
    counts: range = attrs.field(init=False)
    """How many arguments fit that are not named, where none is."""

    @counts.default
    def _counts(self) -> range:
        least = most = 0
        for each in self.signature.parameters.values():
            needed = each.default is Parameter.empty
            if each.kind is Parameter.VAR_POSITIONAL:
                most = sys.maxsize - 1
            elif each.kind is Parameter.KEYWORD_ONLY and needed:
                return range(0)
            elif each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
                least, most = least + needed, most + 1
        return range(least, most + 1)

    def problem(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> str | None:
        """Why it cannot be called so; None where it can."""
        if not keywords and len(args) in self.counts:  # nearly every call: to bind costs microseconds
            return None
        try:
            self.signature.bind(*args, **keywords)
        except TypeError as error:
            return str(error)
        return None

    def __str__(self) -> str:
        return str(self.signature)


@attrs.frozen
class Method:
    """A method of an actor."""

    name: str
    function: Callable[..., Any]
    read: bool
    manage: bool
    """Whether it changes what a session is, and not only what is said in it; see `manage`."""
    waits: bool
    """Whether it is an `async def`, and may become a fiber."""
    marks: Mapping[str | int, Mark]
    """How arguments are marked before they are frozen: by name, and by place (from 0, without `self`)."""
    mark_result: Mark | None
    answer: str
    """What its result is called in errors."""
    takes: Takes = attrs.field(eq=False, repr=False)


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
    """What only the actor itself reaches, at once or as a reaction: names with one underscore before them."""

    @property
    def public(self) -> list[str]:
        """The names that a ref reaches: methods and public fields."""
        return [*self.methods, *(field.name for field in self.fields.values() if field.public)]


def read(function: F) -> F:
    """Mark a method that changes nothing: it writes no record, and raises `ReadOnly` when it tries to."""
    function.__keeve_read__ = True  # type: ignore[attr-defined]  # a mark on the function itself
    return function


def manage(function: F) -> F:
    """Mark a method that changes what a session is or decides for it: for whoever may `manage` it, where a server asks.

    What overrides such a method is one as well.
    """
    function.__keeve_manage__ = True  # type: ignore[attr-defined]  # a mark on the function itself
    return function


class Types:
    """The actor types that a host may run, by name.

    Of several versions of a type the newest one is the type; the older ones only finish what their async methods began.
    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._by_name: dict[str, ActorType] = {}
        self._versions: dict[tuple[str, int], ActorType] = {}
        self.parts: set[str] = set()
        """The names of the types whose actors are parts of others."""
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
                self.parts.add(self.add(field.kind.__keeve_part__).name)
        return described

    def __getitem__(self, name: str) -> ActorType:
        """The type of that name. Raises `UnknownActorType`."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownActorType(name, set(self._by_name) - self.parts) from None  # nobody spawns a part

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
