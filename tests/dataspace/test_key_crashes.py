"""Crashes of an encrypted store: at every call, whatever the disk keeps, and what becomes of keys and nonces."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sealed_folders import KEY, OTHER_KEY, forked, keys_in, opened, tombstone
from segment_folders import content

from dataspace.encryption import cipher, keys
from dataspace.encryption.errors import WrongHostKey
from dataspace.log.files import Files
from dataspace.log.rekeying import rekeyed
from dataspace.log.segments import SegmentStore
from dataspace.log.store import BodyErased
from dataspace.records import STORE_UID, Record
from keeve.testing.chains import Chain
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from keeve.testing.disk import Mode


class Life:
    """A store's life, until it is over or the machine dies: sessions, a fork, a deletion, and on."""

    def __init__(self) -> None:
        self.acknowledged: list[Record] = []
        self.destroying = self.destroyed = False
        self.parent = Chain("parent")
        self.lost: list[Record] = []
        """What only the parent could read, once its keys are destroyed."""

    def live(self, folder: Path, files: Files) -> None:
        with opened(folder, files=files, segment_bytes=3000) as store:
            for n in range(3):
                self.say(store, self.parent.record(f"p{n}", cells=["more"]), Chain(f"other {n}").record("o"))
            child, batch = forked(self.parent, "child", 3)
            self.say(store, *batch)
            self.say(store, child.record("c"), self.parent.record("p"))
            self.lost = [batch[0], self.acknowledged[-1]]
            self.say(store, tombstone(self.parent))
            self.destroying = True
            store.destroy([self.parent.uid])
            self.destroyed = True
            self.say(store, child.record("goes on"))

    def say(self, store: SegmentStore, *records: Record) -> None:
        store.append(records)
        self.acknowledged += records

    def check(self, folder: Path) -> None:
        """All that was acknowledged is there and opens, but what was destroyed; and the store goes on."""
        with opened(folder) as store:
            found = {stored.header.hash: stored for stored in store.scan()}
            for record in self.acknowledged:
                stored = found[record.hash]
                try:
                    assert stored.body().digest == record.body_digest
                    assert not (self.destroyed and record in self.lost)
                except BodyErased:
                    assert self.destroying
                    assert record in self.lost
            for stored in found.values():  # nor is anything there that does not open
                with suppress(BodyErased):
                    assert stored.body().digest == stored.header.body_digest
            store.append([Chain("new").record("goes on")])


STEP = 1 if os.environ.get("KEEVE_CRASH") == "full" else 5
"""Of so many calls to die in one is taken, another one each time; all of them with `make crash`."""


def crashes(tmp_path: Path, nth: int, **options: bool) -> Iterator[tuple[Life, CrashFiles, Path, int]]:
    """A life for each call to die in, partly done as well."""
    whole = CrashFiles()
    Life().live(tmp_path / "whole", whole)
    for at in range(1 + nth % STEP, whole.count + 1, STEP):
        life, folder = Life(), tmp_path / f"life {at}"
        files = CrashFiles(at, partial=at * 37 % 900, **options)
        with suppress(SimulatedCrash):
            life.live(folder, files)
        yield life, files, folder, at


@pytest.mark.crash
def test_a_process_that_dies_in_any_call_loses_no_key_that_was_used(tmp_path: Path) -> None:
    """Invariants 1, 4, 6 and 10, of an encrypted store."""
    for life, _, folder, _ in crashes(tmp_path, 0):
        if folder.exists():
            life.check(folder)


@pytest.mark.crash
@pytest.mark.parametrize("mode", [Mode.NOTHING, Mode.ALL, Mode.PREFIX, Mode.SECTORS])
def test_a_power_cut_in_any_call_loses_no_key_that_was_used(tmp_path: Path, mode: Mode) -> None:
    """Invariants 1, 4 and 6, of an encrypted store."""
    for life, files, folder, at in crashes(tmp_path, list(Mode).index(mode)):
        left = tmp_path / f"left {at}"
        files.power_cut(folder, left, mode, seed=at)
        life.check(left)


def test_the_suite_notices_keys_that_are_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: with the syncs of the key file taken out, keys that were used are lost, and that is seen."""
    replace = Files.replace

    def careless(self: Files, path: Path, data: bytes, *, durable: bool = True) -> None:
        replace(self, path, data, durable=durable and path.name != "keys")

    monkeypatch.setattr(Files, "replace", careless)
    noticed = 0
    for life, files, folder, at in crashes(tmp_path, 0):
        left = tmp_path / f"left {at}"
        files.power_cut(folder, left, Mode.NOTHING)
        try:
            life.check(left)
        except Exception:  # noqa: BLE001  # whatever it notices it by
            noticed += 1
    assert noticed > 3


# A new host key.


def test_a_new_host_key_takes_effect_whole_or_not_at_all(tmp_path: Path) -> None:
    """Killed in each call, and the power cut there: the key file opens with one of the two keys, and has all others."""
    Life().live(tmp_path / "made", Files())
    before = keys_in(tmp_path / "made")[0]
    outcomes = set()
    for at in range(1, 100):
        for mode in (None, Mode.NOTHING, Mode.ALL, Mode.SECTORS, Mode.PREFIX):
            folder, left = tmp_path / f"{at} {mode}", tmp_path / f"left {at} {mode}"
            copy(tmp_path / "made", folder)
            files = CrashFiles(at, partial=at * 97 % 900)
            try:
                rekeyed(folder, KEY, lambda: OTHER_KEY, files, os.urandom)
            except SimulatedCrash:
                dead = True
            else:
                dead = False
            if mode is not None:
                files.power_cut(folder, left, mode, seed=at)
            outcomes.add((dead, opens_with(folder if mode is None else left, before)))
        if not dead:
            break
    assert outcomes == {(True, KEY), (True, OTHER_KEY), (False, OTHER_KEY)}


def copy(folder: Path, to: Path) -> None:
    for name, data in content(folder).items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_bytes(data)


def opens_with(folder: Path, before: keys.Keys) -> bytes:
    """The one key with which a store opens; all data keys are what they were."""
    found = b""
    for key in (KEY, OTHER_KEY):
        try:
            table, host = keys_in(folder, key)
        except WrongHostKey:
            continue
        old = keys.HostKey(KEY, before.log_id)
        assert {name: table.key(name, host) for name in table.wraps} == {
            name: before.key(name, old) for name in before.wraps
        }
        assert not found
        found = key
        with opened(folder, key, readonly=True) as store:
            assert len(list(store.scan())) > 10
    return found


# Nonces.


class Nonces:
    """Every key and nonce that anything was sealed with."""

    def __init__(self) -> None:
        self.used: set[tuple[bytes, bytes]] = set()
        self.twice = 0

    def noting(self, patched: pytest.MonkeyPatch) -> None:
        """Look at all that is sealed from here on."""
        nonces = self

        class Noted:
            def __init__(self, key: bytes) -> None:
                self._key = key
                self._gcm = AESGCM(key)
                self.decrypt = self._gcm.decrypt

            def encrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
                nonces.twice += (self._key, nonce) in nonces.used
                nonces.used.add((self._key, nonce))
                return self._gcm.encrypt(nonce, data, bound)

        for module in (cipher, keys):
            patched.setattr(module, "AESGCM", Noted)


def dying_again_and_again(folder: Path, seed: int, salts: Callable[[], Callable[[int], bytes]]) -> None:
    """Two sessions of a store say something until the machine dies, thirty times; each time they say something else."""
    chance = random.Random(seed)
    for life in range(30):
        files = CrashFiles(chance.randrange(8, 40), partial=chance.randrange(2000))
        with suppress(SimulatedCrash), opened(folder, files=files, salts=salts()) as store:
            chains = []
            for name in ("a", "b"):
                head = last(store, Chain(name).uid)
                chains.append(Chain(name, *head))
            for n in range(20):
                chain = chance.choice(chains)
                store.append([chain.record(f"life {life}, {n}", cells=[f"cell {chance.random()}"])])


def last(store: SegmentStore, uid: bytes) -> tuple[int, bytes]:
    """The newest record of a session, by reading all."""
    found = (0, bytes(32))
    for stored in store.scan():
        if stored.header.uid == uid:
            found = (stored.header.seq, stored.header.hash)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_no_nonce_is_used_twice_under_a_key_over_any_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    nonces = Nonces()
    nonces.noting(monkeypatch)
    dying_again_and_again(tmp_path / "store", seed, lambda: os.urandom)
    assert len(nonces.used) > 300
    assert nonces.twice == 0


def repeating() -> Callable[[int], bytes]:
    """The randomness of a machine that was put back to where it was: after each start the same."""
    return random.Random(7).randbytes


@pytest.mark.parametrize("seed", range(4))
def test_not_even_a_machine_whose_randomness_repeats_uses_one_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A cut tail and what is written instead are under keys of their own, each owner's."""
    with opened(tmp_path / "store") as store:
        store.append([Chain("a").record(), Chain("b").record()])
    nonces = Nonces()
    with monkeypatch.context() as patched:
        nonces.noting(patched)
        dying_again_and_again(tmp_path / "store", seed, repeating)
    assert len(nonces.used) > 300
    assert nonces.twice == 0


def test_one_key_for_all_owners_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above: with the owner's epoch taken out of the keys, nonces are used twice."""
    with opened(tmp_path / "store") as store:
        store.append([Chain("a").record(), Chain("b").record()])
    made = cipher.Cipher.__init__

    def careless(self: cipher.Cipher, key: bytes, uid: bytes, epoch: int, owner: int) -> None:
        made(self, key, uid, epoch, 0)

    monkeypatch.setattr(cipher.Cipher, "__init__", careless)
    nonces = Nonces()
    nonces.noting(monkeypatch)
    # What the first owner wrote is under other keys than those that are looked for now: only writing is looked at.
    monkeypatch.setattr(SegmentStore, "check_keys", lambda *_: None)
    dying_again_and_again(tmp_path / "store", 1, repeating)
    assert nonces.twice > 10


def test_what_a_crash_has_left_is_sealed_under_other_keys_than_what_follows(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    epochs = []
    for n in range(3):
        with opened(folder) as store:
            record = Chain(f"s{n}").record()
            store.append([record])
            epochs.append(store.read(record.address).header.epoch)
    assert epochs == [1, 2, 3]
    assert STORE_UID not in {Chain(f"s{n}").uid for n in range(3)}
