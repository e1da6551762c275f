"""`keeve.blocking` in a forked child, as `multiprocessing` makes them: there is no thread there that would answer."""

from __future__ import annotations

from pathlib import Path

from keeve import Session, blocking
from keeve.errors import StoreOwned
from tests.dataspace.segment_folders import in_a_forked_child


def test_a_forked_child_is_told_that_the_host_is_its_parent_s(store_folder: Path) -> None:
    host = blocking.open_host(store_folder)
    s = host.spawn(Session, "s")

    def told() -> int:
        asked = [lambda: s.turn("from the child"), host.sessions, lambda: s.history, lambda: host.observe("(turn . _)")]
        refused = 0
        for ask in asked:
            try:
                ask()
            except StoreOwned:
                refused += 1
        host.close()  # as at the end of its block: there is nothing to be stopped here
        return refused

    assert in_a_forked_child(told) == 4
    assert s.turn("from the parent") == "from the parent"
    host.close()
