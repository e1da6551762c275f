"""Checking a copy of a store, before it gets its name: frame by frame, and its key file against its log.

What has changed while that was looked at is looked at again, and not the whole: what a store deletes and erases must
be able to be followed, however large it is. Where anything in that is not right, all of it is looked at once more.

The one rule: it looks at the copy, as it was written. No key is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from dataspace.encryption.errors import KeyFileDamaged, KeyFileOlder
from dataspace.log.copying import KeyFile
from dataspace.log.findings import Finding
from dataspace.log.frames import SEGMENT_SIZE
from dataspace.log.layout import Layout
from dataspace.log.marks import ChainHead, Damage, Mark
from dataspace.log.opening import still
from dataspace.log.recovery import judge
from dataspace.log.rekeying import newest_serial
from dataspace.log.scan import Batch, read_batch, wrong_bodies
from dataspace.log.verdicts import Outcome, SegmentBytes
from dataspace.log.verify import Verification
from dataspace.records import STORE_UID


class CopyCheck:
    """The check of the copy at `layout`. `findings`: what in it is not as it must be; `damaged`: the sessions
    concerned; `sealed`: how many bodies could not be looked at in it, since there is no key."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._heads: dict[bytes, ChainHead] = {}
        self._end: Mark | None = None
        self.findings: list[Finding] = []
        self.damaged: Mapping[bytes, Damage] = {}
        self.sealed = 0

    def look(self, end: Mark, changed: Collection[int]) -> None:
        """Look at the copy, which goes up to `end`, or at the segments that have changed since the last look."""
        if self._end is None or self.findings or not self._goes_on(self._end, changed):
            with still(self._layout) as (segments, evidence):
                check = Verification(segments, evidence)
                self.findings = list(check.findings())
                self.damaged, self.sealed, self._heads = check.verdict.damaged, check.counts.sealed, dict(check.heads)
        self._end = end

    def _goes_on(self, before: Mark, changed: Collection[int]) -> bool:
        """Whether all is right in the segments that have changed, and in what comes after what was looked at."""
        with still(self._layout) as (segments, evidence):
            if not all(_is_sound(each) for each in segments if each.id in changed and each.id <= before.segment):
                return False
            verdict = judge(segments, attrs.evolve(evidence, start=before, heads=self._heads.get))
        if verdict.outcome is not Outcome.CLEAN or verdict.began != before or verdict.lost:
            return False
        self._heads.update(verdict.heads)
        return True

    def check_keys(self, keys: KeyFile, path: str) -> None:
        """See that a key file goes with the copy: that it is no older than the newest record, and has a key of each
        session, or says that it was destroyed. `path` is its name in errors. Raises `KeyFileOlder` or `KeyFileDamaged`.
        """
        found = keys.outline
        seen = newest_serial(self._layout)
        if seen > found.serial:
            raise KeyFileOlder(path, found.serial, seen)
        for uid in self._heads:
            if uid not in found.holders and uid not in found.destroyed:
                whose = "the store's own chain" if uid == STORE_UID else f"session {uid.hex()}"
                raise KeyFileDamaged(path, f"the key of {whose} is not in it")


def _is_sound(segment: SegmentBytes) -> bool:
    """Whether every batch of a segment is there and follows the one before it, and every body is what was written."""
    at, end, commit = SEGMENT_SIZE, len(segment.data), None
    while at < end:
        batch = read_batch(segment, at)
        if not isinstance(batch, Batch) or wrong_bodies(segment.data, batch):
            return False
        if commit not in (None, batch.commit.previous):
            return False
        at, commit = batch.end, batch.hash
    return True
