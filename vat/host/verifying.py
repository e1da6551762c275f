"""Verifying: is everything in a store what was written?

Three looks, each held against what comes before it: frames, bodies, cells and chains of the log; the snapshots
against the records; the catalog against the log. What is wrong is told as data, and nothing is put right.

The one rule: it reads what is durable, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

import attrs
import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.checking import Right, check_catalog
from dataspace.checkpoints.checking import Notes, signatures
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.log.segments import SegmentStore
from dataspace.log.store import BodyErased, Store, Stored, StoreFailed
from dataspace.log.verdicts import Outcome
from dataspace.log.verify import Counts, Verification
from dataspace.proofs.proofs import Receipt
from dataspace.records import STORE_UID, content_digest, split_digests
from dataspace.values import Erased
from dataspace.values.encoding import BadEncoding
from vat.heap.checking import check_snapshots
from vat.heap.restore import Lineage

Look: TypeAlias = Literal["log", "snapshots", "catalog"]
Expected: TypeAlias = "str | bytes | Receipt | None"
"""What somebody has seen of the log: a receipt, or a checkpoint."""
Progress: TypeAlias = Callable[[Look, int], None]
"""Told how far it is: which look, and how many records, sessions or questions it has done."""

_OFTEN = 256
"""Records between two words about how far it is."""


@attrs.frozen
class Trouble:
    """Something that is not as it must be: which look found it, what, and where, as far as that can be said.

    `session` is an id (of a session that nobody knows, the uid in hex), `place` names a segment and an offset.
    `harmless`: an opening puts it right, and nothing is lost.
    """

    look: Look
    what: str
    session: str | None = None
    seq: int | None = None
    place: str | None = None
    harmless: bool = False


@attrs.frozen
class Report:
    """What was looked at, and what was found."""

    counts: Counts
    sessions: int
    snapshots: int
    troubles: tuple[Trouble, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong, or nothing but what is harmless."""
        return all(trouble.harmless for trouble in self.troubles)


@attrs.define
class _Looked:
    """What the first two looks came to, which any thread may take; `right` if the third can be."""

    counts: Counts
    troubles: list[Trouble]
    sessions: int = 0
    snapshots: int = 0
    right: Right | None = None

    def report(self) -> Report:
        troubles = self.troubles
        if self.right is not None:
            names = self.right.catalog
            troubles = [attrs.evolve(each, session=_name(names, each.session)) for each in troubles]
        return Report(self.counts, self.sessions, self.snapshots, tuple(troubles))


def silent(look: Look, done: int) -> None:
    """Tells nobody."""


def verify_at_once(
    store: Store,
    catalog: Catalog,
    progress: Progress = silent,
    *,
    keys: Sequence[str] = (),
    expect: Expected = None,
) -> Report:
    """Look at all of a store that nobody writes to in this process.

    `keys` are verifier keys that the log has to have signed with, `expect` is what somebody has seen of it.
    Costs about 100 µs for each record, and memory for the largest session's heap and the catalog of the log.
    """
    looked = _first_looks(store, progress, keys, expect)
    if looked.right is not None:
        try:
            for done, step in enumerate(_last_look(catalog, looked.right)):
                progress("catalog", done)
                looked.troubles += step
            return looked.report()
        finally:
            looked.right.catalog.close()
    return looked.report()


async def verify(
    store: Store,
    catalog: Catalog,
    progress: Progress = silent,
    *,
    keys: Sequence[str] = (),
    expect: Expected = None,
) -> Report:
    """The same, of the store of a host that goes on serving: in another thread, but for the catalog.

    That is looked at between other tasks, a session at a time. `progress` is called in the event loop.
    """

    def heard(look: Look, done: int) -> None:
        trio.from_thread.run_sync(progress, look, done)

    looked = await trio.to_thread.run_sync(_first_looks, store, heard, keys, expect)
    if looked.right is not None:
        try:
            for done, step in enumerate(_last_look(catalog, looked.right)):
                progress("catalog", done)
                looked.troubles += step
                await trio.lowlevel.checkpoint()
            return looked.report()
        finally:
            looked.right.catalog.close()
    return looked.report()


def _first_looks(store: Store, progress: Progress, keys: Sequence[str], expect: Expected) -> _Looked:
    """The log, its signatures, and the snapshots in it."""
    troubles: list[Trouble] = []
    notes = Notes()
    frames = _frames(store, troubles, progress, notes) if isinstance(store, SegmentStore) else _bodies(store, troubles)
    looked = _Looked(frames, troubles)
    if store.fault is not None and not isinstance(store.fault, StoreFailed):
        return looked  # its records cannot be told apart: there is nothing to hold the rest against
    try:
        right = Right(store)
    except KeeveError as error:
        if not troubles:
            troubles.append(Trouble("log", str(error)))
        return looked
    try:
        troubles += [Trouble("log", what) for what in signatures(store, right.catalog, notes.sound, keys, expect)]
        _snapshots(store, right.catalog, looked, progress)
    except BaseException:
        right.catalog.close()
        raise
    looked.right = right
    return looked


def _frames(store: SegmentStore, troubles: list[Trouble], progress: Progress, notes: Notes) -> Counts:
    told = 0

    def heard(counts: Counts) -> None:
        nonlocal told
        if counts.records >= told + _OFTEN:
            told = counts.records
            progress("log", told)

    with store.still() as (segments, evidence):
        check = Verification(segments, evidence, tree=notes.tree, note=notes.note, progress=heard)
        troubles += [
            Trouble(
                "log",
                found.what,
                None if found.uid in (None, STORE_UID) else found.uid.hex(),
                found.seq or None,
                f"segment {found.segment}, offset {found.offset}",
                found.outcome is Outcome.TORN,
            )
            for found in check.findings()
        ]
        return check.counts


def _bodies(store: Store, troubles: list[Trouble]) -> Counts:
    """The records of a store that has no frames."""
    counts = Counts()
    for stored in store.scan():
        counts.records += 1
        troubles += [Trouble("log", what, stored.header.uid.hex(), stored.header.seq) for what in _content(stored)]
    return counts


def _content(stored: Stored) -> Iterator[str]:
    try:
        body = stored.body()
        if body.digest != stored.header.body_digest:
            yield "its body is not the one that its hash covers"
            return
        digests = split_digests(read_deeds(body.deeds).digests)
    except BodyErased:
        return
    except (KeeveError, BadEncoding) as error:
        yield str(error)
        return
    for number, digest in enumerate(digests):
        part = stored.part(number)
        if not isinstance(part, Erased) and content_digest(part) != digest:
            yield f"cell {number} is not the one that its record names"


def _snapshots(store: Store, catalog: Catalog, looked: _Looked, progress: Progress) -> None:
    after = ""
    while page := catalog.sessions(after=after, limit=100):
        for row in page:
            progress("snapshots", looked.sessions)
            looked.sessions += 1
            looked.snapshots += len(catalog.snapshots(row.uid))
            lineage = Lineage(row.uid, catalog, store.read)
            looked.troubles += [
                Trouble("snapshots", what, row.id) for what in check_snapshots(lineage, catalog, row.seq)
            ]
        after = page[-1].id


def _last_look(catalog: Catalog, right: Right) -> Iterator[list[Trouble]]:
    """The catalog."""
    try:
        for step in check_catalog(catalog, right):
            yield [Trouble("catalog", what) for what in step]
    except KeeveError as error:
        yield [Trouble("catalog", str(error))]


def _name(catalog: Catalog, session: str | None) -> str | None:
    """A session's id, where it was called by its uid."""
    if session is None or len(session) != 32:
        return session
    try:
        row = catalog.by_uid(bytes.fromhex(session))
    except ValueError:
        return session
    return session if row is None else row.id
