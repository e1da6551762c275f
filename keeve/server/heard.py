"""What models have said of the answers that they are giving: for who begins to listen in the middle of one.

Of each conversation (a `Session`, or a type that is one) the pieces of the answer that is being given are kept,
those of the newest attempt; no others, and nothing when it is whole, its turn is over, or the conversation is deleted
or erased in. Nothing counts on it: an answer of which this does not have all is told when it is whole.

The one rule: it holds what is being said at this moment, as much as there is room for, and never waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import attrs

from actors.responding import Responding
from actors.session import Session
from dataspace.errors import KeeveError
from dataspace.facts import Fact
from keeve.faces import ENDS
from vat.host.host import Host
from vat.host.pieces import Piece
from vat.objects.types import type_of

T = TypeVar("T")

TYPE: Final = type_of(Responding).name

METHOD: Final = "complete"
"""The method of a model whose pieces are kept."""

PIECES: Final = 10_000
"""Pieces of an answer that are kept; of a longer one none are."""

ROOM: Final = 32 << 20
"""Bytes that all of them may take, about. Where there is no room the oldest answer is not kept."""

EACH: Final = 500
"""Bytes that a piece takes besides what it says, about."""

ENDED: Final = 10_000
"""Answers that are remembered as not kept."""


@attrs.define
class HeardAnswer:
    """The pieces of one attempt at an answer, None where they are not kept; and the bytes that they take."""

    effect: str
    attempt: int
    pieces: list[Piece] | None = attrs.field(factory=list)
    size: int = 0
    so_far: Any = None
    """What was made of all of them, until there is one more."""


class Heard:
    """What running effects tell of answers, from `listen` on; `types` are those that are served, besides `Session`.

    Of another type than those that state how their turns end nothing is kept: nobody would know until when.
    """

    def __init__(self, host: Host, types: Iterable[Any] = ()) -> None:
        self._host = host
        self._types = {type_of(each).name for each in (Session, Responding, *types) if issubclass(each, Session)}
        self._answers: OrderedDict[str, HeardAnswer] = OrderedDict()
        self._all = False
        """Whether whatever has been told of an answer without an entry here was told of one that is over."""
        self.size = 0
        """The bytes that all that is kept takes, about."""

    def listen(self) -> None:
        """Hear what is told from now on."""
        self._all = True
        self._host.on_progress(self.hear)
        self._host.on_fact(("model-output", "deleted"), self._whole)
        self._host.on_fact((*ENDS, "erased"), self._over)

    def hear(self, piece: Piece) -> None:
        """A running effect tells something."""
        if piece.method != METHOD:
            return
        answer = self._answers.get(piece.session)
        if answer is None or (answer.effect, answer.attempt) != (piece.effect, piece.attempt):
            if answer is None and not self.keeps(piece.session):
                return
            self._drop(answer)
            answer = self._answers[piece.session] = HeardAnswer(piece.effect, piece.attempt)
            self._answers.move_to_end(piece.session)
            if len(self._answers) > ENDED:
                self._drop(self._answers.popitem(last=False)[1])
                self._all = False
        if answer.pieces is not None:
            answer.pieces.append(piece)
            answer.so_far = None
            size = EACH + len(repr(piece.value))
            answer.size += size
            self.size += size
            if len(answer.pieces) > PIECES:
                self._drop(answer)
            while self.size > ROOM:
                self._drop(next(each for each in self._answers.values() if each.pieces))

    def keeps(self, session: str) -> bool:
        """Whether what is said in a session is kept: it is a conversation."""
        try:
            return self._host.row(session).type in self._types
        except KeeveError:
            return False

    def of(self, session: str, effect: str) -> list[Piece] | None:
        """All pieces of the answer that this effect of a session gives, so far; None if some may be missing."""
        answer = self._answers.get(session)
        if answer is not None and answer.effect == effect:
            return None if answer.pieces is None else list(answer.pieces)
        return [] if self._all or answer is not None else None

    def so_far(self, session: str, made: Callable[[Piece], T]) -> T | None:
        """What `made` makes of all that was said up to now of the answer that a session is given, as one piece; None if
        none is kept. It is made once for all who ask before more is said: many may, and it may be long."""
        answer = self._answers.get(session)
        if answer is None or not answer.pieces:
            return None
        if answer.so_far is None:
            text = "".join(piece.text for piece in answer.pieces)
            value = {"delta": {"content": text}, "attempt": answer.attempt}
            answer.so_far = made(attrs.evolve(answer.pieces[-1], value=value))
        found: T = answer.so_far
        return found

    def _drop(self, answer: HeardAnswer | None) -> None:
        """Keep nothing of an answer, now and later."""
        if answer is not None:
            self.size -= answer.size
            answer.pieces, answer.so_far, answer.size = None, None, 0

    def _whole(self, fact: Fact) -> None:
        """An answer is whole, or nobody may have it any more: it is told no more of it."""
        self._drop(self._answers.pop(_session(fact), None))

    def _over(self, fact: Fact) -> None:
        """A turn is over, which may have waited behind the one that runs: what runs may tell more of its answer."""
        self._drop(self._answers.get(_session(fact)))


def _session(fact: Fact) -> str:
    """The session that a fact of ours is about."""
    place = 0 if fact.label in ("deleted", "erased") else 1
    return str(fact.fields[place]) if len(fact.fields) > place else ""
