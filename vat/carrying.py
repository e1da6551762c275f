"""What goes between vats, and from the dataspace to them, on its way: from the form of its sender to a job.

`snapshot` and `fork` are what every vat understands beyond its actors' methods: they make records of their own, and
their answer is then recorded like any other.

The one rule: a message is repeated until its receiver has recorded it, so everything here may happen twice and
takes effect once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

from dataspace.errors import KeeveError
from dataspace.events import Event
from dataspace.values import FrozenDict, FrozenList, Value
from vat.crank import UNIVERSAL
from vat.errors import failure_of
from vat.heap import ROOT_ACTOR
from vat.messages import Asker, Call, Outcome, Settled, transport
from vat.refs import Ref
from vat.residents import Job
from vat.vat import Step, Vat

Fork: TypeAlias = "Callable[[Vat, int | None, str | None, bytes, Asker], tuple[list[Step], Ref]]"
"""Forks a vat at a seq into a session of that id and uid: the steps, and the ref to the child."""


class Forks(Protocol):
    """What the engine does for a fork."""

    @property
    def forks(self) -> Fork: ...


def arriving(engine: Forks, sender: Vat, number: int, message: Mapping[str, Value]) -> Job:
    """The job of a message for its receiver."""
    memory = sender.heap.memory

    def carried(value: Value) -> Value:
        return transport(value, memory, sender.uid, Ref)

    if "settle" in message:
        outcome = Outcome(message["succeeded"], carried(message["payload"]))
        settled = Settled(sender.uid, number, message["settle"], outcome)
        return Job(lambda vat: [vat.take(settled)], again=True)
    call = Call(
        message["to"],
        message["method"],
        [carried(arg) for arg in message["args"]],
        {name: carried(arg) for name, arg in message["keywords"].items()},
        Asker("vat", f"vat:{sender.id}"),
        sender=(sender.uid, number, message["promise"]),
    )
    if call.method in UNIVERSAL:
        return Job(lambda vat: universal_from(engine, vat, call), again=True)
    return Job(lambda vat: [vat.take(call)], again=True)


def universal_from(engine: Forks, vat: Vat, call: Call) -> Sequence[Step]:
    """Another vat asks for a snapshot or a fork: done, and answered by a record that also acknowledges it."""
    assert call.sender is not None
    sender, number, _ = call.sender
    if vat.has(sender, number):
        return [Step(None, acknowledged=(sender, number))]
    steps: list[Step] = []
    try:
        if call.method == "snapshot":
            step, named = vat.snapshot()
            steps.append(step)
            outcome = Outcome(True, FrozenDict(named))
        else:
            # The same message gives the same child.
            uid = sha256(b"keeve fork 1\n%b%b%d" % (vat.uid, sender, number)).digest()[:16]
            at, into = fork_arguments(call.args, call.keywords)
            made, ref = engine.forks(vat, at, into, uid, call.asker)
            steps.extend(made)
            outcome = Outcome(True, ref)
    except KeeveError as error:
        outcome = Outcome(False, failure_of(error))
    steps.append(vat.answer(call, outcome))
    return steps


def fork_arguments(args: Sequence[Value], keywords: Mapping[str, Value]) -> tuple[int | None, str | None]:
    """`fork(at=None, into=None)`. Raises `TypeError` for anything else."""

    def fork(at: int | None = None, into: str | None = None) -> tuple[int | None, str | None]:
        if not (at is None or type(at) is int) or not (into is None or type(into) is str):
            raise TypeError("fork(at=None, into=None): at is a seq, into the id of the new session")
        return at, into

    return fork(*args, **keywords)


def child_ref(uid: bytes) -> Ref:
    """The ref to the first actor of a session."""
    return Ref(uid, ROOT_ACTOR)


def event_value(event: Event) -> Value:
    """An event as the message that an observing actor gets."""
    fact = event.value
    said: dict[str, Any] = {
        "position": event.position,
        "session": event.session,
        "seq": event.seq,
        "operation": event.operation,
        "kind": event.kind,
        "label": fact.label,
        "fields": FrozenList(fact.fields),
        "keywords": fact.keywords,
        "captures": FrozenDict(event.captures.named),
        "time": event.time,
    }
    return FrozenDict(said)
