"""Packed segments: the bytes of a segment without its zeros, found where they were."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataspace.log.files import Files
from dataspace.log.frames import FORMAT, SegmentHead, segment_frame
from dataspace.log.packed import Packed, mended_in, packed_in, write_packed
from dataspace.log.seals import first_frame
from dataspace.log.store import Erasure
from dataspace.log.verdicts import LogCorrupt, LogTruncated, SegmentBytes
from keeve.testing.chains import Chain
from tests.dataspace.segment_folders import opened, segment

FIRST = segment_frame(SegmentHead(FORMAT, 7, bytes(16), 1, 0, bytes(32)))
PIECES = st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=80)), max_size=12)


def chunks(data: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    for offset in range(0, len(data), size):
        yield offset, data[offset : offset + size]


def write(path: Path, data: bytes, size: int = 4096) -> None:
    files = Files()
    path.unlink(missing_ok=True)
    fd = files.open(path, create=True)
    write_packed(files, fd, 7, len(data), chunks(data, size))
    files.close(fd)


def lying(path: Path, *, mended: bool = False) -> Packed | None:
    data = path.read_bytes()

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    return mended_in(read, len(data)) if mended else packed_in(read, 7)


@given(PIECES, st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_all_bytes_are_found_where_they_were(
    tmp_path: Path, pieces: list[tuple[int, bytes]], draw: st.DataObject
) -> None:
    data = FIRST + b"".join(bytes(8 * zeros) + piece for zeros, piece in pieces)
    data += bytes(-len(data) % 8)
    write(tmp_path / "packed", data, draw.draw(st.sampled_from([104, 128, 256, 1 << 20])))
    for mended in (False, True):
        found = lying(tmp_path / "packed", mended=mended)
        assert found is not None
        assert found.length == len(data)
        assert found.read(0, len(data) + 9) == data
    offset = draw.draw(st.integers(0, len(data) + 8))
    length = draw.draw(st.integers(0, len(data)))
    assert found.read(offset, length) == data[offset : offset + length]


def test_zeros_are_left_out(tmp_path: Path) -> None:
    data = FIRST + b"here".ljust(100_000, b"\0") + b"there".ljust(8, b"\0")
    write(tmp_path / "packed", data)
    assert (tmp_path / "packed").stat().st_size < 500


def test_a_packed_segment_is_not_one_for_a_version_that_knows_only_others(tmp_path: Path) -> None:
    write(tmp_path / "packed", FIRST + bytes(800))
    head = first_frame(SegmentBytes(7, (tmp_path / "packed").read_bytes()))
    assert head is not None
    assert head.format > FORMAT  # so it says that the log is of a newer version, and changes nothing


@pytest.mark.parametrize("at", [50, 110, 900, -10])
def test_a_damaged_head_or_index_is_found_and_salvage_does_without(tmp_path: Path, at: int) -> None:
    data = FIRST + b"".join(bytes(104) + b"12345678" for _ in range(80))
    write(tmp_path / "packed", data)
    whole = bytearray((tmp_path / "packed").read_bytes())
    whole[at] ^= 1
    (tmp_path / "packed").write_bytes(whole)
    if at > 0:
        assert lying(tmp_path / "packed") is None
    found = lying(tmp_path / "packed", mended=True)
    assert found is not None
    assert found.read(0, len(data)) == data


def test_a_packed_file_that_was_cut_gives_what_is_there(tmp_path: Path) -> None:
    data = FIRST + os.urandom(104) + bytes(104) + os.urandom(104)
    write(tmp_path / "packed", data)
    kept = (tmp_path / "packed").read_bytes()
    found = packed_in(
        lambda offset, length: kept[offset : offset + length] if offset > 400 else kept[offset:400][:length], 7
    )
    assert found is not None
    read = found.read(0, len(data))
    assert data.startswith(read)
    assert len(read) < len(data)


def test_a_log_that_ends_with_a_packed_segment_has_lost_the_one_after_it(tmp_path: Path) -> None:
    """Invariant 4: A sealed segment is not written to, also when no other one is left."""
    store = opened(tmp_path)
    record = Chain().record(cells=["x" * 900])
    store.append([record])
    store.erase([Erasure(record.address, [0], body=False)])
    store.close()
    segment(tmp_path, 2).unlink()
    (tmp_path / "head").unlink()
    again = opened(tmp_path)
    assert isinstance(again.fault, LogTruncated)
    assert again.readonly
    again.close()


def index(data: bytes) -> int:
    """Where in the file of a packed segment the first copy of its index lies."""
    tail = data[:-128]
    size = next(n for n in range(8, len(tail), 8) if tail[-2 * n : -n] == tail[-n:])
    return len(tail) - 2 * size


@pytest.mark.parametrize(("at", "what"), [(lambda _: 120, "first frame"), (index, "index of this packed segment")])
def test_damage_to_the_head_of_a_packed_segment_is_named(tmp_path: Path, at: Callable[[bytes], int], what: str) -> None:
    """Invariant 4: And to what says where its bytes lie."""
    store = opened(tmp_path)
    record = Chain().record(cells=["x" * 900])
    store.append([record])
    store.erase([Erasure(record.address, [0], body=False)])
    store.close()
    data = bytearray(segment(tmp_path).read_bytes())
    data[at(data)] ^= 1
    segment(tmp_path).write_bytes(data)
    again = opened(tmp_path)
    assert isinstance(again.fault, LogCorrupt)
    assert what in str(again.fault)
    again.close()
