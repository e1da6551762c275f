"""The sealed segments of a store: nothing is added to them any more, and what is in them may go.

Each is written anew beside itself, and takes the old one's place with a rename: what was erased is gone then, what was
archived is elsewhere. So all of it may run beside the one who appends, who is asked twice: before anything is written,
and for the moment of the rename.

The one rule: a segment is changed only after another one has begun, and one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from dataspace.log.archives import Archives, begin_archive
from dataspace.log.archiving import Going, Sealed, copy_out, deeds_in, fill, going, hollow, of_type, weeded
from dataspace.log.erasing import aside, at_once, by_segment, clear, drop_cut, still_whole, write_anew
from dataspace.log.following import StoreFolder
from dataspace.log.frames import ELSEWHERE, Frame, erased
from dataspace.log.store import Erasure
from dataspace.log.tail import Tail
from dataspace.records import Record

TRIES: Final = 3
"""How often a segment is written anew whose content somebody has come to need meanwhile, before all of it stays."""
Exchange: TypeAlias = Callable[[Mapping[bytes, int], Callable[[], None]], bool]
"""Told from which seq on something goes of whose chain, it does what takes that away; or gives False, if it may not."""
Say: TypeAlias = Callable[[Iterable[tuple[int, int]]], None]
"""Told what goes: positions of records, in order, with numbers of their cells, or `DEEDS`."""


class Went(NamedTuple):
    """What went to an archive: how many pieces, how many bytes the store has less, and how many of the pieces are deeds
    of records."""

    pieces: int
    bytes: int
    records: int


class SealedSegments(StoreFolder):
    """The part of a store in a folder that changes sealed segments. Who has the right to write is for `segments`."""

    def _locked(self) -> threading.Lock:
        """The lock to hold while writing."""
        raise NotImplementedError

    def _ready(self, records: Sequence[Record]) -> Tail:
        """The tail to write to, if this store may write. Raises why not."""
        raise NotImplementedError

    def _roll(self, tail: Tail) -> Tail:
        """Seal the segment that is written to, and begin the next one."""
        raise NotImplementedError

    def _failed(self, error: BaseException) -> None:
        """After a failed write: go on if the disk is as it was, else stop for good."""
        raise NotImplementedError

    def erase(self, erasures: Sequence[Erasure], exchange: Callable[[Callable[[], None]], bool] = at_once) -> int:
        gone = 0
        for segment, listed in by_segment(erasures).items():
            with self._locked():
                tail = self._ready(())
                if segment == self._mark.segment:
                    still_whole(self._reader, listed)  # what is not there is told before anything is changed
                    self._roll(tail)  # so that nobody writes to it any more
            frames = still_whole(self._reader, listed)
            if not self._change(segment, partial(self._erase, segment, frames) if frames else None, exchange):
                continue
            self._weed(segment)  # also what nothing here says is archived: a copy that came back, or was cut short
            gone += len(frames)
        if erasures:
            self.archives.clear(self._files, self.log_id)
        return gone

    def _erase(self, segment: int, gone: Sequence[Frame]) -> None:
        drop_cut(self._layout, self._files)
        read, length = partial(self._reader.pread, segment), self._reader.length(segment)
        path = aside(self._layout)
        form = self._reader.form(segment)
        write_anew(path, self._files, read, length, segment, gone, lambda found: erased(found, segment), form)

    def sealed(self) -> list[Sealed]:
        """The segments that are not written to any more. Raises `LogCorrupt`."""
        heads = [self._reader.head(number) for number in range(1, self._mark.segment + 1)]
        firsts = [0 if head is None else head.first_position for head in heads]
        return [Sealed(n + 1, firsts[n], firsts[n + 1] - 1) for n in range(len(firsts) - 1)]

    def seal(self, least: int) -> None:
        """End the segment that is written to, if it has that many bytes, and begin another one."""
        with self._locked():
            tail = self._ready(())
            if self._mark.offset >= least:
                self._roll(tail)

    def archive(
        self,
        segment: int,
        into: Path,
        stays: Callable[[bytes, int, int], bool],
        say: Say = lambda pieces: None,
        leaves: Callable[[bytes, int], bool] = lambda uid, seq: False,
        exchange: Exchange = lambda firsts, act: at_once(act),
    ) -> Went:
        """Have the content of a sealed segment go to an archive, but for what `stays` (uid, seq, number), and the deeds
        of the records of which `leaves` (uid, seq) says so; gives how much went. `say` is told all that goes before any
        of it does. `exchange` does what takes it away, or not, if something of it is needed by now:
        then `stays` and `leaves` are asked again; after some tries all of it stays.

        Durable there before anything is changed here; a crash leaves all as it was, or all of it archived. May run
        beside `append`, in another thread. Raises `NotAnArchive`, `Archived`, and what `append` raises.
        """
        self._ready_to_change()
        reader, files = self._reader, self._files

        def write(gone: Going) -> None:
            begin_archive(files, into, self.log_id)
            reader.archives.note(files, into)
            copy_out(files, reader, reader.archives, segment, into, gone.frames)
            say(gone.pieces())
            hollow(files, aside(self._layout), reader, segment, gone)

        for _ in range(TRIES):
            gone = going(reader, segment, stays, leaves)
            act = partial(write, gone) if gone.frames else None
            if self._change(segment, act, partial(exchange, gone.firsts)):
                return Went(len(gone.frames), gone.size, len(gone.rests))
        return Went(0, 0, 0)

    def deeds(self, segment: int) -> Iterator[tuple[bytes, int, int]]:
        """The records of cranks in a sealed segment whose deeds are there: uid, seq, bytes. About 5 µs for a frame."""
        return deeds_in(self._reader, segment)

    def bring_back(self, segment: int) -> int:
        """Have come back what was archived of a sealed segment; gives how many pieces. Raises as `archive` does."""
        self._ready_to_change()
        away = of_type(self._reader, segment, ELSEWHERE)
        write = partial(fill, self._files, aside(self._layout), self._reader, self._reader.archives, segment, away)
        self._change(segment, write if away else None)
        return len(away)

    def weed(self, segment: int) -> int:
        """Have go from the archives that are here what is erased of a segment, and what a crash has left of any; gives
        how many bodies. Raises as `archive` does."""
        self._ready_to_change()
        self.archives.clear(self._files, self.log_id)
        return self._weed(segment)

    def _weed(self, segment: int) -> int:
        return weeded(self._files, self._reader, self.archives, segment)

    def archived(self) -> tuple[int, int]:
        """How many pieces of content are archived, and how many of these are in no archive that is here.

        Costs about 5 µs for each frame of the sealed segments, and a look at each of these pieces.
        """
        frames = [
            (each.segment, one) for each in self.sealed() for one in of_type(self._reader, each.segment, ELSEWHERE)
        ]
        return len(frames), sum(self.archives.found(segment, one) is None for segment, one in frames)

    def note_archive(self, folder: Path) -> None:
        """Put down, durably, that an archive of this log is there: what is erased goes from it as well."""
        self._ready_to_change()
        self.archives.note(self._files, folder)

    @property
    def archives(self) -> Archives:
        """Where archived content is looked for."""
        return self._reader.archives

    def _ready_to_change(self) -> None:
        with self._locked():
            self._ready(())

    def _change(
        self,
        segment: int,
        write: Callable[[], None] | None,
        exchange: Callable[[Callable[[], None]], bool] = at_once,
    ) -> bool:
        """Have `write` write a sealed segment anew beside itself, and `exchange` put that in its place; or not."""
        try:
            if write is not None:
                write()
        except BaseException as error:
            if not isinstance(error, Exception):  # what dies here dies for good
                self._failed(error)
            raise
        with self._locked():
            self._ready(())
            if write is None:
                self._exchange(segment, False)
            elif not exchange(partial(self._exchange, segment, True)):
                clear(self._layout, self._files)
                return False
        return True

    def _exchange(self, segment: int, anew: bool) -> None:
        """Put the segment that was written anew in its place. If it was not, an exchange that a crash has cut short may
        not be durable yet."""
        try:
            with self._files.naming(self._layout.log):
                if anew:
                    self._files.rename(aside(self._layout), self._layout.segment(segment))
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self._reader.exchanged(segment)
