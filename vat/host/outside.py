"""Refs as code outside of all vats holds them: `await s.turn("hello")`, `await s.history`.

A `HostRef` is bound to a host. Its attributes are the actor's methods and public fields; a call or a field is
awaited, and comes back when the record that it depends on is durable.

The one rule: nothing is done until it is awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import attrs
from attrs.validators import instance_of

from dataspace.values import MAX_DEPTH, FrozenDict, FrozenList, Value, digest_of, freeze
from vat.errors import BadCall, NotAssignable
from vat.heap.messages import Asker, Sent
from vat.heap.refs import Ref
from vat.heap.stored import PLAIN

A = TypeVar("A", covariant=True)


@attrs.frozen
class Snapshot:
    """Names a snapshot: the session's id, the seq of its record, and the digests of its root page and its record.

    Stays good as long as the session does. `Host.restore` takes it.
    """

    session: str = attrs.field(validator=instance_of(str))
    seq: int = attrs.field(validator=instance_of(int))
    root: str = attrs.field(validator=instance_of(str))
    hash: str = attrs.field(validator=instance_of(str))

    @classmethod
    def of(cls, value: Any) -> Snapshot:
        """The snapshot that a value is, such as JSON gives back. Raises `BadCall` for what is none."""
        try:
            return value if isinstance(value, Snapshot) else cls(**value)
        except TypeError:
            raise BadCall(
                f"{value!r:.200} is no snapshot: give what snapshot() gave, or a dict of its fields"
            ) from None


class Calls(Protocol):
    """What a host does for the refs that are bound to it."""

    async def call(
        self,
        uid: bytes,
        actor: int,
        method: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        asker: Asker,
        *,
        receipt: bool,
    ) -> Any: ...

    def name(self, uid: bytes, actor: int) -> str: ...


class HostRef(Generic[A]):
    """A ref to an actor of type `A`, bound to a host. Equal when it is to the same actor of the same host.

    Every call takes `request="…"` as well: an id that makes a retry safe; and `receipt=True`: then it gives the value
    and a receipt.
    """

    __slots__ = ("_actor", "_asker", "_host", "_uid")
    _host: Calls
    _uid: bytes
    _actor: int
    _asker: Asker

    def __init__(self, host: Calls, uid: bytes, actor: int, asker: Asker) -> None:
        put = object.__setattr__
        put(self, "_host", host)
        put(self, "_uid", uid)
        put(self, "_actor", actor)
        put(self, "_asker", asker)

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_"):
            raise AttributeError(f"{name}: only public methods and fields can be reached through a ref")
        return Member(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotAssignable(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HostRef):
            return NotImplemented
        return (self._host, self._uid, self._actor) == (other._host, other._uid, other._actor)

    def __hash__(self) -> int:
        return hash((self._uid, self._actor))

    def __repr__(self) -> str:
        return f"<ref to {self._host.name(self._uid, self._actor)}>"


def beside(ref: HostRef[Any], actor: int) -> HostRef[Any]:
    """A ref to the actor of that number in the same session, for the same asker."""
    return reaching(ref, ref._uid, actor)


def reaching(ref: HostRef[Any], uid: bytes, actor: int) -> HostRef[Any]:
    """A ref to an actor of any session of the same host, for the same asker. Nobody looks whether it is there."""
    return HostRef(ref._host, uid, actor, ref._asker)


class Member:
    """A method or field of an actor behind a ref: call it and await the result, or await it as it is (a field)."""

    __slots__ = ("_name", "_ref")

    def __init__(self, ref: HostRef[Any], name: str) -> None:
        self._ref = ref
        self._name = name

    async def __call__(
        self, *args: Any, request: str | Sent | None = None, receipt: bool = False, **keywords: Any
    ) -> Any:
        ref = self._ref
        asker = ref._asker if request is None else ref._asker.requesting(request)
        return await ref._host.call(ref._uid, ref._actor, self._name, args, keywords, asker, receipt=receipt)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self().__await__()

    def __repr__(self) -> str:
        return f"{self._ref!r}.{self._name}"


def bound(value: Value, host: Calls, asker: Asker) -> Any:
    """A value from a vat as code outside gets it: the refs in it bound to the host."""

    def change(item: Any) -> Any:
        if type(item) is not Ref:
            return item
        assert item.session is not None, "a ref that has left its vat names its session"
        return HostRef(host, item.session, item.actor, asker)

    return replaced(value, change)


def unbound(value: Any) -> Any:
    """An argument as a vat can take it: bound refs as plain ones. What is no value is left for `freeze` to refuse."""
    return replaced(value, lambda item: Ref(item._uid, item._actor) if isinstance(item, HostRef) else item)


def sent_digest(what: str, *content: Any) -> bytes:
    """The digest by which a request is known of what a client sent, for a thing that is asked for: so that no digest of
    another kind is the same. Raises `NotAValue`."""
    return digest_of(["sent", what, *(freeze(unbound(each), None, what) for each in content)])


def replaced(value: Any, change: Callable[[Any], Any], within: tuple[int, ...] = ()) -> Any:
    """A value or an argument with `change(item)` for each item in it that is not plain, at any depth.

    Frozen containers in which nothing changed stay the same; of others, lists and dicts are made. `within` are the
    containers that it is in: one that contains itself comes to an end, and stays as it is there.
    """
    if type(value) in PLAIN:
        return value
    if not isinstance(value, Mapping | list | tuple):
        return change(value)
    if id(value) in within or len(within) > MAX_DEPTH:
        return value
    inside = (*within, id(value))
    if isinstance(value, Mapping):
        items = {key: replaced(item, change, inside) for key, item in value.items()}
        if not isinstance(value, FrozenDict):
            return items
        return value if all(items[key] is value[key] for key in items) else FrozenDict(items)
    listed = [replaced(item, change, inside) for item in value]
    if not isinstance(value, FrozenList):
        return listed
    return value if all(new is old for new, old in zip(listed, value, strict=True)) else FrozenList(listed)


def place(ref: HostRef[Any]) -> tuple[bytes, int]:
    """Which actor a bound ref is to: its session's uid, and its id there."""
    return ref._uid, ref._actor
