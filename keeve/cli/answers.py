"""Answers at the prompt, shown as they come: one stream for a whole conversation.

Each answer of the model is one effect. What effects tell is put down in the host's thread, at once, and shown in the
main one, which knows whose answer is waited for: the next turn may have begun to answer before the one before it is
shown.

The one rule: what is streamed is thrown away. What counts is the answer that the session gives in the end; so what came
faster than it is shown is left out until then.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

from keeve.cli.output import Output
from keeve.cli.text import Cleaner, plain
from keeve.remedies import worded
from vat.host.pieces import Piece, Pieces

TurnSpan: TypeAlias = tuple[float, float]
"""The positions of the log between which a turn ran: where the one before it was over, and where it was itself."""


class AnswerStream:
    """What a session's model tells. `ring` is called when there is more to show."""

    def __init__(self, output: Output, session: str, ring: Callable[[], None]) -> None:
        self._output = output
        self._session = session
        self._ring = ring
        self._told = Pieces()
        self._one_thread = Lock()
        self._answer: tuple[str, int] | None = None
        """The effect that is shown, and its attempt."""
        self._next: Piece | None = None
        """The first that was told and not shown, if it was looked at."""
        self._cleaner = Cleaner()
        self._shown = ""
        """What was shown of it."""
        self._gap = False
        """Whether some of it was not heard: no more of it is shown before it is whole."""
        self._open = False
        """Whether the line on the screen goes on."""

    def hear(self, piece: Piece) -> None:
        """One thing that an effect told; called in the host's thread."""
        if piece.session == self._session and (piece.text or piece.failed):
            with self._one_thread:
                self._told.put(piece)
            self._ring()

    def show(self, span: Callable[[], TurnSpan]) -> None:
        """Show what was told within a turn, up to now; `span` is asked for at the beginning of each answer.

        What was told in the turns before is void, what was told after it is left for the next one.
        """
        while (piece := self._looked_at()) is not None:
            answer = piece.effect, piece.attempt
            if answer != self._answer:
                before, over = span()
                if piece.after >= over:
                    return
                if piece.after < before:
                    self._next = None
                    continue
                # An answer begins; if it is another attempt at the same one, what the first one told is void.
                self.rest()
                self._answer, self._shown, self._cleaner, self._gap = answer, "", Cleaner(), False
            self._next = None
            if piece.missed and not self._gap:
                self._gap = True
                self.rest()
                self._output.note("(some of what was said was not heard; the answer follows when it is whole)")
            if piece.failed:
                self.rest()
                self._output.note(f"({worded(piece.failed, 'commands')}; it is asked again)")
            text = self._cleaner.of(piece.text)
            self._piece("" if self._gap else text)

    def _looked_at(self) -> Piece | None:
        """The next one that was told; it is the same one until it is done with."""
        if self._next is None:
            with self._one_thread:
                self._next = self._told.take() if self._told else None
        return self._next

    def rest(self) -> None:
        """Something else comes on the screen: it begins on a line of its own."""
        if self._open:
            self._open = False
            self._output.say()

    def end(self, answer: str | None = None) -> None:
        """A turn is over, with that answer: show it, if that was not done as it came."""
        whole = None if answer is None else plain(answer)
        if whole is not None and self._shown and not self._gap and whole.startswith(self._shown):
            self._piece(whole[len(self._shown) :])  # its last pieces may be on their way yet
        elif answer is not None:
            self.rest()
            self._output.say(answer)
        self.rest()
        self._answer, self._shown, self._gap = None, "", False

    def _piece(self, text: str) -> None:
        if text:
            self._shown += text
            self._open = not text.endswith("\n")
            self._output.piece(text)
