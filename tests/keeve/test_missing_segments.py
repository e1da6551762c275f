"""A store of which a segment is missing: nobody says that a session is not there which may be in it, or deletes one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keeve import Session, blocking
from keeve.errors import LogCorrupt, StoreDamaged
from tests.dataspace.segment_folders import content

ASKED: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "get": (lambda host: host.get("first"), LogCorrupt),
    "look": (lambda host: host.look("first", len), LogCorrupt),
    "delete": (lambda host: host.delete("first"), StoreDamaged),
    "delete by force": (lambda host: host.delete("last", force=True), StoreDamaged),
    "erase": (lambda host: host.erase("last", turn=1), StoreDamaged),
    "spawn": (lambda host: host.spawn(Session, "first"), StoreDamaged),
}


def test_what_may_be_in_it_is_not_said_to_be_nowhere(store_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with blocking.open_host(store_folder, segment_bytes=3000) as host:
        for id in ("first", "middle", "last"):
            host.spawn(Session, id).turn(f"{id} " * 300)
    (store_folder / "log" / "00000001.seg").unlink()
    for path in store_folder.glob("catalog*"):
        path.unlink()
    before = content(store_folder / "log")
    caplog.set_level(logging.WARNING, "keeve")
    for readonly in (False, True):
        with blocking.open_host(store_folder, readonly=readonly) as host:
            assert host.sessions() == []
            for ask, error in ASKED.values():
                with pytest.raises(error):
                    ask(host)
        assert "may not be all" in caplog.text
        caplog.clear()
    assert content(store_folder / "log") == before
