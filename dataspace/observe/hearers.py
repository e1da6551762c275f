"""Hearers: what is called with each fact or record of some kind as soon as it is durable, in the process that wrote it.

The one rule: what is durable is noted, whatever a hearer makes of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from dataspace.in_logs import traced

log = logging.getLogger("keeve")

K = TypeVar("K")
T = TypeVar("T")


def heard(
    told: dict[K, tuple[Callable[[T], None], ...]], keys: Iterable[K], hear: Callable[[T], None]
) -> Callable[[], None]:
    """Have `hear` told of what comes under these keys of a table of hearers; gives what ends that."""
    wanted = tuple(dict.fromkeys(keys))
    for key in wanted:
        told[key] = (*told.get(key, ()), hear)

    def end() -> None:
        for key in wanted:
            told[key] = tuple([each for each in told[key] if each is not hear])

    return end


def have_hear(hearers: Sequence[Callable[[T], None]], what: T, named: str) -> None:
    """Call all of them with it; one that raises keeps no other from being called."""
    for hear in hearers:
        try:
            hear(what)
        except Exception as error:
            log.error("what was called with %s has failed", named, exc_info=traced(error))
