"""What is deleted, erased or given another key while a backup is checked: it is brought up to that, or refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from dataspace.encryption.errors import (
    KeyFileDamaged,
    KeyFileError,
    KeyFileMissing,
    KeyFileOfAnotherLog,
    KeyFileOlder,
)
from dataspace.encryption.key_file import packed
from dataspace.log.backup import BackupFailed, StillChanging, backup
from dataspace.log.copy_check import CopyCheck
from dataspace.log.copying import TRIES, Copy, Source
from dataspace.log.files import Files
from dataspace.log.frames import Type, frame
from dataspace.log.making import Making
from dataspace.log.marks import Damage, Mark
from dataspace.log.rekeying import rekeyed
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Erasure
from dataspace.log.verify import Verification
from dataspace.records import STORE_UID
from keeve.testing.chains import Chain
from tests.crash.damages import frames
from tests.crash.harms import lying
from tests.dataspace import sealed_folders
from tests.dataspace.archive_folders import TEXTS, filled
from tests.dataspace.segment_folders import content, segment, spoil

Act = Callable[[], object]


def while_checked(monkeypatch: pytest.MonkeyPatch, act: Act, times: int = 1) -> list[int]:
    """Do something after the copy was looked at, some times; gives how often it was looked at, and at how many
    segments."""
    looks: list[int] = []
    look = CopyCheck.look

    def looked(check: CopyCheck, end: Mark, changed: Collection[int]) -> None:
        look(check, end, changed)
        looks.append(len(changed))
        if len(looks) <= times:
            act()

    monkeypatch.setattr(CopyCheck, "look", looked)
    return looks


def erases(store: SegmentStore) -> Act:
    address = next(iter(store.scan())).next  # the record after that of the store itself: the first one with a cell
    assert address is not None
    return lambda: store.erase([Erasure(address, [0], False)])


def test_what_is_erased_while_it_is_checked_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = filled(tmp_path)
    whole = segment(tmp_path / "store").read_bytes()
    looks = while_checked(monkeypatch, erases(store))
    backup(tmp_path / "store", tmp_path / "new")
    store.close()
    assert segment(tmp_path / "new").read_bytes() == segment(tmp_path / "store").read_bytes() != whole
    assert len(looks) == 2
    assert looks[1] < looks[0]  # what has not changed is not copied again


def test_without_the_last_look_it_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = filled(tmp_path)
    whole = segment(tmp_path / "store").read_bytes()
    while_checked(monkeypatch, erases(store))
    monkeypatch.setattr(Copy, "is_current", lambda copy: True)
    backup(tmp_path / "store", tmp_path / "new")
    store.close()
    assert segment(tmp_path / "new").read_bytes() == whole


def test_a_session_that_is_deleted_while_it_is_checked_is_deleted_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain("to be deleted")
    with sealed_folders.opened(tmp_path / "store") as store:
        store.append([chain.record("sealed"), Chain("to stay").record("sealed too")])

        def deletes() -> None:
            store.append([sealed_folders.tombstone(chain)])
            store.destroy([chain.uid])

        looks = while_checked(monkeypatch, deletes)
        wholes = counted(monkeypatch)
        done = backup(tmp_path / "store", tmp_path / "new")
        assert (done.position, done.troubles, len(looks)) == (store.head.position, (), 2)
    assert len(wholes) == 1  # all of it once, and then what had come
    keys, _ = sealed_folders.keys_in(tmp_path / "new")
    assert chain.uid in keys.destroyed
    with sealed_folders.opened(tmp_path / "new") as again:
        assert again.fault is None


def counted(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time that all of a copy is looked at."""
    wholes: list[None] = []
    findings = Verification.findings

    def looked(check: Verification) -> object:
        wholes.append(None)
        return findings(check)

    monkeypatch.setattr(Verification, "findings", looked)
    return wholes


@pytest.mark.parametrize("destroyed", [True, False])
def test_a_tombstone_alone_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, destroyed: bool) -> None:
    chain = Chain()
    with sealed_folders.opened(tmp_path / "store", key=sealed_folders.KEY if destroyed else None) as store:
        store.append([chain.record("to be deleted")])
        while_checked(monkeypatch, lambda: store.append([sealed_folders.tombstone(chain)]))
        assert backup(tmp_path / "store", tmp_path / "new").position == store.head.position == 3


def test_what_is_only_said_while_it_is_checked_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain()
    with sealed_folders.opened(tmp_path / "store") as store:
        store.append([chain.record("before")])
        looks = while_checked(monkeypatch, lambda: store.append([chain.record("since")]))
        done = backup(tmp_path / "store", tmp_path / "new")
    assert (done.position, len(looks)) == (2, 1)


@pytest.mark.parametrize(("segment_bytes", "number"), [(1 << 20, 1), (1, 4)])
def test_what_has_come_is_looked_at_too_and_all_of_it_where_it_is_not_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int, number: int
) -> None:
    chain = Chain("to be deleted")
    with sealed_folders.opened(tmp_path / "store", segment_bytes=segment_bytes) as store:
        store.append([chain.record("sealed")])

        def deletes() -> None:
            store.append([sealed_folders.tombstone(chain)])
            store.append([Chain("t").record("the last one")])
            store.append([Chain("u").record("and then the last one")])
            path = segment(tmp_path / "store", number)
            flip(path, path.read_bytes().index(Chain("t").uid) + 150)  # in the body of the record, which is sealed

        while_checked(monkeypatch, deletes)
        damaged: dict[bytes, Damage] = {}
        done = backup(tmp_path / "store", tmp_path / "new", damaged=damaged.update)
    assert "body is not what was written" in done.troubles[0]
    assert list(damaged) == [Chain("t").uid]


def flip(path: Path, at: int) -> None:
    """Change a bit of what is at an offset."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_what_is_written_anew_is_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain()
    with sealed_folders.opened(tmp_path / "store", segment_bytes=30_000) as store:
        for n in range(4):
            store.append([chain.record("sealed", cells=["x" * 9000, f"{n}" * 9000])])
        erase = erases(store)

        def erases_and_spoils() -> None:
            erase()
            path = segment(tmp_path / "store")
            flip(path, path.stat().st_size // 2)  # in the cell that is left, and takes most of it

        looks = while_checked(monkeypatch, erases_and_spoils)
        done = backup(tmp_path / "store", tmp_path / "new")
    assert ["cell 1 is not what was written" in told for told in done.troubles] == [True]
    assert len(looks) == 2


def test_what_is_written_anew_is_looked_at_for_commits_that_follow_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch of it is right by itself."""
    chain = Chain()
    with sealed_folders.opened(tmp_path / "store", segment_bytes=30_000) as store:
        for n in range(4):
            store.append([chain.record("sealed", cells=["x" * 9000, f"{n}" * 9000])])
        erase = erases(store)

        def erases_and_joins() -> None:
            erase()
            path = segment(tmp_path / "store")
            *_, last = (
                each.frame
                for each in frames(tmp_path / "store")
                if each.frame.type == Type.COMMIT and each.path == path
            )
            data = bytearray(lying(path))
            anew, _ = frame(Type.COMMIT, last.head[:-32] + bytes(32), b"", 1, last.offset)
            data[last.offset : last.offset + last.size] = anew
            path.write_bytes(data)

        while_checked(monkeypatch, erases_and_joins)
        wholes = counted(monkeypatch)
        done = backup(tmp_path / "store", tmp_path / "new")
    assert any("a commit that does not follow the one before it" in told for told in done.troubles)
    assert len(wholes) == 2


def test_a_key_that_is_given_up_while_it_is_checked_is_not_needed_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sealed_folders.opened(tmp_path / "store") as store:
        store.append([Chain().record("sealed")])
    new = sealed_folders.OTHER_KEY
    rekey = lambda: rekeyed(tmp_path / "store", sealed_folders.KEY, lambda: new, Files(), os.urandom)  # noqa: E731 # as short as it is
    while_checked(monkeypatch, rekey)
    backup(tmp_path / "store", tmp_path / "new")
    with sealed_folders.opened(tmp_path / "new", key=new) as again:
        assert again.head.position == 2


def test_a_store_in_which_something_goes_all_the_time_is_left_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain()
    with sealed_folders.opened(tmp_path / "store") as store:
        store.append([chain.record("sealed")])
        looks = while_checked(monkeypatch, lambda: store.append([sealed_folders.tombstone(chain)]), times=TRIES + 1)
        with pytest.raises(StillChanging, match="make the backup when that is over"):
            backup(tmp_path / "store", tmp_path / "new")
    assert len(looks) == TRIES
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


# The key file.


def older(folder: Path, first: bytes) -> None:
    (folder / "keys").write_bytes(first)


def missing(folder: Path, first: bytes) -> None:
    (folder / "keys").unlink()


def cut(folder: Path, first: bytes) -> None:
    (folder / "keys").write_bytes((folder / "keys").read_bytes()[:-1])


def foreign(folder: Path, first: bytes) -> None:
    with sealed_folders.opened(folder.parent / "other"):
        pass
    (folder / "keys").write_bytes((folder.parent / "other" / "keys").read_bytes())


def without(name: bytes) -> Callable[[Path, bytes], None]:
    """One that is written anew without the keys of a session, as if it was the newest."""

    def act(folder: Path, first: bytes) -> None:
        keys, host = sealed_folders.keys_in(folder)
        if name == STORE_UID:
            kept = {each: wrap for each, wrap in keys.wraps.items() if each[0] != name}
            keys = type(keys)(keys.log_id, keys.serial + 1, kept, keys.links)
        else:
            keys = keys.without((), [name])
        (folder / "keys").write_bytes(packed(keys, host))

    return act


@pytest.mark.parametrize(
    ("spoils", "error"),
    [
        (missing, KeyFileMissing),
        (cut, KeyFileDamaged),
        (foreign, KeyFileOfAnotherLog),
        (older, KeyFileOlder),
        (without(Chain("second").uid), KeyFileDamaged),
        (without(STORE_UID), KeyFileDamaged),
    ],
)
def test_a_key_file_that_does_not_go_with_its_log_is_told_and_nothing_is_made(
    tmp_path: Path, spoils: Callable[[Path, bytes], None], error: type[KeyFileError]
) -> None:
    with sealed_folders.opened(tmp_path / "store") as store:
        store.append([Chain("first").record("sealed")])
        first = (tmp_path / "store" / "keys").read_bytes()
        store.append([Chain("second").record("sealed too")])
    spoils(tmp_path / "store", first)
    before = content(tmp_path)
    with pytest.raises(error) as told:
        backup(tmp_path / "store", tmp_path / "new")
    assert str(tmp_path / "store" / "keys") in str(told.value)
    assert content(tmp_path) == before
    assert not (tmp_path / "new.copying").exists()


def test_a_newer_key_file_than_its_log_goes_with_it(tmp_path: Path) -> None:
    """As of a store that was put back with the newest key file: nobody reads there what was deleted since."""
    chain = Chain()
    with sealed_folders.opened(tmp_path / "store") as store:
        store.append([chain.record("sealed")])
        backup(tmp_path / "store", tmp_path / "earlier")
        store.append([sealed_folders.tombstone(chain)])
        store.destroy([chain.uid])
    (tmp_path / "earlier" / "keys").write_bytes((tmp_path / "store" / "keys").read_bytes())
    assert backup(tmp_path / "earlier", tmp_path / "new").position == 2


def test_a_key_file_beside_a_store_that_is_not_encrypted_is_not_its(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    store.close()
    (tmp_path / "store" / "keys").write_bytes(b"something")
    assert backup(tmp_path / "store", tmp_path / "new").keys == ""
    assert not (tmp_path / "new" / "keys").exists()


# The copy.


def test_a_copy_that_reads_otherwise_than_the_store_is_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = filled(tmp_path)
    store.close()
    bring_up = Copy.bring_up

    def spoils(copy: Copy) -> set[int]:
        changed = bring_up(copy)
        spoil(tmp_path / "new.copying", TEXTS[0].encode(), TEXTS[0].upper().encode())
        return changed

    monkeypatch.setattr(Copy, "bring_up", spoils)
    damaged: list[object] = []
    with pytest.raises(BackupFailed, match="what was written there is read otherwise"):
        backup(tmp_path / "store", tmp_path / "new", damaged=damaged.append)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert damaged == []  # the store is sound


def once(act: Act) -> Callable[[int, int], None]:
    """Does something when the first piece was copied."""
    acts = [act]

    def progress(done: int, total: int) -> None:
        if acts:
            acts.pop()()

    return progress


def test_a_key_that_is_destroyed_while_the_log_is_copied_has_the_log_copied_again(tmp_path: Path) -> None:
    """So that nothing has gone from the copy that no record in it says."""
    chain = Chain("to be deleted")
    with sealed_folders.opened(tmp_path / "store") as store, Making(tmp_path / "new", Files()) as making:
        store.append([chain.record("sealed")])

        def deletes() -> None:
            store.append([sealed_folders.tombstone(chain)])
            store.destroy([chain.uid])

        source = Source(tmp_path / "store")
        copy = Copy(source, making, Files(), once(deletes))
        copy.bring_up()
        source.close()
        assert copy.keys is not None
        assert chain.uid in copy.keys.outline.destroyed
        assert copy.end.position == store.head.position


def test_the_key_file_is_as_new_as_the_log_that_was_copied(tmp_path: Path) -> None:
    chain, later = Chain(), Chain("later")
    with sealed_folders.opened(tmp_path / "store", segment_bytes=30_000) as store:
        for _ in range(4):
            store.append([chain.record("sealed", cells=["x" * 9000, "y" * 9000])])
        done = backup(tmp_path / "store", tmp_path / "new", progress=once(lambda: store.append([later.record("new")])))
        assert done.position == store.head.position
    with sealed_folders.opened(tmp_path / "new") as again:
        assert [stored.body() for stored in again.scan() if stored.header.uid == later.uid]
