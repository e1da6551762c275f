"""A store's folder, open for reading: up to the durable end, which its owner moves on.

What an owner adds to this, the right to write, is in `segments`. Whoever only reads takes no lock, and learns of what
is new when it asks (`refresh`).

The one rule: nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path

from dataspace.errors import KeeveError
from dataspace.log.certificates import notes
from dataspace.log.chains import Chains
from dataspace.log.contents import Opener
from dataspace.log.files import Files, ReadFailed
from dataspace.log.frames import SEGMENT_SIZE
from dataspace.log.keyring import Keyring, open_keys
from dataspace.log.layout import Layout, State
from dataspace.log.marks import BEGINNING, ChainHead, Damage, Head, Mark
from dataspace.log.near import Near
from dataspace.log.opening import durable_part, still
from dataspace.log.ownership import owner_of
from dataspace.log.publishing import Published
from dataspace.log.publishing import read as read_head
from dataspace.log.reading import SegmentReader
from dataspace.log.scan import Batch, read_batch
from dataspace.log.store import NoSuchRecord, NotAStore, StoreMoved
from dataspace.log.stored import StoredRecord
from dataspace.log.unsound import Look, NoFrame, Placed, lacking, no_frame
from dataspace.log.verdicts import (
    NOTHING_KNOWN,
    Evidence,
    LogCorrupt,
    NewerFormat,
    SegmentBytes,
    SessionDamaged,
    Verdict,
    Visit,
)
from dataspace.log.windows import Window
from dataspace.log.withheld import Withheld
from dataspace.records import STORE_UID, Header, Salts


class StoreFolder:
    """The part of a store in a folder that reads. `host_key` is needed where the store is encrypted."""

    def __init__(
        self,
        folder: Path,
        files: Files,
        salts: Salts,
        host_key: bytes | None,
        known: Callable[[bytes], ChainHead | None] | None,
    ) -> None:
        self._layout = Layout(folder)
        self._path = str(self._layout.folder)
        self._files = files
        self._salts = salts
        self._host_key = host_key
        self._chains = Chains(known)
        self._reader = SegmentReader(self._layout, lambda: self._mark)
        self._mark = BEGINNING
        self.log_id = b""
        self.epoch = 0
        self.fault: KeeveError | None = None
        self.damaged: dict[bytes, Damage] = {}
        self._found: Mapping[bytes, Damage] = {}
        """Those that opening it has found: what reading comes to later must not fail a batch that others are in."""
        self._reader.met = self._meet
        self._looked: Look | None = None
        self._placed: dict[int, Placed | None] = {}
        """By addresses of records without a sound frame, as far as it is known whose these are; None where two are
        said to have lain there."""

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._layout.folder

    @property
    def head(self) -> Head:
        return self._mark.head

    @property
    def mark(self) -> Mark:
        return self._mark

    @property
    def withheld(self) -> Withheld:
        return self._reader.withheld

    @property
    def secret(self) -> bytes | None:
        return None if self._keys is None else self._keys.secret()

    @property
    def _keys(self) -> Keyring | None:
        return self._reader.keys

    def heirs(self, uids: Collection[bytes]) -> Collection[bytes]:
        return () if self._keys is None else self._keys.heirs(uids)

    @property
    def holders(self) -> Collection[bytes]:
        """The uids of the sessions that hold keys; none where the store is not encrypted."""
        return () if self._keys is None else self._keys.holders

    @property
    def destroyed(self) -> Collection[bytes]:
        """The uids of the sessions whose keys were destroyed, since they were deleted."""
        return () if self._keys is None else self._keys.destroyed

    @property
    def opener(self) -> Opener | None:
        """What opens sealed bodies; None where the store is not encrypted."""
        return None if self._keys is None else self._keys.open

    def check_keys(self, address: int) -> None:
        """Hold the key file against the newest record, which is at `address`. Raises `KeyFileOlder`."""
        if self._keys is not None:
            with suppress(NoSuchRecord, LogCorrupt, SessionDamaged):
                self._keys.check(self.read(address).sealed())

    def _take_keys(self) -> None:
        self._reader.keys = open_keys(self._layout, self._host_key, self._files, self._salts)

    def _adopt(self, verdict: Verdict, epoch: int) -> None:
        self.log_id = verdict.log_id or b""
        self.epoch = epoch
        self._found = verdict.damaged
        self.damaged = dict(verdict.damaged)
        self._mark = verdict.end
        self._chains.note(verdict.heads)
        if self._keys is not None and self.log_id:
            self._keys.must_be_of(self.log_id)

    def _meet(self, header: Header, address: int, what: str) -> None:
        """Reading has come to a record that is not what was written."""
        self.know({header.uid: Damage(header.seq, header.position, address, what)})

    def know(self, damaged: Mapping[bytes, Damage]) -> None:
        """These sessions were found to be damaged."""
        for uid, damage in damaged.items():
            known = self.damaged.get(uid)
            if uid != STORE_UID and (known is None or damage.seq < known.seq):
                self.damaged[uid] = damage

    def _follow(self, evidence: Evidence, visit: Visit | None) -> None:
        layout = self._layout
        if layout.state() is State.NEW:
            raise NotAStore(self._path)
        self._take_keys()
        log_id = layout.log_id()
        published = read_head(layout.head)
        if published is not None and log_id in (None, published.log_id):
            self._mark = published.mark
            with suppress(LogCorrupt, ReadFailed):
                if self._reader.holds(published.mark) and not self._is_behind(published.mark):
                    self.log_id, self.epoch = published.log_id, published.epoch
                    return
        self._judge(evidence, visit)

    def _is_behind(self, mark: Mark) -> bool:
        """Whether the log goes on after a published mark that nobody moves on any more: an older file was put there, or
        its owner died before it could."""
        if owner_of(self._layout.lock) is not None:
            return False
        if self._begins_batch(*mark.place):
            return True
        following = mark.segment + 1
        return self._layout.segment(following).exists() and self._begins_batch(following, SEGMENT_SIZE)

    def _begins_batch(self, segment: int, offset: int) -> bool:
        """Whether a whole batch begins there, and not what a write that was cut short has left."""
        data = Window(partial(self._reader.pread, segment), self._reader.written(segment), self._path)
        return isinstance(read_batch(SegmentBytes(segment, data), offset), Batch)

    def _judge(self, evidence: Evidence, visit: Visit | None) -> None:
        self._reader.renew()
        verdict = durable_part(self._layout, evidence, visit)
        self.fault = verdict.error()
        if isinstance(self.fault, NewerFormat):
            raise self.fault
        self._adopt(verdict, verdict.epoch)

    def distrust(self) -> None:
        """Judge the log itself, of a store that is open for reading: what its owner has published led nowhere.

        It can be read up to its damage then, which is its `fault`. Raises `NewerFormat`.
        """
        self._judge(NOTHING_KNOWN, None)

    def _read_on(self) -> None:
        """Read on to what is published by now."""
        if self.fault is None:
            published = read_head(self._layout.head)
            if published is not None and published.mark != self._mark:
                self._go_on_to(published)
            if self._keys is not None:
                self._keys.follow()

    def _go_on_to(self, published: Published) -> None:
        """Read on to what is published now, if that continues what was read here."""
        mark = published.mark
        if published.log_id != self.log_id:
            raise StoreMoved(self._path, "another store is there now")
        self._reader.renew()
        holds = self._mark == BEGINNING or self._reader.holds(self._mark)
        if holds and mark.place < self._mark.place:
            return  # an older file was put there: this store knows better
        if not holds:
            raise StoreMoved(self._path, f"its log does not go on from position {self._mark.position}, as read here")
        self.epoch = published.epoch
        self._mark = mark

    def chain(self, uid: bytes) -> ChainHead | None:
        return self._chains.get(uid)

    def read(self, address: int, near: Near | None = None) -> StoredRecord:
        try:
            return self._reader.read(address, near)
        except NoSuchRecord:
            known = self._placed.get(address)
            if known is not None and known.sure:
                raise SessionDamaged.of(known.uid, known.damage) from None
            if known is not None:
                look = partial(self._look, address)
                raise NoFrame(
                    address, look, lambda uid, damage: self._place(Placed(uid, damage, False)), known
                ) from None
            damage = no_frame(address, self._look(address), self._lacks, self._place)
            if damage is None:
                raise
            raise damage from None

    def know_lacking(self) -> None:
        """Some frames were found not to be sound: sessions of which records lay there are damaged."""
        lacking(self._look(), self._lacks)

    def _lacks(self, uid: bytes, damage: Damage) -> None:
        self.know({uid: damage})

    def _place(self, found: Placed) -> None:
        known = self._placed.setdefault(found.damage.address, found)
        if known is not None and (known.uid, known.damage.seq) != (found.uid, found.damage.seq):
            self._placed[found.damage.address] = None
        self._lacks(found.uid, found.damage)

    def _look(self, address: int = 0) -> Look:
        """The newest look; one that goes on from the last where that has found the place already."""
        looked = self._looked
        if looked is None or looked.end != self._mark:
            again = looked is not None and looked.gap(address) is not None
            looked = self._looked = Look(self._reader, looked if again else None)
        return looked

    def still(self) -> AbstractContextManager[tuple[list[SegmentBytes], Evidence]]:
        """All bytes that nobody writes to, and what is known of them, for who looks at every frame."""
        return still(self._layout)

    def notes(self) -> Iterator[bytes]:
        return notes(self._layout, self.still)

    def scan(self, start: int | Mark | None = None) -> Iterator[StoredRecord]:
        return self._reader.scan(start)

    def holds(self, mark: Mark) -> bool:
        return self._reader.holds(mark)
