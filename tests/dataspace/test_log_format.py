"""The page of the log's format: its example is what is written, its tables are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dataspace.log import frames
from dataspace.log.frames import (
    COMMIT_SIZE,
    PREFIX,
    SEGMENT_SIZE,
    SegmentHead,
    commit_frame,
    parse,
    record_frames,
    segment_frame,
)
from dataspace.log.recovery import judge
from dataspace.log.verdicts import Outcome, SegmentBytes
from dataspace.records import STORE_UID, ZERO_HASH, Kind, Record
from dataspace.values.encoding import encode

PAGE = (Path(__file__).parents[2] / "docs" / "log-format.md").read_text()
LOG_ID = b"Keeve's log no 1"


def example() -> tuple[bytes, Record, bytes]:
    """The page's log, as the code writes it; its record; its commit's hash."""
    deeds = encode([{"format": 1, "log_id": LOG_ID}, [], b"", 0])
    time = 1_700_000_000_000_000
    record = Record(STORE_UID, 1, Kind.CREATED, time, ZERO_HASH, bytes(range(32)), deeds, b"")
    record.position = 1
    first = segment_frame(SegmentHead(1, 1, LOG_ID, 1, 0, ZERO_HASH))
    chunks, crcs, size = record_frames(record, 1, 1, len(first))
    last, hash = commit_frame(1, 1, crcs, ZERO_HASH, 1, len(first) + size)
    return b"".join([first, *chunks, last]), record, hash


def shown() -> bytes:
    lines = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?){16})$", PAGE, re.MULTILINE)
    assert [int(at, 16) for at, _ in lines] == list(range(0, 16 * len(lines), 16))
    return bytes.fromhex(" ".join(row for _, row in lines))


def table(title: str) -> list[tuple[int, int]]:
    """Offset and size of each field in the table after a title, without those of no fixed size."""
    section = PAGE.split(title)[1].split("\n#")[0]
    return [(int(at), int(size)) for at, size in re.findall(r"^\| (\d+) \| (\d+) \|", section, re.MULTILINE)]


def test_the_example_is_what_is_written():
    data, record, commit = example()
    assert shown() == data
    assert record.hash.hex() in PAGE
    assert commit.hex() in PAGE


def test_the_example_is_a_sound_log():
    verdict = judge([SegmentBytes(1, shown())])
    assert (verdict.outcome, verdict.end.position, verdict.log_id) == (Outcome.CLEAN, 1, LOG_ID)


def test_the_examples_places_are_where_the_page_says():
    data = shown()
    at = 0
    for place in ("0000", "0068", "0140"):
        assert int(place, 16) == at
        assert f"| {place} |" in PAGE
        found = parse(data, at, 1)
        assert found is not None
        at += found.size
    assert at == len(data)


@pytest.mark.parametrize(
    ("title", "size"),
    [
        ("## Frames", PREFIX),
        ("### 1, segment", SEGMENT_SIZE - PREFIX),
        ("### 2, record", frames._RECORD.size),
        ("### 3, cell", frames._PART.size),
        ("### 5, commit", COMMIT_SIZE - PREFIX),
        ("### 6, checkpoint", frames._CHECKPOINT.size),
    ],
)
def test_each_table_leaves_no_byte_out(title: str, size: int):
    at = 0
    for offset, length in table(title):
        assert offset == at
        at += length
    assert at == size


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.name)
def test_every_kind_is_named(kind: Kind):
    assert f"{kind.value} {kind.name.lower()}" in PAGE.replace("\n", " ")


@pytest.mark.parametrize("kind", list(frames.Type), ids=lambda kind: kind.name)
def test_every_type_of_frame_has_its_place(kind: frames.Type):
    assert re.search(rf"^###.* {kind.value}, {kind.name.lower()}", PAGE, re.MULTILINE)


def test_every_verdict_is_in_the_table():
    for name in ("clean", "torn", "SessionDamaged", "LogCorrupt", "LogTruncated", "LogTampered", "NewerFormat"):
        assert name in PAGE.split("## Recovery")[1]
