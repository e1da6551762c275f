"""A fork of a session: what it goes on with, and what it leaves with its parent.

    messages, settings, usage, calls that wait for a person      it has as its parent had them
    inputs that wait, and what its parent counted as its own     it leaves, when it parts

A fork parts with the first thing that happens in it: an input, an interrupt, a person's word, or the end of the turn
that was under way, which broke with `Forked` unless it waited for nothing but a person.

The one rule: until a session has parted, what is under way in it is its parent's.
"""

from __future__ import annotations

from vat.errors import Forked
from vat.objects.actor import Actor


class Forking(Actor):
    """The part of a session that knows whether it is a fork."""

    _within: str = ""
    """The id of the session whose affairs these are: a fork has another one, until it parts."""

    def _inherited(self) -> bool:
        """Whether what is under way was begun by the session that this one is a fork of."""
        return self._within != self.session_id

    def _part(self, error: Exception | None = None) -> None:
        """From now on all is this session's own. `error` is for those who wait; without it, a `Forked`."""
        if self._inherited():
            self._within = self.session_id
            self._leave(
                error or Forked(f"this was asked by {self.session_id!r}'s parent before the fork; ask again from here")
            )

    def _leave(self, error: Exception) -> None:
        """Let go of what stays with the parent; who waits for it hears this."""
        raise NotImplementedError
