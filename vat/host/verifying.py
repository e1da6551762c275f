"""Verifying: is everything in a host's store what was written?

Each look is held against what comes before it: every frame, body, cell and chain of the log; the snapshots against
the records; the catalog against the log. What is wrong is told as data, and nothing is put right.

The one rule: it reads what is durable, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import attrs
import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.checking import check_catalog
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.log.segments import SegmentStore
from dataspace.log.store import BodyErased, Store, Stored
from dataspace.log.verify import Verification
from dataspace.records import STORE_UID, content_digest
from dataspace.values import Erased
from dataspace.values.encoding import BadEncoding
from vat.heap.checking import check_snapshots
from vat.heap.restore import Lineage

_DIGEST = 32


@attrs.frozen
class Trouble:
    """Something that is not as it must be: which look found it, and what; the session and seq where it is one's."""

    look: Literal["log", "snapshots", "catalog"]
    what: str
    session: str | None = None
    seq: int | None = None


@attrs.frozen
class Report:
    """What was looked at, and what was found."""

    records: int
    sessions: int
    snapshots: int
    troubles: tuple[Trouble, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.troubles


async def verify(store: Store, catalog: Catalog) -> Report:
    """Look at all of a store. Costs about 100 µs for each record, and memory for the largest session's heap.

    The log is looked at in another thread; the rest holds the event loop up for as long as each session takes.
    """
    if isinstance(store, SegmentStore):
        records, troubles = await trio.to_thread.run_sync(_frames, store)
    else:
        records, troubles = 0, []
        for stored in store.scan():
            records += 1
            troubles += [Trouble("log", what, stored.header.uid.hex(), stored.header.seq) for what in _content(stored)]
    sessions = snapshots = 0
    after = ""
    while page := catalog.sessions(after=after, limit=100):
        for row in page:
            await trio.lowlevel.checkpoint()
            sessions += 1
            snapshots += len(catalog.snapshots(row.uid))
            lineage = Lineage(row.uid, catalog, store.read)
            troubles += [Trouble("snapshots", what, row.id) for what in check_snapshots(lineage, catalog, row.seq)]
        after = page[-1].id
    # From here on nothing else runs, so that the log does not go on while the catalog is held against it.
    try:
        troubles += [Trouble("catalog", what) for what in check_catalog(catalog, store)]
    except KeeveError as error:
        troubles.append(Trouble("catalog", str(error)))
    named = [attrs.evolve(each, session=_name(catalog, each.session)) for each in troubles]
    return Report(records, sessions, snapshots, tuple(named))


def _frames(store: SegmentStore) -> tuple[int, list[Trouble]]:
    with store.durable() as (segments, evidence):
        check = Verification(segments, evidence)
        troubles = [
            Trouble(
                "log",
                f"segment {found.segment}, offset {found.offset}: {found.what}",
                None if found.uid in (None, STORE_UID) else found.uid.hex(),
                found.seq or None,
            )
            for found in check.findings()
        ]
        return check.counts.records, troubles


def _content(stored: Stored) -> Iterator[str]:
    """What is wrong with a record of a store that has no frames."""
    try:
        body = stored.body()
        if body.digest != stored.header.body_digest:
            yield "its body is not the one that its hash covers"
            return
        digests = read_deeds(body.deeds).digests
    except BodyErased:
        return
    except (KeeveError, BadEncoding) as error:
        yield str(error)
        return
    for number in range(len(digests) // _DIGEST):
        part = stored.part(number)
        if not isinstance(part, Erased) and content_digest(part) != digests[number * _DIGEST : (number + 1) * _DIGEST]:
            yield f"cell {number} is not the one that its record names"


def _name(catalog: Catalog, session: str | None) -> str | None:
    """A session's id, where it was called by its uid."""
    if session is None or len(session) != 32:
        return session
    try:
        row = catalog.by_uid(bytes.fromhex(session))
    except ValueError:
        return session
    return session if row is None else row.id
