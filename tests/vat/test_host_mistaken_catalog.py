"""Hosts whose catalog says something else than the log, in rows that look sound."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from dataspace.catalog.connections import connect, rows
from dataspace.catalog.packing import pack, unpack
from tests.vat.hosts import Counter, World


@pytest.mark.parametrize("column", ["positions", "addresses", "head"])
async def test_a_session_is_what_the_log_says_of_it(tmp_path: Path, column: str) -> None:
    """Invariant 21: damage every derived file, the same answers."""
    disk = World(tmp_path / "store")
    async with disk.host() as host:
        for id in ("s1", "s2"):
            s = await host.spawn(Counter, id)
            for number in range(4):
                await s.add(f"word {number} of {id}")
    assert disk.folder is not None
    db = connect(disk.folder / "catalog.sqlite", 100, apsw.SQLITE_OPEN_READWRITE)
    if column == "head":
        db.execute("UPDATE sessions SET seq = seq - 1 WHERE id = 's1'")
    else:
        table, key = ("threads", "session, first") if column == "positions" else ("spans", "start, start")
        for one, other, packed in rows(db, f"SELECT {key}, {column} FROM {table}"):
            numbers = unpack(packed)
            turned = pack(numbers[:1] + numbers[2:] + numbers[1:2])
            where = " = ? AND ".join(key.split(", "))
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where} = ?", (turned, one, other))
    db.close()
    async with disk.host() as host:
        for id in ("s1", "s2"):
            s = await host.get(id)
            assert await s.seen == [f"word {number} of {id}" for number in range(4)]
            assert await s.add("one more") == 5
        assert (await host.verify()).sound
