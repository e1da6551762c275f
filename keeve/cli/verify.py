"""`keeve verify`: is everything in a store what was written?

Four looks, each held against what comes before it: frames, bodies, cells and chains (`dataspace.log.verify`), the
snapshots against the records, the catalog against the log.

The one rule: nothing is changed, and a store that somebody owns is looked at up to what that one has published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from dataspace.catalog.checking import check_catalog
from dataspace.errors import KeeveError
from dataspace.log.layout import Layout
from dataspace.log.opening import known_here, mapped
from dataspace.log.publishing import read as read_head
from dataspace.log.verdicts import Evidence, Outcome, SegmentBytes
from dataspace.log.verify import Counts, Verification
from dataspace.records import STORE_UID
from keeve.api import CATALOG
from keeve.cli.machine import owner_of
from keeve.cli.output import Output
from keeve.cli.reading import Reading, must_be_there, reading
from keeve.cli.text import counted, size
from vat.heap.checking import check_snapshots
from vat.heap.restore import Lineage


@attrs.frozen
class Trouble:
    """Something that is not as it must be. `harmless`: an opening puts it right, and nothing is lost."""

    look: str
    what: str
    session: str | None = None
    seq: int | None = None
    place: str | None = None
    harmless: bool = False


@attrs.define
class Checked:
    """What was looked at, and what was found."""

    counts: Counts = attrs.field(factory=Counts)
    sessions: int = 0
    snapshots: int = 0
    troubles: list[Trouble] = attrs.field(factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return all(trouble.harmless for trouble in self.troubles)


def check_store(folder: Path, progress: Callable[[str], None] = lambda what: None) -> Checked:
    """Look at all of a store. Raises `NotAStore` or `NewerFormat`.

    Costs some ten microseconds for each record and each look, and memory for the largest session's heap.
    """
    must_be_there(folder)
    checked = Checked()
    progress("the log")
    checked.troubles += check_log(Layout(folder), checked)
    progress("snapshots and the catalog")
    try:
        with reading(folder) as store:
            if store.store.fault is not None:
                return checked
            checked.troubles = _named(store, checked.troubles)
            checked.troubles += _check_snapshots(store, checked, progress)
            if (folder / CATALOG).exists():
                checked.troubles += [Trouble("catalog", what) for what in check_catalog(store.catalog, store.store)]
    except KeeveError as error:
        if not checked.troubles:
            checked.troubles.append(Trouble("log", str(error)))
    return checked


@contextmanager
def _published(layout: Layout) -> Iterator[tuple[list[SegmentBytes], Evidence]]:
    """The segments of a log as far as they stand still, and what is known of them."""
    evidence = known_here(layout, Evidence())
    alive = owner_of(layout.lock) is not None
    published = read_head(layout.head) if alive else None
    with mapped(layout, alive=alive) as segments:
        if published is None:
            yield segments, evidence
            return
        mark = published.mark
        yield (
            [
                SegmentBytes(number, data[: mark.offset] if number == mark.segment else data)
                for number, data in segments
                if number <= mark.segment
            ],
            evidence,
        )


def check_log(layout: Layout, checked: Checked) -> list[Trouble]:
    """Frames, bodies, cells and chains."""
    with _published(layout) as (segments, evidence):
        check = Verification(segments, evidence)
        found = [
            Trouble(
                "log",
                finding.what,
                None if finding.uid in (None, STORE_UID) else finding.uid.hex(),
                finding.seq or None,
                f"segment {finding.segment}, offset {finding.offset}",
                finding.outcome is Outcome.TORN,
            )
            for finding in check.findings()
        ]
        checked.counts = check.counts
        del check, segments
    return found


def _named(store: Reading, troubles: list[Trouble]) -> list[Trouble]:
    """The same troubles, their sessions called by their ids."""
    return [
        attrs.evolve(each, session=store.name(bytes.fromhex(each.session)) or each.session) if each.session else each
        for each in troubles
    ]


def _check_snapshots(store: Reading, checked: Checked, progress: Callable[[str], None]) -> Iterator[Trouble]:
    for row in store.sessions():
        progress(f"session {row.id}")
        checked.sessions += 1
        checked.snapshots += len(store.catalog.snapshots(row.uid))
        lineage = Lineage(row.uid, store.catalog, store.store.read)
        for what in check_snapshots(lineage, store.catalog, row.seq):
            yield Trouble("snapshots", what, row.id)


def verify(folder: Path, output: Output) -> int:
    """Tell what is wrong with a store. Gives 1 when something is."""
    checked = check_store(folder)
    if output.as_json:
        output.document(
            {
                "sound": checked.sound,
                "counts": attrs.asdict(checked.counts),
                "sessions": checked.sessions,
                "snapshots": checked.snapshots,
                "troubles": [attrs.asdict(trouble) for trouble in checked.troubles],
            }
        )
        return 0 if checked.sound else 1
    for trouble in checked.troubles:
        output.say(_line(trouble), "dim" if trouble.harmless else "red")
    counts = checked.counts
    output.say(
        f"{'sound' if checked.sound else 'NOT SOUND'}: {counted(counts.records, 'record')} and "
        f"{counted(counts.cells, 'cell')} in {counted(counts.segments, 'segment')} ({size(counts.bytes)}), "
        f"{counted(checked.snapshots, 'snapshot')} of {counted(checked.sessions, 'session')}"
    )
    return 0 if checked.sound else 1


def _line(trouble: Trouble) -> str:
    where = ", ".join(
        part
        for part in (
            f"session {trouble.session}" if trouble.session else "",
            f"seq {trouble.seq}" if trouble.seq else "",
            trouble.place or "",
        )
        if part
    )
    return f"{trouble.look}: {where + ': ' if where else ''}{trouble.what}"
