"""The catalog held against the log that it was made from.

The one rule: what is right is what a scan of the log gives; nothing is put right here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.recall import noted
from dataspace.log.store import Store


def check_catalog(catalog: Catalog, store: Store) -> Iterator[str]:
    """Where the catalog says something else than the log of `store`.

    Costs two scans of the log, and a catalog in memory for as long. Raises what a scan raises.
    """
    right = Catalog(None, store)
    try:
        yield from _sessions(catalog, right)
        yield from _places(catalog, right)
        yield from _labels(catalog, store)
    finally:
        right.close()


def _sessions(catalog: Catalog, right: Catalog) -> Iterator[str]:
    after = ""
    while page := right.sessions(after=after, limit=500, deleted=True):
        for row in page:
            said = catalog.by_uid(row.uid)
            if said is None:
                yield f"the catalog does not know session {row.id!r}"
            elif said != row:
                differing = [name for name in row._fields if getattr(said, name) != getattr(row, name)]
                yield f"the catalog has another {', '.join(differing)} for session {row.id!r} than the log"
            elif list(catalog.positions(row.uid)) != list(right.positions(row.uid)):
                yield f"the catalog has other records for session {row.id!r} than the log"
        last = page[-1].id
        listed = [row.id for row in catalog.sessions(after=after, limit=500, deleted=True) if row.id <= last]
        if listed != [row.id for row in page]:
            yield f"the catalog lists other sessions than the log, after {after!r}"
        after = last
    if extra := catalog.sessions(after=after, limit=1, deleted=True):
        yield f"the catalog lists session {extra[0].id!r}, which the log does not have"


def _places(catalog: Catalog, right: Catalog) -> Iterator[str]:
    if catalog.head != right.head:
        yield f"the catalog ends at position {catalog.head.position}, the log at {right.head.position}"
    for position in range(1, right.head.position + 1):
        if catalog.at(position) != right.at(position):
            yield f"the catalog does not know where position {position} lies"
            return


def _labels(catalog: Catalog, store: Store) -> Iterator[str]:
    mentions: dict[str, list[int]] = defaultdict(list)
    for stored in store.scan():
        for label in {statement.fact.label for statement in noted(stored).statements if hasattr(statement, "fact")}:
            mentions[label].append(stored.header.position)
    for label, positions in mentions.items():
        if not set(positions) <= set(catalog.positions(None, label)):
            yield f"the catalog does not find all facts with the label {label!r}"
