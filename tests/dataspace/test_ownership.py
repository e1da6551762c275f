"""Whose a store is, what its owner notices, and what others may read of it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from segment_folders import content, in_a_forked_child, opened, segment

from dataspace.log.segments import SegmentStore
from dataspace.log.store import (
    StaleOwner,
    StoreFailed,
    StoreMoved,
    StoreOwned,
)
from dataspace.log.verdicts import LogTruncated
from keeve.testing.crashes import CrashFiles
from keeve.testing.stores import Chain, texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[SegmentStore]:
    store = opened(folder)
    yield store
    store.close()


class TestOwnership:
    """Invariant 24: one owner, and what happens to its store is noticed."""

    def test_the_same_store_by_another_path_is_owned(self, folder: Path, store: SegmentStore) -> None:
        (folder.parent / "link").symlink_to(folder)
        with pytest.raises(StoreOwned) as caught:
            opened(folder.parent / "link")
        assert caught.value.pid == os.getpid()

    def test_another_process_is_named(self, folder: Path, store: SegmentStore) -> None:
        def act() -> int:
            try:
                opened(folder)
            except StoreOwned as error:
                return 7 if error.pid == os.getppid() else 8
            return 9

        assert in_a_forked_child(act) == 7

    def test_a_forked_child_does_not_write_to_its_parents_store(self, folder: Path, store: SegmentStore) -> None:
        chain = Chain()
        store.append([chain.record()])
        before = content(folder)

        def act() -> int:
            code = 7
            for write in (lambda: store.append([chain.record()]), store.settle):
                try:
                    write()
                    code = 8
                except StoreOwned:
                    pass
            store.close()
            return code

        assert in_a_forked_child(act) == 7
        assert content(folder) == before
        store.append([chain.record()])

    def test_a_forked_child_that_lives_on_does_not_hold_the_store(self, folder: Path) -> None:
        store = opened(folder)
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn when there are threads
            child = os.fork()
        if child == 0:
            os.write(writing, b"!")
            signal.pause()
        os.read(reading, 1)
        store.close()
        try:
            opened(folder).close()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            os.close(writing)

    def test_a_child_forked_while_something_is_written_and_read_does_not_wait(
        self, folder: Path, store: SegmentStore
    ) -> None:
        """The thread that holds the locks is not there in the child to let them go."""
        chain = Chain()
        store.append([chain.record("before")])

        def act() -> int:
            signal.alarm(10)
            refused = 0
            for write in (lambda: store.append([chain.record()]), store.settle):
                try:
                    write()
                except StoreOwned:
                    refused += 1
            read = texts(store) == ["before"]
            store.close()
            return 7 if refused == 2 and read else 8

        with store._writing, store._reader._lock:
            assert in_a_forked_child(act) == 7
        store.append([chain.record("after")])

    def test_a_dead_owners_store_is_free(self, folder: Path) -> None:
        def act() -> int:
            opened(folder).append([Chain().record()])
            return 0

        assert in_a_forked_child(act) == 0
        store = opened(folder)
        assert texts(store) == ["hello"]
        store.close()

    def test_a_stale_owner_is_refused(self, folder: Path, store: SegmentStore) -> None:
        before = content(folder)
        taken = (folder / "lock").read_bytes().replace(b"epoch 1", b"epoch 5")
        with open(folder / "lock", "r+b") as file:
            file.write(taken)
        for write in (lambda: store.append([Chain().record()]), lambda: store.append([])):
            with pytest.raises(StaleOwner) as caught:
                write()
            assert (caught.value.ours, caught.value.theirs) == (1, 5)
        assert content(folder) == {**before, "lock": taken}

    @pytest.mark.parametrize("what", ["folder moved", "folder copied", "lock gone", "lock", "segment"])
    def test_a_store_that_is_moved_or_replaced_is_noticed(self, folder: Path, store: SegmentStore, what: str) -> None:
        chain = Chain()
        store.append([chain.record("before")])
        aside = folder.parent / "aside"
        if what.startswith("folder"):
            moved = folder
        else:
            moved = segment(folder) if what == "segment" else folder / "lock"
        moved.rename(aside)
        if what == "folder copied":
            shutil.copytree(aside, folder)
        elif what in ("lock", "segment"):
            shutil.copy(aside, moved)
        record = chain.record("after")
        with pytest.raises(StoreMoved):
            store.append([record])
        if moved.is_dir():
            shutil.rmtree(moved)
        else:
            moved.unlink(missing_ok=True)
        aside.rename(moved)
        store.append([record])
        assert texts(store) == ["before", "after"]

    @pytest.mark.parametrize("size", [0, 100, 1 << 20])
    def test_a_segment_of_another_length_is_noticed(self, folder: Path, store: SegmentStore, size: int) -> None:
        store.append([Chain().record()])
        os.truncate(segment(folder), size)
        with pytest.raises(StoreMoved, match=str(size)):
            store.append([Chain("other").record()])

    def test_a_backup_that_is_put_back_over_the_files_is_noticed(self, folder: Path, store: SegmentStore) -> None:
        """The lock, the files and their lengths are the same then; the end of the segment is not."""
        chain, backup = Chain(), folder.parent / "backup"
        store.append([chain.record("before")])
        shutil.copytree(folder, backup)
        store.append([chain.record("lost")])
        for path in backup.rglob("*.*"):
            (folder / path.relative_to(backup)).write_bytes(path.read_bytes())
        with pytest.raises(StoreMoved, match="does not end"):
            store.append([chain.record("after")])
        store.close()
        (folder / "head").unlink()
        assert texts(opened(folder)) == ["before"]

    def test_the_times_of_the_segment_are_not_asked_for_at_every_write(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where they are, each sync takes half as long again."""
        chain, asked, stat = Chain(), [], os.stat
        store = opened(folder, now=lambda: time.time_ns() // 1000 + 1_000_000)
        store.append([chain.record()])
        monkeypatch.setattr("os.stat", lambda path: asked.append(str(path)) or stat(path))
        for record in chain.records(5):
            store.append([record])
        monkeypatch.undo()
        assert set(asked) == {str(folder / "log"), str(folder / "lock")}
        store.close()


class TestReadingBeside:
    """Other processes read a store that is owned, up to what is durable."""

    def test_without_the_head_file_the_last_batch_is_not_shown_before_it_is_proved(
        self, folder: Path, store: SegmentStore
    ) -> None:
        """Invariant 7: it could still be undone by a power cut."""
        chain = Chain()
        store.append([chain.record("first")])
        store.append([chain.record("second"), chain.record("third")])
        (folder / "head").unlink()
        reader = opened(folder, readonly=True)
        assert texts(reader) == ["first"]
        reader.close()
        store.settle()
        reader = opened(folder, readonly=True)
        assert texts(reader) == ["first", "second", "third"]
        reader.close()

    def test_nor_is_it_where_a_segment_after_it_was_begun_and_has_nothing(
        self, folder: Path, store: SegmentStore
    ) -> None:
        chain = Chain()
        store.append([chain.record("first")])
        store.append([chain.record("second")])
        (folder / "head").unlink()
        segment(folder, 2).touch()
        reader = opened(folder, readonly=True)
        assert texts(reader) == ["first"]
        reader.close()
        segment(folder, 2).unlink()

    def test_what_is_written_and_not_published_is_not_shown(self, folder: Path) -> None:
        files, chain = CrashFiles(), Chain()
        store = opened(folder, files=files)
        store.append([chain.record("durable")])
        reader = opened(folder, readonly=True)
        files.fail(errno.EIO, after=1)
        with pytest.raises(StoreFailed):
            store.append([chain.record("written")])
        assert b"written" in segment(folder).read_bytes()
        reader.refresh()
        assert texts(reader) == ["durable"]
        reader.close()
        store.close()

    def test_another_store_in_its_place_is_noticed(self, folder: Path, store: SegmentStore) -> None:
        reader = opened(folder, readonly=True)
        opened(folder.parent / "other").close()
        shutil.copy(folder.parent / "other" / "head", folder / "head")
        with pytest.raises(StoreMoved):
            reader.refresh()
        reader.close()

    def test_an_older_copy_put_back_is_noticed(self, folder: Path) -> None:
        """Invariant 33: who read on in another history would not know it."""
        chain, store = Chain(), opened(folder)
        store.append([chain.record("before")])
        shutil.copytree(folder, folder.parent / "backup")
        store.append([chain.record("lost")])
        reader = opened(folder, readonly=True)
        store.close()
        folder.rename(folder.parent / "aside")
        (folder.parent / "backup").rename(folder)
        other = opened(folder)
        with pytest.raises(StoreMoved, match="go on from position 3"):
            reader.refresh()
        other.append(Chain("other").records(9))
        with pytest.raises(StoreMoved, match="go on from position 3"):
            reader.refresh()
        assert texts(reader) == ["before", "lost"] or reader.head.position == 3
        reader.close()
        other.close()

    @pytest.mark.parametrize("how", ["gone", "another", "a folder"])
    def test_the_head_file_may_be_lost_while_the_owner_writes(self, folder: Path, how: str) -> None:
        """Invariant 21: it is derived, so a reader hears of what comes all the same."""
        chain, store, head = Chain(), opened(folder), folder / "head"
        store.append([chain.record("before")])
        reader = opened(folder, readonly=True)
        head.unlink()
        if how == "another":
            head.write_bytes(b"mine" * 50)
        elif how == "a folder":
            head.mkdir()
            store.append([chain.record("not published")])
            store.settle()
            head.rmdir()
        store.append([chain.record("after")])
        store.settle()
        reader.refresh()
        assert texts(reader)[-1] == "after"
        reader.close()
        store.close()

    def test_a_lost_head_file_is_made_again_by_an_owner_that_is_never_idle(self, folder: Path) -> None:
        chain, store = Chain(), opened(folder)
        (folder / "head").unlink()
        for record in chain.records(64):
            store.append([record])
        assert (folder / "head").exists()
        store.close()

    @pytest.mark.parametrize("how", ["gone", "empty", "cut"])
    def test_a_log_that_lost_its_end_is_not_read_as_a_shorter_one(self, folder: Path, how: str) -> None:
        """Invariant 22: the head that was published tells that something is missing."""
        store = opened(folder, segment_bytes=1000)
        store.append([(chain := Chain()).record("x" * 600)])
        store.append([chain.record("y" * 600)])
        store.close()
        last = segment(folder, 3)
        if how == "gone":
            last.unlink()
        else:
            os.truncate(last, 0 if how == "empty" else 200)
        reader = opened(folder, readonly=True)
        assert isinstance(reader.fault, LogTruncated)
        assert reader.head.position == 2
        reader.close()

    @pytest.mark.parametrize("torn", [True, False])
    def test_a_head_that_is_behind_is_believed_where_only_a_torn_write_follows(self, folder: Path, torn: bool) -> None:
        """An owner that dies while it writes has published what is durable; an older head says less than the log."""
        store, chain = opened(folder), Chain()
        store.append([chain.record("first")])
        head, end = (folder / "head").read_bytes(), store.mark.offset
        store.append([chain.record("second")])
        store.append([chain.record("third")])
        store.close()
        (folder / "head").write_bytes(head)
        if torn:
            os.truncate(segment(folder), end + 200)
            segment(folder, 2).touch()
        reader = opened(folder, readonly=True)
        assert texts(reader) == (["first"] if torn else ["first", "second", "third"])
        assert reader.refresh() == reader.head
        reader.close()

    def test_a_reader_changes_no_file(self, folder: Path, store: SegmentStore) -> None:
        store.append([Chain().record()])
        before = content(folder)
        reader = opened(folder, readonly=True)
        texts(reader)
        reader.close()
        assert content(folder) == before
