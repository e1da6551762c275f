"""Verifying: is everything in a store what was written, and is everything there that was seen?

Three looks, each held against what comes before it: frames, bodies, cells and chains of the log; the snapshots, and
the heap at each session's head, against the records; the catalog against the log. What is wrong is told as data, and
nothing is put right.

The one rule: it reads what is durable, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import attrs
import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.checking import Right, check_catalog
from dataspace.checkpoints.checking import Held, Notes, Testimony, signatures, witnesses_of
from dataspace.checkpoints.keys import origin_of
from dataspace.drafts import read_deeds
from dataspace.encryption.errors import KeyFileOlder
from dataspace.errors import KeeveError
from dataspace.log.archives import Archives
from dataspace.log.contents import Opener
from dataspace.log.files import ReadFailed
from dataspace.log.findings import Counts
from dataspace.log.frames import Frame
from dataspace.log.gone import Gone
from dataspace.log.layout import Layout
from dataspace.log.marks import Damage
from dataspace.log.opening import still
from dataspace.log.segments import SegmentStore
from dataspace.log.store import BodyErased, Store, Stored, StoreFailed
from dataspace.log.verdicts import Evidence, SegmentBytes
from dataspace.log.verify import Verification
from dataspace.proofs.merkle import leaf_hash
from dataspace.proofs.notes import BadNote
from dataspace.proofs.proofs import BadReceipt, Receipt
from dataspace.records import content_digest, split_digests
from dataspace.values import Erased
from dataspace.values.encoding import BadEncoding
from vat.heap.checking import check_snapshots
from vat.heap.restore import Lineage
from vat.host.allowing import Allowing, in_doubt, returned, told
from vat.host.causes import Causes, altered, unsaid
from vat.host.reports import Completeness, Integrity, Look, Nature, Report, Touched, Trouble, todo

Seen: TypeAlias = "str | bytes | Receipt"
"""A receipt, or a checkpoint."""
Expected: TypeAlias = "Seen | Sequence[Seen] | None"
"""What somebody has seen of the log: one, several, or nothing."""
Progress: TypeAlias = Callable[[Look, int, int], None]
"""Told how far it is: which look, how much it has done, and how much there is to do (0: nobody knows). That is bytes of
the log, sessions for the snapshots, questions for the catalog."""


@attrs.define
class _Looked:
    """What the first two looks came to, which any thread may take; `right` if the third can be."""

    counts: Counts
    troubles: list[Trouble]
    testimonies: list[Testimony]
    end: int = 0
    own: int = 0
    sessions: int = 0
    snapshots: int = 0
    right: Right | None = None
    withheld: int = 0
    gone: Gone = attrs.field(factory=Gone)
    causes: Causes = attrs.field(factory=Causes)
    damaged: Mapping[bytes, Damage] = attrs.field(factory=dict)
    """The sessions of which more than pages is damaged: where the store is a host's, they take no more input."""
    read: int | None = None  # up to this position, where the store can be read in part
    veiled: bool = False
    """Whether the records do not tell what the catalog has to say, since the key file is older than they are."""

    def report(self, derived: Catalog | None = None) -> Report:
        """As it is told: with the names of sessions as the log gives them, else as the store's catalog does."""
        catalogs: list[Catalog] = [] if self.right is None else [self.right.catalog]
        catalogs += [] if derived is None else [derived]
        troubles = [attrs.evolve(each, session=_name(catalogs, each.session)) for each in self.troubles]
        first = self.causes.missing(partial(_begins, catalogs))
        missing = {_name(catalogs, session) or "": seq for session, seq in first.items()}
        complete = Completeness.of(self.testimonies, self.end, self.own)
        integrity = Integrity.of(troubles, partial(_forks, catalogs), missing)
        looked = self.counts, self.sessions, self.snapshots
        do = tuple(todo(troubles, *self._touched(integrity.sessions), read=self.read))
        return Report(integrity, complete, *looked, tuple(troubles), self.withheld, do)

    def _touched(self, sessions: Sequence[Touched]) -> tuple[list[Touched], list[Touched]]:
        """Of the sessions that are touched, those that can be forked before that, and those that nobody needs."""
        if self.right is None or self.causes.gaps.places:
            return [], []  # nothing is written to such a log
        rows = [(each, self.right.catalog.session(each.session)) for each in sessions]
        living = [each for each, row in rows if row is not None and not row.deleted and (each.seq or 0) > 1]
        return living, [each for each, row in rows if row is not None and row.deleted and not each.forks]

    def last_look(self, catalog: Catalog) -> Iterator[list[Trouble]]:
        """The catalog, a step at a time."""
        if self.right is None or self.veiled:
            return
        try:
            for step in check_catalog(catalog, self.right):
                yield [Trouble("catalog", what, nature="derived") for what in step]
        except KeeveError as error:
            yield [Trouble("catalog", str(error), nature="derived")]


def silent(look: Look, done: int, total: int) -> None:
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

    `keys` are verifier keys that the log has to have signed with (and those of witnesses), `expect` is what somebody
    has seen of it. Costs about 100 µs for each record, most of it for the heaps, and memory for the largest session's
    heap and the catalog of the log. Raises `BadKey`.
    """
    looked = _first_looks(store, progress, keys, expect)
    if looked.right is not None:
        try:
            for done, step in enumerate(looked.last_look(catalog)):
                progress("catalog", done, 0)
                looked.troubles += step
            return looked.report(catalog)
        finally:
            looked.right.catalog.close()
    return looked.report(catalog)


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

    def heard(look: Look, done: int, total: int) -> None:
        trio.from_thread.run_sync(progress, look, done, total)

    looked = await trio.to_thread.run_sync(_first_looks, store, heard, keys, expect)
    if looked.right is not None:
        try:
            for done, step in enumerate(looked.last_look(catalog)):
                progress("catalog", done, 0)
                looked.troubles += step
                await trio.lowlevel.checkpoint()
            return looked.report(catalog)
        finally:
            looked.right.catalog.close()
    return looked.report(catalog)


def _first_looks(store: Store, progress: Progress, keys: Sequence[str], expect: Expected) -> _Looked:
    """The log, its signatures, what was seen of it, and the snapshots in it."""
    witnesses = witnesses_of(keys)
    seen = _several(expect)
    troubles: list[Trouble] = []
    notes = Notes()
    if isinstance(store, SegmentStore):
        looked, upto = _frames(store, troubles, progress, notes)
    else:
        looked, upto = _bodies(store, troubles, notes)
    looked.withheld = len(store.withheld)
    held = Held(origin_of(store.log_id), notes.tree, upto, looked.end)
    _testify(looked, held, seen)
    looked.testimonies += held.cosignatures(notes.sound, witnesses)
    if store.fault is not None and not isinstance(store.fault, StoreFailed):
        looked.read = store.head.position
        troubles += [_against(each) for each in looked.testimonies if each.outcome in ("missing", "contradicted")]
        return looked  # its records cannot be told apart: there is nothing to hold the rest against
    try:
        if store.readonly:
            store.refresh()  # its owner went on: what was looked at has to be among what it is held against
        right = Right(store)
    except KeeveError as error:
        if not troubles:
            troubles.append(Trouble("log", str(error)))
        return looked
    try:
        for what, nature, record in signatures(store, right.catalog, notes.sound, keys, seen):
            said = Trouble("log", what, nature=nature)
            if said not in troubles and not looked.causes.told(record):
                troubles.append(said)
        if isinstance(store, SegmentStore):
            _keys(store, right, looked)
            _allowed(store, right, looked)
        _snapshots(store, right, looked, progress)
    except BaseException:
        right.catalog.close()
        raise
    looked.right = right
    return looked


def _keys(store: SegmentStore, right: Right, looked: _Looked) -> None:
    """Hold the key file against the newest record."""
    newest = right.catalog.at(right.catalog.head.position)
    try:
        if newest is not None:
            store.check_keys(newest)
    except KeyFileOlder as error:
        looked.veiled = True
        looked.troubles.insert(0, Trouble("log", str(error)))


def _allowed(store: SegmentStore, right: Right, looked: _Looked) -> None:
    """Hold what is gone from the log against the records that allow it, and the other way round."""
    taken = list(Allowing(store, right.catalog, looked.end).taken(looked.gone))
    if taken and store.readonly and store.refresh() != right.catalog.head:
        right.catalog.catch_up()  # its owner may have said it after what was read here, and before it went
        taken = list(Allowing(store, right.catalog, looked.end).taken(looked.gone))
    looked.troubles = unsaid(right, looked.troubles, taken, *in_doubt(store, right.catalog))
    looked.troubles += map(altered, told(store, returned(store, right.catalog)))


def _against(testimony: Testimony) -> Trouble:
    nature: Nature = "missing" if testimony.outcome == "missing" else "altered"
    return Trouble("log", f"{testimony.said} of {testimony.size} records was given: {testimony.what}", nature=nature)


def _frames(store: SegmentStore, troubles: list[Trouble], progress: Progress, notes: Notes) -> tuple[_Looked, int]:
    """The log of a store that has frames; and up to which position it could be followed."""
    with store.still() as (segments, evidence):
        looked, followed = _checked(segments, evidence, store.opener, troubles, progress, notes, store.archives.found)
    store.know(looked.damaged)
    if looked.causes.gaps:
        with suppress(ReadFailed):
            store.know_lacking()
    return looked, followed


def _checked(
    segments: Sequence[SegmentBytes],
    evidence: Evidence,
    opener: Opener | None,
    troubles: list[Trouble],
    progress: Progress,
    notes: Notes,
    archives: Callable[[int, Frame], bytes | None],
) -> tuple[_Looked, int]:
    total = sum(len(segment.data) for segment in segments)
    check = Verification(
        segments,
        evidence,
        opener=opener,
        tree=notes.tree,
        note=notes.note,
        progress=lambda counts: progress("log", counts.bytes, total),
        archives=archives,
    )
    looked = _Looked(check.counts, troubles, [], gone=check.gone)
    troubles += [looked.causes.meet(each) for each in check.findings() if not each.follows]
    looked.causes.gaps = check.passed
    looked.end, looked.own, looked.damaged = check.end, _published(evidence), check.verdict.damaged
    return looked, check.followed


def verify_without_key(
    layout: Layout, progress: Progress = silent, *, keys: Sequence[str] = (), expect: Expected = None
) -> Report:
    """Look at what can be looked at of an encrypted store without its key: frames, chains, commits, and what was seen.

    The report says how much nobody could look at. Changes nothing. Raises `BadKey`.
    """
    witnesses = witnesses_of(keys)
    troubles: list[Trouble] = []
    notes = Notes()
    with still(layout) as (segments, evidence):
        archives = Archives(layout)
        looked, upto = _checked(segments, evidence, None, troubles, progress, notes, archives.found)
        archives.renew()
        log_id = evidence.log_id or layout.log_id() or b""
    held = Held(origin_of(log_id), notes.tree, upto, looked.end)
    _testify(looked, held, _several(expect))
    looked.testimonies += held.cosignatures(notes.sound, witnesses)
    troubles += [_against(each) for each in looked.testimonies if each.outcome in ("missing", "contradicted")]
    what = (
        f"{looked.counts.sealed} bodies are sealed and no key was given: nobody looked at them, at snapshots, at the "
        "catalog, at the log's own signatures, or at whether what is erased was to be; name the host's "
        "key, in KEEVE_KEY_FILE say"
    )
    troubles.append(Trouble("log", what, nature="unread"))
    return looked.report()


def _several(expect: Expected) -> Sequence[Seen]:
    return () if expect is None else [expect] if isinstance(expect, str | bytes | Receipt) else expect


def _testify(looked: _Looked, held: Held, seen: Sequence[Seen]) -> None:
    """Hold what somebody has seen against the log."""
    for each in seen:
        try:
            looked.testimonies.append(held.testimony(each))
        except (BadNote, BadReceipt) as error:
            looked.troubles.append(Trouble("log", str(error), nature="unread"))


def _published(evidence: Evidence) -> int:
    return max((head.position for head in evidence.seen), default=0)


def _bodies(store: Store, troubles: list[Trouble], notes: Notes) -> tuple[_Looked, int]:
    """The records of a store that has no frames."""
    counts = Counts()
    looked = _Looked(counts, troubles, [])
    for stored in store.scan():
        counts.records += 1
        notes.tree.append(leaf_hash(stored.header.hash))
        uid, seq = stored.header.uid.hex(), stored.header.seq
        for what in _content(stored):
            troubles.append(Trouble("log", what, uid, seq, nature="altered"))
            looked.causes.note(uid, seq)
    looked.end = counts.records
    return looked, counts.records


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


def _snapshots(store: Store, right: Right, looked: _Looked, progress: Progress) -> None:
    catalog, causes = right.catalog, looked.causes
    total = sum(1 for _ in catalog.all_sessions())
    for row in catalog.all_sessions():
        progress("snapshots", looked.sessions, total)
        looked.sessions += 1
        looked.snapshots += len(catalog.snapshots(row.uid))
        lineage = Lineage(row.uid, catalog, store.read)
        told = [causes.unfit(right, lineage, each) for each in check_snapshots(lineage, catalog, row.seq)]
        looked.troubles += [each for each in told if each is not None]
    looked.troubles = causes.pages(looked.troubles)


def _name(catalogs: Sequence[Catalog], session: str | None) -> str | None:
    """A session's id, where it was called by its uid."""
    if session is None or len(session) != 32:
        return session
    try:
        uid = bytes.fromhex(session)
        rows = [each.by_uid(uid) for each in catalogs]
    except (ValueError, KeeveError):
        return session
    return next((row.id for row in rows if row is not None and row.id != session), session)


def _begins(catalogs: Sequence[Catalog], uid: bytes) -> int:
    """The seq of a session's own first record; 0 where nobody knows that session."""
    try:
        rows = [each.by_uid(uid) for each in catalogs]
    except KeeveError:
        return 0
    return next((row.parent_seq + 1 for row in rows if row is not None), 0)


def _forks(catalogs: Sequence[Catalog], session: str, seq: int) -> list[str]:
    """The forks that have a record of a session in their past, as far as that can be told."""
    found: dict[str, None] = {}
    try:
        for each in catalogs:
            row = each.session(session)
            found |= dict.fromkeys(fork.id for fork in ([] if row is None else each.leaning(row.uid, seq)))
    except KeeveError:
        pass
    return list(found)
