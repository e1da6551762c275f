"""Who can read which part of an encrypted log: parents and forks, and nobody what was destroyed."""

from __future__ import annotations

from pathlib import Path

import pytest
from sealed_folders import forked, keys_in, opened, said

from dataspace.encryption.key_file import packed
from dataspace.encryption.keys import Keys, Name
from dataspace.log.files import DiskFull, Files
from dataspace.log.store import BodyErased
from dataspace.records import STORE_UID, Record
from dataspace.values import ERASED
from keeve.testing.chains import Chain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def strip(folder: Path, *wraps: Name) -> None:
    """Leave a key file with no wraps but these, and the store's own."""
    keys, host = keys_in(folder)
    left = {name: wrap for name, wrap in keys.wraps.items() if name in {*wraps, (STORE_UID, 1)}}
    gone = frozenset(uid for uid, _ in keys.wraps) - {STORE_UID}
    (folder / "keys").write_bytes(packed(Keys(keys.log_id, keys.serial, left, keys.links, gone), host))


def family(folder: Path) -> tuple[dict[str, Record], Chain, Chain]:
    """A parent that is forked at seq 3; both go on. What each record says is its name."""
    parent = Chain("parent")
    records = {f"p{n}": parent.record(f"p{n}", cells=[f"cell of p{n}"], pages=[b"page"]) for n in (1, 2, 3)}
    with opened(folder) as store:
        store.append(list(records.values()))
        child, batch = forked(parent, "child", 3)
        store.append(batch)
        records |= {"p4": batch[0], "c4": batch[1]}
        for name, chain in {"p5": parent, "c5": child}.items():
            records[name] = chain.record(name)
            store.append([records[name]])
    return records, parent, child


def readable(folder: Path, records: dict[str, Record]) -> set[str]:
    """The records whose bodies can be read."""
    found = set()
    with opened(folder, readonly=True) as store:
        for name, record in records.items():
            try:
                said(store, record)
                found.add(name)
            except BodyErased:
                pass
    return found


class FullForSegments(Files):
    """A disk that has no space for records, but for a key file."""

    refusing = False

    def write(self, fd: int, offset: int, data: bytes, size: int | None = None) -> None:
        if self.refusing and self._paths[fd].endswith(".seg"):
            raise DiskFull(self._paths[fd], "full", True)
        super().write(fd, offset, data, size)


def test_parent_and_fork_read_the_shared_past_and_neither_the_others_future(folder: Path) -> None:
    records, parent, child = family(folder)
    whole = (folder / "keys").read_bytes()
    strip(folder, (parent.uid, 2))
    assert readable(folder, records) == {"p1", "p2", "p3", "p4", "p5"}
    (folder / "keys").write_bytes(whole)
    strip(folder, (child.uid, 1))
    assert readable(folder, records) == {"p1", "p2", "p3", "c4", "c5"}
    (folder / "keys").write_bytes(whole)
    strip(folder, (parent.uid, 1))
    assert readable(folder, records) == {"p1", "p2", "p3"}
    (folder / "keys").write_bytes(whole)
    strip(folder)
    assert readable(folder, records) == set()


def test_records_before_a_fork_in_one_batch_with_it_are_shared(folder: Path) -> None:
    parent = Chain("parent")
    with opened(folder) as store:
        store.append([parent.record("p1")])
        records = {"p2": parent.record("p2")}
        child, batch = forked(parent, "child", 2)
        records |= {"p3": batch[0], "c3": batch[1], "p4": parent.record("p4")}
        other, more = forked(parent, "other", 4)
        records |= {"p5": more[0], "o5": more[1]}
        store.append(list(records.values()))
    strip(folder, (child.uid, 1))
    assert readable(folder, records) == {"p2", "c3"}
    assert other.uid != child.uid


def test_a_fork_at_an_earlier_seq_reads_no_later_epoch(folder: Path) -> None:
    records, parent, _ = family(folder)
    with opened(folder) as store:
        late, batch = forked(Chain("parent", parent.seq, parent.hash), "late", 2)
        records |= {"p6": batch[0], "l3": batch[1]}
        store.append(batch)
    strip(folder, (late.uid, 1))
    assert readable(folder, records) == {"p1", "p2", "p3", "l3"}


def test_a_fork_of_a_fork_reads_its_grandparents_past(folder: Path) -> None:
    records, _, child = family(folder)
    with opened(folder) as store:
        grandchild, batch = forked(child, "grandchild", 5)
        records |= {"c6": batch[0], "g6": batch[1]}
        store.append(batch)
        store.destroy([child.uid, b"parent".ljust(16, b".")])
    assert readable(folder, records) == {"p1", "p2", "p3", "c4", "c5", "g6"}
    assert grandchild.seq == 6


def test_what_is_destroyed_is_unreadable_and_its_headers_stay(folder: Path) -> None:
    """Invariant 26: content goes when its last user goes."""
    records, parent, child = family(folder)
    with opened(folder) as store:
        headers = [stored.header for stored in store.scan()]
        store.destroy([parent.uid])
        assert [stored.header for stored in store.scan()] == headers
        assert store.read(records["p1"].address).cell(0) == "cell of p1"
        with pytest.raises(BodyErased):
            store.read(records["p5"].address).body()
        assert readable(folder, records) == {"p1", "p2", "p3", "c4", "c5"}
        store.destroy([child.uid])
        assert store.read(records["p1"].address).cell(0) is ERASED
        with pytest.raises(BodyErased):
            store.read(records["p1"].address).page(1)
    assert readable(folder, records) == set()
    with opened(folder) as store:
        assert [stored.header for stored in store.scan()] == headers


def test_destroying_twice_writes_once(folder: Path) -> None:
    _, parent, child = family(folder)
    with opened(folder) as store:
        store.destroy([parent.uid])
        before = (folder / "keys").read_bytes()
        store.destroy([parent.uid])
        assert (folder / "keys").read_bytes() == before
        assert set(store.holders) == {child.uid}


def test_a_fork_that_never_came_to_be_holds_no_past(folder: Path) -> None:
    """Its keys were durable, and then the disk was full."""
    parent = Chain("parent")
    first = parent.record("p1")
    files = FullForSegments()
    with opened(folder, files=files) as store:
        store.append([first])
        child, batch = forked(parent, "child", 1)
        files.refusing = True
        with pytest.raises(DiskFull):
            store.append(batch)
        files.refusing = False
        assert child.uid in store.holders
        assert set(store.heirs([parent.uid])) == {child.uid}
        store.destroy([parent.uid], unborn=[child.uid])
        assert not store.holders
        with pytest.raises(BodyErased):
            said(store, first)
