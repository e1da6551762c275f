"""The embedded store: a folder of segment files, one owner, one fdatasync for each batch.

A batch goes to the disk with one write, ended by a commit that names the one before, and is synced; only
then does the durable end move on, for the readers here and, in the head file, elsewhere. A segment that is
full is cut to its length, synced, and never written to again.

The one rule: a batch moves `_mark` on as its last step. Until then, whatever happens, all is as it was; and
where the disk cannot say whether that is so, the store stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from dataspace.encryption.errors import KeyFileMissing
from dataspace.errors import KeeveError
from dataspace.log.batches import framed, settling
from dataspace.log.certificates import publish
from dataspace.log.erasing import clear
from dataspace.log.files import Files, ReadFailed, WriteFailed
from dataspace.log.frames import FORMAT, SEGMENT_SIZE, SegmentHead, segment_frame
from dataspace.log.keyring import new_keys
from dataspace.log.layout import State
from dataspace.log.marks import Certificate, ChainHead, Head, Mark
from dataspace.log.notices import recovered
from dataspace.log.opening import Newest, Owed, is_settled, judged, make, newest_own, owed, put_right, said, still
from dataspace.log.ownership import Ownership
from dataspace.log.publishing import Publisher
from dataspace.log.sealed import SealedSegments
from dataspace.log.store import (
    StoreClosed,
    StoreDamaged,
    StoreFailed,
    StoreMoved,
    StoreOwned,
    StoreReadOnly,
    check_records,
)
from dataspace.log.tail import Tail
from dataspace.log.verdicts import (
    NOTHING_KNOWN,
    Evidence,
    LogCorrupt,
    NewerFormat,
    SegmentBytes,
    SessionDamaged,
    Visit,
)
from dataspace.records import STORE_UID, Record, Salts

SEGMENT_BYTES: Final = 64 << 20
"""How large a segment grows."""


class SegmentStore(SealedSegments):
    """The store in a folder; see `dataspace.log.store.Store` for what it promises.

    `now` gives the time in microseconds since 1970, `salts` random bytes, `files` stands before the disk.
    `evidence` is what is known of the log from elsewhere, `visit` is told of each record that recovery reads
    after `evidence.start`. `known` gives the newest record of a chain that was not written to lately; without
    it such a chain is not checked. `readonly` takes no lock: it reads a store that another process may own,
    up to what that one has published, and `refresh` asks again. `key` is the host's key: a new store is encrypted
    with it, and an encrypted one does not open without it.

    Raises `NotAStore`, `StoreOwned`, `NewerFormat`, what is wrong with keys, or what the disk refuses. A log that may
    not be written to opens read-only, with the reason as its `fault`.
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
        key: bytes | None = None,
    ) -> None:
        super().__init__(folder, files or Files(), salts, key, known)
        self._now = now
        self._segment_bytes = segment_bytes
        self._writing = threading.Lock()
        self._owner: Ownership | None = None
        self._tail: Tail | None = None
        self._publisher: Publisher | None = None
        self._settled = True
        self._failure = ""
        self._closed = False
        self.readonly = readonly
        try:
            if readonly:
                self._follow(evidence, visit)
            else:
                self._own(evidence, visit)
        except OSError as error:
            raise ReadFailed.of(self._path, error) from error

    # Opening

    def _own(self, evidence: Evidence, visit: Visit | None) -> None:
        layout, files = self._layout, self._files
        if layout.state() is State.NEW:
            self._take_keys()  # what is wrong with them is told before anything is made
            layout.make_folders(files)
        self._owner = Ownership(layout.lock, files)
        try:
            self._take_keys()
            newest = Newest(visit)
            verdict = judged(layout, evidence, newest)
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
                keys = self._reader.keys = new_keys(self._keys, layout, self._host_key, files, self._salts)
                verdict = make(layout, files, verdict, epoch + 1, self._now(), self._salts, keys)
            elif self._keys is None and self._host_key is not None:
                raise KeyFileMissing(str(layout.keys))
            else:
                put_right(layout, files, verdict)
            self._adopt(verdict, epoch + 1)
            if self._keys is not None:
                self._keys.owned = True
            if newest.address:
                self.check_keys(newest.address)
            clear(layout, files)
            self._begin()
            for debt in owed(layout):
                self._say(debt, evidence)
        except BaseException:
            self._release()
            raise

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

    def refresh(self) -> Head:
        if self._owner is None:
            self._read_on()
        return self.head

    # Writing

    def append(self, records: Sequence[Record]) -> None:
        with self._locked():
            tail = self._ready(records)
            if not records:
                return
            heads = self._chains.follow(records)
            try:
                self._prepare(records)
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
        check_records(records, self._found)
        self._owner.check(tail.folder, tail.path, tail.inode, self._now())
        changed = tail.changed()
        if changed:
            raise StoreMoved(self._path, changed)
        return tail

    def _refusal(self) -> KeeveError:
        if self._closed:
            return StoreClosed(self._path)
        if self.readonly:
            if self.fault is not None:
                return StoreDamaged(self._path, self.fault)
            return StoreReadOnly(self._path, "it was opened so")
        return StoreFailed(self._path, self._failure)

    def _prepare(self, records: Sequence[Record]) -> None:
        """See that the keys of these records are durable."""
        try:
            if self._keys is not None:
                self._keys.prepare(records)
        except SessionDamaged:
            raise
        except BaseException as error:
            self._failed(error)
            raise

    def _append(self, tail: Tail, records: Sequence[Record]) -> Tail:
        mark = self._mark
        data, end = framed(records, mark, self.epoch, self._keys)
        if end.offset > self._segment_bytes and mark.offset > SEGMENT_SIZE:
            tail = self._roll(tail)
            mark = self._mark
            data, end = framed(records, mark, self.epoch, self._keys)
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
            tail.close()
            self._tail = begun
            self._mark = mark._replace(segment=number, offset=len(frame))
            self._settled = True
            if self._publisher is not None:
                self._publisher.publish(self._mark)
        except BaseException as error:
            self._failed(error)
            raise
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

    def destroy(self, uids: Collection[bytes], unborn: Collection[bytes] = ()) -> None:
        with self._locked():
            self._ready(())
            try:
                if self._keys is not None:
                    self._keys.destroy(uids, unborn)
            except BaseException as error:
                self._failed(error)
                raise

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

    def still(self) -> AbstractContextManager[tuple[list[SegmentBytes], Evidence]]:
        if self._tail is None:
            return super().still()
        known = Evidence(log_id=self.log_id, seen=(self._mark.head,), epoch=self.epoch)
        return still(self._layout, self._mark, known)
