"""Steering: inputs that are to join the turn that runs.

    steer(input)  ->  (steer n s ...), and it waits in `_steers`
        the turn's next step begins:  its message, (steered n s step ...)
        the turn ends before that:    it is accepted as a turn of its own, (turn m s ...)

Both happen in the crank that begins the step or ends the turn, so an input is always in exactly one place.

The one rule: an input that is in `_steers` has not been heard by any model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.chat import Content, check_input, marked
from vat.heap.refs import Promise
from vat.objects.actor import Actor, state_own
from vat.objects.collections import List, Map


class Steering(Actor):
    """The part of a session that takes inputs for a turn that runs."""

    messages: List[Mapping[str, Any]]

    _answer: Any = None
    """The promise of what the running turn gives; None when none runs."""
    _steers: Map[int, Mapping[str, Any]]
    """Inputs that wait for the running turn's next step, in the order of acceptance."""
    _last_steer: int = 0

    def steer(self, input: Content) -> Promise:
        """Take an input that joins the running turn at its next step; it is a turn of its own if none runs.

        At the next step it is a message after those of the tools, before the model is asked again. The promise has what
        that turn gives, or breaks with it. If the turn ends before its next step, however it ends, the input is
        accepted as a turn, behind those that wait already, and the promise has what that one gives.

        Raises `BadInput` or `BadSetting`.
        """
        check_input(input)
        asker = self.asker
        said = {"input": marked(input), "request": asker.request, "by": asker.by, "via": asker.via}
        if self._answer is None:
            return self._accept(said)
        n = self._running_now()
        self._last_steer = number = self._last_steer + 1
        self._steers[number] = {**said, "turn": n, "session": self.session_id}
        state_own(self, "steer", n, self.session_id, **said)
        promise: Promise = self._answer.then(self._ended_with, number, broken=self._broke_with)
        return promise

    def _join(self, n: int, step: int) -> None:
        """A step begins: what was given for this turn joins it."""
        for number, said in list(self._steers.items()):
            if said["turn"] == n:
                del self._steers[number]
                content = marked(said["input"])
                self.messages.append({"role": "user", "content": content})
                about = {"input": content, "request": said["request"], "by": said["by"], "via": said["via"]}
                state_own(self, "steered", n, self.session_id, step, **about)

    def _ended_with(self, output: Content, number: int) -> Any:
        """The turn that an input was given for is over."""
        return output if number not in self._steers else self._accept(self._too_late(number))

    def _broke_with(self, error: Exception, number: int) -> Promise:
        """The turn that an input was given for was ended."""
        if number not in self._steers:
            raise error
        given_to = self._steers[number]["session"]
        said = self._too_late(number)
        if given_to != self.session_id:
            raise error  # this is a fork, and the input was given to the parent
        return self._accept(said)

    def _too_late(self, number: int) -> dict[str, Any]:
        said = self._steers.pop(number)
        return {"input": marked(said["input"]), "request": said["request"], "by": said["by"], "via": said["via"]}

    # What the turn says.

    def _accept(self, said: Mapping[str, Any]) -> Promise:
        """Accept an input as a turn."""
        raise NotImplementedError

    def _running_now(self) -> int:
        """The number of the turn that has begun and is not over; 0 for none."""
        raise NotImplementedError
