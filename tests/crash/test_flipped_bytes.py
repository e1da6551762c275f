"""One byte of a session's content is flipped on the disk: that session is reported by name, and the others go on.

Every record and every cell of a store in turn, with its catalog and without.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.frames import Type, record_head
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import STORE_UID
from tests.crash.crash_actors import Counter
from tests.crash.crash_suites import FULL
from tests.crash.crash_world import Move, Reference, in_time
from tests.crash.harms import flip_body, frames, opened
from vat.host.host import Host

pytestmark = pytest.mark.crash

LONG = "something that is kept beside its record " * 10

MOVES: list[Move] = [
    ("spawn", "a"),
    ("spawn", "b"),
    ("call", "a", "put", "k", LONG),
    ("call", "b", "put", "k", LONG),
    ("call", "a", "add", "one"),
    ("call", "b", "add", "one"),
    ("snapshot", "a"),
    ("call", "a", "put", "l", LONG[::-1]),
    ("call", "a", "add", "two"),
    ("spawn", "c"),
    ("call", "b", "add", "two"),
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(tmp_path_factory.mktemp("reference") / "store", MOVES)


def targets(folder: Path) -> list[tuple[str, int, int]]:
    """What can be flipped: a kind of frame, the how manyth it is, and the position of its record."""
    found = []
    records = {}
    for nth, (_, frame) in enumerate(frames(folder, Type.RECORD)):
        header = record_head(frame.head)[0]
        records[header.position] = header
        if header.uid != STORE_UID:
            found.append(("RECORD", nth, header.position))
    for nth, (_, frame) in enumerate(frames(folder, Type.CELL)):
        found.append(("CELL", nth, int.from_bytes(frame.head[:8], "little")))
    return found


@pytest.mark.parametrize("catalog", ["kept", "lost"])
def test_a_flipped_byte_is_reported_by_name_and_the_others_go_on(
    tmp_path: Path, reference: Reference, catalog: str
) -> None:
    """Invariants 4, 22 and 23."""
    headers = [record_head(frame.head)[0] for _, frame in frames(reference.folder, Type.RECORD)]
    harmed = {header.position: header for header in headers}
    for kind, nth, position in targets(reference.folder)[:: 1 if FULL else 2]:
        folder = tmp_path / f"{kind} {nth}"
        shutil.copytree(reference.folder, folder)
        path, frame = list(frames(folder, Type[kind]))[nth]
        flip_body(path, frame)
        if catalog == "lost":
            (folder / "catalog.sqlite").unlink()
        header = harmed[position]
        id = reference.found.chains[header.uid].id
        # Its name stands in its first record: without that, and without a catalog, it is known by its uid.
        nameless = catalog == "lost" and header.seq == 1
        # Without its catalog all of a log is looked at when it is opened.
        for _ in range(2):
            name = header.uid.hex() if nameless else id
            trio.run(_check_in_time, folder, reference, id, name, catalog == "lost")


async def _check_in_time(*about: Any) -> None:
    async with in_time():
        await _check(*about)


async def _check(folder: Path, reference: Reference, id: str, name: str, surely: bool) -> None:
    others = sorted({"a", "b", "c"} - {id})
    async with opened(folder) as host:
        listed = [row.id for row in host.sessions()]
        assert {*others, name} <= set(listed)
        await _damaged(host, name, reference.states[id], surely=surely)
        for other in others:
            session = await host.get(other)
            state = await session.state()
            assert without_more(state) == reference.states[other]
            assert await session.add("more") == state["count"] + 1
            await session.snapshot()
        made = await host.spawn(Counter)
        assert await made.add("one") == 1
        await host.delete((await made.describe())["id"])
    async with opened(folder) as host:
        await _damaged(host, name, reference.states[id], surely=surely)


async def _damaged(host: Host, name: str, whole: Any, *, surely: bool) -> None:
    """Check that a session takes no more input and says why; or else that all of it is there."""
    session = await host.get(name)
    refusals: list[SessionDamaged] = []
    state = None
    for _ in range(2):  # what recovery has not looked at is met when it is read, and known from then on
        try:
            await session.add("more")
        except SessionDamaged as error:
            refusals.append(error)
        with suppress(SessionDamaged):
            state = without_more(await session.state())
    if surely:
        assert len(refusals) == 2
    if not refusals:
        assert state == whole, "a history was shortened in silence"
    for refusal in refusals:
        assert name in str(refusal)
    if state is not None:
        assert state["seen"] == whole["seen"][: len(state["seen"])]
        assert state["kept"].items() <= whole["kept"].items()


def without_more(state: Any) -> Any:
    """What a session says of itself, but for what this test has added."""
    added = state["seen"].count("more")
    seen, names = ([said for said in state[key] if said != "more"] for key in ("seen", "names"))
    return {**state, "count": state["count"] - added, "seen": seen, "names": names}
