"""`Session`: a conversation with a model that calls tools, as an actor.

    turn(input)  ->  accepted: history, (turn n s ...)
                     begins, when those before it are over: messages; timer.until(...) if its time is limited
        model.complete(messages)  ->  _answered: messages, (model-output n s step ...)
            its tool calls, if any (`actors.session.calls`)  ->  _next, when one of them is over
            and again, with what was steered in, until an answer calls no tool, or a limit is reached: (turn-done ...)
        _failed, whatever broke it: (turn-failed ...) or (turn-interrupted ...)

Each arrow is a reaction to a promise, and what it needs stands in its arguments and the fields. So a turn that runs is
data: it goes on after a restart, and in a newer version of this code.

To change that later: a running turn of the old version names in its reactions the methods `_begin`, `_unbegun`,
`_answered`, `_unanswered`, `_next`, `_returned`, `_raised`, `_failed`, `_timed`, `_untimed` and `_steered`, and its
calls `_came`, `_stopped` and `_approved` of `actors.approvals`, with their arguments. These stay callable as they are;
what is to be different gets another name, and the old method goes when no store can have it any more. A change of the
fields takes a higher `version` and a step of `upgrade`.

The one rule: a turn waits for one thing, the model or the calls of one answer, and all that was said is in `messages`.
Whatever ends it early says so in `_stopped`, gives up what it waits for, and leaves the rest to the reaction to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from actors.chat import (
    Answer,
    Content,
    answered,
    check_input,
    last_said,
    marked,
    marked_message,
    message_in,
)
from actors.counts import summed
from actors.messages import named
from actors.session.calls import Calls
from actors.session.forking import Forking
from actors.session.queueing import Queueing
from actors.session.settings import Settings
from actors.session.steering import Steering
from actors.session.usage import Usage
from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from dataspace.values import FrozenDict
from vat.errors import Forked
from vat.failures import exception_of, failure_of
from vat.heap.refs import Promise, cancel
from vat.objects.actor import actor, state_own
from vat.objects.collections import List
from vat.objects.moving import append_kept, kept
from vat.objects.types import read


class TurnInterrupted(KeeveError):
    """A turn was stopped by somebody before it was over."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


MORE_TIME: Final = Remedy("more-time", "give turns more with max_seconds")


class TurnOver(KeeveError, quotes=False):
    """What a turn waited for is given up, because the turn is over or has no more time."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


@actor("keeve.session", version=1)
class Session(Settings, Queueing, Calls, Steering, Usage, Forking):
    """A conversation. `await s.turn("hello")` gives what the model says in the end.

    model, tool_device: the devices of the host that are asked, by name.
    system: what the model is told first.
    mode: "agent", or "chat" to keep it from using tools.
    tools: the tools' schemas, as the model is given them (in OpenAI form).
    parallel: whether the tool calls of one answer run at once, or one after another.
    options: sent with each request to the model, and recorded with it: keep them small.
    max_steps: answers of the model in one turn; what the last one calls is not called.
    max_tokens: the turn is over with the answer with which its tokens are this many; 0 is no limit.
    max_seconds: how long a turn may run from when it begins, by the host's device `timer`; 0 is no limit.
    A turn that ends at a limit gives the content of its last answer, which is None where that only called tools;
    `status()` and the fact `turn-done` say which limit it was.
    history: the inputs that were accepted as turns, in order.
    messages: the whole conversation in OpenAI chat form, byte for byte.
    usage: what all answers together have used, by model and purpose; see `own_usage`.
    """

    history: List[Any]

    _over: int = 0
    """The number of the last turn that is over: those after it run or wait, or were ended while they waited."""
    # Promises by number: to hold them here would keep them, and what came of them, when they are settled.
    _asked: int = 0
    """What the model is asked; 0 while tools run."""
    _timer: int = 0
    _until: float = 0
    """When the time of the last turn that was limited is over, in seconds since 1970."""
    _spent: Mapping[str, Any] = FrozenDict()
    """What the running turn has used."""
    _stopped: Any = None
    """Why the running turn is to end early: {"limit": ...}, or {"failure": ...}, and {"by": ...} for an interrupt."""
    _limit: str = ""
    """The limit that the last turn reached; what its last answer called was not carried out then."""

    # What others may ask.

    def turn(self, input: Content) -> Promise:
        """Take an input: a string, or a list of content parts. The promise has the content of the model's last answer.

        Accepted at once and run in the order of acceptance. The promise breaks with the model's error, or with
        `TurnInterrupted`. Raises `BadInput` or `BadSetting`.
        """
        check_input(input)
        asker = self.asker
        said = {"input": marked(input), "request": asker.request, "by": asker.by, "via": asker.via}
        return self._accept(said)

    def interrupt(self, turn: int | None = None) -> int | None:
        """End a turn: the one of that number if it is not over, or the one that runs. Gives its number, else None.

        Without a number it may find the turn after the one that was meant.
        """
        n = self._unfinished() if turn is None else turn
        if not n:
            return None
        by = self.asker.by
        error = TurnInterrupted(f"turn {n} of {self.session_id!r} was interrupted by {by}")
        if n in self._queue:
            self._drop(n, error, "turn-interrupted", by=by, step=0)
        elif n == self._running_now() and self._stopped is None:
            self._stop(n, error, by=by, failure=failure_of(error))
        else:
            return None
        return n

    @read
    def status(self) -> dict[str, Any]:
        """How far it is: how many turns are accepted and how many over, which one runs (None: none), the limit that the
        last one that was done has reached (`"steps"`, `"tokens"`, `"time"`, `"mode"`; None: none), and that it states
        its turns."""
        accepted, running = len(self.history), self._unfinished()
        return {
            "accepted": accepted,
            "over": (running or accepted + 1) - 1,  # what was dropped or given up while it waited counts as well
            "running": running,
            "limit": self._limit or None,
            "stated": True,
        }

    # A turn.

    def _running_now(self) -> int:
        return self._over + 1 if self._ending else 0

    def _unfinished(self) -> int | None:
        """The turn that runs, or is about to begin."""
        return self._running_now() or self._first()

    def _accept(self, said: Mapping[str, Any]) -> Promise:
        self._check_settings()
        self._part()
        free = self._unfinished() is None
        self.history.append(said["input"])
        n = len(self.history)
        state_own(self, "turn", n, self.session_id, **said)
        return self._begin(None, n) if free else self._wait(n)

    def _begin(self, before: Any, n: int) -> Promise:
        """Those before it are over, however they ended."""
        if n in self._queue:
            del self._queue[n]
        if self._over < n - 1:
            self._over = n - 1
        self._say(n)
        if self.max_seconds:
            self._until = self._crank.deadline(self.max_seconds)
            self._measure(n)
        output = self._ask(n, 1)
        ending = output.then(None, n, broken=self._failed)
        self._ending = ending.id
        return output

    def _say(self, n: int) -> None:
        """What the model is told first in a turn: its input, after what is owed to it of the turn before."""
        if not self.messages and self.system:
            self.messages.append(self._system_message())
        if self._limit:
            calls, count = answered(self.messages)
            for call in calls[count:]:
                self._tell_of_none(call["id"])
            self._limit = ""
        append_kept(self.messages, {"role": "user", "content": kept(self.history, n - 1)})

    def _unsay(self, n: int) -> None:
        """Take back the input of a turn that has no answer."""
        self.messages.pop()

    def _ask(self, n: int, step: int) -> Promise:
        if step > 1:
            self._join(n, step)
        if step != self._step:
            self._step = step
        options: dict[str, Any] = {**self.options}
        if self.tools and self.mode == "agent":
            options["tools"] = self.tools.view()
        asked = self.model.complete(self.messages.view(), **options)
        self._asked = asked.id
        return asked.then(self._answered, n, step, broken=self._unanswered if self._timer else None)

    def _answered(self, answer: Answer, n: int, step: int) -> Content:
        """The model has answered: what the turn comes to, or the promise of it."""
        message = marked_message(message_in(answer))
        self.messages.append(message)
        state_own(self, "model-output", n, self.session_id, step, message=message)
        self._count(answer, "turn")
        usage = answer.get("usage")
        if usage:
            self._spent = summed(self._spent, usage if isinstance(usage, Mapping) else {})
        calls = message.get("tool_calls")
        limit = self._reached(step, bool(calls))
        if not calls or limit:
            return self._done(n, message.get("content"), limit)
        self._asked = self._started = 0
        return self._next(None, n, step)

    def _unanswered(self, error: Exception, n: int, step: int) -> Content:
        """The model has not answered, in a turn whose time is limited."""
        if self._stopped is None:
            raise error
        return self._ended_early(n)

    def _next(self, before: None, n: int, step: int) -> Content:
        """One of the calls is over, or none is started yet: on with the others, or with the model."""
        if self._stopped is not None:
            return self._ended_early(n)
        self._part()
        heard = self._start(n, step)
        return self._ask(n, step + 1) if heard is None else heard.then(self._next, n, step)

    def _reached(self, step: int, calls: bool) -> str:
        """The limit that an answer has reached; what it `calls` is not called then."""
        if calls and self.mode != "agent":
            return "mode"
        if calls and step >= self.max_steps:
            return "steps"
        tokens = self._spent.get("total_tokens", 0)
        return "tokens" if 0 < self.max_tokens <= (tokens if isinstance(tokens, int | float) else 0) else ""

    # Its end.

    def _measure(self, n: int) -> None:
        timer = self.device("timer").until(self._until)
        timer.then(self._timed, n, broken=self._untimed)
        self._timer = timer.id

    def _timed(self, at: Any, n: int) -> None:
        """The turn's time is over."""
        if n == self._running_now() and self._stopped is None:
            error = TurnOver(f"turn {n} of {self.session_id!r} has no more time: {MORE_TIME()}")
            self._stop(n, error, limit="time")

    def _untimed(self, error: Exception, n: int) -> None:
        """Nobody measures the turn's time: its limit could not be kept. In a fork it is measured anew."""
        if n != self._running_now() or self._stopped is not None:
            return
        if isinstance(error, Forked) and self._inherited():
            self._measure(n)  # it may wait for nothing but a person
        else:
            self._stop(n, error, failure=failure_of(error))

    def _stop(self, n: int, error: Exception, **why: Any) -> None:
        self._stopped = why
        self._give_up(n, error)

    def _give_up(self, n: int, error: Exception) -> None:
        """What the turn waits for breaks, and the calls that are not over get their messages."""
        if self._asked:
            cancel(Promise(self._asked), error)
        else:
            self._drop_calls(n, error)

    def _ended_early(self, n: int) -> Content:
        stopped = self._stopped
        if "limit" in stopped:
            said = last_said(self.messages) if self._has_answered() else None
            return self._done(n, said, stopped["limit"])
        raise exception_of(stopped["failure"])

    def _has_answered(self) -> bool:
        """Whether the model has said something in this turn: at a step before this one, or it called what runs."""
        return self._step > 1 or not self._asked

    def _done(self, n: int, output: Any, limit: str) -> Any:
        said = {"output": marked(output), "usage": self._spent}
        if limit:
            said["limit"] = self._limit = limit
        state_own(self, "turn-done", n, self.session_id, **said)
        self._close(n)
        return output

    def _failed(self, error: Exception, n: int) -> None:
        """The turn was interrupted, or something broke it."""
        stopped = self._stopped or {}
        if isinstance(error, Forked) and self._inherited() and not self._has_answered():
            self._unsay(n)  # its parent was told, and is answered there
        self._give_up(n, error)
        if "by" in stopped:
            state_own(self, "turn-interrupted", n, self.session_id, by=stopped["by"], step=self._step)
        else:
            state_own(self, "turn-failed", n, self.session_id, error=named(error))
        self._part(error if isinstance(error, Forked) else None)
        if self._steers:
            self._break_steers(error)
        self._close(n)

    def _leave(self, error: Exception) -> None:
        """In a fork: the inputs that wait were given to the parent. A turn that waits for a person goes on in both."""
        if self._own:
            self._own.clear()
        self._break_steers(error, waiting=True)
        for n in list(self._queue):
            self._drop(n, error, "turn-failed", error=named(error))

    def _close(self, n: int) -> None:
        self._over = (self._first() or len(self.history) + 1) - 1
        self._ending = 0
        if self._timer:
            cancel(Promise(self._timer), TurnOver(f"turn {n} of {self.session_id!r} is over: ask again in another one"))
            self._timer = 0
        if self._spent:
            self._spent = {}
        if self._stopped is not None:
            self._stopped = None
        self._admit()
