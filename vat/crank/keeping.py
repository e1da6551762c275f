"""Keeping: what becomes of values that come to a vat, stay in it, or leave it.

The one rule: what is refused leaves no trace: no cell, and no mark on a promise or an actor.
"""

from __future__ import annotations

from typing import Any, Final

from dataspace import values
from dataspace.values import CELL_BYTES, NotAValue, Text, Value, freeze, scalar_key
from vat.crank.progress import HERE, OUTWARD, STATED, CrankDraft
from vat.crank.transaction import NO_CRANK, Transaction
from vat.crank.whole import whole
from vat.errors import OutsideCrank
from vat.heap.entries import HELD
from vat.heap.heap import ROOT_ACTOR
from vat.heap.opcodes import Op
from vat.heap.refs import Promise, Ref
from vat.objects.collections import plain

_AS_IT_IS: Final = frozenset({int, bool, float, type(None)})


class Keeping(Transaction):
    """A transaction that knows values."""

    __slots__ = ()

    def keep(self, value: Any, path: str, mode: int = HERE) -> Value:
        """The stored form of a value; views and collections in it are copied. Raises `NotAValue`, without a trace."""
        kind = type(value)
        if kind in _AS_IT_IS or (kind is str and len(value) <= CELL_BYTES and value.isascii()):
            return value
        draft = self.record
        if kind is str or kind is Text:  # nothing to undo: it is kept, or refused, as one
            return self._frozen(value, draft, path)
        progress, undo, mark = self.progress, self.heap.mark(), draft.mark()
        progress.mode = mode
        try:
            try:
                return freeze(value, draft, path)
            except NotAValue:
                copied = plain(value)
                if copied is value:
                    raise
                return freeze(copied, draft, path)
        except BaseException as error:
            before, progress.torn = progress.torn, error
            self.heap.rollback(undo)
            draft.rollback(mark)
            progress.torn = before
            raise
        finally:
            progress.mode = HERE

    @whole
    def _frozen(self, value: str, draft: CrankDraft, path: str) -> Value:
        return freeze(value, draft, path)

    def key(self, value: Any, path: str) -> Value:
        """The stored form of a key, which is never a cell. Raises `NotAValue` for what is no scalar."""
        if self.progress.draft is None:
            raise OutsideCrank(NO_CRANK)
        kept = self.reference(value) if isinstance(value, values.Ref) else freeze(value, None, path)
        scalar_key(kept)
        return kept

    def word(self, name: Any, what: str) -> str:
        """A name that goes into the record: of a method, a device, a keyword. Raises `TypeError` unless it is a str."""
        if type(name) is str and name.isascii():
            return name
        if not isinstance(name, str):
            raise TypeError(f"{what} is named by a str, not by {name!r}")
        return str(freeze(name, None, what))

    def reference(self, value: values.Ref | values.Promise) -> Value:
        """How a ref or promise is kept where the value that is being frozen goes."""
        mode = self.progress.mode
        if isinstance(value, values.Promise):
            if mode == HERE:
                return self._held(value)
            if mode == OUTWARD:
                return self.carried(value)
            why = "a promise stays in its vat: give what came of it, in a reaction"
            raise NotAValue("", type(value), why)
        session = None if value.session == self.uid else value.session
        if session is None and mode in (OUTWARD, STATED):
            self.hand(value.actor)
            session = self.uid
        return Ref(session, value.actor)

    def hand(self, actor: int) -> None:
        """A ref to an actor leaves the vat: what it refers to stays, for as long as it is not revoked."""
        if actor == ROOT_ACTOR or self.heap.system["handed"].contains(actor, self.heap.page):
            return
        if self.progress.silent:
            self.progress.lent.append(actor)
        else:
            self.note(Op.HANDED, actor)

    def _held(self, promise: values.Promise) -> Promise:
        entry = self.heap.find("promises", promise.id)
        if entry is None:
            raise NotAValue("", type(promise), f"promise {promise.id} is over, and nothing has kept what came of it")
        if not entry[HELD]:
            self.note(Op.HELD, promise.id)
        return Promise(promise.id)

    def carried(self, promise: values.Promise) -> Value:
        """What a promise that leaves the vat is there, in stored form: its value."""
        raise NotImplementedError
