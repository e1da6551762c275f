"""The keys of a store that is open: its key file, and what seals and opens bodies with them.

A key is in the key file, durably, before anything is sealed with it (`prepare`). A key that is not there is told from
one that was destroyed: the first is a fault, and the content of the second was erased.

The one rule: the table in memory is the one on the disk. It is exchanged when the file was, never before; by who owns
the store when it has written the file, and never by what it reads there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from cryptography.exceptions import InvalidTag

from dataspace.encryption.cipher import ENCRYPTED, MOST, NONCE, Cipher, Unopened, expand, named
from dataspace.encryption.errors import (
    HostKeyNeeded,
    KeyFileDamaged,
    KeyFileMissing,
    KeyFileOfAnotherLog,
    KeyFileOlder,
    KeyFileWithoutLog,
    NotEncrypted,
)
from dataspace.encryption.key_file import packed, unpacked
from dataspace.encryption.keys import Beginning, HostKey, Keys, Name, Random, covering
from dataspace.errors import KeeveError
from dataspace.log.files import Files, ReadFailed, open_plain
from dataspace.log.frames import SEGMENT_SIZE, Frame, Seal, Type, parse
from dataspace.log.layout import Layout
from dataspace.log.packed import SegmentFile
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import STORE_UID, Header, Kind, Record

_REMEMBERED: Final = 16_384
"""Ciphers that are kept ready."""
LOG_ID: Final = 16
"""Bytes of a log id."""
_FETCHED: Final = 256
"""Nonces that are fetched at a time."""
_UNOPENED: Final = "a key in it does not open"
_HEAVY: Final = 1 << 16
"""Bodies that a cipher has sealed when it is not forgotten any more."""
_HEAD: Final = 512
"""Bytes that hold the head of the first record."""
_FORK, _FORKED, _DELETE = map(int, (Kind.FORK, Kind.FORKED, Kind.DELETE))
_Stamp = tuple[int, int, int]


class Keyring:
    """The keys in the file at `path`, as the host with this key has them. `random` gives keys and nonces.

    Reading is safe from any thread; `prepare`, `seal` and `destroy` are for one caller at a time.
    """

    def __init__(self, path: Path, data: bytes, host_key: bytes, log_id: bytes | None, files: Files, random: Random):
        self._path = path
        self._host_key = host_key
        self._keys, self._host = unpacked(data, host_key, str(path), log_id)
        self._files = files
        self._random = random
        self._stamp = _stamp(path)
        self._nonces = _nonces(random)
        self._ciphers: dict[tuple[bytes, int, int], Cipher] = {}
        self._sealing: dict[bytes, tuple[Cipher, int, int]] = {}
        self.seen = 0
        """The highest number of a key file that is named by a body which was opened, or whose key is not there."""
        self.owned = False
        """Whether what writes the file is this keyring: then nothing is taken up from there."""
        self._taking_up = Lock()
        self.most = MOST
        """Bodies that are sealed under one key before the next key epoch begins."""

    @classmethod
    def make(cls, path: Path, host_key: bytes, log_id: bytes, files: Files, random: Random) -> Keyring:
        """The key file of a new log. Durable when this returns."""
        host = HostKey(host_key, log_id)
        data = packed(Keys.new(log_id, host, random), host)
        files.replace(path, data)
        return cls(path, data, host_key, log_id, files, random)

    @property
    def log_id(self) -> bytes:
        """The log whose keys these are."""
        return self._keys.log_id

    @property
    def serial(self) -> int:
        """The number of the key file: how often it was written."""
        return self._keys.serial

    @property
    def holders(self) -> Collection[bytes]:
        """The uids of the sessions that hold wraps."""
        return self._keys.newest.keys() - {STORE_UID}

    @property
    def destroyed(self) -> Collection[bytes]:
        """The uids of the sessions that held wraps once, which are destroyed: those that were deleted."""
        return self._keys.destroyed

    def secret(self) -> bytes:
        """From which the keys of derived files follow: the same for as long as the store is there."""
        key = self._key((STORE_UID, 1))
        assert key is not None
        return expand(key, b"keeve derived files 1\n")

    # Writing

    def prepare(self, records: Sequence[Record]) -> None:
        """See that there is a key for each of these records, durably, before any of them is sealed.

        A first record begins the first key epoch of its session, a fork the next one in the parent. Raises what the
        disk refuses, and then nothing has changed; or `SessionDamaged`. Costs some 0.2 µs for each record, or where a
        key epoch begins the writing of the key file.
        """
        newest = self._keys.newest
        wanted = [
            record
            for record in records
            if record.kind == _FORK or record.uid not in newest or self._is_worn(record.uid)
        ]
        if not wanted:
            return
        begun = Beginning(self._keys, self._host, self._random)
        for record in wanted:
            self._begin(begun, record)
        if begun.newest != newest:
            self._write(begun.keys)

    def _begin(self, begun: Beginning, record: Record) -> None:
        uid = record.uid
        epoch = begun.newest.get(uid)
        if epoch is not None:
            if record.kind == _FORK or self._is_worn(uid):
                self._sealing.pop(uid, None)
                begun.begin(uid, record.seq, (uid, epoch))
        elif record.kind == _FORKED:
            begun.begin(uid, record.seq, _shared(begun, record))
        elif record.seq == 1:
            begun.begin(uid, 1, None)
        elif record.kind != _DELETE:
            raise SessionDamaged(uid.hex(), record.seq, 0, f"its key is not in {self._path}")

    def _is_worn(self, uid: bytes) -> bool:
        found = self._sealing.get(uid)
        return found is not None and found[0].sealed >= self.most

    def seal(self, record: Record, owner: int) -> Seal:
        """What seals the bodies of a record that is prepared, as the owner with this epoch writes it."""
        uid = STORE_UID if record.kind == _DELETE else record.uid
        found = self._sealing.get(uid)
        if found is None or found[1] > record.seq or found[2] != owner:
            found = self._sealer(uid, record.seq, owner)
        seal, serial, nonces = found[0].seal, self._keys.serial, self._nonces
        return lambda kind, head, plain: seal(kind, head, plain, serial, next(nonces))

    def _sealer(self, uid: bytes, seq: int, owner: int) -> tuple[Cipher, int, int]:
        """The cipher for a record of this seq, and from which seq on it is the one to use."""
        keys = self._keys
        # One whose wraps are destroyed is written anew as well, as far as its forks have it.
        known = keys.newest if uid in keys.newest else keys.known
        newest = (uid, known[uid])
        name = newest if uid == STORE_UID else covering(known, keys.links, uid, seq) or newest
        key = self._key(name)
        assert key is not None
        link = keys.links.get(name)
        found = (Cipher(key, *name, owner), 0 if link is None or uid == STORE_UID else link.first, owner)
        if name == newest:
            if len(self._sealing) >= _REMEMBERED:
                # How much a key has sealed is known here alone: what is forgotten must not add up to much.
                self._sealing = {each: kept for each, kept in self._sealing.items() if kept[0].sealed >= _HEAVY}
            self._sealing[uid] = found
        return found

    def heirs(self, uids: Collection[bytes]) -> set[bytes]:
        """The sessions that hold keys by way of these, or of those whose keys are destroyed: their forks."""
        keys = self._keys
        return keys.forks(keys.destroyed.union(uids)) & keys.newest.keys()

    def destroy(self, uids: Collection[bytes], unborn: Collection[bytes] = ()) -> None:
        """Destroy the wraps that these sessions hold: durable when this returns. What a fork shares stays readable.

        Those of `unborn` are left out as well, and may be made again. Raises what the disk refuses. Those whose wraps
        are destroyed already are passed over.
        """
        keys = self._keys
        gone = {uid for uid in uids if uid not in keys.destroyed}
        if gone or not keys.newest.keys().isdisjoint(unborn):
            self._write(keys.without(gone, unborn))
            self._ciphers.clear()
            for uid in (*gone, *unborn):
                self._sealing.pop(uid, None)

    def rewrap(self, host_key: bytes) -> None:
        """Wrap all keys under another key of the host: durable when this returns. Raises what the disk refuses."""
        host = HostKey(host_key, self.log_id)
        try:
            keys = self._keys.rewrapped(self._host, host, self._random)
        except InvalidTag:
            raise KeyFileDamaged(str(self._path), _UNOPENED) from None
        self._files.replace(self._path, packed(keys, host))
        self._keys, self._host, self._host_key = keys, host, host_key
        self._stamp = _stamp(self._path)

    def _write(self, keys: Keys) -> None:
        self._files.replace(self._path, packed(keys, self._host))
        self._keys = keys
        self._stamp = _stamp(self._path)

    # Reading

    def open(self, header: Header, frame: Frame, stored: bytes) -> bytes | None:
        """The body of a record's frame, or of one of its parts; None when nobody holds its key any more.

        Raises `Unopened` when it is not what was sealed, `LookupError` when its key is not in the key file.
        """
        cipher = self._cipher(header, stored)
        if cipher is None:
            return None
        opened = cipher.open(frame.was, frame.head, stored)
        self.seen = max(self.seen, named(stored)[1])
        return opened

    def seal_rest(self, header: Header, frame: Frame, stored: bytes, rest: bytes) -> bytes | None:
        """What is left of a record's body, sealed as its `stored` body is: whoever could open that opens this. None and
        errors as of `open`. May be called beside whoever appends."""
        cipher, serial = self._cipher(header, stored), self._keys.serial
        return None if cipher is None else cipher.seal(Type.REST, frame.head, rest, serial, self._random(NONCE))

    def _cipher(self, header: Header, stored: bytes) -> Cipher | None:
        """The cipher with which a body of a record was sealed."""
        epoch, _ = named(stored)
        uid = STORE_UID if header.kind == _DELETE else header.uid
        which = (uid, epoch, header.epoch)
        cipher = self._ciphers.get(which)
        if cipher is None:
            key = self._key((uid, epoch)) or self._followed((uid, epoch))
            if key is None:
                if uid in self._keys.destroyed:
                    return None
                self.seen = max(self.seen, named(stored)[1])
                raise LookupError
            cipher = Cipher(key, *which)
            if len(self._ciphers) >= _REMEMBERED:
                self._ciphers.clear()
            self._ciphers[which] = cipher
        return cipher

    def _key(self, name: Name) -> bytes | None:
        try:
            return self._keys.key(name, self._host)
        except InvalidTag:
            raise KeyFileDamaged(str(self._path), _UNOPENED) from None

    def _followed(self, name: Name) -> bytes | None:
        """A key that another process, which owns the store, may have put into the file since it was read."""
        with suppress(KeeveError):  # what is wrong with the file is told to who follows it
            self.follow()
        return self._key(name)

    def must_be_of(self, log_id: bytes) -> None:
        """Raise `KeyFileOfAnotherLog` for any other log."""
        if log_id != self.log_id:
            raise KeyFileOfAnotherLog(str(self._path), log_id, self.log_id)

    def check(self, stored: bytes) -> None:
        """Hold the key file against the body that was sealed last. Raises `KeyFileOlder`."""
        try:
            _, serial = named(stored)
        except Unopened:
            return
        self.check_serial(serial)

    def check_serial(self, serial: int) -> None:
        """Hold the key file against one that was there. Raises `KeyFileOlder`."""
        if serial > self._keys.serial:
            raise KeyFileOlder(str(self._path), self._keys.serial, serial)

    @property
    def behind(self) -> str:
        """Why this is not the newest key file of what was opened with it; nothing when it may be."""
        try:
            self.check_serial(self.seen)
        except KeyFileOlder as error:
            return str(error)
        return ""

    def follow(self) -> None:
        """Take up what another process, which owns the store, has written into the key file since; never an older one.
        Costs a look at its times."""
        if self.owned or _stamp(self._path) == self._stamp:
            return
        with self._taking_up:
            stamp, data = _stamp(self._path), read_keys(self._path)
            if data is None:
                raise KeyFileMissing(str(self._path))
            keys, host = unpacked(data, self._host_key, str(self._path), self.log_id)
            if keys.serial >= self._keys.serial:
                self._keys, self._host = keys, host
                self._ciphers.clear()
            self._stamp = stamp


def _nonces(random: Random) -> Iterator[bytes]:
    """Nonces without end, fetched many at a time: a system call each would be dear."""
    while True:
        data = random(NONCE * _FETCHED)
        for at in range(0, len(data), NONCE):
            yield data[at : at + NONCE]


def _shared(begun: Beginning, born: Record) -> Name | None:
    """The key that the past of a fork is under, up to where it left its parent; None when it does not name one."""
    match born.message:
        case {"parent": bytes(parent), "seq": int(seq)}:
            return begun.covering(parent, seq)
    return None


def open_keys(layout: Layout, host_key: bytes | None, files: Files, random: Random) -> Keyring | None:
    """The keys of a store; None when it is not encrypted, or is to be made.

    Raises `HostKeyNeeded`, `NotEncrypted`, `KeyFileMissing`, or what says that the key file is not to be used.
    """
    sealed = is_sealed(layout)
    data = read_keys(layout.keys)
    if host_key is None:
        if sealed or (sealed is None and data is not None):
            raise HostKeyNeeded(str(layout.folder))
        return None
    if sealed is False:
        raise NotEncrypted(str(layout.folder))
    if data is None:
        if sealed:
            raise KeyFileMissing(str(layout.keys))
        return None
    return Keyring(layout.keys, data, host_key, layout.log_id(), files, random)


def new_keys(
    keyring: Keyring | None, layout: Layout, host_key: bytes | None, files: Files, random: Random
) -> Keyring | None:
    """The keys of a store that is about to be made, of what a crash has left of one, or None for one without a key.

    Raises `KeyFileWithoutLog` when there are keys that were in use.
    """
    if keyring is not None and keyring.holders:
        raise KeyFileWithoutLog(str(layout.keys))
    if keyring is not None or host_key is None:
        return keyring
    return Keyring.make(layout.keys, host_key, random(LOG_ID), files, random)


def is_sealed(layout: Layout) -> bool | None:
    """Whether the first record of a log is sealed, and so all of them; None when it cannot be read."""
    try:
        file = SegmentFile(layout.segment(1), 1)
        try:
            found = parse(file.read(SEGMENT_SIZE, _HEAD), 0, 1, SEGMENT_SIZE)
        finally:
            file.close()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadFailed.of(str(layout.segment(1)), error) from error
    return None if found is None else bool(found.flags & ENCRYPTED)


def read_keys(path: Path) -> bytes | None:
    """A key file; None when there is none. Raises `ReadFailed`."""
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error
    with open(fd, "rb") as file:
        return file.read()


def _stamp(path: Path) -> _Stamp | None:
    """By which a file is known again; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
