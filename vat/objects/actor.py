"""What actors are written with: `@actor`, `Actor`, and what an actor can do while one of its methods runs.

An instance is a facade on an actor's state in the heap, made for one delivery or one fiber. Reading a declared field
reads the heap, assigning one is an operation, and nothing else can be assigned.

The one rule: everything an actor does goes through the crank that runs it; an instance holds no state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from types import FunctionType
from typing import Any, ClassVar, Final, Protocol, TypeVar

from dataspace.drafts import Handle
from dataspace.errors import KeeveError
from dataspace.facts import BadName
from dataspace.patterns import Pattern, parse
from vat.errors import OutsideCrank
from vat.heap.refs import DIRECTORY, Promise, Ref
from vat.objects.collections import List, Map, Set
from vat.objects.describing import describe_type
from vat.objects.fields import TREES, stored
from vat.objects.types import BadActorType, Field, Shape

A = TypeVar("A", bound="type[Actor]")

_HANDLES: Final[dict[Shape, Any]] = {Shape.LIST: List, Shape.MAP: Map, Shape.SET: Set}


class NotDeclared(KeeveError, AttributeError):
    """An attribute was assigned that is no declared field, or one that cannot be assigned."""

    usage: ClassVar[bool] = True

    def __init__(self, actor: Actor, name: str, problem: str | None = None) -> None:
        super().__init__(
            f"{type(actor).__name__}.{name} "
            + (
                problem
                or "is not a declared field: an actor's state is its declared fields, since nothing else survives; "
                f"write `{name}: <type>` in the class"
            )
        )


class Device:
    """A device of the host, by name: its methods are effects. As an annotation, a field that holds such a name."""

    __slots__ = ("_crank", "_name")
    __keeve_shape__: ClassVar[Shape] = Shape.DEVICE

    def __init__(self, crank: Any, name: str) -> None:
        self._crank = crank
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., Promise]:
        if method.startswith("_"):
            raise AttributeError(method)
        crank, name = self._crank, self._name

        def effect(*args: Any, **keywords: Any) -> Promise:
            promise: Promise = crank.want(name, method, args, keywords)
            return promise

        return effect

    def __call__(self, *args: Any, **keywords: Any) -> Promise:
        """For a device that is one function."""
        promise: Promise = self._crank.want(self._name, "call", args, keywords)
        return promise

    def __str__(self) -> str:
        return self._name


class _Field:
    """The descriptor of a declared field."""

    __slots__ = ("__keeve_field__",)

    def __init__(self, field: Field) -> None:
        self.__keeve_field__ = field

    def __get__(self, actor: Actor | None, cls: type) -> Any:
        if actor is None:
            return self
        field = self.__keeve_field__
        crank = actor._crank
        handle = _HANDLES.get(field.shape)
        if handle is not None:
            return handle(crank, actor._actor, field)
        number = actor._actor
        held = crank.fields(number).get(field.name, field.default)
        if (
            (held is None and field.required)
            or field.kind is not None
            or type(held) in TREES
            or crank.heap.state(number).version != cls.__keeve_type__.version  # type: ignore[attr-defined]  # an actor's
        ):
            crank.fits(number, field)
            crank.there(number, field)
        value = crank.heap.read(held)
        if field.kind is None:
            return value
        if value is None and field.shape is Shape.PART:  # its type has this field for the first time
            value = crank.part(number, field, {})
        return field.kind(crank, value)

    def __set__(self, actor: Actor, value: Any) -> None:
        field = self.__keeve_field__
        crank = actor._crank
        handle = _HANDLES.get(field.shape)
        if field.shape is Shape.PART:
            raise NotDeclared(actor, field.name, "is an actor of its own, which stays what it is: call its methods")
        if handle is None:
            crank.changes()
            crank.fits(actor._actor, field)
            crank.assign(actor._actor, field.name, stored(field, value, crank.keep))
        elif not handle(crank, actor._actor, field)._same(value):  # `self.seen += [...]` assigns the same one again
            raise NotDeclared(actor, field.name, "is a collection and cannot be assigned; use clear() and extend()")


class _Asker(Protocol):
    by: str
    via: str
    request: str | None


class Actor:
    """The base of all actors. What follows can be used while one of its methods runs."""

    __keeve_root__: ClassVar[bool] = True
    _crank: Any
    _actor: int

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise OutsideCrank(f"{type(self).__name__}(): an actor is made by self.spawn(...) or host.spawn(...)")

    def __setattr__(self, name: str, value: Any) -> None:
        descriptor = getattr(type(self), name, None)
        if not isinstance(descriptor, _Field):
            raise NotDeclared(self, name)
        descriptor.__set__(self, value)

    def __delattr__(self, name: str) -> None:
        raise NotDeclared(self, name, "cannot be deleted: an actor keeps its declared fields; give it another value")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Actor) and other._actor == self._actor and other._crank is self._crank

    def __hash__(self) -> int:
        return hash(self._actor)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, actor {self._actor}>"

    @property
    def ref(self) -> Ref:
        """The ref to this actor."""
        return Ref(None, self._actor)

    @property
    def session_id(self) -> str:
        """The id of the session that this actor is in."""
        name: str = self._crank.id
        return name

    @property
    def asker(self) -> _Asker:
        """Who sent the message of this crank: `by`, `via` and `request` (the request id or None)."""
        asker: _Asker = self._crank.progress.asker
        return asker

    @property
    def directory(self) -> Ref:
        """The store's directory: spawn, get, list and delete sessions by messages to it."""
        return Ref(DIRECTORY, 0)

    @property
    def random(self) -> Any:
        """This crank's randomness (`vat.objects.randomness.Random`); its seed is recorded."""
        return self._crank.random()

    def now(self) -> float:
        """Seconds since 1970: the time of this crank, which never goes back within a vat."""
        seconds: float = self._crank.time / 1_000_000
        return seconds

    def new_id(self) -> str:
        """32 hex digits, unique."""
        name: str = self._crank.new_id()
        return name

    def spawn(self, cls: type[Actor], /, **fields: Any) -> Ref:
        """A new actor of `cls` in this vat, with these fields. One operation, and more to fill its collections.

        Raises `UnknownActorType`, `BadActorType`, `BadCall` for fields that it does not have or lacks, `NotAValue`,
        and what its `given` raises; then there is no actor.
        """
        made: Ref = self._crank.spawn(cls, fields)
        return made

    def device(self, name: str) -> Device:
        """A device of the host: `self.device("clock").sleep(5)` is a promise."""
        return Device(self._crank, name)

    def sleep(self, seconds: float) -> Promise:
        """A promise that is fulfilled when so many seconds have passed; it survives restarts like any other.

        It costs an effect, of the device `timer`. Raises `TypeError` or `ValueError` for no number of seconds.
        """
        promise: Promise = self._crank.timer(seconds)
        return promise

    def assert_fact(self, label: str, /, *fields: Any, presence: bool = False, **keywords: Any) -> Handle:
        """State a fact; the handle takes it back. `presence` facts are also retracted when the session is deleted.

        Labels have a dot in them; those without one are Keeve's. Raises `BadName`.
        """
        if not isinstance(label, str) or "." not in label:
            raise BadName(label, "label of yours (labels without a dot are Keeve's: write 'my.label')")
        handle: Handle = self._crank.state_fact(2 if presence else 1, label, fields, keywords)
        return handle

    def retract(self, handle: Sequence[int]) -> None:
        """Take back a fact that this session asserted. Raises `NoSuchFact`, or `TypeError` for what is no handle."""
        self._crank.retract(handle)

    def observe(self, pattern: Pattern | str, method: Callable[..., Any], after: str = "head") -> int:
        """Have `method(event)` called for each matching event, exactly once, from `after` ("start" or "head") on.

        Gives a number for `unobserve`. An event is a dict: position, session, seq, operation, kind, label, fields,
        keywords, captures, time. From "start" on, each event of the past that matches costs a crank of this session.
        Raises `BadPattern`, `ValueError` for another `after`, `TypeError` for what is no method of an actor.
        """
        text = str(parse(pattern) if isinstance(pattern, str) else pattern)
        number: int = self._crank.observe(text, method, after)
        return number

    def unobserve(self, number: int) -> None:
        """End a subscription."""
        self._crank.unobserve(number)

    def narrow(self, *methods: str, read_only: bool = False) -> Ref:
        """A ref to this actor that reaches only `methods` (default: all), or only what is `@read`."""
        made: Ref = self._crank.narrow(self._actor, methods, read_only)
        return made

    def revoke(self, ref: Ref) -> None:
        """Take back a ref that `narrow` gave, or one narrowed from that. Raises `Refused`."""
        self._crank.revoke(self._actor, ref)

    @classmethod
    def given(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """What `spawn` was given, as the fields are to begin: a place to refuse what cannot be meant.

        Called where `spawn` is, before anything is recorded; it must follow from `fields` alone. Whatever it raises,
        `spawn` raises, and nothing has happened.
        """
        return fields

    @classmethod
    def upgrade(cls, state: MutableMapping[str, Any], from_version: int) -> None:
        """One step from the state of `from_version` to that of the next one, for an actor of an older version.

        `state` has the fields by name, and is changed in place: values, and views for collections. What is there in
        the end under the name of a field becomes that field (a view the collection that it is of, at no cost); what is
        missing gets its default, and the rest is dropped.
        """


RESERVED: Final = frozenset(
    {name for name in vars(Actor) if not name.startswith("_")} | {"_crank", "_actor"} | {"snapshot", "fork", "describe"}
)
"""Names that every actor has; a field or method of the user's cannot take them."""


def actor(name: str, *, version: int = 1) -> Callable[[A], A]:
    """Declare a class as the actor type `name`. Raises `BadActorType`."""
    given: Any = name
    if isinstance(given, type | FunctionType):  # a bare @actor
        raise BadActorType(given, "@actor needs the name of the type: write @actor('some.name', version=1)")

    def declare(cls: A) -> A:
        if not isinstance(cls, type):
            raise BadActorType(cls, "@actor is for classes: write class Some(Actor), with this as a method of it")
        if not issubclass(cls, Actor):
            raise BadActorType(cls, f"an actor type is derived from Actor: write class {cls.__name__}(Actor)")
        described = describe_type(cls, name, version, RESERVED)
        for field in described.fields.values():
            setattr(cls, field.name, _Field(field))
        cls.__keeve_type__ = described  # type: ignore[attr-defined]  # read by `vat.objects.types.type_of`
        return cls

    return declare


def state_own(actor: Actor, label: str, /, *fields: Any, **keywords: Any) -> None:
    """State a fact of Keeve's own, with a label without a dot, for ever."""
    actor._crank.state_fact(0, label, fields, keywords)


def facade(crank: Any, actor: int) -> Any:
    """The instance that an actor's methods run on, for one delivery or one fiber."""
    state = crank.heap.state(actor)
    cls = crank.types.fit(state.type, state.version).cls
    instance = cls.__new__(cls)
    own = vars(instance)
    own["_crank"] = crank
    own["_actor"] = actor
    return instance
