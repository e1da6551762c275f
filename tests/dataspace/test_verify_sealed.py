"""The check of an encrypted log, with its key and without."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pytest
from sealed_folders import keys_in, opened
from segment_folders import segment

from dataspace.drafts import Draft
from dataspace.encryption.key_file import packed
from dataspace.encryption.keys import Keys
from dataspace.log.findings import Counts, Finding
from dataspace.log.frames import Frame, Type, commit_frame, frame, parse
from dataspace.log.sweep import Sweep
from dataspace.log.verdicts import Outcome, SegmentBytes
from dataspace.log.verify import Verification
from dataspace.records import STORE_UID, Kind, Record
from dataspace.values import FrozenDict
from keeve.testing.chains import Chain


def drafted(chain: Chain, kind: Kind = Kind.CRANK, **message: object) -> Record:
    """The next record of a chain, with a message and a cell."""
    draft = Draft(chain.uid, chain.seq + 1, kind, chain.seq)
    draft.message = FrozenDict(message)
    draft.operation(1, draft.cell(f"a cell of {chain.seq + 1}"))
    record = draft.seal(chain.hash, os.urandom)
    chain.seq, chain.hash = record.seq, record.hash
    return record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a session of five records, a fork of it, and what the fork says."""
    parent = Chain("parent")
    with opened(tmp_path / "store") as store:
        store.append([drafted(parent, said="a") for _ in range(5)])
        child = Chain("child", 5, parent.hash)
        fork = drafted(parent, Kind.FORK, child=child.uid)
        store.append([fork, drafted(child, Kind.FORKED, id="child", type="t", parent=parent.uid, seq=5)])
        store.append([drafted(child, said="b")])
    return tmp_path / "store"


def verified(folder: Path, *, key: bool = True) -> tuple[list[Finding], Counts]:
    with opened(folder, readonly=True) as store, store.still() as (segments, evidence):
        check = Verification(segments, evidence, opener=store.opener if key else None)
        return list(check.findings()), check.counts


def frames(data: bytes) -> list[Frame]:
    """The frames of the first segment, in order."""
    found, at = [], 0
    while at < len(data) and (each := parse(data, at, 1)) is not None:
        found.append(each)
        at += each.size
    return found


def forged(folder: Path, change: int) -> Frame:
    """Change a byte of a sealed body in the last batch with records, and make every checksum fit again."""
    data = segment(folder).read_bytes()
    every = frames(data)
    last = max(n for n, each in enumerate(every) if each.type == Type.RECORD)
    first = max(n for n in range(last) if every[n].type == Type.COMMIT)
    out, crcs = bytearray(data[: every[first + 1].offset]), []
    victim = every[last]
    for each in every[first + 1 :]:
        body = bytearray(data[each.body_offset : each.body_offset + each.body_length])
        if each.type == Type.COMMIT:
            break
        if each is victim:
            body[change] ^= 1
        chunk, crc = frame(each.type, each.head, bytes(body), 1, len(out), each.flags)
        out += chunk
        crcs.append(crc)
    before = sha256(data[every[first].offset : every[first].offset + 80]).digest()
    position = int.from_bytes(victim.head[:8], "little")
    out += commit_frame(position, position, crcs, before, 1, len(out))[0]
    segment(folder).write_bytes(out)
    (folder / "head").unlink()
    return victim


def test_a_sound_encrypted_log_has_no_findings(folder: Path) -> None:
    found, counts = verified(folder)
    assert found == []
    assert (counts.records, counts.cells, counts.erased, counts.sealed, counts.orphans) == (9, 8, 0, 0, 0)


def test_without_a_key_frames_and_chains_are_checked_and_bodies_counted(folder: Path) -> None:
    found, counts = verified(folder, key=False)
    assert found == []
    assert (counts.records, counts.sealed, counts.orphans) == (9, 17, 0)


def test_a_flipped_byte_is_found_without_a_key(folder: Path) -> None:
    data = bytearray(segment(folder).read_bytes())
    each = next(each for each in frames(bytes(data)) if each.type == Type.CELL)
    data[each.body_offset + 30] ^= 1
    segment(folder).write_bytes(data)
    (found,) = verified(folder, key=False)[0]
    assert (found.outcome, found.offset, found.altered) == (Outcome.DAMAGED, each.offset, False)


@pytest.mark.parametrize("change", [0, 4, 8, 19, 20, -1])
def test_a_body_that_was_made_to_fit_is_found_with_the_key(folder: Path, change: int) -> None:
    victim = forged(folder, change)
    found, _ = verified(folder)
    assert [each.offset for each in found] == [victim.offset]
    assert "key" in found[0].what
    assert found[0].seq == 7
    assert verified(folder, key=False)[0] == []


def test_what_was_destroyed_counts_as_erased(folder: Path) -> None:
    with opened(folder) as store:
        store.destroy([Chain("child").uid])
    found, counts = verified(folder)
    assert found == []
    assert counts.erased == 4
    assert counts.orphans == 0, "the header of a fork names its parent's record by its hash"


def test_a_key_that_is_lost_is_told_for_each_body(folder: Path) -> None:
    keys, host = keys_in(folder)
    left = {name: wrap for name, wrap in keys.wraps.items() if name[0] == STORE_UID}
    (folder / "keys").write_bytes(packed(Keys(keys.log_id, keys.serial, left, {}), host))
    found, _ = verified(folder)
    assert {each.what for each in found} == {"a body whose key is not in the key file"}
    assert len(found) == 16
    assert not any(each.altered for each in found)


def test_the_checksum_is_over_what_is_stored(folder: Path) -> None:
    data = segment(folder).read_bytes()
    sealed = [each for each in frames(data) if each.flags]
    assert len(sealed) == 17
    for each in sealed:
        assert crc32(data[each.body_offset : each.body_offset + each.body_length]) == each.body_crc


@pytest.mark.parametrize("key", [True, False])
def test_a_sealed_log_is_swept_and_found_to_be_the_same_without_the_sweep(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, key: bool
) -> None:
    """With the key and without, sound and with any bit of it changed."""
    passed: list[bool] = []
    follow = Sweep.follow

    def followed(self: Sweep, segment: SegmentBytes, at: int, end: int) -> int:
        reached = follow(self, segment, at, end)
        passed.append(reached == end)
        return reached

    data = segment(folder).read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(Sweep, "follow", followed)
        sound = verified(folder, key=key)
    assert passed == [True]
    assert sound[0] == []
    for at in [None, *range(150, len(data), 101)]:
        if at is not None:
            segment(folder).write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        swept = verified(folder, key=key)
        with monkeypatch.context() as patched:
            patched.setattr(Sweep, "follow", lambda self, segment, at, end: at)
            assert verified(folder, key=key) == swept
