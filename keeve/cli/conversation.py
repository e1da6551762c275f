"""One session, talked to: what is said, what is shown of the answers, and what was under way before.

Whoever has the store is asked in a thread of its own; the prompt is in the main one.

The one rule: this is a client like any other. What it shows is what the session says; what it streams is thrown away.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from dataspace.errors import KeeveError
from keeve.cli.answers import AnswerStream, TurnSpan
from keeve.cli.output import Output
from keeve.cli.outside import LOOK, WaitsOutside
from keeve.cli.partner import Partner
from keeve.cli.prompt import PROMPT, Bell, Keyboard, piped
from keeve.cli.sessions import in_words
from keeve.cli.stores import Acts
from keeve.cli.text import counted
from keeve.faces import Turn, face
from keeve.host_thread import OtherThread
from keeve.remedies import worded
from vat.errors import Failed

NOTHING_SAID: Final = (
    "nothing was said: run this at a terminal, or give it what is to be said, a line for each turn: "
    "printf 'hello\\n' | keeve chat s1"
)

KEYS: Final = "Ctrl-C interrupts, Ctrl-D ends, \\ at the end of a line goes on with the next."

JOINS: Final = "(this joins at the next step)"
JOINED: Final = "(this has joined the turn)"

AWAY: Final = 2.0
"""Seconds after which it is said that a server does not answer."""


class Said(NamedTuple):
    """What was said while a turn ran: the line, the id of its request, its answer to come, and before that, whether it
    joins the turn, once it is accepted."""

    line: str
    request: str
    answer: Future[Any]
    joins: Future[Any]


class Conversation:
    """One session, talked to. It is made when the first thing is said, so that nothing is left if nothing is.

    there: the thread of who has the store. actors: the types that this process knows.
    """

    def __init__(
        self, there: OtherThread[Acts], output: Output, id: str | None, bell: Bell, actors: Sequence[type] = ()
    ) -> None:
        self._there = there
        self._output = output
        self._wanted = id
        self._partner: Partner | None = None
        self._request: str | None = None
        """The id of the request for the turn that is waited for."""
        self._steers: list[Said] = []
        """What was typed while a turn ran."""
        self._untold: list[Said] = []
        """Those of them that are not accepted yet, or of which that was not said."""
        self._keys: Keyboard | None = None
        """Where somebody may type while a turn runs."""
        self._bell = bell
        self._stream: AnswerStream | None = None
        """What the model tells, where a terminal shows it; once there is a session."""
        self._left = False
        """Whether Ctrl-D was typed then."""
        self._open: list[Turn] = []
        """Turns that were under way when this began."""
        self._shown = 0
        """The number of the earlier turn whose input was shown last."""
        self.id: str | None = None
        """The session's id, once there is one."""
        if id is not None:
            found = there.do(Partner.found, there.opened, id, actors)
            if found is not None:
                self._begin(found)

    # Two ways to talk.

    def at_the_prompt(self, keys: Keyboard) -> int:
        """Until Ctrl-D, or Ctrl-C at the prompt.

        While an answer comes, Ctrl-C ends that turn, and what is typed joins it at its next step.
        """
        output = self._output
        self._keys = keys
        name = self.id or self._wanted or "a new session"
        output.note(f"{name} with {self._there.opened.answers}. {KEYS}", prose=True)
        turns = self._earlier()
        self._show_last(turns)
        said = keys.lines(turn.input for turn in turns if isinstance(turn.input, str))
        try:
            for line in chain((None,), said):
                if line is None or self._open:
                    self._seen_to(partial(self._go_on, line is not None))
                if line is not None:
                    self._seen_to(partial(self._show, line))
                while self._steers:
                    self._seen_to(self._show_steered)
                if self._left:
                    break
        except KeyboardInterrupt:
            output.note("")
        else:
            output.note("")
        return 0

    def line_by_line(self) -> int:
        """Answer the lines of the standard input; the first turn that fails ends it."""
        self._earlier()
        said = bool(self._open)
        try:
            self._go_on()
            for line in piped():
                said = True
                if self._open:
                    self._go_on(let_go=True)
                self._show(line)
        except KeyboardInterrupt:
            self._interrupt()
            return 130
        if not said:
            self._output.note(NOTHING_SAID)
        return 0

    def _seen_to(self, what: Callable[[], None]) -> None:
        """Do something that waits for a turn, with somebody there. Ctrl-C ends that turn, and only that."""
        try:
            what()
        except KeyboardInterrupt:
            self._interrupt()
            self._output.note("(interrupted)")
        except KeeveError as error:
            self._output.note(worded(str(error), "commands"), "red")

    # A turn.

    def _show(self, line: str) -> None:
        """Have a line answered, and show the answer; with --json as one line for each turn."""
        self._request, answer = self._say("turn", line)
        self._show_answer(line, answer)

    def _show_steered(self) -> None:
        """What was typed while a turn ran, and was too late for it, is a turn of its own: show its answer."""
        said = self._steers.pop(0)
        self._request = said.request
        while not (said.joins.done() or said.answer.done()):  # however long it is on its way: it is answered
            self._bell.wait(keys=False, seconds=LOOK)
        if self._number(waits=False) is not None:
            self._output.note(f"{PROMPT}{said.line}")
            self._show_answer(said.line, said.answer)
        elif said in self._untold:  # nobody was told what became of it
            if self._there.do(self._with().joined, said.request, waits=False):
                self._output.note(JOINED)
            elif said.answer.done():
                said.answer.result()  # why it was refused
        self._untold = [each for each in self._untold if each is not said]

    def _say(self, method: str, line: str) -> tuple[str, Future[Any]]:
        """Say it: the id of its request, and its answer to come."""
        partner, request = self._with(), f"cli-{secrets.token_hex(12)}"
        return request, self._begun(partner.say, method, line, request)

    def _begun(self, what: Callable[..., Any], *args: Any) -> Future[Any]:
        """What will come of something that is asked for. The bell rings when it is there."""
        future: Future[Any] = self._there.begin(what, *args)
        future.add_done_callback(lambda _: self._bell.ring())
        return future

    def _show_answer(self, input: Any, answer: Future[Any]) -> None:
        """Show what an input comes to, as it comes where a terminal is."""
        output = self._output
        if output.as_json:
            came = self._waited_for(answer)
            output.document({"session": self.id, "input": face(input), "output": face(came)})
            return
        if self._stream is None:
            output.say(in_words(self._waited_for(answer)))
            return
        came = None
        try:
            came = in_words(self._as_it_comes(answer, self._stream))
        finally:
            self._stream.end(came)

    def _waited_for(self, answer: Future[Any]) -> Any:
        """What comes of something, where nobody is there.

        Raises `WaitsOutside` for what nobody gives; at a server somebody may, who is told of it elsewhere.
        """
        before, told = "", ""
        while not answer.done():
            self._bell.wait(keys=False, seconds=LOOK)
            now = self._waits()
            if now and now == before and now != told and not answer.done():  # twice, since it may be about to go on
                if self._there.opened.alone:
                    raise WaitsOutside(now)
                self._output.note(f"({now})")
                told = now
            before = now
        return answer.result()

    def _waits(self) -> str:
        """What the session waits for that nothing here gives, in words; or that a server does not answer."""
        if self._partner is None:
            return ""
        try:
            return self._there.begin(self._partner.missing).result(AWAY)
        except TimeoutError:
            return "" if self._there.opened.alone else f"{self._there.opened.answers} does not answer; it is waited for"

    def _as_it_comes(self, answer: Future[Any], stream: AnswerStream) -> Any:
        """What comes of something that is waited for, and what is streamed until then is shown.

        Whoever begins to type has the answer wait until the line is entered.
        """
        told = ""
        while True:
            over = answer.done()
            stream.show(self._span)
            self._tell_accepted(stream)
            if over:
                return answer.result()
            if self._bell.wait(keys=self._keys is not None and not self._left, seconds=LOOK):
                stream.rest()
                self._hear(answer)
            elif (waits := self._waits()) and waits != told and not answer.done():
                told = waits
                stream.rest()
                leaving = " Leave first." if self._there.opened.alone else ""
                self._output.note(f"({waits}.{leaving} Ctrl-C ends this turn)")

    def _hear(self, answer: Future[Any]) -> None:
        """Somebody types while a turn runs: the line joins it at its next step."""
        assert self._keys is not None
        try:
            line = self._keys.line()
        except EOFError:
            self._left = True
            self._output.note("")
            return
        except KeyboardInterrupt:
            if not answer.done():
                raise
            line = ""  # the turn was over meanwhile: its answer is to be shown
            self._output.note("")
        if line:
            request, said = self._say("steer", line)
            self._steers.append(Said(line, request, said, self._begun(self._with().joined, request)))
            self._untold.append(self._steers[-1])

    def _tell_accepted(self, stream: AnswerStream) -> None:
        """Say of what was typed that it joins the turn, once that is so; what comes too late is shown in its place."""
        for said in list(self._untold):
            if not said.joins.done() or said.joins.exception() is not None or said.joins.result() is None:
                continue  # not accepted, as far as is known: what became of it is shown after this turn
            self._untold.remove(said)
            if said.joins.result():
                stream.rest()
                self._output.note(JOINS)

    def _span(self) -> TurnSpan:
        """Where in the log the turn that is waited for begins and, if it is over, ends."""
        number = self._open[0].number if self._open else self._number(waits=False)
        span: TurnSpan = self._there.do(self._with().span, number)
        return span

    def _number(self, *, waits: bool = True) -> int | None:
        """The number of the turn that is waited for, once it is accepted; None if it joined another turn."""
        if self._partner is None or self._request is None:
            return None
        return self._there.do(partial(self._partner.number, self._request, waits=waits))

    def _with(self) -> Partner:
        """The session, which is made if there is none."""
        if self._partner is None:
            id = f"s-{secrets.token_hex(4)}" if self._wanted is None else self._wanted
            self._begin(self._there.do(Partner.made, self._there.opened, id))
            if self._wanted is None:
                self._output.note(f"session {id}")
        assert self._partner is not None
        return self._partner

    def _begin(self, partner: Partner) -> None:
        """The session is there. What is told is heard from here to the end, so that no answer lacks its beginning."""
        self._partner, self.id = partner, partner.id
        if self._output.terminal and not self._output.as_json:
            self._stream = AnswerStream(self._output, partner.id, self._bell.ring)
            pieces = self._there.do(partner.pieces)
            self._there.begin(partner.hear, pieces, self._stream.hear)

    def _interrupt(self) -> None:
        """End the turn that is waited for, and no other."""
        number = self._open.pop(0).number if self._open else self._number()
        if number is not None and self._partner is not None:
            self._there.do(self._partner.interrupt, number)

    # Turns that were under way.

    def _go_on(self, let_go: bool = False) -> None:
        """Have them go on, and show what each comes to; those that wait for what nobody knows are told of.

        let_go: what nobody knows breaks, and they go on as well.
        """
        if not self._open or self._partner is None:
            return
        partner = self._partner
        if let_go:
            self._there.do(partner.let_go)
        self._there.do(partner.wake)
        unknown = self._there.do(partner.unknown)
        if unknown:
            calls = ", ".join(sorted({f"{effect['device']}.{effect['method']}" for effect in unknown}))
            self._output.note(
                f"({counted(len(unknown), 'call')} of unknown outcome ({calls}): see `keeve effects`. Leave and settle "
                "it with `keeve resolve`; or say something, and the model is told that nobody knows)"
            )
            return
        while self._open:
            turn = self._open[0]
            if turn.number != self._shown:
                self._output.note(f"{PROMPT}{in_words(turn.input)}")
            try:
                self._show_answer(turn.input, self._begun(partner.end_of, turn))
            except Failed as error:
                self._output.note(worded(str(error), "commands"), "red")
            del self._open[0]

    # What was said before.

    def _earlier(self) -> list[Turn]:
        """The newest turns, of which those that are under way are to be shown first."""
        if self._partner is None:
            return []
        turns = self._there.do(self._partner.earlier)
        self._open = [turn for turn in turns if turn.state == "open"]
        return turns

    def _show_last(self, turns: list[Turn]) -> None:
        """The last exchange, so that who comes back sees where it was."""
        if not turns:
            return
        last = self._open[0] if self._open else turns[-1]
        self._shown = last.number
        self._output.note(f"{PROMPT}{in_words(last.input)}")
        if last.state == "done":
            self._output.note(in_words(last.output))
        elif last.state == "open":
            self._output.note("(this turn is under way)")
        else:
            self._output.note(f"({last.state})")
