"""Erasing: a sealed segment written anew without some of its bodies.

1. The new file is written beside the old one, under a name that no segment has, and synced. What recoveries have cut
   from the log, and kept for people, goes before that.
2. It is renamed to the segment's name, and the folder is synced. From then on the old bytes have no name.

A header in place could be torn by a crash, and a body that is gone under a header that is not yet changed would be
damage: so nothing is overwritten. Every frame stays where it was in the segment, so no address, commit or hash changes;
the zeros in place of what went are not stored (`packed`).

The one rule: whatever dies and when, the segment's name leads to a file that is whole, the old one or the new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from dataspace.log.files import Files, ReadFailed, WriteFailed
from dataspace.log.frames import PACKED, Frame, place
from dataspace.log.layout import Layout
from dataspace.log.packed import write_packed
from dataspace.log.reading import SegmentReader
from dataspace.log.store import Erasure

_SAVED: Final = re.compile(r"\d{1,10}-\d{1,12}\.(pending|bin)(\.new)?", re.ASCII)

CHUNK: Final = 1 << 18
"""Bytes that are copied at a time."""


def at_once(act: Callable[[], None]) -> bool:
    """Does what takes content away, whoever may need it."""
    act()
    return True


def aside(layout: Layout) -> Path:
    """Where a segment is written anew."""
    return layout.log / "erasing.new"


def clear(layout: Layout, files: Files) -> None:
    """Remove what a crash has left of a segment that was being written anew."""
    if aside(layout).exists():
        files.remove(aside(layout))


def drop_cut(layout: Layout, files: Files) -> None:
    """Remove what recoveries have cut off and saved: nobody can say what of it is to go, and nothing needs it."""
    if layout.cut.is_dir():
        for path in sorted(layout.cut.iterdir()):
            if _SAVED.fullmatch(path.name):
                files.remove(path)
        files.sync_folder(layout.cut)


def by_segment(erasures: Iterable[Erasure]) -> dict[int, list[Erasure]]:
    """Erasures by the segments that they lie in, in order."""
    found: dict[int, list[Erasure]] = {}
    for erasure in sorted(erasures, key=lambda each: each.address):
        found.setdefault(place(erasure.address)[0], []).append(erasure)
    return found


def still_whole(reader: SegmentReader, erasures: Iterable[Erasure]) -> list[Frame]:
    """The frames that erasures ask for and that have their body yet, in order. Raises `NoSuchRecord`, `NoSuchPart`."""
    found: dict[int, Frame] = {}
    for address, parts, body in erasures:
        for each in reader.read(address).frames(parts, body):
            found[each.offset] = each
    return [found[offset] for offset in sorted(found)]


def write_anew(
    path: Path,
    files: Files,
    read: Callable[[int, int], bytes],
    length: int,
    segment: int,
    frames: Sequence[Frame],
    instead: Callable[[Frame], bytes],
    form: int = PACKED,
) -> None:
    """Write a sealed segment, whose `length` bytes `read` gives, to `path`: packed (in that `form`), and with what
    `instead` gives, and zeros after it, in place of these frames. Durable when this returns, but for its name.

    Raises `WriteFailed` or `SyncFailed`, and leaves nothing. Costs a pass over its bytes.
    """
    fd = files.open(path, create=True)
    try:
        files.truncate(fd, 0)
        write_packed(files, fd, segment, length, _changed(read, length, segment, frames, instead), form)
        files.sync(fd)
    except Exception as error:
        undone = False
        with suppress(WriteFailed):
            files.remove(path)
            undone = True
        if isinstance(error, WriteFailed) and undone:
            raise type(error)(error.path, error.reason, undone) from error
        raise
    finally:
        files.close(fd)


def _changed(
    read: Callable[[int, int], bytes],
    length: int,
    segment: int,
    frames: Sequence[Frame],
    instead: Callable[[Frame], bytes],
) -> Iterator[tuple[int, bytes]]:
    """The bytes of a segment in order, a chunk at a time, with something else in the places of some frames."""
    at, other = 0, b""
    for offset in range(0, length, CHUNK):
        data = bytearray(read(offset, min(CHUNK, length - offset)))
        end = offset + len(data)
        if len(data) != min(CHUNK, length - offset):
            raise ReadFailed(f"segment {segment}", f"it ends at offset {end}, and has {length} bytes")
        while at < len(frames) and frames[at].offset < end:
            each = frames[at]
            if each.offset >= offset:
                other = instead(each)
            _put(data, each.offset - offset, each.size, other)
            if each.offset + each.size > end:
                break  # the next chunk has the rest of it
            at += 1
        yield offset, bytes(data)


def _put(data: bytearray, at: int, size: int, other: bytes) -> None:
    """Put `other`, and zeros up to `size`, at `at` of a chunk, as far as they lie in it."""
    first, last = max(at, 0), min(at + size, len(data))
    data[first:last] = other[first - at : last - at].ljust(last - first, b"\0")
