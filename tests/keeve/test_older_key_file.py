"""An older copy of the key file: whoever looks at the store says that, and not what follows from it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from keeve import Session, blocking, host_key
from keeve.api import now
from tests.cli_runner import keeve
from vat.host.salvaging import salvage


def spawned(host: blocking.Host) -> None:
    host.spawn(Session, "new").turn("under a key that is not in the older file")


def reclaimed(host: blocking.Host) -> None:
    host.delete("gone")
    host.reclaim()


@pytest.mark.parametrize(("act", "lost"), [(spawned, ["new"]), (reclaimed, [])], ids=["keys lack", "keys are back"])
def test_it_is_named_by_who_looks_and_by_who_salvages(
    store_folder: Path, act: Callable[[blocking.Host], None], lost: list[str]
) -> None:
    """Also where it opens all that is left: it has keys again that were destroyed, and an owner refuses it."""
    folder, file = store_folder / "data", store_folder / "host.key"
    key = host_key(file, make=True)
    with blocking.open_host(folder, key=key) as host:
        host.spawn(Session, "s").turn("hello")
        host.spawn(Session, "gone").turn("for a while")
    older = (folder / "keys").read_bytes()
    with blocking.open_host(folder, key=key) as host:
        act(host)
    (folder / "keys").write_bytes(older)
    with blocking.open_host(folder, key=key, readonly=True) as host:
        first, *others = host.verify().troubles
        assert "is an older copy" in first.what
        assert {each.look for each in others} == ({"log"} if lost else set())
    env = {"KEEVE_KEY_FILE": str(file)}
    doctor = keeve("doctor", "--store", folder, env=env)
    assert doctor.code == 1
    assert "is an older copy" in doctor.out
    found = salvage(folder, store_folder / "new", now=now, salts=os.urandom, key=key)
    assert "is an older copy" in found.older_keys
    assert not found.whole
    assert len(found.lost) == len(lost)
