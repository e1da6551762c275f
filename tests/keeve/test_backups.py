"""Backups of stores with hosts: made while the host goes on, by itself and by a command, and gone on from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actors.session import Session
from keeve import Actor, Device, Effect, Promise, actor, blocking, effect
from keeve.errors import SessionDamaged
from keeve.host_keys import host_key
from tests.cli_runner import keeve


def test_what_was_acknowledged_is_in_a_backup_of_a_host_that_goes_on(tmp_path: Path) -> None:
    with blocking.open_host(tmp_path / "data") as host:
        s = host.spawn(Session, "s1")
        s.turn("in the backup")
        host.spawn(Session, "gone").turn("deleted")
        host.delete("gone")
        host.reclaim()
        done = host.backup(tmp_path / "new")
        s.turn("since then")
        told = keeve("backup", tmp_path / "data", tmp_path / "by a command", "--json")
        assert (told.code, told.json["sound"], told.json["position"] > done.position) == (0, True, True)
    for folder, said in (("new", ["in the backup"]), ("by a command", ["in the backup", "since then"])):
        with blocking.open_host(tmp_path / folder) as host:
            report = host.verify()
            assert report.sound, report.troubles
            assert [turn for turn in ("in the backup", "since then") if turn in host.get("s1").history] == said
            assert host.get("s1").turn("going on") == "going on"


def test_a_command_says_what_is_not_in_it(tmp_path: Path) -> None:
    key = host_key(tmp_path / "host.key", make=True)
    with blocking.open_host(tmp_path / "data", key=key) as host:
        host.spawn(Session, "s1").turn("sealed")
    (tmp_path / "data" / "token").write_text("a secret")
    said = keeve("backup", tmp_path / "data", tmp_path / "new")
    assert said.code == 0
    assert (
        f"its key file is {tmp_path / 'new' / 'keys'}: keep it as secret as the store; the key of the host" in said.out
    )
    assert "the token of the server is not copied" in said.out
    assert sorted(os.listdir(tmp_path / "new")) == ["format", "head", "keys", "log"]
    with blocking.open_host(tmp_path / "new", key=key) as host:
        assert host.verify().sound


def test_what_is_damaged_is_copied_and_named(tmp_path: Path) -> None:
    with blocking.open_host(tmp_path / "data") as host:
        host.spawn(Session, "s1").turn("to be damaged")
    segment = tmp_path / "data" / "log" / "00000001.seg"
    segment.write_bytes(segment.read_bytes().replace(b"to be damaged", b"to be dAmaged"))
    said = keeve("backup", tmp_path / "data", tmp_path / "new")
    assert said.code == 1
    assert "cell 0 is not what was written" in said.out
    assert "NOT SOUND, as the store is" in said.out
    assert keeve("backup", tmp_path / "data", tmp_path / "new").code == 2  # something is there


def test_a_session_that_a_backup_finds_damaged_takes_no_more_input(tmp_path: Path) -> None:
    with blocking.open_host(tmp_path / "data") as host:
        host.spawn(Session, "s1").turn("to be damaged " * 30)
        host.spawn(Session, "s2").turn("sound")
        segment = tmp_path / "data" / "log" / "00000001.seg"
        data = segment.read_bytes()
        at = data.index(b"to be damaged ")
        with open(segment, "r+b") as file:
            file.seek(at)
            file.write(b"To")
        assert host.get("s1").turn("nobody has noticed") == "nobody has noticed"
        done = host.backup(tmp_path / "new")
        assert "cell 0 is not what was written" in done.troubles[0]
        with pytest.raises(SessionDamaged):
            host.get("s1").turn("refused")
        assert host.get("s2").turn("goes on") == "goes on"


@actor("backups.desk", version=1)
class Desk(Actor):
    shop: Device = "shop"  # type: ignore[assignment] # a host gives the device

    def order(self, what: str) -> Promise:
        return self.shop.order(what)


class Shop:
    """Takes each order once: what comes with an id that it knows gets the receipt of that."""

    def __init__(self) -> None:
        self.receipts: dict[str, str] = {}

    @effect(on_crash="unknown")
    async def order(self, effect: Effect, what: str) -> str:
        return self.receipts.setdefault(effect.id, what)


def test_what_was_carried_out_since_is_not_known_in_an_older_copy_and_a_fork_has_other_ids(tmp_path: Path) -> None:
    """What docs/backup.md says of going back."""
    shop = Shop()
    options = {"actors": [Desk], "devices": {"shop": shop}}
    with blocking.open_host(tmp_path / "data", **options) as host:
        desk = host.spawn(Desk, "desk")
        assert desk.order("a lamp", request="before") == "a lamp"
        host.backup(tmp_path / "copy")
        host.backup(tmp_path / "other copy")
        assert desk.order("a chair", request="since") == "a chair"
        host.spawn(Desk, "made since")
        seen = len(list(host.observe("(_ . _)", until="head")))
    with blocking.open_host(tmp_path / "copy", **options) as host:
        assert len(list(host.observe("(_ . _)", until="head"))) < seen
        assert host.get("desk").order("a lamp", request="before") == "a lamp"  # this is known
        assert host.get("desk").order("a table", request="other") == "a chair"  # the id of that call
        host.spawn(Desk, "made since")
    with blocking.open_host(tmp_path / "other copy", **options) as host:
        twin = host.get("desk").fork()
        assert twin.order("a bed") == "a bed"
    assert sorted(shop.receipts.values()) == ["a bed", "a chair", "a lamp"]
