"""Care: what a host does for a vat without being asked, before its first job, after each one, and when it leaves.

    first    its actors are brought to the code's version; a fork lets go of what belongs to its parent
    after    what nothing reaches is collected; a snapshot, when it is time for one
    leaving  what its receivers have leaves the outbox, and cursors are noted that have moved far without an event;
             a snapshot, if many records have come since the last

The one rule: a vat that takes no input (its store or its session is only to be read) is left as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from vat.crank.upgrading import UpgradeFailed, outdated
from vat.crank.vat import Step, Vat
from vat.heap.messages import Detach
from vat.host.residents import Job, Resident
from vat.host.settings import Settings
from vat.objects.types import Types

log = logging.getLogger("keeve")

APART: Final = 256
"""Snapshots are never more records apart while a fiber waits: what brings it back begins from the nearest ones."""

MOST_TOLD: Final = 10_000
"""Sessions of which is kept what was said of them in the log; of another one it may be said again."""


class Care:
    """Looks after vats."""

    def __init__(
        self, settings: Settings, types: Types, *, readonly: bool, read_on: Callable[[Vat], Mapping[int, str]]
    ) -> None:
        self._settings = settings
        self._types = types
        self._readonly = readonly
        self._wakes = settings.takes_up == "all"
        self._told: dict[bytes, None] = {}
        """Sessions of which it was said that they cannot be upgraded, the newest last."""
        self._read_on = read_on
        """How far a vat's subscriptions have read, where that is far beyond what its heap says."""

    def first(self, resident: Resident, vat: Vat) -> list[Job]:
        """What a vat that was just loaded does before anything else."""
        jobs: list[Job] = []
        if not self._readonly and resident.damage is None:
            if outdated(vat.heap, self._types):
                jobs.append(Job(None, lambda error: self._not_upgraded(vat, error), _upgrade))
            if vat.heap.forking:
                jobs.append(Job(Detach()))
        return jobs

    def _not_upgraded(self, vat: Vat, error: BaseException) -> None:
        """Nobody has asked, and what a session waits for does not come: say so, once."""
        if self._wakes and vat.heap.pending and vat.uid not in self._told and isinstance(error, UpgradeFailed):
            self._told[vat.uid] = None
            if len(self._told) > MOST_TOLD:
                del self._told[next(iter(self._told))]
            log.warning("session %s has work pending, which waits until it can be upgraded: %s", vat.id, in_log(error))

    def after(self, resident: Resident, vat: Vat) -> Sequence[Step]:
        """What a vat does after a job."""
        if not (vat.worth_collecting or self._wants_snapshot(vat)) or self._readonly or resident.damage is not None:
            return ()
        steps: list[Step] = []
        try:
            if vat.worth_collecting and (collected := vat.collect()) is not None:
                steps.append(collected)
        except KeeveError as error:
            log.warning("session %s: what nothing reaches any more cannot be found: %s", vat.id, in_log(error))
        try:
            if self._wants_snapshot(vat):
                steps.append(vat.snapshot()[0])
        except KeeveError as error:
            log.warning("session %s: no snapshot can be made: %s", vat.id, in_log(error))
            vat.records_since_snapshot = vat.bytes_since_snapshot = 0
        return steps

    def _wants_snapshot(self, vat: Vat) -> bool:
        settings = self._settings
        records = vat.records_since_snapshot
        if records >= APART and vat.heap.system["fibers"].count:
            return True
        if vat.snapshot_seq:
            return records >= settings.snapshot_records or vat.bytes_since_snapshot >= settings.snapshot_bytes
        return records >= settings.first_snapshot

    def evicting(self, vat: Vat) -> Job | None:
        """What a vat does before it leaves memory, so that the log calls nothing pending that is not."""
        return Job(None, None, self._leave) if vat.acked else None

    def _leave(self, vat: Vat) -> Sequence[Step]:
        step = vat.forget(self._read_on(vat))
        return () if step is None else (step,)

    def closing(self, resident: Resident, vat: Vat) -> Job | None:
        """What a vat does at an orderly stop."""
        many = vat.records_since_snapshot >= self._settings.closing_records
        if self._readonly or resident.damage is not None or not (many or vat.acked or self._read_on(vat)):
            return None

        def work(vat: Vat) -> Sequence[Step]:
            return (*self._leave(vat), vat.snapshot()[0]) if many else self._leave(vat)

        return Job(None, None, work)


def _upgrade(vat: Vat) -> Sequence[Step]:
    step = vat.upgrade()
    return () if step is None else (step,)
