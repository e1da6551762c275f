"""Archiving: the content of a sealed segment goes to an archive, and comes back from there.

1. Where the archive is, is put down in the store: from then on what is erased is looked for there.
2. The segment is written to the archive, with all that was archived of it before: a file of its own, synced, renamed
   to its name there, and read again.
3. A record names what goes (`leaving`).
4. The segment is written anew beside itself without the content that goes, and takes the old one's place, as in
   `erasing`.

Records stay, and the headers of what goes: chains, commits, the tree and every heap are what they were. Of records of
cranks the deeds may go as well (message and operations); what is left of such a record, its facts and what proves them,
lies in its place then (`records.Rest`). It comes back in the same way. What was erased in the store goes from the
archive (`weeded`), and never comes back; also where the store has no frame that says so, since a copy was made and
never relied on, or has come back.

The one rule: nothing leaves the store before it is durable elsewhere, and was found to be; and nothing is elsewhere
before the store says where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from dataspace.drafts import read_deeds
from dataspace.log.archives import ASIDE, Archives, NotAnArchive, body_in, is_there
from dataspace.log.erasing import write_anew
from dataspace.log.files import Files, ReadFailed
from dataspace.log.frames import (
    COMMIT_SIZE,
    ELSEWHERE,
    REST_SIZE,
    RESTED,
    Frame,
    Type,
    address,
    erased,
    made_whole,
    part_head,
    record_head,
    rest_frame,
)
from dataspace.log.leaving import DEEDS
from dataspace.log.packed import SegmentFile
from dataspace.log.reading import SegmentReader
from dataspace.log.scan import frame_at
from dataspace.log.store import BodyErased
from dataspace.log.verdicts import LogCorrupt, SessionDamaged
from dataspace.log.windows import Window
from dataspace.records import Kind, Rest
from dataspace.values.encoding import BadEncoding

WORTH: Final = 72
"""Bytes that have to be saved for the deeds of a record to go: packing leaves out no fewer zeros than 64."""


class Sealed(NamedTuple):
    """A sealed segment, and the positions of its first and its last record."""

    segment: int
    first: int
    last: int


def frames(reader: SegmentReader, segment: int) -> Iterator[Frame]:
    """The frames of a sealed segment, in order. About 5 µs each."""
    length = reader.length(segment)
    data = Window(partial(reader.pread, segment), length, f"segment {segment}")
    at = 0
    while at < length:
        found = frame_at(data, at, segment)
        if found is None:
            raise LogCorrupt(segment, at, "no frame begins here")
        yield found
        at += found.size


class Going(NamedTuple):
    """What is to go of a segment, in order: frames of cells, and of records; what is left of these, by offset; and from
    which seq on something goes of whose chain."""

    frames: list[Frame]
    rests: dict[int, bytes]
    firsts: dict[bytes, int]

    @property
    def size(self) -> int:
        """Bytes of what goes."""
        left = sum(REST_SIZE + len(rest) for rest in self.rests.values())
        return sum(each.body_length for each in self.frames) - left

    def pieces(self) -> Iterator[tuple[int, int]]:
        """What goes, in order: positions of records, with numbers of cells, or `DEEDS`."""
        for each in self.frames:
            yield (record_head(each.head)[0].position, DEEDS) if each.was == Type.RECORD else part_head(each.head)


def going(
    reader: SegmentReader,
    segment: int,
    stays: Callable[[bytes, int, int], bool],
    leaves: Callable[[bytes, int], bool],
) -> Going:
    """The cells of a sealed segment that are there, but for those of which `stays` (uid, seq, number) says so; and the
    records whose deeds are there, if `leaves` (uid, seq) says that these go.

    Only what cranks have brought goes: what the runtime's own records say is needed wherever sessions are looked for.
    """
    found = Going([], {}, {})
    uid, seq, crank = b"", 0, False
    for each in frames(reader, segment):
        if each.was == Type.RECORD:
            header, _ = record_head(each.head)
            uid, seq, crank = header.uid, header.seq, header.kind == Kind.CRANK
            if crank and each.type == Type.RECORD and leaves(uid, seq):
                rest = _rest(reader, segment, each)
                if rest is not None:
                    found.frames.append(each)
                    found.rests[each.offset] = rest
                    found.firsts.setdefault(uid, seq)
        elif each.type == Type.CELL and crank and not stays(uid, seq, part_head(each.head)[1]):
            found.frames.append(each)
            found.firsts.setdefault(uid, seq)
    return found


def _rest(reader: SegmentReader, segment: int, found: Frame) -> bytes | None:
    """What is left of a record's body once its deeds are gone; None where that would save nothing, or where the body
    is not the one that the header names: such a one goes nowhere."""
    try:
        stored = reader.read(address(segment, found.offset))
        body = stored.body()
        if body.digest != stored.header.body_digest:
            return None
        rest: bytes | None = Rest.of(body, read_deeds(body.deeds, tree=bytes).pending).encoded()
    except (SessionDamaged, BodyErased, BadEncoding):
        return None
    if found.flags and rest is not None:
        assert reader.keys is not None, "it was opened with one"
        sealed = reader.pread(segment, found.body_offset, found.body_length)
        rest = reader.keys.seal_rest(stored.header, found, sealed, rest)
    return rest if rest is not None and REST_SIZE + len(rest) + WORTH <= found.body_length else None


def deeds_in(reader: SegmentReader, segment: int) -> Iterator[tuple[bytes, int, int]]:
    """The records of cranks in a sealed segment whose deeds are there: uid, seq, and bytes of the body."""
    for each in frames(reader, segment):
        if each.type == Type.RECORD:
            header, _ = record_head(each.head)
            if header.kind == Kind.CRANK:
                yield header.uid, header.seq, each.body_length


def of_type(reader: SegmentReader, segment: int, kinds: Collection[int]) -> list[Frame]:
    """The frames of a sealed segment that are of these types."""
    return [each for each in frames(reader, segment) if each.type in kinds]


def copy_out(
    files: Files,
    reader: SegmentReader,
    archives: Archives,
    segment: int,
    into: Path,
    gone: Sequence[Frame],
) -> None:
    """Have an archive, which is begun and noted, hold all of a segment: `gone` and what was archived of it before.
    Durable, and read again.

    Raises `NotAnArchive` where another segment is in its place, `Archived` when what went before is not to be found, or
    what the disk refuses.
    """
    path = into / f"{segment:08}.seg"
    before = of_type(reader, segment, ELSEWHERE)
    if is_there(path) and not _is_same(path, reader, segment):
        raise NotAnArchive(into, f"its {path.name} is damaged, or of the store that this one was salvaged from")
    if _holds(path, segment, [*before, *gone]):
        files.sync_folder(into)  # a crash may have come before that
        return
    length = reader.length(segment)
    whole = partial(_whole, archives, segment)
    write_anew(into / ASIDE, files, partial(reader.pread, segment), length, segment, before, whole)
    files.rename(into / ASIDE, path)
    files.sync_folder(into)
    archives.renew()
    if not _holds(path, segment, [*before, *gone]):
        raise ReadFailed(str(path), "what was written there does not read back")


def hollow(files: Files, path: Path, reader: SegmentReader, segment: int, gone: Going) -> None:
    """Write a segment without the bodies of `gone`, as archived ones, and with what is left of records, to `path`."""

    def instead(found: Frame) -> bytes:
        rest = gone.rests.get(found.offset)
        return erased(found, segment, Type.ARCHIVED) if rest is None else rest_frame(found, segment, rest)

    form = RESTED if gone.rests else reader.form(segment)
    read, length = partial(reader.pread, segment), reader.length(segment)
    write_anew(path, files, read, length, segment, gone.frames, instead, form)


def fill(
    files: Files, path: Path, reader: SegmentReader, archives: Archives, segment: int, away: Sequence[Frame]
) -> None:
    """Write a segment with the bodies of `away`, all that went, in their places, to `path`. Raises `Archived`."""
    whole = partial(_whole, archives, segment)
    write_anew(path, files, partial(reader.pread, segment), reader.length(segment), segment, away, whole)


def weeded(files: Files, reader: SegmentReader, archives: Archives, segment: int) -> int:
    """Have go from the archives that are here what is erased in a segment; gives how many bodies are gone there.

    Costs a look at its frames, about 5 µs each, if it is in an archive.
    """
    gone: list[Frame] | None = None
    count = 0
    for place in archives.places:
        path = place / f"{segment:08}.seg"
        if not is_there(path):
            continue
        if gone is None:
            gone = of_type(reader, segment, (Type.ERASED,))
        try:
            file = SegmentFile(path, segment)
        except OSError as error:
            raise ReadFailed.of(str(path), error) from error
        try:
            same = _ends_as(file, reader, segment)
            left = [each for each in gone if same and not _is_gone(file, segment, each)]
            if left:
                write_anew(
                    place / ASIDE, files, file.read, file.length, segment, left, lambda found: erased(found, segment)
                )
        finally:
            file.close()
        if left:
            files.rename(place / ASIDE, path)
            files.sync_folder(place)
            archives.renew()
            count += len(left)
    return count


def _whole(archives: Archives, segment: int, found: Frame) -> bytes:
    return made_whole(found, segment, archives.body(segment, found))


def _holds(path: Path, segment: int, wanted: Sequence[Frame]) -> bool:
    """Whether a file in an archive has all these bodies."""
    try:
        file = SegmentFile(path, segment)
    except OSError:
        return False
    try:
        return all(body_in(file, segment, each) is not None for each in wanted)
    except OSError:
        return False
    finally:
        file.close()


def _is_same(path: Path, reader: SegmentReader, segment: int) -> bool:
    """Whether a file in an archive is this segment."""
    try:
        file = SegmentFile(path, segment)
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error
    try:
        return _ends_as(file, reader, segment)
    finally:
        file.close()


def _ends_as(file: SegmentFile, reader: SegmentReader, segment: int) -> bool:
    """Whether a file ends with the commit with which a segment does, which vouches for all before it.

    Another disk may be in that place, or the archive of the store from which this one was salvaged, with the same id.
    """
    length = reader.length(segment)
    place = max(0, length - COMMIT_SIZE), min(length, COMMIT_SIZE)
    return file.length == length and file.read(*place) == reader.pread(segment, *place)


def _is_gone(file: SegmentFile, segment: int, found: Frame) -> bool:
    """Whether a frame that is erased in the store is so in this file. A damaged one is not: its body may be there."""
    wanted = erased(found, segment)
    there = file.read(found.offset, len(wanted))
    return there == wanted[: len(there)]
