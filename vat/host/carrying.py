"""What goes between vats, and from the dataspace to them: from the form of its sender to a message for its receiver.

The one rule: pure functions of what is stored; a message that is made again is the same message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataspace.observe.events import Event
from dataspace.values import FrozenDict, FrozenList, Value
from vat.crank.vat import Vat
from vat.heap.heap import ROOT_ACTOR
from vat.heap.messages import Asker, Call, Outcome, Settled, transport
from vat.heap.refs import Ref


def arriving(sender: Vat, number: int, message: Mapping[str, Value]) -> Call | Settled:
    """A message of a vat's outbox for its receiver. Loads the cells in it, and raises what that raises."""
    memory = sender.heap.memory

    def carried(value: Value) -> Value:
        return transport(value, memory, sender.uid, Ref)

    if "settle" in message:
        outcome = Outcome(message["succeeded"], carried(message["payload"]))
        return Settled(sender.uid, number, message["settle"], outcome)
    return Call(
        message["to"],
        message["method"],
        [carried(arg) for arg in message["args"]],
        {name: carried(arg) for name, arg in message["keywords"].items()},
        Asker("vat", f"vat:{sender.id}"),
        sender=(sender.uid, number, message["promise"]),
    )


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
