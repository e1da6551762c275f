"""An encrypted log: what is in its files, when its keys are kept and given up, and what damage does to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sealed_folders import KEY, keys_in, opened, said, tombstone
from segment_folders import content, segment, spoil

from dataspace.encryption.cipher import OVERHEAD
from dataspace.log import keyring
from dataspace.log.files import DiskFull, Files, SyncFailed
from dataspace.log.store import BodyErased, StoreFailed
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import Kind
from keeve.testing.chains import Chain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_what_is_said_stands_in_no_file(folder: Path) -> None:
    with opened(folder, segment_bytes=2000) as store:
        chain = Chain("secretive")
        for _ in range(10):
            store.append(
                [chain.record("a canary sings", cells=["a canary, long", b"a canary, raw"], pages=[b"a canary"])]
            )
    assert len(content(folder)) > 6
    assert [name for name, data in content(folder).items() if b"canary" in data or b"facts" in data] == []


def test_a_chain_is_the_same_encrypted_and_not(tmp_path: Path) -> None:
    records = Chain().records(5), Chain().records(5)
    with opened(tmp_path / "sealed") as sealed, opened(tmp_path / "plain", None) as plain:
        sealed.append(records[0])
        plain.append(records[1])
        for one, other in zip(*records, strict=True):
            assert sealed.read(one.address).header[3:] == plain.read(other.address).header[3:]
            assert one.hash == other.hash


def test_a_body_has_so_many_bytes_more(folder: Path) -> None:
    with opened(folder) as store:
        record = Chain().record("said")
        store.append([record])
        assert len(store.read(record.address).sealed()) == len(record.body()) + OVERHEAD


def test_the_same_said_twice_is_not_the_same_twice(folder: Path) -> None:
    with opened(folder) as store:
        batch = [Chain("a").record("same", cells=["same"]), Chain("b").record("same", cells=["same"])]
        store.append(batch)
        one, other = (store.read(record.address) for record in batch)
        assert one.sealed()[OVERHEAD:] != other.sealed()[OVERHEAD:]
        assert (one.cell(0), other.cell(0)) == ("same", "same")


def test_a_batch_whose_key_cannot_be_kept_leaves_no_trace(folder: Path) -> None:
    class NoKeys(Files):
        refusing = False

        def write(self, fd: int, offset: int, data: bytes, size: int | None = None) -> None:
            if self.refusing and self._paths[fd].endswith("keys.new"):
                raise DiskFull(self._paths[fd], "full", True)
            super().write(fd, offset, data, size)

    files = NoKeys()
    with opened(folder, files=files) as store:
        old, new = Chain("old"), Chain("new")
        store.append([old.record()])
        before = content(folder)
        files.refusing = True
        refused = new.record()
        with pytest.raises(DiskFull):
            store.append([refused])
        assert content(folder) == before
        store.append([old.record()])  # who has a key is not concerned
        files.refusing = False
        new.back(refused)
        store.append([new.record()])
        assert store.head.position == 4


def test_a_key_file_that_could_not_be_synced_stops_the_store(folder: Path) -> None:
    """Invariant 12: a failed fsync is not retried, and nothing after it is acknowledged."""

    class NoSync(Files):
        refusing = False

        @contextmanager
        def naming(self, path: Path) -> Iterator[None]:
            with super().naming(path):
                yield
            if self.refusing:
                raise SyncFailed(str(path), "no")

    files = NoSync()
    with opened(folder, files=files) as store:
        files.refusing = True
        with pytest.raises(StoreFailed):
            store.append([Chain("a").record()])
        files.refusing = False
        with pytest.raises(StoreFailed):
            store.append([Chain("b").record()])
    with opened(folder) as store:
        store.append([Chain("a").record()])


def test_a_tombstone_outlives_the_keys_of_its_session(folder: Path) -> None:
    chain = Chain("mortal")
    with opened(folder) as store:
        store.append([chain.record("said")])
        last = tombstone(chain)
        store.append([last])
        store.destroy([chain.uid])
        assert store.read(last.address).body().digest == last.body_digest


def test_nothing_is_appended_to_a_session_whose_key_is_gone(folder: Path) -> None:
    chain = Chain("s")
    with opened(folder) as store:
        store.append([chain.record()])
        store.destroy([chain.uid])
        with pytest.raises(SessionDamaged):
            store.append([chain.record()])


def test_a_worn_key_is_followed_by_the_next_epoch(folder: Path) -> None:
    chain = Chain("talkative")
    with opened(folder) as store:
        keys = store._keys
        assert keys is not None
        keys.most = 5
        records = [chain.record(f"{n}", cells=["more"]) for n in range(20)]
        for record in records:
            store.append([record])
        assert [said(store, record) for record in records] == [f"{n}" for n in range(20)]
        epochs = [int.from_bytes(store.read(record.address).sealed()[:4], "little") for record in records]
        assert max(epochs.count(epoch) for epoch in epochs) == 3, "of two bodies each: one more than five, at the most"
    with opened(folder) as store:
        assert [said(store, record) for record in records] == [f"{n}" for n in range(20)]


def test_how_much_a_busy_session_has_sealed_is_not_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many others say something meanwhile."""
    monkeypatch.setattr(keyring, "_REMEMBERED", 2)
    monkeypatch.setattr(keyring, "_HEAVY", 4)
    chain = Chain("talkative")
    with opened(folder) as store:
        assert store._keys is not None
        store._keys.most = 12
        records = [chain.record(f"{n}") for n in range(40)]
        for n, record in enumerate(records):
            store.append([record])
            if n % 5 == 4:
                store.append([Chain(f"{n} {m}").record() for m in range(3)])
        epochs = [int.from_bytes(store.read(record.address).sealed()[:4], "little") for record in records]
        assert max(epochs.count(epoch) for epoch in epochs) <= 12 + 4, "what was forgotten is little"


def test_a_reader_takes_up_new_keys_and_gives_up_destroyed_ones(folder: Path) -> None:
    with opened(folder) as store:
        first, second = Chain("a").record("first"), Chain("b").record("second")
        store.append([first])
        with opened(folder, readonly=True) as reader:
            assert said(reader, first) == "first"
            store.append([second])
            reader.refresh()
            assert said(reader, second) == "second"
            store.destroy([second.uid])
            reader.refresh()
            with pytest.raises(BodyErased):
                said(reader, second)


def test_no_table_of_keys_gives_way_to_an_older_one(folder: Path) -> None:
    """Neither in who owns the store, where a thread may read the file while it is exchanged, nor in who
    reads it; else the next key would be written without those that are newer, and what they seal be lost."""
    with opened(folder) as store:
        first, second = Chain("a").record("first"), Chain("b").record("second")
        store.append([first])
        older = (folder / "keys").read_bytes()
        store.append([second])
        store.destroy([first.uid])
        with opened(folder, readonly=True) as reader:
            (folder / "keys").write_bytes(older)
            reader.refresh()
            for each in (store, reader):
                with pytest.raises(BodyErased):
                    said(each, first)
                assert said(each, second) == "second"
        store.append([Chain("c").record()])
    assert second.uid in keys_in(folder)[0].newest


def test_damage_to_a_sealed_body_is_its_sessions_alone(folder: Path) -> None:
    """Invariant 23: a damaged session stops no other."""
    with opened(folder) as store:
        bad, good = Chain("bad").record("wrong"), Chain("good").record("right")
        store.append([bad])
        stored = store.read(bad.address).sealed()
        store.append([good])
    spoil(folder, stored[30:40], bytes(10))
    with opened(folder) as store:
        assert set(store.damaged) == {bad.uid}
        with pytest.raises(SessionDamaged, match="not what was written"):
            said(store, bad)
        assert said(store, good) == "right"


def test_every_flipped_byte_of_a_sealed_record_is_named(folder: Path) -> None:
    """Invariant 4: damage is reported by name. CRCs are made to fit again, so that only the tag can tell."""
    with opened(folder) as store:
        record = Chain("s").record("said", cells=["a cell"])
        store.append([record])
        store.append([Chain("other").record()])
        reader = store._reader
        read = reader.pread
        found = reader.read(record.address)._frame
        for at in range(found.body_length):

            def flipped(segment: int, offset: int, length: int, at: int = at) -> bytes:
                data = bytearray(read(segment, offset, length))
                place = found.body_offset + at - offset
                if 0 <= place < len(data):
                    data[place] ^= 4
                return bytes(data)

            stored = store.read(record.address)
            data = flipped(1, found.body_offset, found.body_length)
            with pytest.raises(SessionDamaged, match="key"):
                stored._opened(found, data, "its body")


def test_a_sealed_body_in_anothers_place_does_not_open(folder: Path) -> None:
    with opened(folder) as store:
        one, other = Chain("a").record("aaaa"), Chain("b").record("bbbb")
        store.append([one, other])
        stored, swapped = store.read(one.address), store.read(other.address).sealed()
        with pytest.raises(SessionDamaged, match="does not open"):
            stored._opened(stored._frame, swapped, "its body")


def test_a_store_that_is_not_encrypted_has_no_key_file(tmp_path: Path) -> None:
    with opened(tmp_path / "plain", None) as store:
        store.append([Chain().record()])
        store.destroy([Chain().uid])
        assert store.secret is None
        assert not store.holders
    assert not (tmp_path / "plain" / "keys").exists()


def test_the_secret_of_derived_files_stays(folder: Path) -> None:
    with opened(folder) as store:
        before = store.secret
        store.append([Chain("a").record()])
        store.destroy([Chain("a").uid])
        assert before == store.secret
    with opened(folder, readonly=True) as store:
        assert store.secret == before
        assert before not in (None, KEY)


def test_what_the_store_says_of_itself_is_sealed(folder: Path) -> None:
    with opened(folder) as store:
        store.append([Chain().record()])
        store.settle()
    with open(segment(folder), "ab") as file:
        file.write(os.urandom(100))
    with opened(folder) as store:
        last = [stored for stored in store.scan() if stored.header.kind == Kind.RECOVERED]
        assert len(last) == 1
        assert b"cut" in last[0].body().deeds
        assert last[0].sealed()
