"""Cells that are erased and may lie in the files yet."""

from __future__ import annotations

from dataspace.log.withheld import Withheld


def test_a_cell_is_withheld_until_all_that_say_so_are_seen_to() -> None:
    withheld = Withheld()
    withheld.add(10, {3: [0, 2], 5: [1]})
    withheld.add(12, {3: [2, 4]})
    assert [n for n in range(6) if withheld.has(3, n)] == [0, 2, 4]
    assert (withheld.has(5, 1), withheld.has(5, 0), withheld.has(4, 0)) == (True, False, False)
    assert (withheld.of(3), withheld.of(4), len(withheld)) == ({0, 2, 4}, set(), 4)
    withheld.gone(10)
    assert (withheld.of(3), withheld.of(5), len(withheld)) == ({2, 4}, set(), 2)
    withheld.gone(12)
    assert len(withheld) == 0


def test_it_may_be_told_twice_and_late() -> None:
    withheld = Withheld()
    for _ in range(2):
        withheld.add(12, {3: [2]})
    withheld.gone(11)
    assert withheld.has(3, 2)
    withheld.gone(13)
    withheld.gone(5)
    assert (len(withheld), withheld.of(3)) == (0, set())
    assert withheld.has(3, 2)  # an older file may bring it again
