"""Drawn async methods in a host that is killed in any of its file operations, stopped, and short of memory.

However often that happens, the heaps and the answers are those of a host to which nothing happens; and what must not be
done twice is not.

A few programs by default, many with KEEVE_CRASH=full.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

from keeve.testing import folder_for_stores
from tests.crash.crash_suites import FULL
from tests.crash.fiber_lives import Story, Trouble
from tests.vat.drawn_fibers import METHODS, build, method, methods

pytestmark = pytest.mark.crash

how = settings(
    max_examples=300 if FULL else 10,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    phases=set(Phase) - {Phase.explain},
)

calls = st.lists(st.tuples(st.integers(0, 1), st.integers(0, METHODS - 1)), min_size=2, max_size=5)
troubles = st.lists(
    st.builds(
        Trouble,
        dies=st.integers(2, 25) | st.integers(15, 70),
        partial=st.integers(0, 700),
        vats=st.sampled_from([1, 1000]),
    )
    | st.builds(Trouble, stops=st.integers(0, 8), vats=st.sampled_from([1, 1000])),
    min_size=2,
    max_size=6,
)


def test_whatever_dies_fibers_come_to_the_same_end():
    """Invariants 8, 9, 13, 14 and 16."""
    deaths: Counter[str] = Counter()

    @how
    @given(methods, calls, troubles)
    def holds(code, story, trouble):
        note("\n".join(method(number, statements) for number, statements in enumerate(code)))
        root = folder_for_stores(Path(tempfile.mkdtemp(prefix="keeve-fibers-")))
        try:
            calm = Story(root / "calm", build(code), story)
            calm.tell()
            assume(not calm.too_long)
            disturbed = Story(root / "disturbed", build(code), story)
            disturbed.tell(trouble)
            deaths["died"] += disturbed.deaths
            deaths["unknown"] += len(disturbed.outside.unknown)
            deaths["stories"] += 1
            assert disturbed.left() == calm.left()
            assert disturbed.answers == calm.answers
        finally:
            shutil.rmtree(root)

    holds()
    print(dict(deaths))
    assert deaths["died"]
