"""Approvals: calls that wait until a person has approved of them.

    ask(call)    ->  (approval-wanted n s id ...): a promise, which waits
    approve(id)  ->  (approval-given n s id ...): it is fulfilled
    refuse(id)   ->  (approval-refused n s id ...): it breaks

    run(device, call)  ->  the device is asked; if it wants that (`ApprovalWanted`), a person is (`_stopped`); and when
                           they have approved, the device again (`_approved`)

What waits is state: it survives restarts and eviction, and a fork has it as well, to be approved of on its own.

The one rule: nothing is called before somebody has said so, and what was refused is never called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from actors.chat import Call, Output, marked_call
from actors.tools.errors import ApprovalWanted, CallRefused
from dataspace.errors import KeeveError
from dataspace.values import Text
from vat.heap.refs import Promise
from vat.objects.actor import Actor, actor, state_own
from vat.objects.collections import Map
from vat.objects.owing import fail, owe, owes, pay
from vat.objects.parts import Part
from vat.objects.types import manage, read


class NothingWaits(KeeveError, LookupError):
    """There is no call of that id (`id`) that waits for approval; `waiting` are those that do."""

    usage: ClassVar[bool] = True

    def __init__(self, id: str, waiting: tuple[str, ...]) -> None:
        super().__init__(id, waiting)
        self.id = id
        self.waiting = waiting

    def __str__(self) -> str:
        others = f"these do: {', '.join(self.waiting)}" if self.waiting else "none does"
        return f"no call {self.id!r} waits for approval; {others}"


@actor("keeve.approvals", version=1)
class Approver(Actor):
    """What waits for a person, and their word on it. A ref to it may be handed to whoever is to decide."""

    _asked: int = 0
    _wanted: Map[int, Any]
    """In the order in which they were asked for: id, turn, call, since, and the promise that is owed."""
    _numbers: Map[str, int]
    """The number of each of them, by its id."""

    @manage
    def approve(self, id: str) -> None:
        """Let a call be made. Raises `NothingWaits`."""
        entry = self._take(id)
        state_own(self, "approval-given", entry["turn"], self.session_id, id, by=self.asker.by)
        pay(self, entry["promise"], True)

    @manage
    def refuse(self, id: str, reason: str = "") -> None:
        """Let a call never be made; who made it is told the reason. Raises `NothingWaits`."""
        entry = self._take(id)
        said = {"by": self.asker.by, "reason": Text(reason)}
        state_own(self, "approval-refused", entry["turn"], self.session_id, id, **said)
        why = f": {reason}" if reason else ""
        fail(self, entry["promise"], CallRefused(f"a person has refused this call, so it was not made{why}"))

    @read
    def waiting(self) -> list[dict[str, Any]]:
        """The calls that wait, the oldest first: dicts with `id`, `turn`, `name`, `arguments`, and `since` (a time)."""
        return [
            {
                "id": entry["id"],
                "turn": entry["turn"],
                "name": entry["call"]["function"]["name"],
                "arguments": entry["call"]["function"].get("arguments"),
                "since": entry["since"],
            }
            for _, entry in self._waiting()
        ]

    # What only its owner may ask.

    def _ask(self, call: Mapping[str, Any], turn: int) -> Promise:
        self._asked = number = self._asked + 1
        id = call["id"]
        while id in self._numbers:
            id = f"{id}.{number}"
        promise = owe(self)
        promise.then(None, number, broken=self._given_up)
        kept = marked_call(call)
        self._wanted[number] = {"id": id, "turn": turn, "call": kept, "since": self.now(), "promise": promise}
        self._numbers[id] = number
        function = kept["function"]
        said = {"name": function["name"], "arguments": function.get("arguments")}
        state_own(self, "approval-wanted", turn, self.session_id, id, **said)
        return promise

    def _run(self, device: str, call: Call, turn: int) -> Promise:
        call = marked_call(call)
        return self.device(device).run(call).then(self._came, device, call, turn, broken=self._stopped)

    def _came(self, output: Output, device: str, call: Call, turn: int) -> Output:
        """The output, its text marked as content by its type: only what passes through a method is."""
        return output

    def _stopped(self, error: Exception, device: str, call: Call, turn: int) -> Promise:
        if not isinstance(error, ApprovalWanted):
            raise error
        return self._ask(call, turn).then(self._approved, device, marked_call(call))

    def _approved(self, said: bool, device: str, call: Call) -> Promise:
        call = marked_call(call)
        return self.device(device).run(call, approved=True).then(self._came, device, call, 0)

    def _waiting(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Those that somebody still waits for."""
        return ((number, entry) for number, entry in self._wanted.items() if owes(self, entry["promise"]))

    def _given_up(self, error: Exception, number: int) -> None:
        """Nobody waits for it any more, or it was refused."""
        if number in self._wanted:
            del self._numbers[self._wanted.pop(number)["id"]]

    def _take(self, id: str) -> Mapping[str, Any]:
        number = self._numbers.get(id)
        if number is None or not owes(self, self._wanted[number]["promise"]):
            raise NothingWaits(id, tuple(entry["id"] for _, entry in self._waiting()))
        del self._numbers[id]
        entry: Mapping[str, Any] = self._wanted.pop(number)
        return entry


class Approvals(Part):
    """A field that holds what waits for a person's approval: `approvals: Approvals`."""

    __slots__ = ()
    __keeve_part__ = Approver

    def ask(self, call: Mapping[str, Any], turn: int = 0) -> Promise:
        """Have a person approve of a tool call: fulfilled when somebody does, broken with `CallRefused`.

        `turn` is the number that its facts name, 0 where there are no turns.
        """
        promise: Promise = self.inner("_ask", call, turn)
        return promise

    def run(self, device: str, call: Mapping[str, Any], turn: int = 0) -> Promise:
        """Have a device carry out a tool call, when a person has approved of it where that is needed."""
        promise: Promise = self.inner("_run", device, call, turn)
        return promise
