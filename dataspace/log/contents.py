"""The contents of records held against their headers: bodies opened, digests compared, cells named.

The one rule: functions of their arguments, which say what does not fit and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from dataspace.drafts import read_deeds, read_used
from dataspace.encryption.cipher import Unopened
from dataspace.log.frames import NOT_WHOLE, Frame, Type, record_head, rest_in
from dataspace.log.rests import read_rest
from dataspace.log.scan import Batch
from dataspace.log.verdicts import Bytes, Found
from dataspace.records import Header, content_digest, split_body, split_digests

Bodies: TypeAlias = dict[int, "bytes | None"]
"""The bodies of some frames, by offset; None for one that is not there, or cannot be opened."""
Opener: TypeAlias = Callable[[Header, Frame, bytes], "bytes | None"]
"""Opens a sealed body of a record; gives None when its key was destroyed. Raises `Unopened` or `LookupError`."""


_LEFT: Final = "what is left of its body"


def whole(frame: Frame) -> bool:
    """Whether a frame has its body."""
    return frame.type not in NOT_WHOLE


def nowhere(segment: int, frame: Frame) -> bytes | None:
    """An archived body, where no archive is looked at."""
    return None


def grouped(batch: Batch, records: Sequence[Found]) -> Iterator[tuple[Found | None, list[Frame]]]:
    """Each record with its frame and those of its parts; last, without a record, the checkpoints."""
    by_offset = {found.frame.offset: found for found in records}
    found: Found | None = None
    frames: list[Frame] = []
    notes: list[Frame] = []
    for each in batch.frames:
        if each.was == Type.CHECKPOINT:
            notes.append(each)
        elif each.was == Type.RECORD:
            if frames:
                yield found, frames
            found, frames = by_offset.get(each.offset), [each]
        else:
            frames.append(each)
    if frames:
        yield found, frames
    if notes:
        yield None, notes


def unsealed(
    header: Header, frames: Sequence[Frame], bodies: Bodies, opener: Opener
) -> Iterator[tuple[int, str, bool]]:
    """Open the sealed bodies of a record, in their places; says which do not open, and whether that was somebody."""
    for each in frames:
        stored = bodies.get(each.offset)
        if stored is None or not each.flags:
            continue
        bodies[each.offset] = None
        try:
            bodies[each.offset] = opener(header, each, stored)
        except Unopened:
            yield each.offset, "a body that does not open with its key", True
        except LookupError:
            yield each.offset, "a body whose key is not in the key file", False


def unfitting(header: Header, record: int, cells: Sequence[int], bodies: Bodies) -> Iterator[tuple[int, str]]:
    """What does not fit in the body of the record at offset `record`, and in the cells at these offsets."""
    body = bodies.get(record)
    if body is None:
        return
    try:
        named, what = _named(header, body)
    except (TypeError, ValueError) as bad:
        yield record, f"its body cannot be read: {bad}"
        return
    if what:
        yield record, what
    if len(named) != len(cells):
        yield record, f"it names {len(named)} cells and has {len(cells)}"
    for number, (cell, digest) in enumerate(zip(cells, named, strict=False)):
        content = bodies.get(cell)
        if content is not None and content_digest(content) != digest:
            yield cell, f"cell {number} is not the one that its record names"


def unfitting_rest(
    header: Header, record: Frame, place: bytes, cells: Sequence[int], bodies: Bodies, opener: Opener | None
) -> Iterator[tuple[int, str, bool]]:
    """What does not fit in what is left of a record, by the bytes in its `place`, and in the cells at these offsets
    that its facts name; and whether that was somebody. Where `bodies` has its whole body, the two are held together."""
    try:
        rest = read_rest(header, record, place, opener)
    except ValueError as bad:
        if rest_in(place) is not None:  # else it is told with the bodies that are not what was written
            yield record.offset, f"{_LEFT} {bad}", True
        return
    except Unopened:
        yield record.offset, f"{_LEFT} does not open with its key", True
        return
    except LookupError:
        yield record.offset, f"{_LEFT}: its key is not in the key file", False
        return
    if rest is None:
        return
    if rest.digest != header.body_digest:
        yield record.offset, f"{_LEFT} is not what the record's hash covers", True
        return
    body = split_body(bodies.get(record.offset) or b"")
    try:
        if body is not None:
            if read_deeds(body.deeds, tree=bytes).pending != rest.pending:
                yield record.offset, f"{_LEFT} tells another number of what is pending than its deeds", True
            return
        for number, digest in zip(*read_used(rest.facts), strict=False):
            content = bodies.get(cells[number]) if number < len(cells) else None
            if content is not None and content_digest(content) != digest:
                yield cells[number], f"cell {number} is not the one that its record names", True
    except (TypeError, ValueError) as bad:
        yield record.offset, f"{_LEFT} cannot be read: {bad}", True


def _named(header: Header, plain: bytes) -> tuple[list[bytes], str]:
    """The digests of the cells that a body names, and what in it does not fit. Raises `ValueError`."""
    body = split_body(plain)
    if body is None or body.digest != header.body_digest:
        raise ValueError("it is not the one that the record's hash covers")
    named = split_digests(read_deeds(body.deeds, tree=bytes).digests)
    numbers, digests = read_used(body.facts)
    if [named[number] for number in numbers if number < len(named)] != digests:
        return named, "its facts name other cells than its deeds"
    return named, ""


def born_of(frame: Frame | None, data: Bytes, opener: Opener | None) -> tuple[bytes | None, bytes]:
    """The uid of a fork whose first record a frame in `data` is, and that of its parent as it says it; nothing for what
    cannot be read."""
    if frame is None or not whole(frame):
        return None, b""
    bodies: Bodies = {frame.offset: bytes(data[frame.body_offset : frame.body_offset + frame.body_length])}
    if frame.flags:
        header, _ = record_head(frame.head)
        if opener is None or any(unsealed(header, [frame], bodies, opener)):
            return None, b""
    body = split_body(bodies[frame.offset] or b"")
    try:
        said: Any = None if body is None else read_deeds(body.deeds, tree=bytes).message
    except ValueError:
        said = None
    parent = said.get("parent") if isinstance(said, dict) else None
    return frame.head[16:32], parent if isinstance(parent, bytes) else b""
