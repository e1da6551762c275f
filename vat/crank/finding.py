"""Finding: what a name of an actor is, through refs that may have been narrowed; and what every ref understands.

The one rule: a narrowed ref reaches no further than its narrowing says, whoever asks through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dataspace.values import Value
from vat.crank.acting import Acting
from vat.errors import BadCall, NoSuchMethod, OtherParameters, Refused, Revoked, no_such_method
from vat.heap.entries import REACTIONS, Then
from vat.heap.messages import UNIVERSAL, Outcome
from vat.heap.opcodes import To
from vat.heap.refs import Ref
from vat.objects.describing import taken_by
from vat.objects.types import Field, Method, Takes


class BuiltIn(NamedTuple):
    """What every actor understands and the runtime carries out; given the crank and the actor that was addressed."""

    name: str
    function: Callable[..., Any]
    read: bool
    takes: Takes


class Finding(Acting):
    """A transaction that knows what can be asked of its actors."""

    __slots__ = ()

    def find(self, actor: int, name: str, *, inner: bool = False) -> tuple[Method | Field | BuiltIn, int]:
        """What a name of an actor is: a method or a public field, and whose. Goes through narrowed refs.

        `inner` methods, with an underscore before their name, are found only for what this vat asks of itself.
        Raises `NoSuchActor`, `NoSuchMethod`, `Refused` or `Revoked`.
        """
        target, read_only = self.reach(actor, name)
        state = self.heap.state(target)
        described = self.types.fit(state.type, state.version)
        found: Method | Field | BuiltIn | None = described.methods.get(name)
        if found is None:
            found = BUILT_IN.get(name)
        if found is None and inner:
            found = described.inner.get(name)
        if found is None:
            found = described.fields.get(name)
            if isinstance(found, Field) and not found.public:
                found = None
        if found is None:
            if name in UNIVERSAL:
                raise NoSuchMethod(f"{name} is carried out between cranks: send it, ref.{name}(...)")
            raise no_such_method(described.name, name, described.public)
        if read_only and not (isinstance(found, Field) or found.read or name in BUILT_IN):
            raise Refused(
                f"this ref to {self.id!r} is read only, and {name!r} is not marked @read: ask for a wider one"
            )
        return found, target

    def must_take(
        self, found: Method | Field | BuiltIn, actor: int, args: Sequence[Value], keywords: Mapping[str, Value]
    ) -> None:
        """Raise `OtherParameters` or `BadCall` unless what `find` gave can be called so, whatever comes of the call."""
        if isinstance(found, Field):
            if args or keywords:
                type = self.heap.state(actor).type
                raise BadCall(f"{type}.{found.name} is a field, which takes no arguments: read it as it is")
        elif (problem := found.takes.problem(args, keywords)) is not None:
            raise OtherParameters(self.heap.state(actor).type, found.name, str(found.takes), problem)

    def reach(self, actor: int, name: str) -> tuple[int, bool]:
        """Which actor a ref reaches, and whether only to read. Raises `Refused` or `Revoked`."""
        read_only = False
        if self.heap.may_have("facets"):
            for facet in self.heap.narrowed(actor):
                target, methods, only_read, revoked = facet
                if revoked:
                    raise Revoked(f"the ref to {self.id!r} was revoked by who handed it on: ask them for another")
                if methods is not None and name not in methods and name not in BUILT_IN:
                    raise Refused(
                        f"this ref to {self.id!r} does not reach {name!r}: it was narrowed to {list(methods)}; "
                        "ask who gave it for a wider one"
                    )
                actor, read_only = target, read_only or only_read
        return actor, read_only

    def known(self, actor: int | None, name: str | None) -> Method | Field | None:
        found = None if actor is None or name is None else self.sought(actor, name, inner=True)
        return None if found is None or isinstance(found[0], BuiltIn) else found[0]

    def sought(self, actor: int, name: str, *, inner: bool = False) -> tuple[Method | Field | BuiltIn, int] | None:
        """As `find`, but None for what cannot be found: the delivery itself will say what is wrong."""
        try:
            return self.find(actor, name, inner=inner)
        except (LookupError, PermissionError, AttributeError, Revoked):
            return None

    def marked(self, promise: int, outcome: Outcome) -> Value:
        """What an effect gave, marked as the reaction to its promise says that it takes it."""
        entry = self.heap.find("promises", promise)
        if outcome.succeeded and entry is not None:
            for reaction in entry[REACTIONS]:
                if reaction[0] == To.THEN and reaction[Then.KEPT] is not None:
                    found = self.known(reaction[Then.KEPT_ACTOR], reaction[Then.KEPT])
                    if isinstance(found, Method) and 0 in found.marks:
                        return found.marks[0](outcome.payload)
        return outcome.payload

    # What every actor understands.

    def describe(self, actor: int) -> dict[str, Any]:
        """What `describe()` answers: an actor, and its session as it was when this crank began."""
        heap = self.heap
        state = heap.state(self.reach(actor, "describe")[0])
        described = self.types[state.type]
        system = heap.system
        return {
            "id": self.id,
            "uid": self.uid.hex(),
            "type": state.type,
            "version": state.version,
            "methods": sorted(described.methods),
            "reads": sorted(name for name, method in described.methods.items() if method.read),
            "fields": [field.name for field in described.fields.values() if field.public],
            "seq": self.record.seq - 1,
            "hash": self.progress.previous.hex(),
            "time": heap.time / 1_000_000,
            "actors": heap.size,
            "effects": system["effects"].count,
            "messages": system["outbox"].count,
            "subscriptions": system["subscriptions"].count,
            "fibers": system["fibers"].count,
        }


def _describe(crank: Finding, addressed: int) -> dict[str, Any]:
    return crank.describe(addressed)


def _narrow(crank: Finding, addressed: int, *methods: str, read_only: bool = False) -> Ref:
    return crank.narrow(addressed, methods, read_only)


def _revoke(crank: Finding, addressed: int, ref: Ref) -> None:
    crank.revoke(addressed, ref)


BUILT_IN: Final = {
    name: BuiltIn(name, function, read, taken_by(function, 2))
    for name, function, read in (
        ("describe", _describe, True),
        ("narrow", _narrow, False),
        ("revoke", _revoke, False),
    )
}
"""What can be asked through every ref that is not revoked: it only tells who is there, or gives less away."""

EVERY_REF: Final = UNIVERSAL | BUILT_IN.keys()
"""What every ref to an actor has besides the actor's own."""
