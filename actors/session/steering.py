"""Steering: inputs that are to join the turn that runs.

    steer(input)  ->  (steer n s ...), and it waits in `_steers`
        the turn's next step begins:  its message, (steered n s step ...)
        the turn ends before that:    it is accepted as a turn of its own, (turn m s ...)

Both happen in the crank that begins the step or ends the turn, so an input is always in exactly one place.

The one rule: an input that stands in `_steers` has been heard by no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.chat import Content, check_input, marked
from actors.messages import user
from actors.session.forking import Forking
from vat.failures import exception_of, failure_of
from vat.heap.refs import Promise
from vat.objects.actor import state_own
from vat.objects.collections import List, Map


class Steering(Forking):
    """The part of a session that takes inputs for a turn that runs."""

    messages: List[Mapping[str, Any]]

    _ending: int = 0
    """The promise that is settled when the running turn is over, by number; 0 when none runs."""
    _steers: Map[int, Mapping[str, Any]]
    """Inputs that were given for the running turn, in the order of acceptance; empty once they joined it."""
    _last_steer: int = 0
    _broken: Any = None
    """How the last turn that failed after it was steered has failed."""

    def steer(self, input: Content) -> Promise:
        """Take an input that joins the running turn at its next step; it is a turn of its own if none runs.

        At the next step it is a message after those of the tools, before the model is asked again. The promise has what
        that turn gives, or breaks with it. If the turn ends before its next step, however it ends, the input is
        accepted as a turn, behind those that wait already, and the promise has what that one gives.

        Raises `BadInput` or `BadSetting`.
        """
        check_input(input)
        self._part()
        asker = self.asker
        said = {"input": marked(input), "request": asker.request, "by": asker.by, "via": asker.via}
        n = self._running_now()
        if not n:
            return self._accept(said)
        self._last_steer = number = self._last_steer + 1
        self._steers[number] = said
        state_own(self, "steer", n, self.session_id, **said)
        return Promise(self._ending).then(self._steered, number)

    def _join(self, n: int, step: int) -> None:
        """A step begins: what was given for this turn joins it."""
        for number, said in list(self._steers.items()):
            if said:
                self._steers[number] = {}
                about = _about(said)
                self.messages.append(user(about["input"]))
                state_own(self, "steered", n, self.session_id, step, **about)

    def _break_steers(self, error: Exception, waiting: bool = False) -> None:
        """The running turn has failed, and who steered it will hear of that; or who waits to will never do so."""
        for number, said in list(self._steers.items()):
            if bool(said) == waiting:
                del self._steers[number]
                self._broken = failure_of(error)

    def _steered(self, output: Content, number: int) -> Any:
        """The turn that an input was given for is over, however it ended."""
        if number not in self._steers:
            raise exception_of(self._broken)
        said = self._steers.pop(number)
        return self._accept(_about(said)) if said else output

    # What the turn says.

    def _accept(self, said: Mapping[str, Any]) -> Promise:
        """Accept an input as a turn."""
        raise NotImplementedError

    def _running_now(self) -> int:
        """The number of the turn that has begun and is not over; 0 for none."""
        raise NotImplementedError


def _about(said: Mapping[str, Any]) -> dict[str, Any]:
    """What facts say of an input."""
    return {"input": marked(said["input"]), "request": said["request"], "by": said["by"], "via": said["via"]}
