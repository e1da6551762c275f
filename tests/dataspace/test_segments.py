"""The store in a folder: what it makes of what it finds there, what it writes, and how it recovers."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from segment_folders import content, opened, segment, spoil

from dataspace.drafts import read_deeds
from dataspace.log.files import DiskFull
from dataspace.log.frames import COMMIT_SIZE, place
from dataspace.log.segments import SegmentStore
from dataspace.log.store import (
    NotAStore,
    StoreClosed,
    StoreFailed,
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


@pytest.fixture
def store(folder: Path) -> Iterator[SegmentStore]:
    store = opened(folder)
    yield store
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
        folder = tmp_path / "a" / "b" / "store"
        chain = Chain()
        store = opened(folder)
        store.append([chain.record("hello")])
        store.close()
        assert (folder / "log").is_dir()
        assert texts(opened(folder, readonly=True)) == ["hello"]

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
