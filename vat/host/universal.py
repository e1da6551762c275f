"""What every vat carries out itself, between its cranks: `snapshot()` and `fork(at=None, into=None)`.

They are sent like any message, by a client or by another vat, and have their place among a session's messages; but no
actor runs. Both make records of their own, and what they answer is recorded like any other answer, to the vat or to the
request id that asked.

The one rule: a ref that was narrowed reaches these no further than its narrowing says (`Vat.allow`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dataspace.errors import KeeveError
from dataspace.proofs.proofs import Receipt
from dataspace.remedies import Remedy
from dataspace.values import FrozenDict, Value
from vat.crank.vat import Step, Vat
from vat.errors import BadCall
from vat.failures import failure_of
from vat.heap.messages import Call, Outcome
from vat.host.carrying import child_ref
from vat.host.outside import Snapshot

FORK_TAKES: Final = Remedy("fork-takes", "fork(at=None, into=None): ")


class Universal:
    """Carries these calls out.

    fork: makes the records of a fork: vat, call, seq, id; gives the child's uid. expect: raises unless the log has all
    that somebody has seen of it.
    """

    def __init__(
        self,
        fork: Callable[[Vat, Call, int | None, str | None], tuple[Step, bytes]],
        expect: Callable[[str | bytes | Receipt], object],
    ) -> None:
        self._fork = fork
        self._expect = expect

    def asked(self, method: str, keywords: dict[str, Any]) -> None:
        """A caller outside of all vats asks for this: what only the host can look at is taken out of the keywords.

        A `fork` may `expect` what somebody has seen of the log, and is refused if that is gone.
        """
        if method == "fork" and (seen := keywords.pop("expect", None)) is not None:
            self._expect(seen)

    def call(self, vat: Vat, call: Call) -> Sequence[Step]:
        """The steps of a call. To a caller outside it raises; to another vat every error is an answer."""
        sender = call.sender
        if sender is None:
            return self._carried_out(vat, call)
        if vat.has(*sender[:2]):
            return (Step(None, acknowledged=sender[:2]),)
        try:
            return self._carried_out(vat, call)
        except KeeveError as error:
            return (vat.answer(call, Outcome(False, FrozenDict(failure_of(error)))),)

    def _carried_out(self, vat: Vat, call: Call) -> Sequence[Step]:
        if (repeated := vat.repeated(call)) is not None:
            return (repeated,)
        vat.allow(call.to, call.method)
        answered = False
        value: Value
        if call.method == "snapshot":
            if call.args or call.keywords:
                raise BadCall("snapshot() takes no arguments: give none")
            step, named = vat.snapshot()
            value = FrozenDict(named)
        else:
            at, into = _fork_arguments(call)
            step, child = self._fork(vat, call, at, into)
            value = child_ref(child)
            answered = call.sender is None  # its record has the answer to a request id in it
        outcome = Outcome(True, value)
        if not answered and (call.sender is not None or call.asker.request is not None):
            return (step, vat.answer(call, outcome))
        if call.reply is not None:
            step.replies.append((call.reply, outcome))
        return (step,)


def given(method: str, answer: Any) -> Any:
    """What that caller gets for an answer, which says no more than a value can: of a `snapshot`, a `Snapshot`."""
    return Snapshot(**answer) if method == "snapshot" else answer


def _fork_arguments(call: Call) -> tuple[int | None, str | None]:
    """The seq and the id of a fork. Raises `BadCall` for anything else."""
    given: dict[str, Value] = dict(zip(("at", "into"), call.args, strict=False))
    every = {**given, **call.keywords}
    at, into = every.get("at"), every.get("into")
    if (
        len(call.args) > 2
        or call.keywords.keys() - {"at", "into"}
        or given.keys() & call.keywords.keys()
        or not (at is None or type(at) is int)
        or not (into is None or type(into) is str)
    ):
        raise BadCall(
            f"{FORK_TAKES()}at is a seq, into the id of the new session; to fork after a turn, give the seq of the "
            "event of its (turn-done n . _)"
        )
    return at, into
