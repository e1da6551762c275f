"""Causes: each thing that is wrong with a log is told once, and not what only follows from it.

A record that cannot be read leaves its session without a heap, its snapshots without what they are held against, and
what it allowed to be gone without anybody who says so; a page that cannot be read spoils each snapshot that shares it.
All that is one damage.

The one rule: what is left out follows from something that is told; everything else is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import attrs

from dataspace.catalog.checking import Right
from dataspace.log.findings import Finding
from dataspace.log.frames import place
from dataspace.log.gaps import Gaps
from dataspace.log.verdicts import Outcome
from dataspace.records import STORE_UID, Header
from vat.heap.checking import Unfit
from vat.heap.restore import Lineage
from vat.host.allowing import Taken
from vat.host.reports import Nature, Trouble

_NATURES: dict[Outcome, Nature] = {Outcome.TRUNCATED: "missing", Outcome.NEWER: "unread"}
NAMED = 5
"""Records that are named of which nobody can tell whether something of them may be gone."""
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


class _Cut(NamedTuple):
    """A snapshot of which not all pages were looked at: they are of one of these sessions."""

    sessions: frozenset[str]
    restored: bool


class Causes:
    """What is told of a log so far: of its records, by session (a uid in hex) and seq, and of its pages."""

    def __init__(self) -> None:
        self._records: set[tuple[str, int]] = set()
        self._pages: dict[tuple[str, int, int], _Page] = {}
        self._met: set[tuple[bytes, int, str]] = set()
        self._cut: list[_Cut] = []
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

    def missing(self, begins: Callable[[bytes], int]) -> dict[str, int]:
        """The first seqs that sessions (by their uids in hex) do not have, since they were passed over. `begins` gives
        the first one of a session's own, 0 where it is not known."""
        return {uid.hex(): each.since(begins(uid)) for uid, each in self.gaps.missing.items() if uid != STORE_UID}

    def unfit(self, right: Right, lineage: Lineage, each: Unfit) -> Trouble | None:
        """What is told of a session's snapshots and heap; None for what follows from something else."""
        snapshot = each.snapshot
        if snapshot is not None and each.cut:
            sessions = frozenset(leg.uid.hex() for leg in right.catalog.lineage(lineage.uid))
            self._cut.append(_Cut(sessions, each.restored))
        if each.record is not None and self._follows(right, lineage, each.record):
            return None
        owner = None if snapshot is None else right.catalog.by_uid(snapshot.uid)
        uid = lineage.uid if owner is None or owner.deleted else owner.uid
        if snapshot is not None and each.page is not None:
            seq, number = each.page
            if self._passed(right, lineage, seq):
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
        return self.told(record) or self._passed(right, lineage, record[1])

    def _passed(self, right: Right, lineage: Lineage, seq: int) -> bool:
        """Whether a record of a lineage was passed over, or nobody can tell which one it is."""
        address = right.catalog.locate(lineage.uid, seq)
        return right.torn(lineage.uid) if address is None else self.gaps.hold(address)

    def pages(self, troubles: Sequence[Trouble]) -> list[Trouble]:
        """All troubles, with each page that cannot be read told once, and for what it is needed."""
        met = {id(page.found): (key, page) for key, page in self._pages.items() if page.found is not None}
        found: list[Trouble] = []
        for each in troubles:
            key, page = met.get(id(each), (None, None))
            if page is None or key is None:
                found.append(each)
            elif not page.snapshots:
                cut = [one for one in self._cut if key[0] in one.sessions]
                found.append(_unmet(each, cut))
        return found + [_spoiled(key, page) for key, page in self._pages.items() if page.snapshots]


def _unmet(found: Trouble, cut: Sequence[_Cut]) -> Trouble:
    """A page that none of the snapshots has come to; some of them were not looked at to their end."""
    if not cut:
        return attrs.evolve(found, what=f"{found.what}; no session is restored from it", spared=True)
    what = "whether a snapshot needs it nobody can tell, since something else of the same snapshots is damaged, too"
    return attrs.evolve(found, what=f"{found.what}; {what}", spared=all(each.restored for each in cut))


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


def unsaid(right: Right, troubles: list[Trouble], taken: Sequence[Taken], many: int, by: int) -> list[Trouble]:
    """What nobody allows to be gone, as troubles; unless a later record cannot be read that may: then that one says so.

    `many` records of deleted sessions are there, and whether they may be says the one at position `by`, if `many`.
    """
    silent = [right.catalog.stored(position).header for position in sorted(right.unread)]
    allowing = [header for header in silent if header.uid == STORE_UID]
    found, asked = list(troubles), dict[Header, list[Header]]()
    for each in taken:
        may = [one for one in allowing if one.kind in each.kinds and one.position > each.header.position]
        if may:
            asked.setdefault(may[-1], []).append(each.header)
        else:
            found.append(altered(each))
    for one, those in asked.items():
        named = ", ".join(f"{right.catalog.name(each.uid) or _STORE} seq {each.seq}" for each in those[:NAMED])
        more = f" and {len(those) - NAMED} more" if len(those) > NAMED else ""
        what = f"of {len(those)} records something is gone ({named}{more})"
        _say(found, one, f"{what}, and whether this one allows that nobody can tell")
    if many:
        what = f"{many} records of deleted sessions are there, and whether they were gone before nobody can tell"
        _say(found, right.catalog.stored(by).header, what)
    return found


def _say(troubles: list[Trouble], header: Header, what: str) -> None:
    """Say something more of a record of the store's own that cannot be read."""
    for n, each in enumerate(troubles):
        if (each.look, each.session, each.seq) == ("log", None, header.seq):
            troubles[n] = attrs.evolve(each, what=f"{each.what}; {what}")
            return
    troubles.append(Trouble("log", what, seq=header.seq, nature="unread"))


def altered(taken: Taken) -> Trouble:
    """What is not as records say, as it is told."""
    segment, offset = place(taken.address)
    header = taken.header
    session = None if header.uid == STORE_UID else header.uid.hex()
    return Trouble("log", taken.what, session, header.seq, f"segment {segment}, offset {offset}", nature="altered")
