"""What can be wrong with the key file of a store: each case is named, and nothing is changed or guessed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sealed_folders import KEY, OTHER_KEY, forked, opened, said
from segment_folders import content, segment

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.peeking import peek
from dataspace.encryption.errors import (
    HostKeyNeeded,
    KeyFileDamaged,
    KeyFileMissing,
    KeyFileOfAnotherLog,
    KeyFileOlder,
    KeyFileWithoutLog,
    NotEncrypted,
    WrongHostKey,
)
from dataspace.errors import KeeveError
from dataspace.log.files import Files
from dataspace.log.rekeying import rekeyed
from dataspace.log.store import NotAStore, StoreOwned
from dataspace.log.verdicts import LogTruncated, SessionDamaged
from keeve.api import CATALOG, open_store
from keeve.testing.chains import Chain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with two sessions."""
    with opened(tmp_path / "store") as store:
        store.append([Chain("a").record("first"), Chain("b").record("second")])
    return tmp_path / "store"


def refused(folder: Path, error: type[KeeveError], key: bytes | None = KEY, **options: object) -> None:
    """Opening is refused with this error, to write and to read, and nothing is changed but who owned it last."""
    before = {name: data for name, data in content(folder).items() if name != "lock"}
    for readonly in (True, False):
        with pytest.raises(error), opened(folder, key, readonly=readonly, **options):
            pass
    assert {name: data for name, data in content(folder).items() if name != "lock"} == before


def test_no_key(folder: Path) -> None:
    refused(folder, HostKeyNeeded, None)


def test_another_key(folder: Path) -> None:
    refused(folder, WrongHostKey, OTHER_KEY)


def test_a_key_for_a_store_that_is_not_encrypted(tmp_path: Path) -> None:
    with opened(tmp_path / "plain", None) as store:
        store.append([Chain().record()])
    refused(tmp_path / "plain", NotEncrypted)


def test_a_lost_key_file(folder: Path) -> None:
    (folder / "keys").unlink()
    refused(folder, KeyFileMissing)
    refused(folder, HostKeyNeeded, None)


@pytest.mark.parametrize("data", [b"", b"KEEVEKEY", bytes(4096), b"x" * 200])
def test_a_key_file_that_is_none(folder: Path, data: bytes) -> None:
    (folder / "keys").write_bytes(data)
    refused(folder, KeyFileDamaged)


def test_every_flipped_byte_of_the_key_file(folder: Path) -> None:
    data = (folder / "keys").read_bytes()
    for at in range(len(data)):
        (folder / "keys").write_bytes(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
        with pytest.raises(KeyFileDamaged), opened(folder, readonly=True):
            pass


def test_the_key_file_of_another_store(folder: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "other"):
        pass
    shutil.copy(tmp_path / "other" / "keys", folder / "keys")
    refused(folder, KeyFileOfAnotherLog)


def test_the_key_file_of_another_store_where_only_the_log_says_which_it_is(folder: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "other"):
        pass
    shutil.copy(tmp_path / "other" / "keys", folder / "keys")
    for name in ("format", "head"):
        (folder / name).unlink()
    with pytest.raises(KeyFileOfAnotherLog), opened(folder):
        pass


def test_keys_without_a_log(folder: Path) -> None:
    """A log that is lost is not begun anew over its keys."""
    shutil.rmtree(folder / "log")
    (folder / "head").unlink()
    with opened(folder) as store:
        assert isinstance(store.fault, LogTruncated)
    (folder / "format").unlink()
    before = (folder / "keys").read_bytes()
    with pytest.raises(KeyFileWithoutLog), opened(folder):
        pass
    with pytest.raises(HostKeyNeeded), opened(folder, None):
        pass
    assert (folder / "keys").read_bytes() == before
    assert not segment(folder).exists()


def test_an_older_key_file_is_noticed_when_the_store_opens(folder: Path) -> None:
    older = (folder / "keys").read_bytes()
    with opened(folder) as store:
        new = Chain("c").record("third")
        store.append([new])
    (folder / "keys").write_bytes(older)
    with pytest.raises(KeyFileOlder) as caught, opened(folder):
        pass
    assert (caught.value.serial, caught.value.seen) == (2, 3)
    with opened(folder, readonly=True) as store:
        with pytest.raises(SessionDamaged, match="not in the key file"):
            said(store, new)
        assert [stored.body().deeds for stored in store.scan() if stored.header.uid == Chain("a").uid] == [b"first"]


def test_an_older_key_file_is_noticed_where_a_catalog_says_where_to_begin(folder: Path) -> None:
    """Recovery reads no record then: all of them were judged before."""
    older = (folder / "keys").read_bytes()
    with opened(folder) as store:
        store.append([Chain("c").record("third")])
        store.settle()
        catalog = Catalog(folder / CATALOG, store)
        catalog.close()
    peeked = peek(folder / CATALOG)
    assert peeked is not None
    assert peeked.mark.position == 4
    peeked.close()
    (folder / "keys").write_bytes(older)
    before = (folder / CATALOG).read_bytes()
    with pytest.raises(KeyFileOlder):
        open_store(folder, key=KEY)
    assert (folder / CATALOG).read_bytes() == before


def test_a_key_file_from_before_a_deletion_is_older_too(folder: Path) -> None:
    """So what was destroyed does not come back unnoticed, once anything was written after it."""
    older = (folder / "keys").read_bytes()
    b = Chain("b")
    b.record("second")
    with opened(folder) as store:
        store.destroy([Chain("a").uid])
        store.append([b.record("later")])
    (folder / "keys").write_bytes(older)
    with pytest.raises(KeyFileOlder), opened(folder):
        pass


def test_a_store_that_is_owned_is_not_given_another_key(folder: Path) -> None:
    with opened(folder) as store:
        with pytest.raises(StoreOwned):
            rekeyed(folder, KEY, lambda: OTHER_KEY, Files(), bytes)
        store.append([Chain("c").record()])


@pytest.mark.parametrize("key", [OTHER_KEY, bytes(32)])
def test_a_wrong_key_is_not_exchanged(folder: Path, key: bytes) -> None:
    before = content(folder)
    with pytest.raises(WrongHostKey):
        rekeyed(folder, key, lambda: OTHER_KEY, Files(), bytes)
    assert content(folder) == before


def test_an_older_key_file_is_not_given_another_key(folder: Path) -> None:
    """It would have the number of the newest one then, and nobody would know it from that."""
    older = (folder / "keys").read_bytes()
    with opened(folder) as store:
        store.append([Chain("later").record()])
    (folder / "keys").write_bytes(older)
    with pytest.raises(KeyFileOlder):
        rekeyed(folder, KEY, lambda: OTHER_KEY, Files(), bytes)
    assert (folder / "keys").read_bytes() == older
    refused(folder, WrongHostKey, OTHER_KEY)


def test_only_a_store_that_is_encrypted_is_given_another_key(tmp_path: Path) -> None:
    with opened(tmp_path / "plain", None):
        pass
    with pytest.raises(NotEncrypted):
        rekeyed(tmp_path / "plain", KEY, lambda: OTHER_KEY, Files(), bytes)
    with pytest.raises(NotAStore):
        rekeyed(tmp_path / "nothing", KEY, lambda: OTHER_KEY, Files(), bytes)


def test_a_first_frame_that_cannot_be_read_does_not_make_a_store_a_plain_one(folder: Path) -> None:
    data = bytearray(segment(folder).read_bytes())
    data[104 + 10] ^= 1
    segment(folder).write_bytes(data)
    for readonly in (True, False):
        with pytest.raises(HostKeyNeeded), opened(folder, None, readonly=readonly):
            pass


def test_a_fork_whose_parent_is_not_in_the_store_has_a_key_of_its_own(folder: Path) -> None:
    stranger = Chain("stranger", seq=4, hash=b"h" * 32)
    with opened(folder) as store:
        _, (_, first) = forked(stranger, "orphan", 4)
        store.append([first])
        assert said(store, first) == "orphan is born"
