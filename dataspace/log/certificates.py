"""Signed notes as they are kept: as frames of the log, and the newest in a small file beside it.

The file saves a search, and is what others may read. It is never synced and may be deleted: what counts is in the log.

The one rule: what is found here was written by somebody, and no more. Who relies on it checks the signature.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

from dataspace.log.files import Files, ReadFailed, WriteFailed, small_file
from dataspace.log.frames import SEGMENT_SIZE, Type, body_fits, checkpoint_head
from dataspace.log.layout import Layout
from dataspace.log.marks import Certificate
from dataspace.log.scan import Batch, read_batch
from dataspace.log.verdicts import SegmentBytes

_LARGEST = 1 << 18
"""Bytes of the file, at the most."""


def publish(layout: Layout, files: Files, certificate: Certificate) -> None:
    """Put a note that is in the log into the file. What the disk refuses here is left."""
    with suppress(WriteFailed):
        files.replace(layout.checkpoint, certificate.note, durable=False)


def notes(
    layout: Layout, still: Callable[[], AbstractContextManager[tuple[list[SegmentBytes], Any]]]
) -> Iterator[bytes]:
    """The note in the file, if there is one, and then those in the log, from the newest back."""
    published = None
    with suppress(ReadFailed):
        published = small_file(layout.checkpoint, _LARGEST)
    if published is not None:
        yield published
    with still() as (segments, _):
        for segment in sorted(segments, key=lambda each: each.id, reverse=True):
            for certificate in reversed(_within(segment)):
                yield certificate.note


def _within(segment: SegmentBytes) -> list[Certificate]:
    """The certificates in the sound batches of a segment. About 3 µs for each frame."""
    found = []
    batch = read_batch(segment, SEGMENT_SIZE)
    while isinstance(batch, Batch):
        for each in batch.frames:
            if each.type != Type.CHECKPOINT:
                continue
            body = bytes(segment.data[each.body_offset : each.body_offset + each.body_length])
            if body_fits(each, body):
                with suppress(struct.error):
                    found.append(Certificate(*checkpoint_head(each.head), body))
        batch = read_batch(segment, batch.end)
    return found
