"""Batches: what is written after a mark, as bytes, and the mark after it.

The one rule: functions of their arguments; only records learn from them, their positions and addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataspace.log.frames import address, checkpoint_frame, commit_frame, record_frames
from dataspace.log.keyring import Keyring
from dataspace.log.marks import Certificate, Mark
from dataspace.records import Record


def framed(records: Sequence[Record], mark: Mark, epoch: int, keys: Keyring | None = None) -> tuple[bytes, Mark]:
    """A batch of records as it lies after `mark`, and the mark after it. Numbers the records.

    With `keys` their bodies are sealed.
    """
    segment, offset, position, hash, commit = mark
    chunks: list[bytes] = []
    crcs: list[int] = []
    for record in records:
        position += 1
        record.position = position
        record.address = address(segment, offset)
        frames, more, size = record_frames(
            record, epoch, segment, offset, None if keys is None else keys.seal(record, epoch)
        )
        chunks += frames
        crcs += more
        offset += size
        hash = record.hash
    last, commit = commit_frame(mark.position + 1, position, crcs, commit, segment, offset)
    chunks.append(last)
    return b"".join(chunks), Mark(segment, offset + len(last), position, hash, commit)


def settling(mark: Mark, certificate: Certificate | None) -> tuple[bytes, Mark]:
    """A batch without records, which proves the one before `mark` durable; with a certificate, if there is one."""
    segment, offset, position, _, before = mark
    kept, crcs = b"", []
    if certificate is not None:
        kept, crc = checkpoint_frame(*certificate, segment, offset)
        crcs.append(crc)
    data, commit = commit_frame(position + 1, position, crcs, before, segment, offset + len(kept))
    return kept + data, mark._replace(offset=offset + len(kept) + len(data), commit=commit)
