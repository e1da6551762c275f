"""The tool calls of one answer: from the wish for each to the message that tells the model what came of it.

    _start: (tool-call ...)
       │
       ▼
    the device has it ── ApprovalWanted ──▶ a person has it ── refused ──▶ _raised
       │        ▲                                  │
       │        └───────── approved: _approved ────┘
       ▼
    _returned, _raised: (tool-result ...) or (tool-unknown ...), and its message

    _stop, wherever a call is: it is given up (`_drop_calls`). One that the device has is (tool-unknown ...), and its
    message is UNKNOWN; one that a person has, or that was never started, has NOT_RUN. What comes of it now is too late.

All at once, or each when the one before it is over. This goes step by step, and not by `Approvals.run`, since a call
that is given up is unknown while the device has it, and was not made while a person has it.

Each call is an effect of its own. Its message is put in its place when its outcome comes, so at any time `messages` has
those of the calls that are over, in the order of the calls.

The one rule: a call is in `_open` from its start to its message. What comes of one that is not there is too late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from actors.approvals import Approvals
from actors.chat import Content, marked, marked_call, told
from actors.messages import NOT_RUN, UNKNOWN, failed, named, tool_message
from actors.session.forking import Forking
from actors.tools.errors import ApprovalWanted
from dataspace.values import Text
from vat.devices.outcomes import OutcomeUnknown
from vat.errors import Forked, failure_of
from vat.heap.refs import Promise, cancel
from vat.objects.actor import Device, state_own
from vat.objects.collections import List, Map


class Open(NamedTuple):
    """A call without an outcome."""

    runs: bool
    """Whether the device has it; else a person."""
    asked: int
    """The promise of what they say, by number."""
    heard: int
    """The promise of what is made of that, by number."""


class Calls(Forking):
    """The part of a session that has tools called."""

    # Of the session's settings.
    tool_device: Device
    parallel: bool
    messages: List[Mapping[str, Any]]

    approvals: Approvals
    """The calls that wait for a person; a ref to it is for whoever is to decide."""
    _step: int = 0
    """The step that the running turn is at."""
    _started: int = 0
    """How many calls of the last answer have been started, in their order; each is open, or has its message."""
    _open: Map[int, Any]
    """Those without an outcome, by their place in the answer; see `Open`."""

    def _calls(self) -> Sequence[Mapping[str, Any]]:
        """The calls of the last answer, which stands before the messages of those that are over."""
        over = self._started - len(self._open)
        calls: Sequence[Mapping[str, Any]] = self.messages[-1 - over]["tool_calls"]
        return calls

    def _start(self, n: int, step: int) -> Promise | None:
        """Start the calls that can be started now; gives a promise for what comes of one, None if all are over."""
        calls = self._calls()
        while self._started < len(calls) and (self.parallel or not self._open):
            at = self._started
            call = marked_call(calls[at])
            function = call["function"]
            said = {"name": function["name"], "arguments": function.get("arguments")}
            state_own(self, "tool-call", n, self.session_id, call["id"], **said)
            self._started = at + 1
            self._ask_for(at, True, self.tool_device.run(call), self._returned, n, step)
        return next((Promise(Open(*kept).heard) for _, kept in self._open.items()), None)

    def _ask_for(self, at: int, runs: bool, asked: Promise, then: Any, n: int, step: int) -> Promise:
        """A call waits for this now."""
        heard = asked.then(then, n, step, at, broken=self._raised)
        self._open[at] = [*Open(runs, asked.id, heard.id)]
        return heard

    def _approved(self, said: Any, n: int, step: int, at: int) -> Promise | None:
        if not self._waits_for(n, step, at):
            return None
        asked = self.tool_device.run(marked_call(self._calls()[at]), approved=True)
        return self._ask_for(at, True, asked, self._returned, n, step)

    def _returned(self, output: Content, n: int, step: int, at: int) -> None:
        if self._waits_for(n, step, at):
            id = self._calls()[at]["id"]
            state_own(self, "tool-result", n, self.session_id, id, output=marked(output))
            self._tell(at, id, told(output))

    def _raised(self, error: Exception, n: int, step: int, at: int) -> Promise | None:
        if not self._waits_for(n, step, at):
            return None
        if isinstance(error, Forked) and self._inherited():  # the turn is over with this
            self._stop(n, error, failure=failure_of(error))
            return None
        call = self._calls()[at]
        if isinstance(error, ApprovalWanted):
            return self._ask_for(at, False, self.approvals.ask(call, n), self._approved, n, step)
        id = call["id"]
        text = failed(error)
        if isinstance(error, OutcomeUnknown):
            state_own(self, "tool-unknown", n, self.session_id, id)
        else:
            state_own(self, "tool-result", n, self.session_id, id, output=Text(text), error=named(error))
        self._tell(at, id, text)
        return None

    def _waits_for(self, n: int, step: int, at: int) -> bool:
        return n == self._running_now() and step == self._step and at in self._open

    def _tell(self, at: int, id: str, content: Any) -> None:
        """A call is over: its message comes after those of the calls before it."""
        del self._open[at]
        message, later = tool_message(id, content), self._told_after(at)
        if later:
            self.messages.insert(len(self.messages) - later, message)
        else:
            self.messages.append(message)

    def _told_after(self, at: int) -> int:
        """How many of the calls after this one have their message: those that were started and are not open."""
        started = self._started - (at + 1)
        return started - sum(other > at for other in self._open)

    def _drop_calls(self, n: int, error: Exception) -> None:
        """Give up what runs, and start no more: the model will hear of each."""
        calls = self._calls()
        for at, kept in list(self._open.items()):
            given_up = Open(*kept)
            id = calls[at]["id"]
            if given_up.runs:
                state_own(self, "tool-unknown", n, self.session_id, id)
            self._tell(at, id, UNKNOWN if given_up.runs else NOT_RUN)
            cancel(Promise(given_up.asked), error)
        for call in calls[self._started :]:
            self._tell_of_none(call["id"])
        self._started = len(calls)

    def _tell_of_none(self, id: str) -> None:
        self.messages.append(tool_message(id, NOT_RUN))

    # What the turn says.

    def _running_now(self) -> int:
        """The number of the turn that has begun and is not over; 0 for none."""
        raise NotImplementedError

    def _stop(self, n: int, error: Exception, **why: Any) -> None:
        """End the running turn early."""
        raise NotImplementedError
