"""Causes: each thing that is wrong with a log is told once, and not what only follows from it.

A record that cannot be read leaves its session without a heap, its snapshots without what they are held against, and
what it allowed to be gone without anybody who says so; a page that cannot be read spoils each snapshot that shares it.
All that is one damage.

The one rule: what is left out follows from something that is told; everything else is told.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dataspace.catalog.checking import Right
from dataspace.log.findings import Finding
from dataspace.log.frames import place
from dataspace.log.gaps import Gaps
from dataspace.log.verdicts import Outcome
from dataspace.records import STORE_UID, Kind
from vat.heap.checking import Unfit
from vat.heap.restore import Lineage
from vat.host.allowing import Taken
from vat.host.reports import Nature, Trouble

_NATURES: dict[Outcome, Nature] = {Outcome.TRUNCATED: "missing", Outcome.NEWER: "unread"}
_ALLOWING = frozenset((Kind.ERASE, Kind.RECLAIMED, Kind.ARCHIVED, Kind.SALVAGED))
"""Kinds of records of the store's own that say what of others may be gone."""
_STORE = "(the store)"


def trouble_of(found: Finding) -> Trouble:
    """What a check of the log has found, as it is told."""
    return Trouble(
        "log",
        found.what,
        None if found.uid in (None, STORE_UID) else found.uid.hex(),
        found.seq or None,
        f"segment {found.segment}, offset {found.offset}",
        found.outcome is Outcome.TORN,
        "altered" if found.altered else _NATURES.get(found.outcome, "damaged"),
        found.spared,
    )


@attrs.define
class _Page:
    """A page that cannot be read; what the log was found to be there, and which snapshots need it."""

    what: str
    found: Trouble | None = None
    session: str = ""
    snapshots: set[int] = attrs.field(factory=set)
    restored: bool = True


class Causes:
    """What is told of a log so far: of its records, by session (a uid in hex) and seq, and of its pages."""

    def __init__(self) -> None:
        self._records: set[tuple[str, int]] = set()
        self._pages: dict[tuple[str, int, int], _Page] = {}
        self._met: set[tuple[bytes, int, str]] = set()
        self.gaps = Gaps()
        """What was passed over where frames do not parse, which is told with its place."""

    def meet(self, found: Finding) -> Trouble:
        """Take in what a check of the log has found."""
        trouble = trouble_of(found)
        if found.uid is not None and found.page is not None:
            self._pages[found.uid.hex(), found.seq, found.page] = _Page(found.what, trouble)
        elif found.uid is not None and not found.spared:
            self.note(found.uid.hex(), found.seq)
        return trouble

    def note(self, session: str, seq: int) -> None:
        """It is told that a record of a session (its uid in hex) cannot be read."""
        self._records.add((session, seq))

    def told(self, record: tuple[str, int] | None) -> bool:
        """Whether it is told that a record cannot be read."""
        return (
            record is not None and (STORE_UID.hex() if record[0] == _STORE else record[0], record[1]) in self._records
        )

    @property
    def missing(self) -> dict[str, int]:
        """The first seqs that sessions (by their uids in hex) do not have, since they were passed over."""
        return {uid.hex(): seq for uid, seq in self.gaps.missing.items() if uid != STORE_UID}

    def unfit(self, right: Right, lineage: Lineage, each: Unfit) -> Trouble | None:
        """What is told of a session's snapshots and heap; None for what follows from something else."""
        if each.record is not None and self._follows(right, lineage, each.record):
            return None
        snapshot = each.snapshot
        owner = None if snapshot is None else right.catalog.by_uid(snapshot.uid)
        uid = lineage.uid if owner is None or owner.deleted else owner.uid
        if snapshot is not None and each.page is not None:
            seq, number = each.page
            address = right.catalog.locate(lineage.uid, seq)
            if self.gaps.hold(address) or (address is None and right.torn(lineage.uid)):
                return None
            found = self._pages.setdefault((lineage.owner(seq).hex(), seq, number), _Page(each.what))
            found.session = found.session or uid.hex()
            found.snapshots.add(snapshot.seq)
            found.restored = found.restored and each.restored
            return None
        if snapshot is None:
            return Trouble("snapshots", each.what, uid.hex())
        about = (snapshot.uid, snapshot.seq, each.what)
        if about in self._met:
            return None  # a fork begins from what its parent does
        self._met.add(about)
        return Trouble("snapshots", f"snapshot at seq {snapshot.seq}: {each.what}", uid.hex())

    def _follows(self, right: Right, lineage: Lineage, record: tuple[str, int]) -> bool:
        """Whether that a record cannot be read is told, or follows from what is."""
        passed = self.gaps.hold(right.catalog.locate(lineage.uid, record[1]))
        return passed or self.told(record) or right.torn(lineage.uid)

    def pages(self, troubles: Sequence[Trouble]) -> list[Trouble]:
        """All troubles, with each page that cannot be read told once, and for what it is needed."""
        met = {id(page.found): page for page in self._pages.values() if page.found is not None}
        found: list[Trouble] = []
        for each in troubles:
            page = met.get(id(each))
            if page is None:
                found.append(each)
            elif not page.snapshots:
                found.append(_unneeded(each))
        return found + [_spoiled(key, page) for key, page in self._pages.items() if page.snapshots]


def _unneeded(found: Trouble) -> Trouble:
    return attrs.evolve(found, what=f"{found.what}; no session is restored from it", spared=True)


def _spoiled(key: tuple[str, int, int], page: _Page) -> Trouble:
    """A page that snapshots need."""
    _, seq, number = key
    first, *others = sorted(page.snapshots)
    names = f"snapshot at seq {first}" + "".join(f", and at seq {each}" for each in others)
    rest = "; the session is restored without it" if page.restored else ""
    what = f"heap page {seq}.{number} is not what was written" if page.found is not None else page.what
    where = None if page.found is None else page.found.place
    nature = "damaged" if page.found is None else page.found.nature
    return Trouble("snapshots", f"{names}: {what}{rest}", page.session, seq, where, nature=nature, spared=page.restored)


def unsaid(right: Right, troubles: list[Trouble], taken: Sequence[Taken]) -> list[Trouble]:
    """What nobody allows to be gone, as troubles; unless a record cannot be read that may: then that one says so."""
    silent = [right.catalog.stored(position).header for position in sorted(right.unread)]
    allowing = {header.seq for header in silent if header.uid == STORE_UID and header.kind in _ALLOWING}
    if not (taken and allowing):
        return troubles + [_altered(each) for each in taken]
    first = next((n for n, each in enumerate(troubles) if each.session is None and each.seq in allowing), None)
    what = f"of {len(taken)} records something is gone, and whether this one allows that nobody can tell"
    if first is None:
        return [*troubles, Trouble("log", what, seq=min(allowing), nature="unread")]
    troubles[first] = attrs.evolve(troubles[first], what=f"{troubles[first].what}; {what}")
    return troubles


def _altered(taken: Taken) -> Trouble:
    segment, offset = place(taken.address)
    header = taken.header
    session = None if header.uid == STORE_UID else header.uid.hex()
    return Trouble("log", taken.what, session, header.seq, f"segment {segment}, offset {offset}", nature="altered")
