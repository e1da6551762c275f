"""Approvals: calls that wait until a person has approved of them.

    ask(call)    ->  (approval-wanted n s id ...): a promise, which waits
    approve(id)  ->  (approval-given n s id ...): it is fulfilled
    refuse(id)   ->  (approval-refused n s id ...): it breaks
    cancel, ...  ->  (approval-withdrawn n s id ...): nobody waits for it any more (`_given_up`), or it was approved of
                     and given up before it began (`_let_go`)

    run(device, call)  ->  the device is asked; if it wants that (`ApprovalWanted`), a person is (`_stopped`); and when
                           they have approved, the device again (`_approved`)

What waits is state: it survives restarts and eviction, and a fork has it as well, to be approved of on its own.

A word is for one call: an id under which one has ever waited is never given to another, so a word that is said twice,
or late, finds nothing. A part of a fiber may have asked (`ask`), and is run again with this code: what `_ask` does, to
the last operation, is part of the format.

A yes counts for who asked: methods that wait and are not in memory are brought back before it is taken, and where one
cannot go on any more, the call is withdrawn.

The one rule: nothing is called before somebody has said so, and what was refused is never called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from actors.chat import BadAnswer, Call, Output, check_call, marked_call
from actors.messages import named
from actors.tools.errors import ApprovalWanted, CallRefused
from dataspace.errors import KeeveError
from dataspace.values import Text
from vat.errors import BadCall, FiberDiverged
from vat.heap.refs import Promise, Ref
from vat.objects.actor import Actor, actor, state_own
from vat.objects.collections import Map
from vat.objects.owing import fail, owe, owes, pay
from vat.objects.parts import Part
from vat.objects.types import manage, read, type_of

ASKING: Final = frozenset(("keeve.approvals", "keeve.toolbox"))
"""The types of actors that can ask a person."""

TELLS: Final = "_is_unknown"
"""What an actor has that states it itself where nobody knows what came of a call, see `actors.session.calls`."""


class NothingWaits(KeeveError, LookupError):
    """There is no call of that id (`id`) that waits for approval; `waiting` are those that do. `why`: what became of
    it, where that is known."""

    usage: ClassVar[bool] = True

    def __init__(self, id: str, waiting: tuple[str, ...], why: str = "") -> None:
        super().__init__(id, waiting, why)
        self.id = id
        self.waiting = waiting
        self.why = why

    @property
    def logged(self) -> str:
        return "a call does not wait for approval (any more)"

    def __str__(self) -> str:
        if self.why:
            return f"the call {self.id!r} waits for no approval any more: {self.why}"
        others = f"these do: {', '.join(self.waiting)}" if self.waiting else "none does"
        return f"no call {self.id!r} waits for approval; {others}"


class CallWithdrawn(KeeveError):
    """A call (`id`) is not made, though it was approved of: the method that asked for it cannot go on, see `error`."""

    usage: ClassVar[bool] = True

    def __init__(self, id: str, error: FiberDiverged) -> None:
        super().__init__(id, error)
        self.id = id
        self.error = error

    def __str__(self) -> str:
        error = self.error
        where = f", at {error.at}" if error.at else ""
        return (
            f"the call {self.id!r} was withdrawn in the place of being approved of, and is not made, since nobody "
            f"would hear of it: {error.type}.{error.method}, which asked for it, cannot go on where it waited. "
            f"The record says that it {error.recorded}; the code now {error.did}{where}. Have it asked for anew"
        )

    @property
    def logged(self) -> str:
        return "a call was withdrawn in the place of being approved of: the method that asked for it cannot go on"


@actor("keeve.approvals", version=1)
class Approver(Actor):
    """What waits for a person, and their word on it. A ref to it may be handed to whoever is to decide."""

    _asked: int = 0
    _wanted: Map[int, Any]
    """In the order in which they were asked for: id, turn, call, since, and the promise that is owed."""
    _numbers: Map[str, int]
    """The number of each that was ever asked for, by its id."""

    @manage
    def approve(self, id: str) -> Promise | None:
        """Let a call be made. Raises `NothingWaits`, or `CallWithdrawn` where the method that asked cannot go on."""
        promise = self._wanted[self._found(id)]["promise"]
        lost = self._crank.fibers.look_after(promise.id)
        if lost and not owes(self, promise):
            refused = owe(self)  # to raise would undo that it is withdrawn
            fail(self, refused, CallWithdrawn(id, lost[0]))
            return refused
        entry = self._take(id)
        state_own(self, "approval-given", entry["turn"], self.session_id, id, by=self.asker.by)
        pay(self, entry["promise"], True)
        return None

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
        id, others = call["id"], self._others()
        while id in self._numbers or any(id in numbers for numbers in others):
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

    def _others(self) -> list[Map[str, int]]:
        """The ids that were asked for at the other actors of this session. Costs all actors, where there are any."""
        crank = self._crank
        heap, field = crank.heap, type_of(Approver).fields["_numbers"]
        if sum(heap.types.get(name, (0, 0))[1] for name in ASKING) < 2:
            return []
        asking = (actor for actor in heap.actors() if actor != self._actor and heap.state(actor).type in ASKING)
        return [Map(crank, actor, field) for actor in asking]

    def _run(self, device: str, call: Call, turn: int, told: bool = False) -> Promise:
        call = marked_call(call)
        said = (device, call, turn, *((True,) if told else ()))  # without it, what a fiber's part is held against
        return self.device(device).run(call).then(self._came, *said, broken=self._stopped)

    def _came(self, output: Output, device: str, call: Call, turn: int, told: bool | None = None) -> Output:
        """The output, its text marked as content by its type: only what passes through a method is."""
        return output

    def _stopped(self, error: Exception, device: str, call: Call, turn: int, told: bool | None = None) -> Promise:
        if not isinstance(error, ApprovalWanted):
            raise error
        if told is None:  # a session says so, but did not in an earlier version
            told = bool(turn) and self._of_a_session()
        said = self._ask(call, turn)
        return said.then(self._approved, device, marked_call(call), turn, self._wanted[self._asked]["id"], told)

    def _of_a_session(self) -> bool:
        """Whether it is a part of a `Session`. Costs the actors up to that one, which is mostly the first."""
        heap = self._crank.heap
        for number in heap.actors():
            state = heap.state(number)
            part = state.fields.get("approvals")
            if isinstance(part, Ref) and part.actor == self._actor:
                return TELLS in self._crank.types[state.type].inner
        return False

    def _approved(
        self, said: bool, device: str, call: Call, turn: int = 0, id: str = "", told: bool | None = None
    ) -> Promise:
        call = marked_call(call)
        made = self.device(device).run(call, approved=True)
        if id:  # what waited in an earlier version has none, or does not say whether it is told of: a session's was
            made.then(None, id, turn, made.id, bool(turn) if told is None else told, broken=self._let_go)
        return made.then(self._came, device, call, 0)

    def _let_go(self, error: Exception, id: str, turn: int, promise: int, told: bool | None = None) -> None:
        """A call was approved of, and did not come to its end. Of what was given up it is said whether it was made;
        that it may have been, only where nobody else tells so (`told`)."""
        started = self._crank.progress.given_up.get(promise)
        if started is False:
            self._withdrawn(turn, id, error)
        elif started and not (bool(turn) if told is None else told):
            state_own(self, "tool-unknown", turn, self.session_id, id)

    def _waiting(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Those that somebody still waits for."""
        return ((number, entry) for number, entry in self._wanted.items() if owes(self, entry["promise"]))

    def _given_up(self, error: Exception, number: int) -> None:
        """Nobody waits for it any more, or it was refused."""
        if number in self._wanted:
            entry = self._wanted.pop(number)
            self._withdrawn(entry["turn"], entry["id"], error)

    def _withdrawn(self, turn: int, id: str, error: Exception) -> None:
        due = self._crank.progress.due
        said = {"error": named(error)} if due is None else {"error": named(error), "due": due}
        state_own(self, "approval-withdrawn", turn, self.session_id, id, **said)

    def _found(self, id: str) -> int:
        number = self._numbers.get(id, 0)
        if number not in self._wanted or not owes(self, self._wanted[number]["promise"]):
            raise NothingWaits(id, tuple(entry["id"] for _, entry in self._waiting()))
        return number

    def _take(self, id: str) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = self._wanted.pop(self._found(id))
        return entry


class Approvals(Part):
    """A field that holds what waits for a person's approval: `approvals: Approvals`."""

    __slots__ = ()
    __keeve_part__ = Approver

    def ask(self, call: Mapping[str, Any], turn: int = 0) -> Promise:
        """Have a person approve of a tool call: fulfilled when somebody does, broken with `CallRefused`.

        `call` is in the form of a tool call, `{"id": ..., "function": {"name": ..., "arguments": ...}}`, of whatever is
        to be decided. `turn` is the number that its facts name, 0 where there are no turns. Raises `BadCall` for what
        is no such call.
        """
        try:
            check_call(call, ids=str)
        except BadAnswer:
            raise BadCall(
                "ask() is given what is to be decided in the form of a tool call: give it an id and a name, "
                '{"id": "…", "function": {"name": "…", "arguments": …}}'
            ) from None
        promise: Promise = self.inner("_ask", call, turn)
        return promise

    def run(self, device: str, call: Mapping[str, Any], turn: int = 0, *, told: bool = False) -> Promise:
        """Have a device carry out a tool call, when a person has approved of it where that is needed. `told`: whoever
        asks states it itself where nobody knows what came of a call, as a `Session` does."""
        promise: Promise = self.inner("_run", device, call, turn, *((True,) if told else ()))
        return promise
