"""Salvaging: all that is sound in a damaged store, written into a new one.

The old store is read and nothing else: no lock is taken there, and no file, byte or time changes. The new one is made
beside its place and gets its name when all of it is durable. Sessions keep their uids, seqs and hashes; the new store
keeps the log's id, since the ids of effects and of requests are made of it. It says in its own chain that it was
salvaged; and a session that may have lost its end says so in its own, and counts on from where nothing that was lost
can have counted. One that was deleted stays so without its tombstone: the old store's catalog knows of it, and so does
the key file, in which its keys are destroyed.

The one rule: either the new store is there, whole, or nothing is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import attrs

from dataspace.catalog.deletions import Deletions, deletions_in
from dataspace.catalog.schema import CATALOG
from dataspace.errors import KeeveError
from dataspace.log.archives import Archives
from dataspace.log.files import Files, ReadFailed, open_plain
from dataspace.log.frames import Type, record_head, record_head_length
from dataspace.log.keyring import open_keys
from dataspace.log.layout import Layout, State, check_new
from dataspace.log.making import SALVAGE, Making
from dataspace.log.marks import Certificate, ChainHead
from dataspace.log.notices import created, reclaimed
from dataspace.log.opening import known_here
from dataspace.log.ownership import owner_of
from dataspace.log.packed import mended_in
from dataspace.log.patience import BLOCK, Patient
from dataspace.log.publishing import read as read_head
from dataspace.log.rewriting import Kept, Rewriter
from dataspace.log.salvaging import Chain, Salvage
from dataspace.log.segments import SEGMENT_BYTES
from dataspace.log.store import NotAStore, StoreOwned
from dataspace.log.survey import owner_of as segment_of
from dataspace.log.verdicts import NOTHING_KNOWN, SegmentBytes
from dataspace.log.windows import Window
from dataspace.records import STORE_UID, ZERO_HASH, Record, Salts
from vat.host.aftermath import NAMED, LostCell, LostSession, Salvaged, TakenCell, buried, marked, name_of, notice


class NothingSound(KeeveError):
    """No record of a log could be kept. Nothing was made."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: no record in it is sound from its chain's beginning: see what is there with keeve dump, and "
            "put back a backup"
        )


def salvage(
    old: Path,
    new: Path,
    *,
    now: Callable[[], int],
    salts: Salts,
    files: Files | None = None,
    key: bytes | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Salvaged:
    """Write all that is sound in the store at `old` into a new one at `new`, where nothing may be yet.

    `key` is the host's, of an encrypted store. `progress` is told how many bytes of the log were read, of how many.
    Raises `NotAStore`, `StoreOwned`, `PlaceTaken`, `NothingSound`, what says that a key does not fit, or what the disk
    refuses; then nothing was made. Costs two passes over the log, and 300 bytes of memory for each record.
    """
    source, files = Layout(old), files or Files()
    _check(source, new)
    with Making(new, files, SALVAGE) as making, ExitStack() as stack:
        disk = _Disk(source, stack, progress)
        keys = open_keys(source, key, files, salts)
        archives = Archives(source)
        stack.callback(archives.renew)
        log = Salvage(disk.segments, None if keys is None else keys.open, archives.found)
        log.look()
        log_id = log.log_id or source.log_id()
        if log_id is None:
            raise NothingSound(str(source.folder))
        found = _Written(log, log_id, source, making, files, now, salts).store(key, segment_bytes)
        places = tuple([*disk.unread, *found.places][:NAMED])
        return attrs.evolve(found, places=places, older_keys="" if keys is None else keys.behind)


def _check(source: Layout, new: Path) -> None:
    if source.state() is not State.STORE:
        raise NotAStore(str(source.folder), "there is no log in it")
    owner = owner_of(source.lock)
    if owner is not None:
        raise StoreOwned(str(source.folder), owner)
    check_new(source, new)


def _needed(chains: Mapping[bytes, Chain], dead: Collection[bytes]) -> dict[bytes, int]:
    """Up to which seq the living sessions need the records of others, by the uids of these."""
    found: dict[bytes, int] = {}
    for uid, chain in chains.items():
        at = chain
        while uid not in dead and chain.seq and at.follows is not None:
            found[at.follows] = max(found.get(at.follows, 0), at.first - 1)
            at = chains[at.follows]
    return found


class _Disk:
    """The segment files of the old store, read patiently: what the disk does not give is zeros."""

    def __init__(self, source: Layout, stack: ExitStack, progress: Callable[[int, int], None]) -> None:
        self._files: list[tuple[Path, Patient]] = []
        self._progress = progress
        self._total = sum(source.segment(number).stat().st_size for number in source.segments())
        found: dict[int, Window] = {}
        others: list[tuple[int, Window]] = []
        before = 0
        for number in source.segments():
            data = self._opened(source.segment(number), stack, before)
            before += len(data)
            if segment_of(data) in (None, number):
                found[number] = data
            else:
                others.append((segment_of(data) or number, data))
        for number, data in others:
            found.setdefault(number, data)
        self.segments = [SegmentBytes(number, data) for number, data in sorted(found.items())]
        """Each under the number that it has in its own first frame, or else in its name."""

    def _opened(self, path: Path, stack: ExitStack, before: int) -> Window:
        try:
            fd = open_plain(path)
        except OSError as error:
            raise ReadFailed.of(str(path), error) from error
        stack.callback(os.close, fd)
        patient = Patient(fd)
        self._files.append((path, patient))

        def read(offset: int, length: int) -> bytes:
            self._progress(before + offset, self._total)
            return patient.read(offset, length)

        size = os.fstat(fd).st_size
        lies = mended_in(read, size)
        return Window(read, size, str(path)) if lies is None else Window(lies.read, lies.length, str(path))

    @property
    def unread(self) -> list[str]:
        """What the disk did not give."""
        return [
            f"{path}, offset {offset}, {BLOCK} bytes: the disk cannot read them"
            for path, patient in self._files
            for offset in sorted(patient.unread)
        ]


class _Written:
    """One new store in the making."""

    def __init__(
        self,
        log: Salvage,
        log_id: bytes,
        source: Layout,
        making: Making,
        files: Files,
        now: Callable[[], int],
        salts: Salts,
    ) -> None:
        self._log = log
        self._log_id = log_id
        self._source = source
        self._making = making
        self._files = files
        self._now = now
        self._salts = salts
        self._checkpoints = 0
        self._gone: dict[bytes, dict[int, tuple[int, list[int]]]] = {}
        self._deletions = Deletions()
        self._destroyed: Collection[bytes] = ()
        self._sealed = False

    def store(self, key: bytes | None, segment_bytes: int) -> Salvaged:
        """Make it, and give it its name."""
        log, files, aside = self._log, self._files, self._making.layout
        self._making.check()
        if key is not None:
            files.replace(aside.keys, self._source.keys.read_bytes())
        keys = open_keys(aside, key, files, self._salts)
        secret = None if keys is None else keys.secret()
        known, copy = self._source.folder / CATALOG, aside.folder / "catalog.new"
        self._deletions = deletions_in(known, copy, self._log_id, secret)
        if keys is not None:
            self._sealed, self._destroyed = True, keys.destroyed
        with _Segments(self._making, files) as sink:
            # It looks at the uid, the seq and the kind alone, which a header has as well.
            sealing: Any = None if keys is None else keys.seal
            rewriter = Rewriter(self._log_id, sink, segment_bytes, sealing)

            def write(record: Record) -> None:
                if keys is not None:
                    keys.prepare([record])
                rewriter.made(record)

            if not log.created:
                log.give_up(STORE_UID, "the record that says which log this is")
                first = created(self._log_id, self._now(), self._salts)
                write(first)
                own: ChainHead = (1, first.hash)
            else:
                own = (0, ZERO_HASH)

            def certificate(kept: Certificate) -> bool:
                fits = rewriter.certificate(kept)
                self._checkpoints += fits
                return fits

            for kept in log.kept(certificate):
                self._leave_out(rewriter.add(kept), kept)
            if not log.records:
                raise NothingSound(str(self._source.folder))
            own = (log.chains[STORE_UID].seq, log.chains[STORE_UID].hash) if log.created else own
            self._name()
            found = self._found()
            for chain in self._deleted():
                write(buried(chain, self._now(), self._salts))
            for chain in self._uncertain(found.missing):
                write(marked(chain, self._now(), self._salts))
            record = notice(own, str(self._source.folder), found, self._erased(), self._now(), self._salts)
            write(record)
            if log.erasures:
                # What is erased is named by positions, which are others now; and all of it is gone here.
                own = (record.seq, record.hash)
                write(reclaimed(own, 0, rewriter.position, 0, self._now(), self._salts))
            rewriter.end()
        aside.write_format(files, self._log_id)
        check_new(self._source, self._making.new)
        self._making.name()
        return found

    def _name(self) -> None:
        """Take from the catalog what deleted sessions were called of which the log does not tell it any more."""
        chains = self._log.chains
        known = {chain.id for chain in chains.values()}
        for uid, row in self._deletions.sessions.items():
            chain = chains.get(uid)
            if chain is not None and chain.id is None and row.id not in known and self._is_deleted(chain):
                known.add(row.id)
                chain.id = row.id
                chain.born = {**chain.born, "type": row.type} if chain.born else chain.born

    def _leave_out(self, position: int, kept: Kept) -> None:
        """Take down which body and cells of a record are not written, of those that the old log had."""
        header, _ = record_head(kept.head[: record_head_length(0) - 4] + bytes(4))
        out = enumerate(kept.parts)
        gone = [n - 1 for n, part in out if part.type == Type.FACTS or (part.body is None and part.type != Type.PAGE)]
        if gone:
            self._gone.setdefault(header.uid, {})[position] = header.seq, gone

    def _erased(self) -> dict[int, list[int]]:
        """What is left out, but for what is gone of deleted sessions as a whole and no living fork needs: tombstones
        tell that."""
        dead = {uid for uid, chain in self._log.chains.items() if chain.deleted or self._is_deleted(chain)}
        needed = _needed(self._log.chains, dead)
        return {
            position: numbers
            for uid, gone in self._gone.items()
            for position, (seq, numbers) in gone.items()
            if uid not in dead or numbers[0] >= 0 or seq <= needed.get(uid, 0)
        }

    def _open(self) -> list[Chain]:
        """The sessions that have no tombstone among what is kept."""
        chains = self._log.chains.items()
        return [chain for uid, chain in chains if chain.seq and not chain.deleted and uid != STORE_UID]

    def _is_deleted(self, chain: Chain) -> bool:
        """Whether anything says that a session was deleted: its tombstone, the key file, or the catalog, which is
        believed where the log has nothing else at that position."""
        row = self._deletions.sessions.get(chain.uid)
        told = row is not None and row.deleted not in self._log.positions
        return chain.tombstone or told or chain.uid in self._destroyed

    def _deleted(self) -> list[Chain]:
        """Those of them that were deleted."""
        return [chain for chain in self._open() if self._is_deleted(chain)]

    def _uncertain(self, missing: int) -> list[Chain]:
        """The living sessions that may have said more than what is kept."""
        chains = [chain for chain in self._open() if not self._is_deleted(chain)]
        return chains if missing else [chain for chain in chains if chain.lost]

    def _found(self) -> Salvaged:
        log = self._log
        chains = log.chains
        lost = [chain for uid, chain in chains.items() if chain.lost]
        kept = [chain for uid, chain in chains.items() if chain.seq and uid != STORE_UID]
        living = len(self._open()) - len(self._deleted())
        missing = self._missing()
        pageless = [chain.id or chain.uid.hex() for chain in chains.values() if chain.pageless and chain.seq]
        places = [
            f"segment {n}, offset {piece.offset}, {piece.size} bytes: {piece.wrong}" for n, piece in log.pieces.first
        ]
        if self._deletions.wrong:
            places.append(f"{CATALOG}: {self._deletions.wrong}: it tells nothing of deletions")
        return Salvaged(
            self._log_id.hex(),
            log.records,
            len(kept),
            self._checkpoints,
            tuple(LostSession(name_of(each), each.uid.hex(), each.seq, each.last, each.why) for each in lost),
            missing,
            len(self._uncertain(missing)),
            tuple(pageless[:NAMED]),
            tuple(places[:NAMED]),
            log.away,
            tuple([name_of(chain) for chain in self._deleted()][:NAMED]),
            # The key file knows of all deletions, the catalog of those that it had come to.
            bool(missing) and not self._sealed and self._deletions.upto < self._end(),
            log.unread,
            living=living,
            deleted=len(kept) - living,
            gone=sum(not each.seq for each in lost if each.uid != STORE_UID),
            taken=tuple(TakenCell(name_of(chains[uid]), *place) for uid, *place in log.erasures.taken.first),
            taken_in_all=log.erasures.taken.count,
            holes=tuple(LostCell(name_of(chains[hole.uid]), *hole[1:]) for hole in log.holes.first),
            holes_in_all=log.holes.count,
        )

    def _end(self) -> int:
        """The highest position that anything says the log has had."""
        published = read_head(self._source.head, tries=1)
        end = max(self._log.end, self._deletions.upto)
        if published is not None and published.log_id == self._log_id:
            end = max(end, published.mark.position)
        return end

    def _missing(self) -> int:
        """How many records once were there of which nothing is known."""
        log = self._log
        named = 0
        for chain in log.chains.values():
            if chain.seq:
                named += max(0, chain.last - chain.first + 1 - chain.met)
        return max(int(self._is_cut()), self._end() - len(log.positions) - named)

    def _is_cut(self) -> bool:
        """Whether the newest segment lies packed, as only those do that another one has followed."""
        with suppress(KeeveError):
            return known_here(self._source, NOTHING_KNOWN).sealed > 0
        return False


class _Segments:
    """The segment files of a folder, written one after another. Each is durable when the next one begins."""

    def __init__(self, making: Making, files: Files) -> None:
        self._making = making
        self._layout = making.layout
        self._files = files
        self._fd: int | None = None
        self._offset = 0

    def begin(self, segment: int) -> None:
        self._close()
        self._making.check()
        self._fd = self._files.open(self._layout.segment(segment), create=True)
        self._offset = 0

    def write(self, data: bytes) -> None:
        assert self._fd is not None
        self._files.write(self._fd, self._offset, data, self._offset)
        self._offset += len(data)

    def _close(self, *, sync: bool = True) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                if sync:
                    self._files.sync(fd)
            finally:
                self._files.close(fd)

    def __enter__(self) -> _Segments:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        self._close(sync=kind is None)
        if kind is None:
            self._files.sync_folder(self._layout.log)
