"""`keeve chat`: a conversation at the prompt.

A host runs in a thread of its own (`keeve.blocking`), the prompt in the main one. Answers go to the standard output,
all else to the standard error, so `keeve chat s1 < questions > answers` gives answers alone.

The one rule: this is a client like any other. What it shows is what the session says; what it streams is thrown away.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, Final

from actors.models import ChosenModel, EchoModel, model_from_environment
from actors.session import Session
from dataspace.errors import KeeveError
from dataspace.observe.dataspace import NoSuchSession
from keeve import blocking
from keeve.archive_places import archives_from
from keeve.cli.again import chat_with
from keeve.cli.answers import Span, Stream
from keeve.cli.output import Output
from keeve.cli.outside import LOOK, answer, answered, waits_outside
from keeve.cli.own import named_types
from keeve.cli.prompt import PROMPT, Asked, Bell, Keyboard, at_a_terminal, piped
from keeve.cli.sessions import in_words
from keeve.cli.talkable import must_talk
from keeve.cli.text import counted
from keeve.faces import ENDS, Turn, face, tell, turns_of
from keeve.host_keys import host_key_from
from keeve.remedies import worded
from vat.devices.outcomes import OutcomeUnknown
from vat.devices.vault import Vault
from vat.errors import Failed
from vat.host.host import BadSessionId, may_be_called
from vat.host.resolving import EffectStatus
from vat.host.settings import Settings

NOTHING_SAID: Final = (
    "nothing was said: run this at a terminal, or give it what is to be said, a line for each turn: "
    "printf 'hello\\n' | keeve chat s1"
)

KEYS: Final = "Ctrl-C interrupts, Ctrl-D ends, \\ at the end of a line goes on with the next."

RECENT = 2000
"""Positions of the log before a session's head that are looked at for what was said last."""


def chat(
    folder: Path,
    output: Output,
    id: str | None,
    environ: Mapping[str, str],
    *,
    actors: Sequence[str] = (),
) -> int:
    """Hold a conversation with session `id`, which is made if it is not there; with a new one if it is None.

    What has an outcome that nobody knows is kept as it is until something is said.

    Gives 0, 1 when a turn failed and nobody was there to see to it, or 130 when that was ended by Ctrl-C.
    """
    if id is not None and not may_be_called(id):
        raise BadSessionId(id)
    model = model_from_environment(environ)
    own = named_types(actors)
    with (
        closing(Bell()) as bell,
        blocking.open_host(
            folder,
            actors=own,
            # The echo stands in for a model, and must not answer what another one was asked.
            devices={} if isinstance(model.device, EchoModel) else {"model": model.device},
            vault=Vault(model.credentials),
            unknown="hold",
            settings=Settings(takes_up="asked"),
            key=host_key_from(environ),
            archives=archives_from(environ),
            via="cli",
        ) as host,
    ):
        if id is not None:
            must_talk(host, id, own)
        talk = Conversation(host, output, id, model, bell)
        try:
            if not at_a_terminal():
                return talk.line_by_line()
            with Keyboard() as keys:
                return talk.at_the_prompt(keys)
        finally:
            if talk.id is not None:
                output.note(f"resume it with: {chat_with(talk.id, folder, actors)}")


class Conversation:
    """One session, talked to. It is made when the first thing is said, so that nothing is left if nothing is."""

    def __init__(self, host: blocking.Host, output: Output, id: str | None, model: ChosenModel, bell: Bell) -> None:
        self._host = host
        self._output = output
        self._wanted = id
        self._model = model
        self._session: Any = None
        self._request: str | None = None
        """The id of the request for the turn that is waited for, if it was steered."""
        self._before = -1
        """How many turns were accepted before it; -1 before the first."""
        self._steers: list[tuple[str, str, Asked]] = []
        """What was typed while a turn ran: the line, the id of its request, and its answer to come."""
        self._keys: Keyboard | None = None
        """Where somebody may type while a turn runs."""
        self._bell = bell
        self._stream: Stream | None = None
        """What the model tells, where a terminal shows it; once there is a session."""
        self._left = False
        """Whether Ctrl-D was typed then."""
        self._open: list[Turn] = []
        """Turns that were under way when this began."""
        self._head = 0
        """The position of the session's newest record then."""
        self._after = 0
        """From where in the log it is looked for what the session waits for."""
        self._shown = 0
        """The number of the earlier turn whose input was shown last."""
        self.id: str | None = None
        """The session's id, once there is one."""
        if id is not None:
            with suppress(NoSuchSession):
                self._begin(host.get(id), id)

    # Two ways to talk.

    def at_the_prompt(self, keys: Keyboard) -> int:
        """Until Ctrl-D, or Ctrl-C at the prompt.

        While an answer comes, Ctrl-C ends that turn, and what is typed joins it at its next step.
        """
        output = self._output
        self._keys = keys
        name = self.id or self._wanted or "a new session"
        output.note(f"{name} with {self._model.description}. {KEYS}", prose=True)
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
        session = self._there()
        self._request, self._before = None, session.status()["accepted"]
        self._show_answer(line, lambda: answer(session.turn, line))

    def _show_steered(self) -> None:
        """What was typed while a turn ran, and was too late for it, is a turn of its own: show its answer."""
        line, request, asked = self._steers.pop(0)
        self._request = request
        if self._number(asked) is not None:
            self._output.note(f"{PROMPT}{line}")
            self._show_answer(line, asked.future.result)

    def _show_answer(self, input: Any, ask: Callable[[], Any]) -> None:
        """Show what an input comes to, as it comes where a terminal is."""
        output = self._output
        if output.as_json:
            output.document(
                {"session": self.id, "input": face(input), "output": face(answered(ask, self._bell, self._waits))}
            )
            return
        if self._stream is None:
            output.say(in_words(answered(ask, self._bell, self._waits)))
            return
        answer = None
        try:
            answer = in_words(self._as_it_comes(ask, self._stream))
        finally:
            self._stream.end(answer)

    def _waits(self) -> str:
        """What the session waits for that nothing here gives, in words."""
        return "" if self.id is None else waits_outside(self._host, self.id, self._after)

    def _as_it_comes(self, ask: Callable[[], Any], stream: Stream) -> Any:
        """What comes of something that is waited for, and what is streamed until then is shown.

        Whoever begins to type has the answer wait until the line is entered.
        """
        asked, told = Asked(ask, self._bell.ring), ""
        while True:
            over = asked.future.done()
            stream.show(self._span)
            if over:
                return asked.future.result()
            if self._bell.wait(keys=self._keys is not None and not self._left, seconds=LOOK):
                stream.rest()
                self._hear(asked)
            elif (waits := self._waits()) != told:
                told = waits
                if waits and not asked.future.done():
                    stream.rest()
                    self._output.note(f"({waits}. Ctrl-C ends this turn)")

    def _hear(self, asked: Asked) -> None:
        """Somebody types while a turn runs: the line joins it at its next step."""
        assert self._keys is not None
        try:
            line = self._keys.line()
        except EOFError:
            self._left = True
            self._output.note("")
            return
        except KeyboardInterrupt:
            if not asked.future.done():
                raise
            line = ""  # the turn was over meanwhile: its answer is to be shown
            self._output.note("")
        if line:
            request, self._before = secrets.token_hex(8), max(self._before, 0)
            steer = partial(answer, self._session.steer, line, request)
            self._steers.append((line, request, Asked(steer, self._bell.ring)))
            self._output.note("(this joins at the next step)")

    def _span(self) -> Span:
        """Where in the log the turn that is waited for begins and, if it is over, ends."""
        number = self._open[0].number if self._open else self._number(waits=False)
        told = self._host.query("(_ ?n _ . _)", session=self.id, after=self._head)
        ends = {event.captures["n"]: event.position for event in told if event.value.label in ENDS}
        over = ends.pop(number, inf)
        return max((end for end in ends.values() if end < over), default=0), over

    def _number(self, asked: Asked | None = None, waits: bool = True) -> int | None:
        """The number of the turn that is waited for, once it is accepted; None if it joined another turn.

        waits: it is on its way, and is waited for.
        """
        if self._before < 0:
            return None
        said: dict[str, Any] = {}
        for _ in range(100):
            for event in self._host.query("(_ ?n _ #:input _ . _)", session=self.id, after=self._head):
                about = event.value.keywords
                ours = (about.get("via"), about.get("request")) == ("cli", self._request)
                if ours and event.captures["n"] > self._before:
                    said.setdefault(event.value.label, event.captures["n"])
            if said or not waits or (asked is not None and asked.future.done()):
                break
            time.sleep(0.02)
        return said.get("turn")

    def _there(self) -> Any:
        if self._session is None:
            id = f"s-{secrets.token_hex(4)}" if self._wanted is None else self._wanted
            self._begin(self._host.spawn(Session, id), id)
            if self._wanted is None:
                self._output.note(f"session {id}")
        return self._session

    def _begin(self, session: Any, id: str) -> None:
        """The session is there. What is told is heard from here to the end, so that no answer lacks its beginning."""
        self._session, self.id = session, id
        if self._output.terminal and not self._output.as_json:
            self._stream = Stream(self._output, id, self._bell.ring)
            self._host.on_progress(self._stream.hear, id)

    def _interrupt(self) -> None:
        """End the turn that is waited for, and no other."""
        number = self._open.pop(0).number if self._open else self._number()
        if number is not None:
            self._session.interrupt(turn=number)

    # Turns that were under way.

    def _go_on(self, let_go: bool = False) -> None:
        """Have them go on, and show what each comes to; those that wait for what nobody knows are told of.

        let_go: what nobody knows breaks, and they go on as well.
        """
        if not self._open:
            return
        if let_go:
            self._let_go()
        self._session.interrupt(turn=0)  # ends nothing; brings the session into memory, or says why it takes no input
        unknown = self._unknown()
        if unknown:
            calls = ", ".join(sorted({f"{effect.device}.{effect.method}" for effect in unknown}))
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
                self._show_answer(turn.input, partial(self._end_of, turn))
            except Failed as error:
                self._output.note(worded(str(error), "commands"), "red")
            del self._open[0]

    def _unknown(self) -> list[EffectStatus]:
        return [effect for effect in self._host.effects(self.id) if effect.state == "unknown"]

    def _let_go(self) -> None:
        """What the session waits for breaks with `OutcomeUnknown`."""
        for effect in self._unknown():
            self._host.resolve(effect.id, error=OutcomeUnknown(f"{effect.device}.{effect.method}", effect.id))

    def _end_of(self, turn: Turn) -> Any:
        """What a turn comes to that somebody asked for earlier. Raises `Failed`."""
        pattern = f"(_ {turn.number} . _)"
        for event in self._host.observe(pattern, after=self._head, session=self.id, until=None):
            tell(turn, event)
            if turn.state != "open":
                break
        if turn.state != "done":
            error = turn.error if isinstance(turn.error, Mapping) else {}
            raise Failed(str(error.get("error", "TurnInterrupted")), str(error.get("message", "")))
        return turn.output

    # What was said before.

    def _earlier(self) -> list[Turn]:
        """The newest turns, out of what was recorded shortly before the session's head: few, however long it is."""
        row = next((row for row in self._host.sessions(self.id or "", limit=1) if row.id == self.id), None)
        if row is None:
            return []
        after = self._after = max(0, row.position - RECENT)
        events = self._host.observe("(_ . _)", after=after, session=row.id, lineage=True)
        turns = turns_of(events)
        self._open = [turn for turn in turns if turn.state == "open"]
        self._head = row.position
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
