"""The store in a folder: whose it is, what it notices, and what it makes of what it finds."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataspace.drafts import read_deeds
from dataspace.log.files import DiskFull
from dataspace.log.frames import COMMIT_SIZE, place
from dataspace.log.segments import SegmentStore
from dataspace.log.store import (
    NotAStore,
    RecordTooLarge,
    StaleOwner,
    StoreClosed,
    StoreFailed,
    StoreMoved,
    StoreOwned,
    StoreReadOnly,
    WrongHead,
)
from dataspace.log.verdicts import Evidence, Found, LogCorrupt, LogTruncated, NewerFormat, SessionDamaged
from dataspace.records import STORE_UID, Kind
from keeve.testing.crashes import CrashFiles
from keeve.testing.stores import Chain, texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def opened(folder: Path, **options: object) -> SegmentStore:
    return SegmentStore(folder, **{"now": int, "salts": os.urandom, **options})  # type: ignore[arg-type] # as the tests say


@pytest.fixture
def store(folder: Path) -> Iterator[SegmentStore]:
    store = opened(folder)
    yield store
    store.close()


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def segment(folder: Path, number: int = 1) -> Path:
    return folder / "log" / f"{number:08}.seg"


def spoil(folder: Path, said: bytes, instead: bytes) -> None:
    """Change what is in the first segment; as many bytes as there were."""
    with open(segment(folder), "r+b") as file:
        file.seek(file.read().index(said))
        file.write(instead)


def in_a_forked_child(act: Callable[[], int]) -> int:
    """The exit code of `act` in a forked child; 99 when it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn when there are threads
        pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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
        taken = (folder / "lock").read_bytes().replace(b"epoch %020d" % 1, b"epoch %020d" % 5)
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
        assert set(asked) == {str(folder / "log"), str(folder / "lock")}
        monkeypatch.undo()
        store.close()


class TestTheFolder:
    def test_what_is_no_store_is_left_alone(self, tmp_path: Path) -> None:
        """Invariant 43: a refusal leaves nothing behind."""
        file, notes = tmp_path / "file", tmp_path / "notes"
        file.write_text("mine")
        notes.mkdir()
        (notes / "diary.txt").write_text("mine")
        before = content(tmp_path)
        for path in (file, notes):
            for readonly in (False, True):
                with pytest.raises(NotAStore):
                    opened(path, readonly=readonly)
        with pytest.raises(NotAStore):
            opened(tmp_path / "nothing", readonly=True)
        assert content(tmp_path) == before
        assert not (tmp_path / "nothing").exists()

    def test_missing_folders_are_made(self, tmp_path: Path) -> None:
        opened(tmp_path / "a" / "b" / "store").close()

    @pytest.mark.parametrize("name", ["head", "format", "lock"])
    @pytest.mark.parametrize("what", ["deleted", "damaged"])
    def test_every_derived_file_can_do_without(self, folder: Path, name: str, what: str) -> None:
        """Invariant 21."""
        chain = Chain()
        store = opened(folder)
        store.append(chain.records(3))
        log_id, head = store.log_id, store.head
        store.close()
        if what == "deleted":
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(b"\xff\x00nonsense")
        for readonly in (True, False, True):
            store = opened(folder, readonly=readonly)
            assert (store.log_id, store.head, store.fault) == (log_id, head, None)
            if not readonly:
                store.append([chain.record()])
                head = store.head
                assert (folder / name).exists()
            store.close()

    def test_work_goes_on_without_the_head_file(self, folder: Path, store: SegmentStore) -> None:
        chain = Chain()
        (folder / "head").unlink()
        store.append([chain.record()])
        assert texts(store) == ["hello"]

    def test_a_format_file_that_is_lost_is_written_again(self, folder: Path) -> None:
        opened(folder).close()
        said = (folder / "format").read_bytes()
        for lost in (None, b"nonsense"):
            (folder / "format").unlink()
            if lost is not None:
                (folder / "format").write_bytes(lost)
            opened(folder).close()
            assert (folder / "format").read_bytes() == said

    def test_a_closed_store_gives_no_record(self, folder: Path) -> None:
        store = opened(folder)
        store.close()
        with pytest.raises(StoreClosed):
            list(store.scan())

    @pytest.mark.parametrize("what", ["log", "log/00000001.seg"])
    def test_nothing_starts_afresh_over_a_log_that_is_gone(self, folder: Path, what: str) -> None:
        """Invariant 22."""
        opened(folder).close()
        gone = folder / what
        gone.rename(folder.parent / "gone")
        before = content(folder)
        store = opened(folder)
        assert isinstance(store.fault, LogTruncated)
        with pytest.raises(StoreReadOnly):
            store.append([Chain().record()])
        store.close()
        assert content(folder) == before

    def test_a_newer_format_is_refused_and_named(self, folder: Path) -> None:
        opened(folder).close()
        (folder / "format").write_text(f"keeve store\nformat 99\nlog {'0' * 32}\n")
        before = content(folder)
        for readonly in (False, True):
            with pytest.raises(NewerFormat, match="99"):
                opened(folder, readonly=readonly)
        assert content(folder) == before

    def test_a_closed_store_has_no_zeros_at_its_end_and_does_not_grow(self, folder: Path) -> None:
        store = opened(folder)
        store.append([Chain().record()])
        assert segment(folder).stat().st_size > store.mark.offset
        store.close()
        size = segment(folder).stat().st_size
        assert size == store.mark.offset
        for _ in range(2):
            opened(folder).close()
        assert segment(folder).stat().st_size == size


class TestWriting:
    def test_records_are_found_across_segments(self, folder: Path) -> None:
        chain = Chain()
        store = opened(folder, segment_bytes=3000)
        records = chain.records(40)
        for record in records:
            store.append([record])
        assert len(list((folder / "log").iterdir())) > 3
        assert [store.read(record.address).header.hash for record in records] == [r.hash for r in records]
        store.close()
        store = opened(folder, segment_bytes=3000)
        assert len(texts(store)) == 40
        store.close()

    def test_a_batch_never_spans_two_segments(self, folder: Path) -> None:
        chain = Chain()
        store = opened(folder, segment_bytes=3000)
        store.append([chain.record()])
        batch = [chain.record("x" * 900) for _ in range(6)]
        store.append(batch)
        assert {place(record.address)[0] for record in batch} == {2}
        store.close()

    def test_where_there_is_no_space_for_zeros_ahead_it_goes_without(self, folder: Path) -> None:
        files = CrashFiles()
        store = opened(folder, files=files)
        files.fail(errno.ENOSPC, partial=600)
        store.append([Chain().record()])
        assert segment(folder).stat().st_size == store.mark.offset
        store.close()

    def test_a_full_disk_leaves_no_trace_and_work_goes_on(self, folder: Path) -> None:
        """Invariants 5 and 11."""
        files, chain = CrashFiles(), Chain()
        store = opened(folder, files=files)
        store.append([chain.record("before")])
        before = content(folder)
        record = chain.record("after")
        for partial in (0, 1, 200):
            files.fail(errno.ENOSPC, partial=partial)
            with pytest.raises(DiskFull):
                store.append([record])
            assert content(folder) == before
            assert (record.position, record.address) == (0, 0)
            assert texts(store) == ["before"]
        store.append([record])
        store.close()
        store = opened(folder)
        assert texts(store) == ["before", "after"]
        store.close()

    def test_a_full_disk_where_a_segment_begins_leaves_no_trace(self, folder: Path) -> None:
        """Invariant 11."""
        files, chain = CrashFiles(), Chain()
        store = opened(folder, files=files, segment_bytes=1500)
        for record in chain.records(3):
            store.append([record])
        record = chain.record("x" * 1000)
        for after in range(2, 5):
            files.fail(errno.ENOSPC, after=after)
            with pytest.raises(DiskFull):
                store.append([record])
        store.append([record])
        store.close()
        store = opened(folder)
        assert store.head.position == 5
        store.close()

    def test_after_a_failed_sync_nothing_is_written_any_more(self, folder: Path) -> None:
        """Invariant 12."""
        files, chain = CrashFiles(), Chain()
        store = opened(folder, files=files)
        store.append([chain.record("durable")])
        head = store.head
        files.fail(errno.EIO, after=1)
        with pytest.raises(StoreFailed):
            store.append([chain.record("unknown")])
        count = files.count
        for act in (lambda: store.append([chain.record()]), store.settle):
            with pytest.raises(StoreFailed):
                act()
        assert (store.head, texts(store)) == (head, ["durable"])
        store.close()
        assert files.count == count
        again = opened(folder, files=files)
        assert texts(again) in (["durable"], ["durable", "unknown"])
        again.close()

    def test_a_record_that_is_too_large_is_refused(self, store: SegmentStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dataspace.log.segments.MAX_RECORD", 1000)
        chain = Chain()
        record = chain.record("x" * 600, cells=["y" * 600])
        with pytest.raises(RecordTooLarge, match="1"):
            store.append([record])
        chain.back(record)
        store.append([chain.record("x" * 600)])

    def test_a_chain_that_was_not_written_to_lately_is_asked_for(self, folder: Path) -> None:
        chain, heads = Chain(), {}
        store = opened(folder, known=heads.get)
        with pytest.raises(WrongHead):
            store.append([Chain("s", seq=4).record()])
        heads[chain.uid] = (9, bytes(32))
        record = Chain("s", seq=9).record()
        store.append([record])
        assert store.chain(chain.uid) == (10, record.hash)
        store.close()


class TestRecovery:
    def test_a_torn_tail_is_saved_cut_and_put_down_once(self, folder: Path) -> None:
        """Invariant 4."""
        chain = Chain()
        store = opened(folder)
        store.append(chain.records(2))
        store.close()
        with open(segment(folder), "ab") as file:
            file.write(b"half a frame")
        for _ in range(2):
            store = opened(folder)
            *_, last = store.scan()
            assert (last.header.kind, last.header.uid, last.header.seq) == (Kind.RECOVERED, STORE_UID, 2)
            assert texts(store) == ["s............... 1", "s............... 2"]
            (saved,) = (folder / "cut").iterdir()
            assert saved.read_bytes() == b"half a frame"
            assert read_deeds(last.body().deeds).message == {"cut": 12, "saved": saved.name}
            store.close()

    def test_the_last_batch_cut_anywhere_is_gone_whole(self, folder: Path) -> None:
        """Invariant 4: it was never acknowledged, so it may be lost; the session goes on."""
        chain = Chain()
        store = opened(folder)
        store.append([chain.record("kept")])
        store.settle()
        start = store.mark
        store.append([chain.record("torn", cells=["c" * 50]), chain.record("torn too")])
        end = store.mark
        store.close()
        whole = segment(folder).read_bytes()
        for length in range(start.offset, end.offset):
            segment(folder).write_bytes(whole[:length])
            (folder / "head").unlink()
            shutil.rmtree(folder / "cut", ignore_errors=True)
            store = opened(folder, files=CrashFiles())
            assert texts(store) == ["kept"], length
            store.append([Chain("s", 1, start.hash).record("again")])
            store.close()

    def test_what_is_accepted_is_synced_before_anyone_sees_it(self, folder: Path) -> None:
        store = opened(folder)
        store.append([Chain().record()])
        store.close()
        files = CrashFiles()
        opened(folder, files=files).close()
        assert files.names.index("sync") > files.names.index(
            f"write {COMMIT_SIZE} bytes at {store.mark.offset - COMMIT_SIZE}"
        )

    def test_a_damaged_session_is_read_up_to_there_and_the_others_go_on(self, folder: Path) -> None:
        """Invariant 23."""
        bad, good = Chain("bad"), Chain("good")
        store = opened(folder)
        records = [bad.record("one"), bad.record("two"), good.record("three")]
        store.append(records)
        store.close()
        spoil(folder, b"two", b"2wo")
        store = opened(folder)
        assert store.fault is None
        assert list(store.damaged) == [bad.uid]
        assert store.read(records[0].address).body().deeds == b"one"
        with pytest.raises(SessionDamaged) as caught:
            store.read(records[1].address).body()
        assert (caught.value.seq, caught.value.position) == (2, 3)
        with pytest.raises(SessionDamaged):
            store.append([bad.record()])
        store.append([good.record()])
        store.close()

    def test_a_body_that_goes_bad_under_a_running_store_is_an_error(self, folder: Path, store: SegmentStore) -> None:
        """Invariant 22: never an empty or another content."""
        record = Chain().record("text", cells=["cell"])
        store.append([record])
        spoil(folder, b"text", b"next")
        with pytest.raises(SessionDamaged):
            store.read(record.address).body()
        assert store.read(record.address).cell(0) == "cell"

    def test_a_corrupt_log_opens_for_reading_and_nothing_is_changed(self, folder: Path) -> None:
        """Invariant 4: damage before the end is reported, and never shortens a history in silence."""
        chain = Chain()
        store = opened(folder)
        records = chain.records(4)
        for record in records:
            store.append([record])
        store.close()
        spoil(folder, records[0].hash, bytes(32))  # which the second record's header names
        before = content(folder)
        store = opened(folder)
        assert isinstance(store.fault, LogCorrupt)
        assert store.readonly
        assert texts(store) == ["s............... 1"]
        with pytest.raises(StoreReadOnly, match="corrupt"):
            store.append([chain.record()])
        store.close()
        assert content(folder) == before

    def test_a_log_that_ends_before_its_published_head_is_truncated(self, folder: Path) -> None:
        chain = Chain()
        store = opened(folder)
        store.append([chain.record()])
        mark = store.mark
        store.append([chain.record()])
        store.close()
        os.truncate(segment(folder), mark.offset)
        before = content(folder)
        store = opened(folder)
        assert isinstance(store.fault, LogTruncated)
        store.close()
        assert content(folder) == before

    def test_opening_from_a_mark_visits_only_what_comes_after_it(self, folder: Path) -> None:
        chain = Chain()
        store = opened(folder)
        store.append(chain.records(5))
        mark, seq, hash = store.mark, chain.seq, chain.hash
        store.append(chain.records(2))
        head = store.head
        heads = {chain.uid: (seq, hash), STORE_UID: (1, next(store.scan()).header.hash)}
        store.close()
        for start, visited in ((mark, [7, 8]), (store.mark, []), (mark._replace(commit=bytes(32)), range(1, 9))):
            seen: list[Found] = []
            again = opened(folder, evidence=Evidence(start=start, heads=heads.get), visit=seen.append)
            assert [found.header.position for found in seen] == list(visited)
            assert again.head == head
            again.close()

    def test_a_tail_that_is_torn_after_a_mark_is_put_down_in_the_stores_chain(self, folder: Path) -> None:
        store = opened(folder)
        store.append([Chain().record()])
        store.close()
        with open(segment(folder), "ab") as file:
            file.write(b"torn")
        store = opened(folder, evidence=Evidence(start=store.mark))
        assert store.fault is None
        assert [stored.header.seq for stored in store.scan() if stored.header.uid == STORE_UID] == [1, 2]
        store.close()
        again = opened(folder)
        assert again.fault is None
        again.close()


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

    def test_a_reader_changes_no_file(self, folder: Path, store: SegmentStore) -> None:
        store.append([Chain().record()])
        before = content(folder)
        reader = opened(folder, readonly=True)
        texts(reader)
        reader.close()
        assert content(folder) == before
