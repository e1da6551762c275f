"""Forks in salvaged stores: they are kept with all of their past, whoever of their ancestors is gone or lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from actors.session import Session
from dataspace.log.frames import Type, record_head
from dataspace.records import Kind
from keeve import Settings, open_host
from keeve.api import now
from tests.crash.damages import Lying, frames
from tests.crash.harms import flip_body
from vat.host import basing
from vat.host.aftermath import Salvaged
from vat.host.salvaging import salvage
from vat.host.within import dataspace_of

LONG = "something that is said at some length " * 9


KEY = bytes(range(32))


def salvaged(old: Path, new: Path, **how: Any) -> Salvaged:
    return salvage(old, new, now=now, salts=os.urandom, **how)


async def forked(store: Path, key: bytes | None) -> None:
    """`f` goes on from the end of `s1`; `g` is a fork of `f` from before that began, and `h` of what `f` said."""
    async with open_host(store, key=key) as host:
        other, s = await host.spawn(Session, "another"), await host.spawn(Session, "s1")
        for n in range(4):
            await s.turn(f"turn {n}")
            await other.turn(f"another {n}")
        f = await s.fork(into="f")
        await f.turn("of f")
        await (await f.fork(at=3, into="g")).turn("of g")
        await (await f.fork(into="h")).turn("of h")
    first = next(each for each in frames(store) if is_forked(each))
    flip_body(*first)


def is_forked(lying: Lying) -> bool:
    return lying.frame.type == Type.RECORD and record_head(lying.frame.head)[0].kind == Kind.FORKED


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
async def test_a_fork_is_kept_whose_parent_is_lost_and_whose_past_is_an_ancestors(
    tmp_path: Path, key: bytes | None
) -> None:
    """Invariant 23: One whose past is lost with the parent is named."""
    old, new = tmp_path / "old", tmp_path / "new"
    await forked(old, key)
    assert {each.session for each in salvaged(old, new, key=key).lost} == {"f", "h"}
    rows = []
    for life in range(3):
        async with open_host(new, key=key) as host:
            report = await host.verify()
            assert (report.integrity.verdict, report.troubles) == ("sound", ())
            g = await host.get("g")
            assert await g.history == ["turn 0", "of g", *[f"on {n}" for n in range(life)]]
            assert await g.turn(f"on {life}")
            rows.append([row[6:8] for row in host.sessions()])
            if life == 1:
                await host.delete("s1")
                await host.reclaim()
        if life == 0:
            (new / "catalog.sqlite").unlink()
    assert rows[0] == rows[1]
    assert salvaged(new, tmp_path / "newer", key=key).lost == ()


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
async def test_a_catalog_made_anew_knows_the_past_of_a_fork_whose_parent_does_not_say_what_it_is(
    tmp_path: Path, key: bytes | None
) -> None:
    """Invariant 23: And nothing of that goes when the others are deleted."""
    await forked(tmp_path / "s", key)
    settings = Settings(reclaim=None)
    async with open_host(tmp_path / "s", key=key, readonly=True) as host:
        uid = host.row("f").uid
        lineages = {row.uid: dataspace_of(host).catalog.lineage(row.uid) for row in host.sessions()}
    (tmp_path / "s" / "catalog.sqlite").unlink()
    async with open_host(tmp_path / "s", key=key, settings=settings) as host:
        assert {row.uid: dataspace_of(host).catalog.lineage(row.uid) for row in host.sessions()} == lineages
        g = await host.get("g")
        assert await g.history == ["turn 0", "of g"]
        assert await g.turn("and on")
        for id in (uid.hex(), "s1"):
            await host.delete(id)
        await host.reclaim()
    (tmp_path / "s" / "catalog.sqlite").unlink()
    async with open_host(tmp_path / "s", key=key) as host:
        assert await (await host.get("g")).history == ["turn 0", "of g", "and on"]
        report = await host.verify()
        assert {each.session for each in report.integrity.sessions} == {uid.hex()}


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
