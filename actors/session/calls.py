"""The tool calls of one answer: from the wish for each to the message that tells the model what came of it.

    _start: (tool-call ...)
       │
       ▼
    the device has it, or a person, and then the device (`Approvals.run`)
       │
       ▼
    _returned, _raised: (tool-result ...) or (tool-unknown ...), and its message

    _stop, wherever a call is: it is given up (`_drop_calls`). One that may have begun is (tool-unknown ...), and its
    message is UNKNOWN; one that waits for a person, or in its device for its turn, has an error, and NOT_RUN, as has
    one that was never started. What comes of it now is too late.

At most `AT_ONCE` beside each other, or each when the one before it is over. An answer with many calls costs each of
them the same: of the answer only that call is read, and what is open is few.

Each call is an effect of its own. Its message is put in its place when its outcome comes, so at any time `messages` has
those of the calls that are over, in the order of the calls.

The one rule: a call is in `_open` from its start to its message. What comes of one that is not there is too late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from actors.approvals import Approvals
from actors.chat import Output, marked_call, marked_output, told
from actors.messages import NOT_RUN, UNKNOWN, failed, named, tool_message
from actors.session.forking import Forking
from actors.tools.errors import NoSuchTool
from actors.tools.offering import offered
from dataspace.values import Text
from vat.devices.outcomes import EffectCancelled, OutcomeUnknown
from vat.errors import Forked
from vat.failures import failure_of
from vat.heap.refs import Promise, begun, cancel
from vat.objects.actor import Device, state_own
from vat.objects.collections import List, Map
from vat.objects.views import Unread, unread

AT_ONCE: Final = 100
"""Calls of one answer that are under way at once, those that wait for a person included."""


class Calls(Forking):
    """The part of a session that has tools called."""

    # Of the session's settings.
    tool_device: Device
    parallel: bool
    tools: List[Mapping[str, Any]]
    messages: List[Mapping[str, Any]]

    approvals: Approvals
    """The calls that wait for a person; a ref to it is for whoever is to decide."""
    _step: int = 0
    """The step that the running turn is at."""
    _started: int = 0
    """How many calls of the last answer have been started, in their order; each is open, or has its message."""
    _open: Map[int, int]
    """Those without an outcome, by their place in the answer: the promise of what is made of it, by number."""

    def _calls(self) -> Unread:
        """The calls of the last answer, which stands before the messages of those that are over."""
        over = self._started - len(self._open)
        return unread(self.messages, -1 - over)["tool_calls"]

    def _own_calls(self) -> int:
        """How many calls of the last answer, from its first one on, are carried out here."""
        return len(self._calls())

    def _start(self, n: int, step: int) -> Promise | None:
        """Start the calls that can be started now; gives a promise for what comes of one, None if all are over."""
        calls, own = self._calls(), self._own_calls()
        names = offered(self.tools) if self._started < own else []
        most = AT_ONCE if self.parallel else 1
        while self._started < own and len(self._open) < most:
            at = self._started
            call = marked_call(calls[at].read())
            function = call["function"]
            said = {"name": function["name"], "arguments": function.get("arguments")}
            state_own(self, "tool-call", n, self.session_id, call["id"], **said)
            self._started = at + 1
            if function["name"] not in names:
                self._open[at] = 0
                error = NoSuchTool(function["name"], tuple(names))
                self._has_failed(n, at, error, failed(error))
                continue
            asked = self.approvals.run(str(self.tool_device), call, n, told=True)
            heard = asked.then(self._returned, n, step, at, broken=self._raised)
            self._open[at] = heard.id
        return next(map(Promise, self._open.values()), None)

    def _start_another(self, n: int, step: int) -> None:
        """One that ran beside others is over. The turn waits for another one, and would start the next only then."""
        if self.parallel and self._started < self._own_calls():
            self._part()
            self._start(n, step)

    def _returned(self, output: Output, n: int, step: int, at: int) -> None:
        if self._waits_for(n, step, at):
            id = self._calls()[at]["id"].read()
            state_own(self, "tool-result", n, self.session_id, id, output=marked_output(output))
            self._tell(at, id, told(output))
            self._start_another(n, step)

    def _raised(self, error: Exception, n: int, step: int, at: int) -> None:
        if not self._waits_for(n, step, at):
            return
        if isinstance(error, Forked) and self._inherited():  # the turn is over with this
            self._stop(n, error, failure=failure_of(error))
            return
        if isinstance(error, OutcomeUnknown):
            self._is_unknown(n, at)
        else:
            self._has_failed(n, at, error, failed(error))
        self._start_another(n, step)

    def _is_unknown(self, n: int, at: int) -> None:
        id = self._calls()[at]["id"].read()
        state_own(self, "tool-unknown", n, self.session_id, id)
        self._tell(at, id, UNKNOWN)

    def _has_failed(self, n: int, at: int, error: Exception, text: str) -> None:
        id = self._calls()[at]["id"].read()
        state_own(self, "tool-result", n, self.session_id, id, output=Text(text), error=named(error))
        self._tell(at, id, text)

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
        for at, heard in [(at, Promise(heard)) for at, heard in self._open.items()]:
            if begun(heard):
                self._is_unknown(n, at)
            else:
                name = f"{self.tool_device}.{calls[at]['function']['name'].read()}"
                self._has_failed(n, at, EffectCancelled(name, started=False), NOT_RUN)
            cancel(heard, error)
        own = self._own_calls()
        for at in range(self._started, own):
            self._tell_of_none(calls[at]["id"].read())
        self._started = own

    def _tell_of_none(self, id: str) -> None:
        self.messages.append(tool_message(id, NOT_RUN))

    # What the turn says.

    def _running_now(self) -> int:
        """The number of the turn that has begun and is not over; 0 for none."""
        raise NotImplementedError

    def _stop(self, n: int, error: Exception, **why: Any) -> None:
        """End the running turn early."""
        raise NotImplementedError
