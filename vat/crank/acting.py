"""What an actor can do beside sending: change its fields, make actors and refs, state facts, observe, take time's
and chance's word.

The one rule: each is one operation, or a few, and raises before the first one if it cannot be done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from dataspace import values
from dataspace.drafts import Handle
from dataspace.facts import BadName, is_word
from dataspace.values import Value
from vat.crank.progress import STATED
from vat.crank.promises import method_of
from vat.crank.sending import Sending
from vat.crank.transaction import NO_CRANK
from vat.crank.whole import whole
from vat.errors import ChangedType, NoSuchFact, OtherShape, OutsideCrank, Refused
from vat.heap.entries import Facet
from vat.heap.opcodes import Op, Verb
from vat.heap.operations import COLLECTIONS, fact_key
from vat.heap.refs import Ref
from vat.heap.stored import listed, mapped
from vat.objects.fields import beginning, checked, filling, given, shape_of
from vat.objects.randomness import Random
from vat.objects.types import ActorType, Field, Shape, type_of

_SET, _CHANGE, _STATED = Op.SET, Op.CHANGE, Op.STATED


class Acting(Sending):
    """A transaction that does what actors ask for."""

    __slots__ = ()

    # Fields and collections.

    def change(self, actor: int, field: Field, verb: Verb, *args: Value) -> None:
        """Change a collection."""
        fields = self.fields(actor)
        if type(fields.get(field.name)) is not COLLECTIONS[field.shape]:
            self.fits(actor, field)
            if field.name not in fields:  # its type has this field for the first time
                self.do(_SET, actor, field.name, beginning(field, {}, self.keep))
        self.do(_CHANGE, actor, field.name, verb, *args)

    def fits(self, actor: int, field: Field) -> None:
        """Raise unless what is stored has the shape that the field declares.

        `OtherShape` if an older class declares it, and the state's version has another shape for it; `ChangedType` if
        it is that very version. What the state's version does not have is the older classes' own, if they agree on it.
        """
        state = self.heap.state(actor)
        described = self.types.fit(state.type, state.version)
        there = described.fields.get(field.name)
        shape = field.shape
        if there is field:
            if field.name in state.fields and (stored := shape_of(field, state.fields[field.name])) is not shape:
                raise ChangedType(f"{state.type}.{field.name}", shape.words, state.version, stored.words)
            return
        if there is not None and described.version == state.version:
            shape = there.shape
        elif field.name in state.fields:
            shape = shape_of(field, state.fields[field.name])
        if shape is not field.shape:
            raise OtherShape(
                f"{state.type}.{field.name}",
                declares=field.shape.words,
                older=self.types.version_with(state.type, field, state.version),
                holds=shape.words,
                newer=state.version,
            )

    def there(self, actor: int, field: Field) -> None:
        """Raise `OtherShape` or `ChangedType`, as `fits`, if the field has no default and the state has none of it."""
        state = self.heap.state(actor)
        if not field.required or field.name in state.fields:
            return
        name = f"{state.type}.{field.name}"
        if self.types.fit(state.type, state.version).fields.get(field.name) is field:
            raise ChangedType(name, field.shape.words, state.version, None)
        raise OtherShape(
            name,
            declares=field.shape.words,
            older=self.types.version_with(state.type, field, state.version),
            holds=None,
            newer=state.version,
        )

    def assign(self, actor: int, field: str, value: Value) -> None:
        """Set a field."""
        self.do(_SET, actor, field, value)

    def view(self, actor: int, field: Field) -> int:
        """Take a view; gives its number within the record, -1 if there is none."""
        if self.progress.silent or field.name not in self.fields(actor):
            return -1
        self.note(Op.VIEWED, actor, field.name)
        return len(self.heap.views) - 1

    # Actors and refs.

    @whole
    def spawn(self, cls: type, fields: Mapping[str, Any]) -> Ref:
        """A new actor of this vat. Raises `UnknownActorType`, `BadActorType`, `TypeError` or `NotAValue`."""
        described = self.types.of(cls)
        self.changes()
        return self.make_actor(described, given(cls, fields))

    def make_actor(self, described: ActorType, given: Mapping[str, Any]) -> Ref:
        """A new actor with its first state."""
        checked(described, given, new=True)
        fields = {name: beginning(field, given, self.keep) for name, field in described.fields.items()}
        actor = self.number("actor")
        self.do(Op.SPAWNED, actor, described.name, described.version, mapped(fields))
        for name, value in given.items():
            field = described.fields[name]
            if COLLECTIONS[field.shape] is not None:
                for verb, args in filling(field, value, self.keep, self.key):
                    self.do(Op.CHANGE, actor, name, verb, *args)
        for name, field in described.fields.items():
            if field.shape is Shape.PART:
                self.part(actor, field, given.get(name, {}))
        return Ref(None, actor)

    @whole
    def part(self, actor: int, field: Field, given: Mapping[str, Any]) -> Ref:
        """Make the actor that a field is a part for."""
        self.changes()
        made = self.make_actor(type_of(field.kind.__keeve_part__), given)
        self.do(_SET, actor, field.name, made)
        return made

    @whole
    def narrow(self, target: int, methods: Sequence[str], read_only: bool) -> Ref:
        """A ref that reaches less of an actor, or of what a narrowed ref reaches; no methods are all of them."""
        names = listed([self.word(name, "a method") for name in methods]) if methods else None
        facet = self.number("actor")
        self.do(Op.NARROWED, facet, target, names, bool(read_only))
        return Ref(None, facet)

    def revoke(self, target: int, facet: Any) -> None:
        """Take back a ref that was narrowed from `target`, or from one that was. Raises `Refused` for another."""
        self.changes()
        found = False
        if isinstance(facet, values.Ref) and facet.session in (None, self.uid):
            found = any(each[Facet.TARGET] == target for each in self.heap.narrowed(facet.actor))
        if not found:
            raise Refused("only a ref that was narrowed from this one can be revoked: keep what narrow() gave you")
        self.do(Op.REVOKED, facet.actor)

    # Facts.

    @whole
    def state_fact(self, mode: int, label: str, fields: Sequence[Any], keywords: Mapping[str, Any]) -> Handle:
        """State a fact; `mode` is 0 (for ever), 1 (may be retracted) or 2 (presence). Raises `BadName`, `NotAValue`."""
        self.changes()
        if not (isinstance(label, str) and is_word(label)):
            raise BadName(label, "label")
        # Refs in a fact are handed out, by operations of their own that stand before it.
        keep = self.keep
        kept = [keep(value, f"{label}[{n}]", STATED) for n, value in enumerate(fields)]
        named: dict[str, Value] = {}
        for name, value in keywords.items():
            if not is_word(name):
                raise BadName(name, "keyword")
            named[name] = keep(value, f"{label}.{name}", STATED)
        draft = self.record
        at = len(draft.operations)
        if mode:
            self.do(_STATED, mode, draft.seq, at)
        else:
            self.do(_STATED, mode)
        draft.stated(at, label, kept, named)
        return Handle(draft.seq, at)

    @whole
    def retract(self, handle: Sequence[int]) -> None:
        """Take a fact back. Raises `NoSuchFact` when the handle names none that this session holds."""
        self.changes()
        seq, operation = handle
        if type(seq) is not int or type(operation) is not int or not 0 <= operation < 1 << 24:
            raise TypeError(f"{handle!r} is no handle: keep what assert_fact() gave you")
        if self.heap.find("facts", fact_key(seq, operation)) is None:
            raise NoSuchFact(
                f"({seq}, {operation}) is no fact that {self.id!r} has asserted and not retracted: "
                "keep the handle that assert_fact gave"
            )
        draft = self.record
        at = len(draft.operations)
        self.do(Op.RETRACTED, seq, operation)
        draft.retracted(at, Handle(seq, operation))

    # The dataspace.

    @whole
    def observe(self, pattern: str, method: Any, after: str) -> int:
        """Have a method called with each event; gives the subscription's number."""
        actor, name = method_of(method)
        if after not in ("head", "start"):
            raise ValueError(f"after={after!r}: observe from 'start', or from the 'head' on")
        number = self.number("subscription")
        cursor = self.powers.cursor() if after == "head" else "start"
        self.do(Op.SUBSCRIBED, number, pattern, actor, name, cursor)
        self.progress.subscriptions = True
        return number

    def unobserve(self, number: int) -> None:
        """End a subscription, if there is one of that number."""
        if self.heap.find("subscriptions", number) is not None:
            self.do(Op.UNSUBSCRIBED, number)
            self.progress.subscriptions = True

    # Time and chance.

    @whole
    def random(self) -> Random:
        """The randomness of the delivery that runs: it follows from the crank's seed, which is recorded.

        Raises `OutsideCrank`, before chance is asked: a coroutine that is closed may come here.
        """
        progress = self.progress
        if progress.draft is None:
            raise OutsideCrank(NO_CRANK)
        if progress.seed is None:  # nothing was drawn yet, or it was undone
            progress.seed = self.powers.entropy(16)
            self.note(Op.SEEDED, progress.seed)
            progress.random = None
        if progress.random is None:
            progress.random = Random(b"%b%d" % (progress.seed, progress.moment))
        return progress.random

    def new_id(self) -> str:
        """32 hex digits that nobody else gives."""
        progress = self.progress
        if progress.silent:  # what is not recorded must not take an id that the next crank will give
            return self.powers.entropy(16).hex()
        progress.ids += 1
        place = b"%b%d/%d/%d" % (self.uid, self.record.seq, progress.moment, progress.ids)
        return sha256(b"keeve id 1\n" + place).hexdigest()[:32]
