"""Hosts of encrypted stores: all that a host does, with a key; and what their files say without it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trio
from canaries import Keeper, converse, forms, found, host_of, keep

from dataspace.encryption.errors import HostKeyNeeded, KeyFileMissing, NotEncrypted, WrongHostKey
from dataspace.encryption.key_file import unpacked
from dataspace.log.files import DiskFull, Files
from dataspace.log.segments import SegmentStore
from keeve import Session, blocking, host_key, open_host, rekey, signing_key
from keeve.errors import Deleted, IdInUse
from tests.vat.hosts import settled

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))


@pytest.fixture
def folder(store_folder: Path) -> Path:
    return store_folder / "store"


def content(folder: Path) -> dict[Path, bytes]:
    """Every file of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tear(folder: Path) -> None:
    """Leave behind the last batch what a crash may."""
    with open(folder / "log" / "00000001.seg", "ab") as file:
        file.write(b"what a crash left")


def held(folder: Path, key: bytes = KEY) -> int:
    """How many sessions hold keys."""
    return len(unpacked((folder / "keys").read_bytes(), key, "keys")[0].newest) - 1


async def busy(folder: Path, **options: Any) -> None:
    """A store in which canaries were said in every place that there is."""
    async with host_of(folder, **options) as host:
        await converse(host, "nightingale-talks", "nightingale-input one", "nightingale-input two")
        keeper = await keep(host, "nightingale-keeps", "nightingale-kept")
        await (await host.get("nightingale-talks")).fork(into="nightingale-forked")
        await keeper.snapshot()
        with pytest.raises(ValueError, match="nightingale"):
            await keeper.fail("nightingale-fails")
        await host.spawn(Keeper, "nightingale-asks", request="nightingale-request", last="nightingale-given")


CANARIES = ("nightingale", "tests.keeper", "keeve.session", "tests.kept", "tool result of", "and so on and so on")


async def test_canaries_are_in_no_file(folder: Path) -> None:
    """Ids, types, inputs, outputs, facts, labels, cells, pages, tools' arguments and results, requests, errors."""
    await busy(folder, key=KEY)
    assert found(folder, *CANARIES) == []
    async with host_of(folder, key=KEY) as host:  # while it runs, its journals and all
        await (await host.get("nightingale-keeps")).keep("nightingale-more", 50)
        assert found(folder, *CANARIES) == []
    tear(folder)
    async with host_of(folder, key=KEY):
        pass
    assert (folder / "cut").is_dir()
    assert found(folder, *CANARIES) == []


async def test_canaries_are_found_in_a_store_that_is_not_encrypted(folder: Path) -> None:
    """The control: with the encryption taken out, the search above finds what it looks for."""
    await busy(folder)
    seen = found(folder, *CANARIES)
    for nightingale in CANARIES:
        assert any(each.startswith(nightingale) for each in seen), nightingale
    assert any("catalog.sqlite" in each for each in seen)
    assert len(list(forms("nightingale"))) > 6


async def test_what_a_crash_cut_off_is_sealed_too(folder: Path) -> None:
    await busy(folder, key=KEY)
    segment = folder / "log" / "00000001.seg"
    data = segment.read_bytes()
    segment.write_bytes(data[:-100])
    (folder / "head").unlink()
    async with host_of(folder, key=KEY) as host:
        assert [row.id for row in host.sessions()] == [
            "nightingale-asks",
            "nightingale-forked",
            "nightingale-keeps",
            "nightingale-talks",
        ]
    assert found(folder, *CANARIES) == []


async def test_everything_that_a_host_does(folder: Path) -> None:
    """Spawn, turn, fork, restart, observe, restore, read beside, retry, delete, reclaim, verify."""
    async with open_host(folder, key=KEY) as host:
        s = await host.spawn(Session, "s1", request="r1")
        assert await s.turn("hello") == "hello"
        snapshot = await s.snapshot()
        twin = await s.fork(into="s2")
        await twin.turn("diverge")
        await s.turn("original")
        report = await host.verify()
        assert report.sound
        assert report.counts.sealed == 0, "all of it was looked at"
    async with open_host(folder, key=KEY) as host:
        s = await host.restore(snapshot)
        assert await s.history == ["hello", "original"]
        assert await (await host.get("s2")).history == ["hello", "diverge"]
        assert (await host.spawn(Session, "s1", request="r1")) is not None
        with pytest.raises(IdInUse):
            await host.spawn(Session, "s2")
        seen = [event.value async for event in host.observe('(turn ? "s1" . _)', after="start", until="head")]
        assert [fact.keywords["input"] for fact in seen] == ["hello", "original"]
        async with open_host(folder, key=KEY, readonly=True) as reader:
            assert await (await reader.get("s2")).history == ["hello", "diverge"]
            await s.turn("later")
            with trio.fail_after(5):
                async for event in reader.observe('(turn 3 "s1" . _)', after="start"):
                    assert event.value.keywords["input"] == "later"
                    break
        assert (await host.verify()).sound
    assert held(folder) == 2


async def test_deleting_destroys_the_keys_of_a_session_and_leaves_its_forks_whole(folder: Path) -> None:
    """Invariant 26: deleting a parent leaves its forks whole."""
    async with open_host(folder, key=KEY) as host:
        s = await host.spawn(Session, "s1")
        await s.turn("shared")
        twin = await s.fork(into="s2")
        await s.turn("its own")
        await host.delete("s1")
        assert held(folder) == 1
        assert await twin.history == ["shared"]
        await twin.turn("goes on")
    async with open_host(folder, key=KEY) as host:
        assert await (await host.get("s2")).history == ["shared", "goes on"]
        with pytest.raises(Deleted):
            await host.get("s1")
        assert (await host.verify()).sound


async def test_a_deleted_id_stays_taken_when_its_keys_are_gone(folder: Path) -> None:
    """Invariant 25: a deleted id never comes back, though nothing of its session can be read, nor the catalog."""
    async with open_host(folder, key=KEY) as host:
        await (await host.spawn(Session, "s1")).turn("x")
        await host.delete("s1")
    (folder / "catalog.sqlite").unlink()
    async with open_host(folder, key=KEY) as host:
        with pytest.raises(Deleted):
            await host.spawn(Session, "s1")
        assert [(row.id, row.deleted > 0) for row in host.sessions(deleted=True)] == [("s1", True)]


async def test_keys_that_a_crash_has_left_are_destroyed_at_the_next_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(SegmentStore, "destroy", lambda *_: None)
        async with open_host(folder, key=KEY) as host:
            await (await host.spawn(Session, "s1")).turn("x")
            await host.delete("s1")
        assert held(folder) == 1
    async with open_host(folder, key=KEY):
        pass
    assert held(folder) == 0


async def test_a_lost_catalog_is_made_again_with_the_key(folder: Path) -> None:
    """Invariant 21: delete every derived file, the same answers."""
    async with open_host(folder, key=KEY) as host:
        for n in range(5):
            await (await host.spawn(Session, f"s{n}")).turn(f"said by {n}")
        before = host.sessions()
    for name in ("catalog.sqlite", "head"):
        (folder / name).unlink()
    async with open_host(folder, key=KEY) as host:
        assert host.sessions() == before
        assert await (await host.get("s3")).history == ["said by 3"]


async def test_each_wrong_key_has_its_error(folder: Path, tmp_path: Path, store_folder: Path) -> None:
    """Invariant 43: every refusal leaves nothing behind."""
    async with open_host(folder, key=KEY) as host:
        await host.spawn(Session, "s1")
    before = content(folder)
    for readonly in (False, True):
        with pytest.raises(HostKeyNeeded):
            async with open_host(folder, readonly=readonly):
                pass
        with pytest.raises(WrongHostKey):
            async with open_host(folder, key=OTHER, readonly=readonly):
                pass
    async with open_host(store_folder / "plain") as host:
        await host.spawn(Session, "s1")
    with pytest.raises(NotEncrypted):
        async with open_host(store_folder / "plain", key=KEY):
            pass
    assert content(folder) == before
    (folder / "keys").rename(tmp_path / "keys")
    with pytest.raises(KeyFileMissing):
        async with open_host(folder, key=KEY):
            pass
    (tmp_path / "keys").rename(folder / "keys")
    async with open_host(folder, key=lambda: KEY) as host:
        assert [row.id for row in host.sessions()] == ["s1"]


async def test_a_refused_key_makes_no_folder(folder: Path) -> None:
    with pytest.raises(ValueError, match="no host key"):
        async with open_host(folder, key=b"short"):
            pass
    assert content(folder) == {}


def test_a_new_host_key_reads_all_and_the_old_one_nothing(folder: Path, tmp_path: Path) -> None:
    new = host_key(tmp_path / "new.key", make=True)
    with blocking.open_host(folder, key=KEY) as host:
        host.spawn(Session, "s1").turn("hello")
    log = {path: path.read_bytes() for path in (folder / "log").iterdir()}
    catalog = (folder / "catalog.sqlite").read_bytes()
    rekey(folder, KEY, tmp_path / "new.key")
    assert {path: path.read_bytes() for path in (folder / "log").iterdir()} == log
    with pytest.raises(WrongHostKey), blocking.open_host(folder, key=KEY):
        pass
    with blocking.open_host(folder, key=new, readonly=True) as host:
        assert host.get("s1").history == ["hello"]
    assert (folder / "catalog.sqlite").read_bytes() == catalog, "its keys follow from a data key, which is the same"


async def test_signed_checkpoints_and_receipts_are_as_in_any_store(folder: Path, tmp_path: Path) -> None:
    signer = signing_key(tmp_path / "log.pem", make=True)
    async with open_host(folder, key=KEY, signer=signer) as host:
        s = await host.spawn(Session, "s1")
        _, receipt = await s.turn("hello", receipt=True)
    async with open_host(folder, key=KEY, signer=signer, expect=receipt) as host:
        assert (await host.verify()).sound


async def test_a_session_that_waits_comes_back(folder: Path) -> None:
    """Invariant 16: a fiber that waits comes back with its locals."""
    async with host_of(folder, key=KEY) as host:
        keeper = await host.spawn(Keeper, "k")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keeper.wait, "still here", 3600)
            await settled(host)
            nursery.cancel_scope.cancel()
    async with host_of(folder, key=KEY) as host:
        assert (await (await host.get("k")).describe())["fibers"] == 1


async def test_what_is_reclaimed_has_no_keys_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk refused to destroy them when the session was deleted."""
    async with open_host(folder, key=KEY) as host:
        await (await host.spawn(Session, "s1")).turn("x")
        with monkeypatch.context() as patched:
            patched.setattr(SegmentStore, "destroy", refused)
            await host.delete("s1")
        assert held(folder) == 1
        await host.reclaim()
        assert held(folder) == 0


def refused(*_: object) -> None:
    raise DiskFull("keys", "full", True)


async def test_a_uid_does_not_tell_which_request_made_its_session(folder: Path, store_folder: Path) -> None:
    """Uids stand in the clear: who has the log id and guesses a request is not to see that it was made."""
    for where, key in ((folder, KEY), (store_folder / "plain", None)):
        async with open_host(where, key=key) as host:
            await host.spawn(Session, "s1", request="r1")
            (row,) = host.sessions()
        log_id = bytes.fromhex((where / "format").read_text().split()[-1])
        guessed = sha256(b"keeve request 1\n" + log_id + b"local\0r1").digest()[:16]
        assert (guessed == row.uid) is (key is None)


class FullForSegments(Files):
    """A disk that has no space for records, once it is told so; but for a key file it has."""

    full = False

    def write(self, fd: int, offset: int, data: bytes, size: int | None = None) -> None:
        if self.full and self._paths[fd].endswith(".seg"):
            raise DiskFull(self._paths[fd], "full", True)
        super().write(fd, offset, data, size)


async def test_a_fork_that_never_came_to_be_keeps_nothing_of_a_deleted_session_readable(folder: Path) -> None:
    """Its keys were durable, its records were not; and then its parent was deleted."""
    files = FullForSegments()
    async with open_host(folder, key=KEY, files=files) as host:
        s = await host.spawn(Session, "s1")
        await s.turn("x")
        files.full = True
        with pytest.raises(DiskFull):
            await s.fork(into="s2")
        files.full = False
        assert held(folder) == 2
        await host.delete("s1")
        assert held(folder) == 1
    async with open_host(folder, key=KEY):
        assert held(folder) == 0
