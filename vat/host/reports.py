"""What verifying a store comes to: two verdicts, what was looked at, and what is wrong, as data.

*Integrity* says whether what is there is what was written. *Completeness* says whether all is there that somebody
outside of the store has seen: nothing inside of a folder can know of what was cut off its end, or that the whole folder
is an older copy.

The one rule: no verdict says more than was looked at, and each names what it stands on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import attrs

from dataspace.checkpoints.checking import Testimony
from dataspace.log.findings import Counts
from dataspace.remedies import command

Forks: TypeAlias = Callable[[str, int], Sequence[str]]
"""Gives those of a session's forks that have its record at a seq in their past."""

Look: TypeAlias = Literal["log", "snapshots", "catalog"]
Nature: TypeAlias = Literal["altered", "damaged", "missing", "derived", "unread"]


@attrs.frozen
class Trouble:
    """Something that is not as it must be: which look found it, what, and where, as far as that can be said.

    `session` is an id (of a session that nobody knows, the uid in hex), `place` names a segment and an offset.
    `harmless`: an opening puts it right, and nothing is lost. `nature`: `altered` (all checksums fit, so that no disk
    has done it), `damaged`, `missing` (somebody has seen more), `derived` (in what can be made again from the log),
    `unread` (nobody could look at it: a newer format, no key). `spared`: no session has lost anything by it.
    """

    look: Look
    what: str
    session: str | None = None
    seq: int | None = None
    place: str | None = None
    harmless: bool = False
    nature: Nature = "damaged"
    spared: bool = False


@attrs.frozen
class Touched:
    """A session that is not as it was written, from the record `seq` on (None: nobody can say).

    `forks`: those that have this in their past, and are touched by it.
    """

    session: str
    seq: int | None
    forks: tuple[str, ...] = ()


@attrs.frozen
class Integrity:
    """Whether what is there is what was written.

    `verdict`: `sound`, `altered` (by somebody), `damaged`, or `not looked at` (some of it could not be).
    """

    verdict: Literal["sound", "altered", "damaged", "not looked at"]
    sessions: tuple[Touched, ...]
    what: str

    @classmethod
    def of(
        cls,
        troubles: Sequence[Trouble],
        forks: Forks = lambda session, seq: (),
        missing: Mapping[str, int] = MappingProxyType({}),
    ) -> Integrity:
        """What these troubles say of it. `forks` gives those of a session that are touched with it, `missing` from
        which seq on others have records that were passed over."""
        natures = {trouble.nature for trouble in troubles if not trouble.harmless}
        first: dict[str, int | None] = dict(missing)
        for trouble in troubles:
            if trouble.session is not None and trouble.nature in ("altered", "damaged") and not trouble.spared:
                before = first.get(trouble.session, trouble.seq)
                seqs = [seq for seq in (before, trouble.seq) if seq is not None]
                first[trouble.session] = min(seqs, default=None)
        sessions = tuple(Touched(session, seq, tuple(forks(session, seq or 1))) for session, seq in first.items())
        if "altered" in natures:
            return cls("altered", sessions, "something was changed, and made to fit: no disk has done it")
        if "damaged" in natures:
            return cls("damaged", sessions, "something is not what was written")
        if "unread" in natures:
            return cls("not looked at", sessions, "what could be looked at is what was written")
        return cls("sound", sessions, "everything that is there is what was written")


@attrs.frozen
class Completeness:
    """Whether everything is there that somebody outside of the store has seen.

    `verdict`: `proved` (all records up to `position`, by the newest of `testimonies`), `missing` (records up to
    `position` were seen, and the log ends at `end`), `contradicted` (it has other records than those that were seen),
    or `not known`.
    """

    verdict: Literal["proved", "missing", "contradicted", "not known"]
    position: int
    end: int
    what: str
    testimonies: tuple[Testimony, ...] = ()

    @classmethod
    def of(cls, testimonies: Sequence[Testimony], end: int, own: int = 0) -> Completeness:
        """What these say of a log that ends at position `end`. `own` is the newest position that the store itself, in
        what lies beside the log, says that it had."""
        told = tuple(testimonies)
        seen = max([own, *(each.size for each in told if each.outcome == "missing")])
        if seen > end:
            by = next((each.said for each in told if each.size == seen), "what the store itself has published")
            return cls("missing", seen, end, f"position {seen} was seen ({by}), the log ends at {end}", told)
        against = [each for each in told if each.outcome == "contradicted"]
        if against:
            return cls("contradicted", max(each.size for each in against), end, against[0].what, told)
        held = [each for each in told if each.outcome == "holds"]
        if held:
            newest = max(held, key=lambda each: each.size)
            what = f"everything up to position {newest.size} is there, by {newest.said}"
            if newest.size < end:
                what += f"; of the {end - newest.size} after it, nothing from outside says how many there were"
            return cls("proved", newest.size, end, what, told)
        if told:
            return cls("not known", 0, end, told[0].what, told)
        what = "nothing from outside was given: the store's own checkpoints are as old as the store"
        return cls("not known", 0, end, what)


NAMED: Final = 5
"""Sessions of which it is said one by one how they go on."""


def todo(
    troubles: Sequence[Trouble],
    forkable: Sequence[Touched],
    deleted: Sequence[Touched] = (),
    *,
    read: int | None = None,
) -> Iterator[str]:
    """What to do about these troubles. `forkable` are the sessions touched that can be forked before that, `deleted`
    those that nobody needs; `read` is the position up to which a store can be read, if that is not all of it."""
    grave = [each for each in troubles if not (each.harmless or each.spared) and each.look != "catalog"]
    lost = any(each.nature in ("altered", "damaged", "missing") for each in grave)
    if lost:
        yield "copy the folder before anything else"
    for each in forkable[:NAMED]:
        yield f"{command('fork', each.session, at=(each.seq or 0) - 1)} goes on from before what is wrong with it"
    if len(forkable) > NAMED:
        yield f"so do {len(forkable) - NAMED} more sessions, from before the seqs above"
    for each in deleted[:NAMED]:
        yield f"session {each.session} is deleted: keeve gc takes out what is wrong with it"
    if lost:
        yield (
            "a backup that has everything is best; else keeve salvage writes what is sound into a new store "
            "(docs/verification.md)"
        )
    if read is not None:
        yield (
            f"show nobody a session that was deleted behind position {read}: it is there again for who opens this "
            "store, if neither the catalog, nor the key file, nor a tombstone that is left says so"
        )
    if any(each.spared and not each.harmless for each in troubles):
        yield "about heap pages, and zeros that are none, nothing has to be done: sessions are restored without them"
    if any(each.look == "catalog" for each in troubles):
        yield "with no host on the store, remove its catalog.sqlite: the next start makes that anew from the log"


@attrs.frozen
class Report:
    """What was looked at, and what was found. `withheld` pieces of content are erased, so that nobody reads them, and
    may lie in the files yet. `todo` says what to do about what was found, in words."""

    integrity: Integrity
    completeness: Completeness
    counts: Counts
    sessions: int
    snapshots: int
    troubles: tuple[Trouble, ...]
    withheld: int = 0
    todo: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong but what is harmless. That completeness is not known is nothing wrong."""
        return all(trouble.harmless for trouble in self.troubles)
