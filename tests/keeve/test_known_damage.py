"""A session of which damage is known takes no input: whoever in the host has come to it, and after a restart too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from actors.session import Session
from dataspace.log.following import StoreFolder
from dataspace.log.verdicts import SessionDamaged
from keeve import blocking
from keeve.blocking import Host
from tests.cli_runner import keeve


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two sessions; of s1 an old word is not what was written, and nobody has come to it."""
    folder = tmp_path / "data"
    with blocking.open_host(folder) as host:
        for id in ("s1", "s2"):
            s = host.spawn(Session, id)
            s.turn(f"to be damaged in {id}")
            s.turn("and on")
    segment = folder / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[data.index(b"to be damaged in s1")] ^= 1
    segment.write_bytes(data)
    return folder


def reads(host: Host) -> None:
    with pytest.raises(SessionDamaged):
        list(host.observe("(turn . _)", session="s1", until="head"))


def verifies(host: Host) -> None:
    assert not host.verify().sound


@pytest.mark.parametrize("comes_to_it", [reads, verifies])
@pytest.mark.parametrize("loaded", [False, True])
def test_a_session_takes_no_input_once_anybody_has_come_to_its_damage(
    store: Path, comes_to_it: Callable[[Host], None], loaded: bool
) -> None:
    with blocking.open_host(store) as host:
        if loaded:
            assert host.get("s1").turn("nobody knows yet") == "nobody knows yet"
        comes_to_it(host)
        with pytest.raises(SessionDamaged, match="session s1 is damaged at seq"):
            host.get("s1").turn("more")
        assert host.get("s2").turn("more") == "more"
        assert host.get("s1").fork(at=1, into="s3").turn("more") == "more"
    with blocking.open_host(store) as host, pytest.raises(SessionDamaged):  # it has looked at all of the log
        host.get("s1").turn("more")


def test_it_is_known_at_the_next_opening_though_nothing_was_written_since(store: Path) -> None:
    with blocking.open_host(store) as host:
        reads(host)
    with blocking.open_host(store) as host, pytest.raises(SessionDamaged):
        host.get("s1").turn("more")


def test_without_keeping_what_is_met_the_input_is_taken(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreFolder, "know", lambda self, damaged: None)
    with blocking.open_host(store) as host:
        reads(host)
        assert host.get("s1").turn("more") == "more"


def test_who_only_looks_says_what_is_so(store: Path) -> None:
    shown = keeve("show", "s1", "--store", store)
    assert shown.code == 1
    assert "a host that has come to this takes no more input for it" in shown.err
