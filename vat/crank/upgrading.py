"""Upgrading: bringing the actors of a heap from an older version of their type to the code's.

    for each step from the heap's version to the code's:  cls.upgrade(state, version)

All actors of all types are brought up in one crank, recorded; if a step raises, none are. Fibers whose code is gone by
that break in the same crank. A heap that names a type which is not registered, or one in a newer version than the
code's, is refused.

A part that is moved to a field of another name stays the actor that it is; one that is dropped while somebody waits for
what it owes, as a call for a person's approval, fails the step.

The one rule: what `upgrade` is given and leaves behind are values; what was not touched is kept, at no cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.interrupts import is_interrupt
from dataspace.values import Ref
from vat.crank.crank import Crank
from vat.errors import FiberDiverged, NoSuchActor
from vat.failures import failure_of
from vat.heap.entries import KEPT, SETTLER, STATE
from vat.heap.fibers import ACTOR, METHOD, PARTS, VERSION
from vat.heap.heap import Heap
from vat.heap.opcodes import Op, Verb
from vat.heap.operations import COLLECTIONS
from vat.heap.stored import mapped
from vat.objects.fields import beginning, checked, filling
from vat.objects.types import ActorType, Field, NewerVersion, Shape, Types, type_of
from vat.objects.views import View, view_of


class UpgradeFailed(KeeveError):
    """A type's `upgrade` raised; the session is as it was, and takes no messages with this code."""

    _logged: str | None = None
    """What a log has: of what `upgrade` raised as much as of any error. None where only its message was recorded."""

    def __init__(self, session: str, name: str, version: int, error: BaseException) -> None:
        def said(what: str) -> str:
            return (
                f"session {session!r} cannot be brought from version {version} of {name} to the code's: {what}. "
                f"The session is untouched; mend {name}'s upgrade(), or run the older code"
            )

        super().__init__(said(f"{type(error).__name__}: {failure_of(error)['message']}"))
        self.session = session
        self._logged = said(in_log(error))

    @property
    def logged(self) -> str:
        return self._logged or super().logged


class NoPart(KeeveError, TypeError, quotes=False):
    """A field that is a part was given something else by `upgrade`."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, kind: str) -> None:
        super().__init__(
            f"{field} is a part, {kind}: upgrade() can move one to it that the state has under another name, as "
            f"state[{field!r}] = state.pop('the other name'), and nothing else; leave it out for a new one"
        )
        self.field = field


class PartDropped(KeeveError, quotes=False):
    """A part would go that owes what is waited for: `field` is what held it, `owed` how many promises it owes."""

    def __init__(self, field: str, owed: int) -> None:
        waits = "1 call or promise waits" if owed == 1 else f"{owed} calls or promises wait"
        super().__init__(
            f"{waits} for the part in {field!r}, as for a person's approval, and no field has it any more: keep it, in "
            f"upgrade() by state['its new name'] = state.pop({field!r}), or see to what waits with the older code"
        )
        self.field = field
        self.owed = owed


class NotUpgraded(KeeveError, quotes=False):
    """A session was to take a message before its actors were brought to the code's version."""

    usage = True

    def __init__(self, session: str, names: list[str]) -> None:
        super().__init__(f"session {session!r} has older versions of {', '.join(names)}: upgrade it first")


def outdated(heap: Heap, types: Types) -> dict[str, int]:
    """The types of a heap that are older than the code's, with their versions.

    Raises `UnknownActorType` or `NewerVersion`.
    """
    old = {}
    for name, (version, count) in sorted(heap.types.items()):
        if count:
            known = types[name].version
            if version > known:
                raise NewerVersion(name, version, known)
            if version < known:
                old[name] = version
    return old


def upgrade_all(crank: Crank, old: dict[str, int]) -> None:
    """Bring every actor of the types in `old` to the code's version. Raises `UpgradeFailed`."""
    heap = crank.heap
    for actor in heap.actors():
        state = heap.state(actor)
        if state.type in old:
            described = crank.types[state.type]
            version = state.version
            try:
                _upgrade(crank, actor, described)
            except BaseException as error:
                if is_interrupt(error):
                    raise
                crank.sound()
                raise UpgradeFailed(crank.id, state.type, version, error) from error


def break_fibers(crank: Crank, old: dict[str, int]) -> None:
    """Break the fibers of actors that were brought up, whose code is gone, and run what reacts to that.

    Those go on whose class in the version that began them is registered as well.
    """
    heap = crank.heap
    broken = {}
    for number, fiber in heap.entries("fibers"):
        name, version = heap.state(fiber[ACTOR]).type, fiber[VERSION]
        if name in old and not crank.types.has(name, version):
            recorded = f"was begun by version {version} of {name}"
            did = f"is version {crank.types[name].version}, and the older one is not registered"
            broken[number] = FiberDiverged(
                *(crank.id, number, name, fiber[METHOD], fiber[PARTS]),
                recorded=recorded,
                did=did,
                raised=True,
                outline=(recorded, did),
            )
    crank.end_fibers(broken)


def _upgrade(crank: Crank, actor: int, described: ActorType) -> None:
    heap = crank.heap
    state = heap.state(actor)
    old = dict(state.fields)
    seen = {
        name: view_of(heap, value) if type(value) in COLLECTIONS else heap.read(value) for name, value in old.items()
    }
    given = dict(seen)
    for version in range(state.version, described.version):
        described.cls.upgrade(given, version)  # type: ignore[attr-defined]  # it is an actor
    given = {name: value for name, value in given.items() if name in described.fields}
    checked(described, given)
    kept: dict[str, str] = {}
    fields: dict[str, Any] = {}
    filled: list[tuple[str, Verb, Any]] = []
    views = {id(value): name for name, value in seen.items() if isinstance(value, View)}
    for name, field in described.fields.items():
        value = given.get(name)
        tree = COLLECTIONS[field.shape]
        if field.shape is Shape.PART:
            former = _moved(crank, field, value, seen)
            if former:
                kept[name] = former
            else:
                fields[name] = None
            continue
        if tree is None:
            if name in given and name in seen and value is seen[name] and not isinstance(value, View):
                kept[name] = name
            else:
                fields[name] = beginning(field, given, crank.keep)
            continue
        former = views.pop(id(value), "")
        if former and type(old[former]) is tree:
            kept[name] = former
        else:
            fields[name] = tree()
            if name in given:
                filled += [(name, *change) for change in filling(field, value, crank.keep, crank.key)]
    for name, value in seen.items():
        if name not in kept.values() and (owed := _owed(crank, value)):
            raise PartDropped(name, owed)
    crank.do(Op.UPGRADED, actor, described.version, mapped(kept), mapped(fields))
    for name, verb, args in filled:
        crank.do(Op.CHANGE, actor, name, verb, *args)
    for name, field in described.fields.items():
        if field.shape is Shape.PART and name in fields:
            crank.part(actor, field, {})


def _moved(crank: Crank, field: Field, value: Any, seen: Mapping[str, Any]) -> str:
    """The name under which the state had the part that a field is to hold; "" for none. Raises `NoPart`."""
    if value is None:
        return ""
    former = next((name for name, held in seen.items() if held is value), "")
    kind = type_of(field.kind.__keeve_part__).name
    if not former or _type_here(crank, value) != kind:
        raise NoPart(field.name, kind)
    return former


def _owed(crank: Crank, value: Any) -> int:
    """How many promises a part owes; 0 for anything else. Costs all promises for a part."""
    if _type_here(crank, value) not in crank.types.parts:
        return 0
    settler = ["actor", value.actor]
    return sum(entry[STATE] < KEPT and list(entry[SETTLER]) == settler for _, entry in crank.heap.entries("promises"))


def _type_here(crank: Crank, value: Any) -> str:
    """The type of the actor that a ref refers to, if it is one of this vat; "" for anything else."""
    if not isinstance(value, Ref) or value.session is not None:
        return ""
    try:
        return crank.heap.state(value.actor).type
    except NoSuchActor:  # it has been narrowed
        return ""
