"""Refs as another process holds them: `await s.turn("hello")`, `await client.get("s").history`.

A call gives a promise. Whoever awaits it has it sent; a promise can be called, and be an argument, before it has an
answer, and then all that it takes is sent at once.

The one rule: as with a host of one's own, nothing is done until it is awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, Protocol, TypeAlias
from uuid import uuid4

from dataspace.values import NotAValue, Promise, Ref, Value, freeze
from vat.errors import NotAssignable
from vat.host.outside import replaced

Receives: TypeAlias = Callable[[Any], Any]


class Performs(Protocol):
    """What a client does for its refs and promises."""

    async def perform(self, promise: RemotePromise) -> Any: ...


class RemoteRef:
    """A ref to an actor of another process's host. Equal when it was given for the same actor, by the same server.

    Its attributes are the actor's methods and public fields. Every call takes `request="…"` as well, an id that makes
    a retry safe (else one is chosen), and `receipt=True`.
    """

    __slots__ = ("__weakref__", "_client", "_shown", "_sturdy")
    _client: Performs
    _shown: str
    _sturdy: str

    def __init__(self, client: Performs, sturdy: str, shown: str) -> None:
        put = object.__setattr__
        put(self, "_client", client)
        put(self, "_sturdy", sturdy)
        put(self, "_shown", shown)

    def __getattr__(self, name: str) -> RemoteMember:
        return RemoteMember(self._client, self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotAssignable(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RemoteRef):
            return NotImplemented
        return self._sturdy == other._sturdy

    def __hash__(self) -> int:
        return hash(self._sturdy)

    def __repr__(self) -> str:
        return self._shown


class RemoteMember:
    """A method or field of an actor: call it, or await it as it is (a field)."""

    __slots__ = ("_client", "_name", "_target")

    def __init__(self, client: Performs, target: Target, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(f"{name}: only public methods and fields can be reached through a ref")
        self._client = client
        self._target = target
        self._name = name

    def __call__(self, *args: Any, request: str | None = None, receipt: bool = False, **keywords: Any) -> RemotePromise:
        return RemotePromise(self._client, self._target, self._name, args, keywords, request, receipt)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self().__await__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        what = f"await {self._name} first, and ask what comes: (await ref.{self._name}).{name}"
        raise AttributeError(f"{self!r} is a method or a field, and has no {name!r} itself: {what}")

    def __repr__(self) -> str:
        return f"{self._target!r}.{self._name}"


class RemotePromise:
    """The answer of a call, which is made when somebody awaits it. May be awaited more than once, by several tasks."""

    __slots__ = ("__weakref__", "_client", "_state")
    _client: Performs
    _state: RemoteCall

    def __init__(
        self,
        client: Performs,
        target: Target,
        method: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        request: str | None,
        receipt: bool,
    ) -> None:
        put = object.__setattr__
        put(self, "_client", client)
        put(self, "_state", RemoteCall(target, method, args, keywords, request, receipt))

    def __getattr__(self, name: str) -> RemoteMember:
        return RemoteMember(self._client, self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotAssignable(name)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._client.perform(self).__await__()

    def __repr__(self) -> str:
        return f"<promise of {self._state.target!r}.{self._state.method}>"


class Desk:
    """What a client calls before it has a ref."""

    def __repr__(self) -> str:
        return "<the desk>"


DESK: Final = Desk()
Target: TypeAlias = "RemoteRef | RemotePromise | Desk"


class RemoteCall:
    """What a promise knows of its call. What goes in is frozen here, at the line that made it.

    `parts` are the refs and promises among the arguments, which stand there as `Ref(None, n)`, by their place here.
    """

    __slots__ = (
        *("args", "keywords", "method", "parts", "receipt", "request", "target"),
        *("error", "settled", "tries", "value"),
    )

    def __init__(
        self,
        target: Target,
        method: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        request: str | None,
        receipt: bool,
    ) -> None:
        if type(receipt) is not bool:
            raise TypeError(f"{method}(): receipt is True or False")
        self.target = target
        self.method = method
        self.parts: list[RemoteRef | RemotePromise] = []
        self.args = [self._frozen(arg, f"{method}(): argument {at}") for at, arg in enumerate(args, 1)]
        self.keywords = {name: self._frozen(arg, f"{method}(): {name}") for name, arg in keywords.items()}
        self.request = request or uuid4().hex
        self.receipt = receipt
        self.tries = 0
        self.settled = False
        self.value: Any = None
        self.error: Exception | None = None

    def _frozen(self, arg: Any, path: str) -> Value:
        def part(item: Any) -> Any:
            if isinstance(item, RemoteRef | RemotePromise):
                self.parts.append(item)
                return Ref(None, len(self.parts) - 1)
            if isinstance(item, RemoteMember):
                raise NotAValue(path, type(item), f"{item!r} is a method or a field: call it, or await it, first")
            if isinstance(item, Ref) and item.session is None:
                raise NotAValue(path, type(item), "a ref of a vat's own means nothing outside of it")
            return item

        return freeze(replaced(arg, part), None, path)

    def takes(self) -> list[Target]:
        """What it needs to be made: its target, and the refs and promises among its arguments."""
        return [self.target, *self.parts]

    def promises(self) -> list[RemotePromise]:
        """The promises among these."""
        return [part for part in self.takes() if isinstance(part, RemotePromise)]

    def written(self, part: Callable[[Any], Ref | Promise | Value]) -> tuple[list[Value], dict[str, Value]]:
        """The arguments, with what `part` gives for the refs and promises in them."""
        if not self.parts:
            return self.args, self.keywords

        def change(item: Any) -> Any:
            mine = isinstance(item, Ref) and item.session is None
            return part(self.parts[item.actor]) if mine else item

        args = [replaced(arg, change) for arg in self.args]
        return args, {name: replaced(arg, change) for name, arg in self.keywords.items()}
