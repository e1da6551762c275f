"""The table of data keys: which key opens what, and who holds it.

Each session has a data key of its own, and another one, a new *key epoch*, from each fork of it on. A *wrap* is such a
key under the host's; a session holds the wraps of its own epochs. A *link* is the key of the epoch before, under the
key of the one after it: so whoever has a key has all that came before it in that lineage, and nothing that came after.
A fork's first epoch is linked to its parent's epoch at that point, which is how it holds the shared past.

    parent   1 ←── 2 ←── 3
                   ↑
    child          └──── 1 ←── 2

To destroy a session's wraps leaves its forks whole, and nobody who could open what it alone held.

The one rule: a table is never changed. What changes it gives another one, with the next serial number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dataspace.encryption.cipher import KEY, NONCE, TAG, expand
from dataspace.records import STORE_UID

Random: TypeAlias = Callable[[int], bytes]
"""Where keys and nonces come from: `os.urandom`, or a source that a test records."""
Name: TypeAlias = "tuple[bytes, int]"
"""A data key: a session's uid and its key epoch, from 1."""

WRAPPED: Final = NONCE + KEY + TAG
"""Bytes of a key under another one: nonce, ciphertext, tag."""
_NAME = struct.Struct("<16sI")
_LINK = struct.Struct("<16sIQ16sI")


class Link(NamedTuple):
    """Where a key epoch begins (the seq of its first record) and which key came before it, under its own."""

    first: int
    before: Name
    sealed: bytes


class HostKey:
    """A host's key, as it is used for one log: it wraps data keys, and vouches for the key file."""

    __slots__ = ("_gcm", "_log_id", "check", "vouching")

    def __init__(self, key: bytes, log_id: bytes) -> None:
        self._gcm = AESGCM(expand(key, b"keeve wrapping key 1\n" + log_id))
        self._log_id = log_id
        self.vouching = expand(key, b"keeve key file 1\n" + log_id)
        self.check = expand(key, b"keeve host key check 1\n" + log_id)[:16]
        """By which a key file tells whether it was written with this key."""

    def wrap(self, name: Name, key: bytes, random: Random) -> bytes:
        """A data key under this one, for this log and name alone."""
        nonce = random(NONCE)
        return nonce + self._gcm.encrypt(nonce, key, self._bound(name))

    def unwrap(self, name: Name, wrapped: bytes) -> bytes:
        """The data key. Raises `InvalidTag`."""
        return self._gcm.decrypt(wrapped[:NONCE], wrapped[NONCE:], self._bound(name))

    def _bound(self, name: Name) -> bytes:
        return b"keeve wrap 1\n" + self._log_id + _NAME.pack(*name)


WRAP: Final = struct.Struct(f"<16sI{WRAPPED}s")
"""A wrap as it lies in a key file."""
LINK: Final = struct.Struct(f"<16sIQ16sI{WRAPPED}s")
"""A link as it lies there."""


class Made(NamedTuple):
    """What follows from a table, where it is known already: the newest epochs, and the bytes of wraps and links."""

    newest: Mapping[bytes, int] | None
    wraps: bytes
    links: bytes


class Keys:
    """The data keys of log `log_id`, in their `serial`-th state. `destroyed` are the sessions that had wraps once."""

    def __init__(
        self,
        log_id: bytes,
        serial: int,
        wraps: Mapping[Name, bytes],
        links: Mapping[Name, Link],
        destroyed: frozenset[bytes] = frozenset(),
        made: Made | None = None,
    ) -> None:
        self.log_id = log_id
        self.serial = serial
        self.wraps = wraps
        self.links = links
        self.destroyed = destroyed
        self._made = made

    @classmethod
    def new(cls, log_id: bytes, host: HostKey, random: Random) -> Keys:
        """The table of a new log: the key of the store's own chain."""
        name = (STORE_UID, 1)
        return cls(log_id, 1, {name: host.wrap(name, random(KEY), random)}, {})

    @cached_property
    def newest(self) -> Mapping[bytes, int]:
        """The newest key epoch of each session that holds wraps."""
        if self._made is not None and self._made.newest is not None:
            return self._made.newest
        found: dict[bytes, int] = {}
        for uid, epoch in self.wraps:
            if epoch > found.get(uid, 0):
                found[uid] = epoch
        return found

    @cached_property
    def known(self) -> Mapping[bytes, int]:
        """The newest key epoch of each session that anybody can open: by its own wraps, or those of its forks."""
        found = dict(self.newest)
        for link in self.links.values():
            uid, epoch = link.before
            found[uid] = max(epoch, found.get(uid, 0))
        return found

    @cached_property
    def wrap_bytes(self) -> bytes:
        """The wraps as they lie in a key file, end to end."""
        if self._made is not None:
            return self._made.wraps
        return b"".join([WRAP.pack(uid, epoch, wrap) for (uid, epoch), wrap in self.wraps.items()])

    @cached_property
    def link_bytes(self) -> bytes:
        """The links as they lie there."""
        if self._made is not None:
            return self._made.links
        return b"".join([_packed(name, link) for name, link in self.links.items()])

    @cached_property
    def _after(self) -> Mapping[Name, list[Name]]:
        found: dict[Name, list[Name]] = {}
        for name, link in self.links.items():
            found.setdefault(link.before, []).append(name)
        return found

    def key(self, name: Name, host: HostKey) -> bytes | None:
        """The data key, by its own wrap or by way of one that came after it; None when nobody holds it any more.

        Raises `InvalidTag` for a wrap or a link that is not what was written.
        """
        way = self._way(name)
        if not way:
            return None
        key = host.unwrap(way[-1], self.wraps[way[-1]])
        for after in reversed(way[1:]):
            key = _unlinked(self.log_id, after, self.links[after], key)
        return key

    def _way(self, name: Name) -> list[Name]:
        """The names from this one to one that has a wrap, each linked to the one before; empty when there is none."""
        come_from: dict[Name, Name | None] = {name: None}
        waiting = [name]
        while waiting:
            here = waiting.pop()
            if here in self.wraps:
                way: list[Name] = []
                at: Name | None = here
                while at is not None:
                    way.append(at)
                    at = come_from[at]
                return way[::-1]
            for after in self._after.get(here, ()):
                if after not in come_from:
                    come_from[after] = here
                    waiting.append(after)
        return []

    def forks(self, uids: Collection[bytes]) -> set[bytes]:
        """The sessions whose past is partly that of these."""
        return {name[0] for name, link in self.links.items() if link.before[0] in uids} - set(uids)

    def without(self, uids: Collection[bytes], unborn: Collection[bytes] = ()) -> Keys:
        """The table without the wraps of some sessions, which are `destroyed` then, and of some that never came to be;
        and without the links that lead to nobody's past."""
        gone = frozenset(uids) - {STORE_UID}
        left_out = gone.union(unborn)
        wraps = {name: wrap for name, wrap in self.wraps.items() if name[0] not in left_out}
        opened: set[Name] = set()
        for name in wraps:
            at: Name | None = name
            while at is not None and at not in opened:
                opened.add(at)
                link = self.links.get(at)
                at = None if link is None else link.before
        links = {name: link for name, link in self.links.items() if name in opened}
        return Keys(self.log_id, self.serial + 1, wraps, links, self.destroyed | gone)

    def rewrapped(self, host: HostKey, new: HostKey, random: Random) -> Keys:
        """The table under another host key. Data keys and links stay as they are. Raises `InvalidTag`."""
        wraps = {name: new.wrap(name, host.unwrap(name, wrap), random) for name, wrap in self.wraps.items()}
        return Keys(self.log_id, self.serial + 1, wraps, self.links, self.destroyed)


class Beginning:
    """A table to which key epochs are added, one after another. `keys` is what it comes to."""

    def __init__(self, keys: Keys, host: HostKey, random: Random) -> None:
        self._from = keys
        self._host = host
        self._random = random
        self._wraps = dict(keys.wraps)
        self._links = dict(keys.links)
        self._made: dict[Name, bytes] = {}
        self._new_wraps = [keys.wrap_bytes]
        self._new_links = [keys.link_bytes]
        self.newest = dict(keys.newest)

    def begin(self, uid: bytes, first: int, before: Name | None) -> None:
        """Begin the next key epoch of a session at seq `first`, linked to the one `before` it. Raises `InvalidTag`."""
        epoch = self.newest.get(uid, 0) + 1
        name = (uid, epoch)
        key = self._random(KEY)
        earlier = None if before is None else self._made.get(before) or self._from.key(before, self._host)
        if before is not None and earlier is not None:
            link = self._links[name] = _linked(self._from.log_id, name, first, before, earlier, key, self._random)
            self._new_links.append(_packed(name, link))
        wrap = self._wraps[name] = self._host.wrap(name, key, self._random)
        self._new_wraps.append(WRAP.pack(*name, wrap))
        self._made[name] = key
        self.newest[uid] = epoch

    def covering(self, uid: bytes, seq: int) -> Name | None:
        """The key that the record at `seq` of a session's lineage is under."""
        return covering(self.newest, self._links, uid, seq)

    @property
    def keys(self) -> Keys:
        """The table as it is now."""
        before = self._from
        made = Made(self.newest, b"".join(self._new_wraps), b"".join(self._new_links))
        return Keys(before.log_id, before.serial + 1, self._wraps, self._links, before.destroyed, made)


def covering(newest: Mapping[bytes, int], links: Mapping[Name, Link], uid: bytes, seq: int) -> Name | None:
    """The key that the record at `seq` of a session's lineage is under. O(the key epochs that began after it)."""
    epoch = newest.get(uid)
    if epoch is None:
        return None
    name = (uid, epoch)
    while (link := links.get(name)) is not None and seq < link.first:
        name = link.before
    return name


def _packed(name: Name, link: Link) -> bytes:
    return LINK.pack(*name, link.first, *link.before, link.sealed)


def _linked(log_id: bytes, name: Name, first: int, before: Name, earlier: bytes, key: bytes, random: Random) -> Link:
    nonce = random(NONCE)
    gcm = AESGCM(expand(key, b"keeve link key 1\n"))
    return Link(first, before, nonce + gcm.encrypt(nonce, earlier, _bound(log_id, name, first, before)))


def _unlinked(log_id: bytes, name: Name, link: Link, key: bytes) -> bytes:
    gcm = AESGCM(expand(key, b"keeve link key 1\n"))
    return gcm.decrypt(link.sealed[:NONCE], link.sealed[NONCE:], _bound(log_id, name, link.first, link.before))


def _bound(log_id: bytes, name: Name, first: int, before: Name) -> bytes:
    return b"keeve link 1\n" + log_id + _LINK.pack(*name, first, *before)


def fits(keys: Keys, host: HostKey) -> bool:
    """Whether the key of the store's own chain opens: what a table must have, whatever else is in it."""
    try:
        return keys.key((STORE_UID, 1), host) is not None
    except InvalidTag:
        return False
