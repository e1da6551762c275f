"""Findings: what a check of a log says is not as it must be, and how much it has looked at.

The one rule: a finding names its place, and says whether a disk can have done it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import attrs

from dataspace.log.verdicts import Outcome

Note: TypeAlias = Callable[[int, bytes, bytes], str]
"""Checks a checkpoint: the size of its tree, the root, the signed note. Says what is wrong, or nothing."""

OTHERS: Final = "records that are not those in the log"
"""What is said of a checkpoint that the records before it do not give."""


class Finding(NamedTuple):
    """Something that is not as it must be. `uid` and `seq` where one record is concerned.

    `altered`: every checksum fits, so that no disk has done it. `page`: the number of the heap page that it is about.
    `spared`: nothing is lost by it. `follows`: it only follows from what is told of a place before it.
    """

    outcome: Outcome
    segment: int
    offset: int
    what: str
    uid: bytes | None = None
    seq: int = 0
    altered: bool = False
    page: int | None = None
    spared: bool = False
    follows: bool = False


@attrs.define
class Counts:
    """How much was looked at so far."""

    bytes: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    cells: int = 0
    pages: int = 0
    checkpoints: int = 0
    erased: int = 0
    archived: int = 0
    away: int = 0
    """Archived bodies that nobody looked at, since they were not found in an archive."""
    sealed: int = 0
    """Bodies that nobody looked at, since they are sealed and there was no key."""
    orphans: int = 0
    """Forks whose parent is not in this log."""
