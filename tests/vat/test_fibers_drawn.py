"""Drawn async methods, in sessions to which everything happens: as if nothing had.

Whole records are compared, by their hash: what was done, in which order, with which numbers. Many programs with
KEEVE_CRASH=full.
"""

from __future__ import annotations

import os

import pytest
from drawn_fibers import METHODS, method, methods
from fiber_stories import changed, disturbances, moves, same
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from vatmaker import Past

from vat.crank import rerun
from vat.crank.crank import Crank
from vat.crank.rerun import Rerun

FULL = os.environ.get("KEEVE_CRASH") == "full"

how = settings(
    max_examples=1000 if FULL else 15,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    phases=set(Phase) - {Phase.explain},
)


@pytest.mark.crash
@how
@given(methods, moves, disturbances)
def test_a_fiber_goes_on_as_if_nothing_had_happened(code, story, disturbed):
    """Invariants 8, 14, 16 and 28: restarts, dropped coroutines and abandoned cranks, also in forks, change no byte of
    what is recorded."""
    note("\n".join(method(number, statements) for number, statements in enumerate(code)))
    same(code, story, disturbed)


@pytest.mark.crash
@how
@given(methods, st.integers(0, METHODS - 1), methods, moves, st.integers(1, 14))
def test_only_those_whose_code_has_changed_break(code, which, others, story, since):
    """Invariant 16: and whatever else waits for them is told; nothing else happens."""
    other = tuple(others[which] if number == which else statements for number, statements in enumerate(code))
    note("\n".join(method(number, statements) for number, statements in enumerate([*code, other[which]])))
    changed(code, other, which, story, since)


# The proof of the proof: with something taken out of how fibers are run again, the stories differ.


def another_order(patch):
    """What came of several promises is told in another order."""
    outcomes = rerun.outcomes
    patch.setattr(rerun, "outcomes", lambda heap, waiting: outcomes(heap, waiting)[::-1])


def another_moment(patch):
    """A part is run on the heap as it was after its record."""
    before = Past.before
    patch.setattr(Past, "before", lambda self, seq, heap, at: before(self, seq + 1, None, 0))


def other_chance(patch):
    """Chance is not taken from the record."""
    scene = Rerun._scene

    def unlike(self, *args):
        draft = scene(self, *args)
        self._crank.progress.seed = b"something else" * 2
        return draft

    patch.setattr(Rerun, "_scene", unlike)


def other_time(patch):
    """Time is not taken from the record."""
    scene = Rerun._scene

    def later(self, *args):
        draft = scene(self, *args)
        draft.time += 1
        return draft

    patch.setattr(Rerun, "_scene", later)


def nothing_dropped(patch):
    """A coroutine whose crank was abandoned stays."""
    patch.setattr(Crank, "unwind", lambda self, since: None)


@pytest.mark.parametrize("take_out", [another_order, another_moment, other_chance, other_time, nothing_dropped])
def test_the_stories_notice_that_something_is_not_as_it_was(monkeypatch, take_out):
    """Invariant 45."""
    take_out(monkeypatch)

    @settings(how, max_examples=300, phases=[Phase.generate], database=None, derandomize=True, print_blob=False)
    @given(methods, moves, disturbances)
    def stories(code, story, disturbed):
        same(code, story, disturbed)

    with pytest.raises((AssertionError, ExceptionGroup)):
        stories()
