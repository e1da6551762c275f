"""Forks in salvaged stores: they are kept with all of their past, whoever of their ancestors is gone or lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from actors.session import Session
from keeve import Settings, open_host
from keeve.api import now
from vat.host import basing
from vat.host.aftermath import Salvaged
from vat.host.salvaging import salvage

LONG = "something that is said at some length " * 9


def salvaged(old: Path, new: Path) -> Salvaged:
    return salvage(old, new, now=now, salts=os.urandom)


@pytest.mark.parametrize("deleted", [("s1",), ("s1", "f"), ("f",)])
async def test_living_forks_of_deleted_sessions_are_kept_without_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted: tuple[str, ...]
) -> None:
    """Invariant 21: What of a deleted ancestor is not there, since its archive is away, is said: a fork needs it."""
    monkeypatch.setattr(basing, "WORTH", 1)
    old, new, settings = tmp_path / "old", tmp_path / "new", Settings(reclaim=None)
    async with open_host(old, segment_bytes=1 << 13, settings=settings) as host:
        s = await host.spawn(Session, "s1")
        for n in range(20):
            await s.turn(f"{n} {LONG}")
        f = await s.fork(into="f")
        for n in range(20):
            await f.turn(f"{n} of f, {LONG}")
        await (await f.fork(into="g")).turn("of g")
        for n in range(20):
            await (await host.spawn(Session, f"other {n}")).turn(LONG)
        assert (await host.archive(tmp_path / "cold", keep=0, records=True, idle=True)).records > 20
        for id in deleted:
            await host.delete(id)
        await host.reclaim()
    shutil.rmtree(tmp_path / "cold")
    found = salvaged(old, new)
    assert (found.lost, found.missing, found.away > 20) == ((), 0, True)
    async with open_host(new, settings=settings) as host:
        report = await host.verify()
        assert (report.integrity.verdict, report.troubles) == ("sound", ())
        g = await host.get("g")
        assert len(await g.history) == 41
        assert await g.turn("and on")
