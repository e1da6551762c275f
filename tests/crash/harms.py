"""A store that is harmed, and what it answers then.

The one rule: a question is asked in several ways, since an answer may come from several places.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dataspace.log.frames import Frame, parse
from dataspace.log.packed import SegmentFile
from keeve.api import open_host
from tests.crash.crash_actors import Bank, Counter, Oracle
from tests.crash.crash_audit import standing
from tests.crash.crash_world import SETTINGS
from vat.host.host import Host


def opened(folder: Path, **options: Any) -> Any:
    def note(*said: Any) -> None:
        raise AssertionError("nothing is to be called")

    return open_host(
        folder,
        actors=[Counter],
        devices={"bank": Bank(note), "oracle": Oracle(note)},
        clock=standing,
        settings=SETTINGS,
        segment_bytes=9000,
        **options,
    )


async def answers(host: Host) -> Any:
    """What a store says, asked in several ways."""
    rows = host.sessions(deleted=True)
    states = {row.id: await (await host.get(row.id)).state() for row in rows if not row.deleted}
    listed = [(row.id, row.type, bool(row.deleted)) for row in rows]
    events = [
        (event.session, event.seq, event.operation, event.kind, str(event.value), event.hash)
        async for event in host.observe("(_ . _)", after="start", until="head")
        if event.value.label not in ("restore", "recovered", "snapshot")
    ]
    of_one = [event.seq async for event in host.observe("(crash.added . _)", until="head", session="a")]
    held = [(str(each.fact), each.handle) for each in host.facts("(crash.held . _)")]
    return states, listed, events, of_one, held


def frames(folder: Path, kind: int) -> Iterator[tuple[Path, Frame]]:
    """The frames of a kind in a closed store's log."""
    for path in sorted((folder / "log").iterdir()):
        data, at = lying(path), 0
        while (found := parse(data, at, int(path.stem))) is not None:
            if found.type == kind:
                yield path, found
            at += found.size


def lying(path: Path) -> bytes:
    """The bytes of a segment, however they lie in its file."""
    file = SegmentFile(path, int(path.stem))
    try:
        return file.read(0, file.length)
    finally:
        file.close()


def flip_body(path: Path, frame: Frame) -> None:
    """Change one byte in the middle of a frame's body."""
    begin = frame.header_crc.to_bytes(4, "little") + bytes((frame.type, frame.flags, 0, 0))
    with path.open("r+b") as file:
        at = file.read().index(begin + len(frame.head).to_bytes(4, "little"))
        at += frame.body_offset - frame.offset + frame.body_length // 2
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x40]))
