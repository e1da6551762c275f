"""The embedded store: a folder of segment files, one owner, one fdatasync for each batch.

A batch goes to the disk with one write, ended by a commit that names the one before, and is synced; only
then does the durable end move on, for the readers here and, in the head file, elsewhere. A segment that is
full is cut to its length, synced, and never written to again.

The one rule: a batch moves `_mark` on as its last step. Until then, whatever happens, all is as it was; and
where the disk cannot say whether that is so, the store stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final

from dataspace.errors import KeeveError
from dataspace.log.batches import framed, settling
from dataspace.log.certificates import notes, publish
from dataspace.log.chains import Chains
from dataspace.log.erasing import aside, by_segment, clear, still_whole, write_anew
from dataspace.log.files import Files, ReadFailed, WriteFailed
from dataspace.log.frames import FORMAT, SEGMENT_SIZE, SegmentHead, segment_frame
from dataspace.log.layout import Layout, State
from dataspace.log.marks import BEGINNING, Certificate, ChainHead, Damage, Head, Mark
from dataspace.log.notices import recovered
from dataspace.log.opening import Owed, durable_part, is_settled, judged, make, newest_own, owed, put_right, said, still
from dataspace.log.ownership import Ownership
from dataspace.log.publishing import Published, Publisher
from dataspace.log.publishing import read as read_head
from dataspace.log.reading import SegmentReader, StoredRecord
from dataspace.log.store import (
    Erasure,
    NotAStore,
    StoreClosed,
    StoreFailed,
    StoreMoved,
    StoreOwned,
    StoreReadOnly,
    check_records,
)
from dataspace.log.tail import Tail
from dataspace.log.verdicts import NOTHING_KNOWN, Evidence, LogCorrupt, NewerFormat, SegmentBytes, Verdict, Visit
from dataspace.records import STORE_UID, Record, Salts

SEGMENT_BYTES: Final = 64 << 20
"""How large a segment grows."""


class SegmentStore:
    """The store in a folder; see `dataspace.log.store.Store` for what it promises.

    `now` gives the time in microseconds since 1970, `salts` random bytes, `files` stands before the disk.
    `evidence` is what is known of the log from elsewhere, `visit` is told of each record that recovery reads
    after `evidence.start`. `known` gives the newest record of a chain that was not written to lately; without
    it such a chain is not checked. `readonly` takes no lock: it reads a store that another process may own,
    up to what that one has published, and `refresh` asks again.

    Raises `NotAStore`, `StoreOwned`, `NewerFormat`, or what the disk refuses. A log that may not be written
    to opens read-only, with the reason as its `fault`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], int],
        salts: Salts,
        files: Files | None = None,
        readonly: bool = False,
        evidence: Evidence = NOTHING_KNOWN,
        visit: Visit | None = None,
        known: Callable[[bytes], ChainHead | None] | None = None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._layout = Layout(folder)
        self._path = str(self._layout.folder)
        self._files = files or Files()
        self._now = now
        self._salts = salts
        self._segment_bytes = segment_bytes
        self._chains = Chains(known)
        self._reader = SegmentReader(self._layout, lambda: self._mark)
        self._writing = threading.Lock()
        self._owner: Ownership | None = None
        self._tail: Tail | None = None
        self._publisher: Publisher | None = None
        self._mark = BEGINNING
        self._settled = True
        self._failure = ""
        self._closed = False
        self.log_id = b""
        self.epoch = 0
        self.readonly = readonly
        self.fault: KeeveError | None = None
        self.damaged: Mapping[bytes, Damage] = {}
        try:
            if readonly:
                self._follow(evidence, visit)
            else:
                self._own(evidence, visit)
        except OSError as error:
            raise ReadFailed.of(self._path, error) from error

    @property
    def head(self) -> Head:
        return self._mark.head

    @property
    def mark(self) -> Mark:
        return self._mark

    # Opening

    def _own(self, evidence: Evidence, visit: Visit | None) -> None:
        layout, files = self._layout, self._files
        if layout.state() is State.NEW:
            layout.make_folders(files)
        self._owner = Ownership(layout.lock, files)
        try:
            verdict = judged(layout, evidence, visit)
            self.fault = verdict.error()
            if isinstance(self.fault, NewerFormat):
                raise self.fault
            epoch = max(self._owner.epoch, verdict.epoch)
            if self.fault is not None:
                self.readonly = True
                self._owner.release()
                self._adopt(verdict, epoch)
                return
            self._owner.claim(epoch + 1)
            if verdict.end.position == 0:
                verdict = make(layout, files, verdict, epoch + 1, self._now(), self._salts)
            else:
                put_right(layout, files, verdict)
            self._adopt(verdict, epoch + 1)
            clear(layout, files)
            self._begin()
            for debt in owed(layout):
                self._say(debt, evidence)
        except BaseException:
            self._release()
            raise

    def _adopt(self, verdict: Verdict, epoch: int) -> None:
        self.log_id = verdict.log_id or b""
        self.epoch = epoch
        self.damaged = verdict.damaged
        self._mark = verdict.end
        self._chains.note(verdict.heads)

    def _begin(self) -> None:
        """Make ready to write after the mark."""
        path = self._layout.segment(self._mark.segment)
        self._tail = Tail(self._files, path, self._files.open(path), self._mark.offset)
        self._settled = is_settled(self._reader, self._mark)
        self._publisher = Publisher(self._layout.head, self._files, self.log_id, self.epoch)
        self._publisher.publish(self._mark)

    def _say(self, debt: Owed, evidence: Evidence) -> None:
        """Put down in the store's chain what was cut, unless an interrupted recovery did that already."""
        place = self._mark._replace(segment=debt.segment, offset=debt.offset)
        try:
            told = next(self.scan(place), None)
        except LogCorrupt:
            return  # its name is no place where this log can have ended: nobody's, and left alone
        if told is None:
            chain = self.chain(STORE_UID) or evidence.heads(STORE_UID) or newest_own(self.scan())
            self.append([recovered(chain, debt.length, debt.name, self._now(), self._salts)])
        said(self._layout, self._files, debt)

    def _follow(self, evidence: Evidence, visit: Visit | None) -> None:
        layout = self._layout
        if layout.state() is State.NEW:
            raise NotAStore(self._path, "there is nothing in it to read")
        log_id = layout.log_id()
        published = read_head(layout.head)
        if published is not None and log_id in (None, published.log_id):
            self._mark = published.mark
            with suppress(LogCorrupt, ReadFailed):
                if self._reader.holds(published.mark):
                    self.log_id, self.epoch = published.log_id, published.epoch
                    return
        self._reader.renew()
        verdict = durable_part(layout, evidence, visit)
        self.fault = verdict.error()
        if isinstance(self.fault, NewerFormat):
            raise self.fault
        self._adopt(verdict, verdict.epoch)

    def refresh(self) -> Head:
        if self._owner is None and self.fault is None:
            published = read_head(self._layout.head)
            if published is not None and published.mark != self._mark:
                self._go_on_to(published)
        return self.head

    def _go_on_to(self, published: Published) -> None:
        """Read on to what is published now, if that continues what was read here."""
        mark = published.mark
        if published.log_id != self.log_id:
            raise StoreMoved(self._path, "another store is there now")
        self._reader.renew()
        if mark.place < self._mark.place or not (self._mark == BEGINNING or self._reader.holds(self._mark)):
            raise StoreMoved(self._path, f"its log does not go on from position {self._mark.position}, as read here")
        self.epoch = published.epoch
        self._mark = mark

    # Writing

    def append(self, records: Sequence[Record]) -> None:
        with self._locked():
            tail = self._ready(records)
            if not records:
                return
            heads = self._chains.follow(records)
            try:
                tail = self._append(tail, records)
            except BaseException:
                for record in records:
                    record.position = record.address = 0
                raise
            self._chains.note(heads)

    def _ready(self, records: Sequence[Record]) -> Tail:
        """The tail to write to, if this store may write these records now."""
        tail = self._tail
        if tail is None or self.fault is not None or self._owner is None:
            raise self._refusal()
        check_records(records, self.damaged)
        self._owner.check(tail.folder, tail.path, tail.inode, self._now())
        changed = tail.changed()
        if changed:
            raise StoreMoved(self._path, changed)
        return tail

    def _refusal(self) -> KeeveError:
        if self._closed:
            return StoreClosed(self._path)
        if self.readonly:
            return StoreReadOnly(self._path, "it was opened so" if self.fault is None else str(self.fault))
        return StoreFailed(self._path, self._failure)

    def _append(self, tail: Tail, records: Sequence[Record]) -> Tail:
        mark = self._mark
        data, end = framed(records, mark, self.epoch)
        if end.offset > self._segment_bytes and mark.offset > SEGMENT_SIZE:
            tail = self._roll(tail)
            mark = self._mark
            data, end = framed(records, mark, self.epoch)
        self._put(tail, mark.offset, data, end)
        self._settled = False
        return tail

    def _put(self, tail: Tail, offset: int, data: bytes, end: Mark, *, ahead: bool = True, idle: bool = False) -> None:
        """Make a batch durable, and then known."""
        try:
            tail.put(offset, data, ahead=ahead)
            self._mark = end
            if self._publisher is not None:
                self._publisher.publish(end, look=idle)
        except BaseException as error:
            self._failed(error)
            raise

    def _failed(self, error: BaseException) -> None:
        """After a failed write: go on if the disk is as it was, else stop for good."""
        if isinstance(error, WriteFailed) and error.undone:
            return
        self._failure = str(error) or type(error).__name__
        self.fault = StoreFailed(self._path, self._failure)
        if isinstance(error, Exception):
            raise self.fault from error

    def _roll(self, tail: Tail) -> Tail:
        """Seal the segment that is full, and begin the next one."""
        mark = self._mark
        number = mark.segment + 1
        head = SegmentHead(FORMAT, number, self.log_id, mark.position + 1, mark.offset, mark.commit)
        frame = segment_frame(head)
        try:
            tail.cut(mark.offset)
            tail.sync()
            begun = Tail.begin(self._files, self._layout.segment(number), frame)
        except BaseException as error:
            self._failed(error)
            raise
        tail.close()
        self._tail = begun
        self._mark = mark._replace(segment=number, offset=len(frame))
        self._settled = True
        if self._publisher is not None:
            self._publisher.publish(self._mark)
        return begun

    def settle(self, certificate: Certificate | None = None) -> None:
        with self._locked():
            self._settle(self._ready(()), certificate)
            if certificate is not None:
                publish(self._layout, self._files, certificate)

    def _settle(self, tail: Tail, certificate: Certificate | None = None, *, ahead: bool = True) -> None:
        if self._settled and certificate is None:
            return
        data, end = settling(self._mark, certificate)
        self._put(tail, self._mark.offset, data, end, ahead=ahead, idle=True)
        self._settled = True

    def erase(self, erasures: Sequence[Erasure]) -> int:
        gone = 0
        for segment, listed in by_segment(erasures).items():
            with self._locked():
                tail = self._ready(())
                if segment == self._mark.segment:
                    still_whole(self._reader, listed)  # what is not there is told before anything is changed
                    self._roll(tail)  # so that nobody writes to it any more
            frames = still_whole(self._reader, listed)
            if frames:
                write_anew(self._layout, self._files, self._reader, segment, frames)
            with self._locked():
                self._ready(())
                self._exchange(segment, bool(frames))
            gone += len(frames)
        return gone

    def _exchange(self, segment: int, anew: bool) -> None:
        """Put the segment that was written anew in its place. If it was not, an exchange that a crash has cut short may
        not be durable yet."""
        try:
            if anew:
                self._files.rename(aside(self._layout), self._layout.segment(segment))
            self._files.sync_folder(self._layout.log)
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self._reader.exchanged(segment)

    def _locked(self) -> threading.Lock:
        """The lock to hold while writing. In a forked child it may be held by a thread that is not there."""
        if self._owner is not None:
            self._owner.check_process()
        return self._writing

    def close(self) -> None:
        try:
            lock = self._locked()
        except StoreOwned:
            lock = threading.Lock()  # nothing is written in a forked child, and all is given up
        with lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self._tail is not None and self.fault is None:
                    tail = self._ready(())
                    tail.cut(self._mark.offset)
                    self._settle(tail, ahead=False)
            except KeeveError:
                pass  # what is durable is durable; the next opening does without
            finally:
                self._release()

    def _release(self) -> None:
        """Give up all that is held."""
        self._reader.close()
        tail, self._tail = self._tail, None
        publisher, self._publisher = self._publisher, None
        if tail is not None:
            tail.close()
        if publisher is not None:
            publisher.close()
        if self._owner is not None:
            self._owner.release()

    # Reading

    def chain(self, uid: bytes) -> ChainHead | None:
        return self._chains.get(uid)

    def read(self, address: int) -> StoredRecord:
        return self._reader.read(address)

    def still(self) -> AbstractContextManager[tuple[list[SegmentBytes], Evidence]]:
        """All bytes that nobody writes to, and what is known of them, for who looks at every frame."""
        known = Evidence(log_id=self.log_id, seen=(self._mark.head,), epoch=self.epoch)
        return still(self._layout) if self._tail is None else still(self._layout, self._mark, known)

    def notes(self) -> Iterator[bytes]:
        return notes(self._layout, self.still)

    def scan(self, start: int | Mark | None = None) -> Iterator[StoredRecord]:
        return self._reader.scan(start)

    def holds(self, mark: Mark) -> bool:
        return self._reader.holds(mark)
