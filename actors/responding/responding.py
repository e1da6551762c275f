"""`Responding`: a conversation whose turns are asked for whole, each of which can be continued from.

    respond(input, how)          ->  {"turn": n}: accepted as `turn` would be, with all that the model is to be asked
    respond(input, how, after=k) ->  {"turn": n}, or {"moved": k} when the newest turn is not k: nothing has happened
                                     then, and who asks goes on in a fork at the end of turn k (`point`)

    add(messages), remove(n)         change what was said, between turns: (added s ...), (removed s ...)
    response(n), listed(start, stop) read what was asked, and what came of it

`input` is a list of messages in chat form. The calls of tools that `how` brings are the client's: a turn whose answer
calls one is over with it (its limit is `"client"`), and what came of the calls is in the next input. Those of `offered`
are carried out here, before that.

A turn says what it is to be done with when it begins and not before, so what waits in the queue changes nothing.

The one rule: whatever one request asks for is one message. So of two that continue the same turn one is told that the
conversation has moved on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from actors.chat import Answer, Content, last_said, marked, message_in
from actors.messages import named
from actors.responding.asking import BadRequest, NotCalled, check_how, check_messages, marked_how, uncalled
from actors.responding.keeping import Keeping, Said, marked_messages
from actors.responding.numbering import open_calls, unfitting
from actors.session import Session, check
from dataspace.values import FrozenDict, Text
from vat.objects.actor import actor
from vat.objects.moving import append_kept, kept
from vat.objects.owing import fail, owe
from vat.objects.types import Keep

CLIENT: Final = "client"
"""The limit of a turn that is over because the client has to carry out what its last answer calls."""

CHOICE: Final = "tool_choice"
"""What is reached by an answer that does not call what it has to: the turn fails."""

CUT: Final = ("length", "content_filter")
"""Why a model stops before it could call what it has to."""


How = Annotated[Any, Keep(marked_how)]
"""What a request asks for besides its input; see `actors.responding.asking`."""


@actor("keeve.responding", version=1)
class Responding(Session, Keeping):
    """A conversation by requests. It has all that a `Session` has; `turn` goes on with what the last request set."""

    def respond(self, input: Said, how: How, after: int | None = None) -> dict[str, Any]:
        """Accept a turn: its input, and how the model is to be asked; `after` which turn it is meant to come.

        Raises `BadRequest`, `BadInput` or `BadSetting`.
        """
        check_messages(input)
        check_how(how)
        self._part()
        if after is not None and after != self._newest():
            return {"moved": after}
        busy = self._unfinished() is not None
        unknown = unfitting(input, () if busy else open_calls(self.messages))
        if unknown is not None:
            raise BadRequest(f"there is no call {unknown!r} that waits for its outcome", "input")
        lone = len(input) == 1 and input[0]["role"] == "user" and set(input[0]) == {"role", "content"}
        n = len(self.history) + 1
        self._note(n, how, lone)
        asker = self.asker
        content = marked(input[0]["content"]) if lone else marked_messages(list(input))
        self._accept({"input": content, "request": asker.request, "by": asker.by, "via": asker.via})
        return {"turn": n}

    def configure(self, *, system: Text | None = None, **others: Any) -> None:
        """As of a `Session`."""
        super().configure(**others)
        if system is not None:
            check("system", system)
            self._instruct(system)

    # A turn; see `Session`.

    def _newest(self) -> int:
        """The turn with which the messages will end as things stand; 0 before the first."""
        return max(self._queue, default=0) or self._running_now() or self._tip

    def _say(self, n: int) -> None:
        self._limit = ""
        self._mine = 0
        asked = self._requests.get(n)
        begin = self._end()
        if asked is None:
            self._instruct(self.system)
            self._put((), asking=True)
            append_kept(self.messages, {"role": "user", "content": kept(self.history, n - 1)})
        else:
            self._follow(asked)
            if asked["lone"]:
                self._put((), asking=True)
                append_kept(self.messages, {"role": "user", "content": kept(self.history, n - 1)})
            else:
                given = list(zip(self.history[n - 1], kept(self.history, n - 1).items(), strict=True))
                self._put(given, asking=True)
        span = {"from": begin, "out": self._end(), "first": self._crank.record.seq, "begun": self.now()}
        self._spans[n] = span

    def _unsay(self, n: int) -> None:
        self._cut(self._spans[n]["from"])

    def _answered(self, answer: Answer, n: int, step: int) -> Content:
        answer = self._own_first(answer)
        number = self._end()
        self._finish = answer.get("finish_reason") if isinstance(answer, Mapping) else None
        if self._mine:
            self._own_at[number] = self._mine
        return super()._answered(answer, n, step)

    def _own_first(self, answer: Any) -> Any:
        """The answer with the calls that are carried out here before the client's, which end the turn."""
        message = message_in(answer)
        calls = message.get("tool_calls") or ()
        names = set(self._theirs)
        own = [call for call in calls if call["function"]["name"] not in names]
        self._mine = len(own)
        if not own or len(own) == len(calls):
            return answer
        theirs = [call for call in calls if call["function"]["name"] in names]
        return {**answer, "message": {**message, "tool_calls": [*own, *theirs]}}

    def _own_calls(self) -> int:
        return self._mine

    def _reached(self, step: int, calls: bool) -> str:
        if step == 1 and self._uncalled():
            return CHOICE
        return CLIENT if calls and not self._mine else super()._reached(step, calls)

    def _uncalled(self) -> str:
        """What the last answer had to call, and did not."""
        answer = self.messages[-1]
        if self._finish in CUT or answer.get("refusal"):
            return ""
        return uncalled(self.options.get("tool_choice"), answer)

    def _ask(self, n: int, step: int) -> Any:
        if step > 1 and len(self._calls()) > self._mine:
            return self._done(n, last_said(self.messages), CLIENT)
        if step > 1 and self.options.get("tool_choice", "auto") not in ("auto", "none"):
            # What the model had to call it has called; else it could never come to an end.
            self.options = {name: value for name, value in self.options.items() if name != "tool_choice"}
        return super()._ask(n, step)

    # Its end.

    def _done(self, n: int, output: Any, limit: str) -> Any:
        if limit == CHOICE:
            failed = owe(self)
            fail(self, failed, NotCalled(self._uncalled()))
            return failed
        self._outcome = {"status": "completed", "limit": limit, "finish": self._finish}
        return super()._done(n, output, limit)

    def _failed(self, error: Exception, n: int) -> None:
        interrupted = "by" in (self._stopped or {})
        self._outcome = {"status": "cancelled" if interrupted else "failed", "error": named(error)}
        super()._failed(error, n)

    def _close(self, n: int) -> None:
        span = self._spans.get(n, {"from": self._end(), "out": self._end()})
        ended = {"to": self._end(), "seq": self._crank.record.seq, "ended": self.now(), "usage": self._spent}
        self._spans[n] = {**span, **ended, **self._outcome}
        self._outcome = FrozenDict()
        if self._end() > span["from"]:
            self._tip = n
        super()._close(n)

    def _drop(self, n: int, error: Exception, label: str, /, **said: Any) -> None:
        self._never_began(n, error, "cancelled" if label == "turn-interrupted" else "failed")
        super()._drop(n, error, label, **said)

    def _unbegun(self, error: Exception, n: int) -> None:
        if n in self._queue:
            self._never_began(n, error, "failed")
        super()._unbegun(error, n)

    def _never_began(self, n: int, error: Exception, status: str) -> None:
        self._spans[n] = {"from": self._end(), "out": self._end(), "status": status, "error": named(error)}
