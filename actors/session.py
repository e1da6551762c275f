"""`Session`: a conversation with a model that calls tools, as an actor.

    turn(input)  ->  accepted: history, (turn n s ...)
                     begins, when those before it are over: messages
        model.complete(messages)  ->  _answered: messages, (model-output n s step ...)
            for each tool call: (tool-call ...), tools.run(call)  ->  _returned or _raised: (tool-result ...)
            and again, until an answer calls no tool, or a limit is reached: (turn-done ...)
        _failed, whatever broke it: (turn-failed ...) or (turn-interrupted ...)

Each arrow is a reaction to a promise, and what it needs stands in its arguments and the fields below. So a turn that
runs is data: it goes on after a restart, and in a newer version of this file, as long as that still knows the methods
that reactions name (`_begin`, `_answered`, `_returned`, `_raised`, `_failed`) and their arguments.

The one rule: a session waits for one thing at a time, the model or one tool, and all that was said is in `messages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from actors.chat import (
    Answer,
    Content,
    answered,
    check_input,
    marked,
    marked_call,
    marked_message,
    message_in,
    summed,
    told,
)
from actors.tools import Tools
from dataspace.errors import KeeveError
from dataspace.values import FrozenDict, Text
from vat.devices.outcomes import OutcomeUnknown
from vat.errors import Forked, failure_of
from vat.heap.refs import Promise, cancel
from vat.objects.actor import Actor, Device, actor, state_own
from vat.objects.collections import List, Map
from vat.objects.types import read

MODES: Final = ("agent", "chat")
"""`agent` offers the tools and carries out what the model calls; `chat` does neither."""

UNKNOWN: Final = (
    "The outcome of this call is unknown: it was started, and nobody knows whether it took effect. "
    "It has not been run again. Find out before you repeat it."
)
"""What the model is told of a tool call whose outcome nobody knows."""

NOT_RUN: Final = "This call was not carried out: the turn ended before it."
"""What the model is told of a tool call that was never started."""


class TurnInterrupted(KeeveError):
    """A turn was stopped by somebody before it was over."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class BadSetting(KeeveError, ValueError):
    """A field of a session (`field`) that cannot be meant; says why (`reason`)."""

    usage: ClassVar[bool] = True

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field} {self.reason}; spawn(Session, {self.field}=...) or configure({self.field}=...) sets it"


@actor("keeve.session", version=1)
class Session(Actor):
    """A conversation. `await s.turn("hello")` gives what the model says in the end.

    model, tool_device: the devices of the host that are asked, by name.
    system: what the model is told first.
    mode: "agent", or "chat" to keep it from using tools.
    tools: the tools' schemas, as the model is given them (in OpenAI form).
    options: sent with each request to the model, and recorded with it: keep them small.
    max_steps: answers of the model in one turn; what the last one calls is not called.
    max_tokens: the turn is over with the answer with which its tokens are this many; 0 is no limit.
    A turn that ends at a limit gives the content of its last answer, which is None where that only called tools;
    `status()` and the fact `turn-done` say which limit it was.
    history: the inputs that were accepted, in order.
    messages: the whole conversation in OpenAI chat form, byte for byte.
    usage: what all turns together have used.
    """

    model: Device = "model"  # type: ignore[assignment]  # a field of that kind is given a name
    tool_device: Device = "tools"  # type: ignore[assignment]  # as above
    system: Text = Text("")
    mode: str = "agent"
    options: Mapping[str, Any] = FrozenDict()
    max_steps: int = 100
    max_tokens: int = 0
    tools: List[Mapping[str, Any]]
    history: List[Any]
    messages: List[Mapping[str, Any]]
    usage: Mapping[str, Any] = FrozenDict()

    _over: int = 0
    """The number of the last turn that is over: those after it run or wait, unless they were `_dropped`."""
    _dropped: Map[int, str]
    """Turns that were ended while they waited, and why."""
    # The promises of what comes last and of what runs, by number: to hold them here would keep them, and what came of
    # them, when they are settled.
    _last: int = 0
    _asked: int = 0
    _spent: Mapping[str, Any] = FrozenDict()
    """What the running turn has used."""
    _limit: str = ""
    """The limit that the last turn reached; what its last answer called was not carried out then."""

    @classmethod
    def given(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises `BadSetting`. `tools` may be a `Tools`, whose schemas it stands for."""
        for name, value in fields.items():
            _check(name, value)
        tools = fields.get("tools")
        return {**fields, "tools": tools.schemas} if isinstance(tools, Tools) else fields

    # What others may ask.

    def turn(self, input: Content) -> Promise:
        """Take an input: a string, or a list of content parts. The promise has the content of the model's last answer.

        Accepted at once and run in the order of acceptance. The promise breaks with the model's error, or with
        `TurnInterrupted`. Raises `BadInput` or `BadSetting`.
        """
        check_input(input)
        self._check_settings()
        running = self._running()
        self.history.append(marked(input))
        n = len(self.history)
        asker = self.asker
        said = {"input": marked(input), "request": asker.request, "by": asker.by, "via": asker.via}
        state_own(self, "turn", n, self.session_id, **said)
        if running is None:
            return self._begin(None, n)
        waiting = Promise(self._last).then(self._begin, n, broken=self._begin)
        self._last = waiting.id
        return waiting

    def interrupt(self, turn: int | None = None) -> int | None:
        """End a turn: the one that runs, or the one of that number if it is not over. Gives its number, else None."""
        running = self._running()
        n = running if turn is None else turn
        if n is None or running is None or not running <= n <= len(self.history) or n in self._dropped:
            return None
        reason = f"turn {n} of {self.session_id!r} was interrupted by {self.asker.by}"
        if n == running:
            return n if cancel(Promise(self._asked), TurnInterrupted(reason)) else None
        self._drop(n, reason, "turn-interrupted", by=self.asker.by)
        return n

    def configure(
        self,
        *,
        model: str | None = None,
        tool_device: str | None = None,
        system: Text | None = None,
        mode: str | None = None,
        options: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        max_tokens: int | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Change what is given, from the next request to the model on. Changes nothing if it raises `BadSetting`."""
        given: dict[str, Any] = {"model": model, "tool_device": tool_device, "mode": mode, "options": options}
        given |= {"max_steps": max_steps, "max_tokens": max_tokens}
        for name, value in given.items():
            if value is not None:
                setattr(self, name, value)
        if system is not None:
            self.system = Text(system)
            if self.messages and self.messages[0].get("role") == "system":
                self.messages[0] = self._system_message()
            elif self.messages:
                self.messages.insert(0, self._system_message())
        if tools is not None:
            self.tools.clear()
            self.tools.extend(tools)
        self._check_settings()

    @read
    def status(self) -> dict[str, Any]:
        """How far it is: how many turns are accepted and how many over, which one runs (None: none), and the limit that
        the last one that was done has reached (`"steps"`, `"tokens"`, `"mode"`; None: none)."""
        return {
            "accepted": len(self.history),
            "over": self._over,
            "running": self._running(),
            "limit": self._limit or None,
        }

    # A turn.

    def _running(self) -> int | None:
        for n in range(self._over + 1, len(self.history) + 1):
            if n not in self._dropped:
                return n
        return None

    def _begin(self, before: Any, n: int) -> Promise:
        """Those before it are over, however they ended."""
        if n in self._dropped:
            raise TurnInterrupted(self._dropped[n])
        for gone in [number for number in self._dropped if number < n]:
            del self._dropped[gone]
        if self._over < n - 1:
            self._over = n - 1
        if not self.messages and self.system:
            self.messages.append(self._system_message())
        if self._limit:
            calls, count = answered(self.messages)
            for call in calls[count:]:
                self._tell(call["id"], NOT_RUN)
            self._limit = ""
        self.messages.append({"role": "user", "content": marked(self.history[n - 1])})
        output = self._ask(n, 1)
        ending = output.then(None, n, broken=self._failed)
        if n == len(self.history):
            self._last = ending.id
        return output

    def _ask(self, n: int, step: int) -> Promise:
        options: dict[str, Any] = {**self.options}
        if self.tools and self.mode == "agent":
            options["tools"] = self.tools.view()
        asked = self.model.complete(self.messages.view(), **options)
        self._asked = asked.id
        return asked.then(self._answered, n, step)

    def _answered(self, answer: Answer, n: int, step: int) -> Content:
        """The model has answered: what the turn comes to, or the promise of it."""
        message = marked_message(message_in(answer))
        self.messages.append(message)
        state_own(self, "model-output", n, self.session_id, step, message=message)
        usage = answer.get("usage")
        if usage:
            self._spent = summed(self._spent, usage if isinstance(usage, Mapping) else {})
        calls = message.get("tool_calls")
        limit = self._reached(step, bool(calls))
        if calls and not limit:
            return self._call(calls, 0, n, step)
        output = message.get("content")
        said = {"output": output, "usage": self._spent}
        if limit:
            said["limit"] = self._limit = limit
        state_own(self, "turn-done", n, self.session_id, **said)
        self._close(n)
        return output

    def _reached(self, step: int, calls: bool) -> str:
        """The limit that an answer has reached; what it `calls` is not called then."""
        if calls and self.mode != "agent":
            return "mode"
        if calls and step >= self.max_steps:
            return "steps"
        tokens = self._spent.get("total_tokens", 0)
        return "tokens" if 0 < self.max_tokens <= (tokens if isinstance(tokens, int | float) else 0) else ""

    def _call(self, calls: Sequence[Mapping[str, Any]], at: int, n: int, step: int) -> Promise:
        call = marked_call(calls[at])
        function = call["function"]
        said = {"name": function["name"], "arguments": function.get("arguments")}
        state_own(self, "tool-call", n, self.session_id, call["id"], **said)
        asked = self.tool_device.run(call)
        self._asked = asked.id
        return asked.then(self._returned, n, step, at, broken=self._raised)

    def _returned(self, output: Content, n: int, step: int, at: int) -> Promise:
        calls, _ = answered(self.messages)
        state_own(self, "tool-result", n, self.session_id, calls[at]["id"], output=marked(output))
        return self._told(calls, told(output), n, step, at)

    def _raised(self, error: Exception, n: int, step: int, at: int) -> Promise:
        if isinstance(error, TurnInterrupted | Forked):
            raise error  # the turn is over with this
        calls, _ = answered(self.messages)
        id = calls[at]["id"]
        if isinstance(error, OutcomeUnknown):
            state_own(self, "tool-unknown", n, self.session_id, id)
            return self._told(calls, UNKNOWN, n, step, at)
        failure = _named(error)
        text = f"This call failed: {failure['error']}: {failure['message']}"
        state_own(self, "tool-result", n, self.session_id, id, output=Text(text), error=failure)
        return self._told(calls, text, n, step, at)

    def _told(self, calls: Sequence[Mapping[str, Any]], content: Any, n: int, step: int, at: int) -> Promise:
        """The model will hear of a call; on with the next one, or with the model."""
        self._tell(calls[at]["id"], content)
        return self._call(calls, at + 1, n, step) if at + 1 < len(calls) else self._ask(n, step + 1)

    def _tell(self, id: str, content: Any) -> None:
        self.messages.append({"role": "tool", "content": marked(content), "tool_call_id": id})

    def _failed(self, error: Exception, n: int) -> None:
        calls, count = answered(self.messages)
        for place, call in enumerate(calls[count:]):
            # Tools are called one at a time, so only the first of those without an answer can have been started.
            if not place:
                state_own(self, "tool-unknown", n, self.session_id, call["id"])
            self._tell(call["id"], NOT_RUN if place else UNKNOWN)
        if isinstance(error, TurnInterrupted):
            state_own(self, "turn-interrupted", n, self.session_id, by=self.asker.by)
        else:
            state_own(self, "turn-failed", n, self.session_id, error=_named(error))
        self._close(n)
        if isinstance(error, Forked):  # the inputs that wait were given to the parent
            for waiting in range(n + 1, len(self.history) + 1):
                if waiting not in self._dropped:
                    self._drop(waiting, str(error), "turn-failed", error=_named(error))

    def _close(self, n: int) -> None:
        self._over = n
        if self._spent:
            self.usage = summed(self.usage, self._spent)
            self._spent = {}

    def _drop(self, n: int, reason: str, label: str, **said: Any) -> None:
        state_own(self, label, n, self.session_id, **said)
        self._dropped[n] = reason

    def _system_message(self) -> dict[str, Any]:
        return {"role": "system", "content": marked(self.system)}

    def _check_settings(self) -> None:
        for name in ("mode", "max_steps", "max_tokens", "options"):
            _check(name, getattr(self, name))


def _check(field: str, value: Any) -> None:
    """Raise `BadSetting` for what a field of a session cannot be."""
    if field == "mode" and value not in MODES:
        raise BadSetting("mode", f"is {value!r} and not one of {', '.join(MODES)}")
    if field == "max_steps" and (type(value) is not int or value < 1):
        raise BadSetting("max_steps", f"is {value!r}: a turn takes at least one answer, and a whole number of them")
    if field == "max_tokens" and (type(value) is not int or value < 0):
        raise BadSetting("max_tokens", f"is {value!r}: it is a number of tokens, or 0 for no limit")
    if field == "options" and not isinstance(value, Mapping):
        raise BadSetting("options", f"is a {type(value).__name__}: it is a dict of what is sent with each request")


def _named(error: Exception) -> dict[str, Any]:
    """An error in a fact: its class's name and its message."""
    failure = failure_of(error)
    return {"error": failure["error"], "message": Text(failure["message"])}
