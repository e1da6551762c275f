"""The key file: its bytes, and how each fault in it is named."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from hmac import digest
from pathlib import Path

import pytest

from dataspace.encryption.errors import KeyFileDamaged, KeyFileNewer, KeyFileOfAnotherLog, WrongHostKey
from dataspace.encryption.key_file import packed, unpacked
from dataspace.encryption.keys import Beginning, HostKey, Keys
from dataspace.records import STORE_UID

LOG = b"a log's own name"
SECRET = bytes(range(32))
HOST = HostKey(SECRET, LOG)
PARENT = b"the parent's uid"
CHILD = b"the child's own."
PAGE = Path(__file__).parents[2] / "docs" / "encryption.md"


def table() -> Keys:
    begun = Beginning(Keys.new(LOG, HOST, os.urandom), HOST, os.urandom)
    begun.begin(PARENT, 1, None)
    begun.begin(PARENT, 5, (PARENT, 1))
    begun.begin(CHILD, 5, (PARENT, 1))
    begun.begin(b"a gone one's uid", 1, None)
    return begun.keys.without([b"a gone one's uid"])


def test_a_table_is_read_back_as_it_was() -> None:
    keys = table()
    found, host = unpacked(packed(keys, HOST), SECRET, "keys", LOG)
    assert (found.log_id, found.serial, found.wraps, found.links, found.destroyed) == (
        keys.log_id,
        keys.serial,
        keys.wraps,
        keys.links,
        keys.destroyed,
    )
    assert found.key((PARENT, 1), host) == keys.key((PARENT, 1), HOST)


def test_its_bytes_are_those_of_the_page() -> None:
    keys = table()
    data = packed(keys, HOST)
    sizes = [int(size) for size in re.findall(r"^\| … \| (\d+) each", PAGE.read_text(), re.MULTILINE)]
    assert data[:12] == b"KEEVEKEY\x01\x00\x00\x00"
    assert int.from_bytes(data[12:16], "little") == keys.serial
    assert data[16:32] == LOG
    assert data[32:48] == HOST.check
    assert data[48:64] == b"".join(number.to_bytes(4, "little") for number in (4, 2, 1, 0))
    assert data[64:84] == STORE_UID + b"\x01\x00\x00\x00"
    assert len(data) == 64 + 4 * 80 + 2 * sizes[0] + sizes[1] + 64
    assert data[-64:-32] == sha256(data[:-64]).digest()
    assert data[-32:] == digest(HOST.vouching, data[-64:-32], "sha256")


def test_every_flipped_byte_is_damage() -> None:
    data = packed(table(), HOST)
    for at in range(len(data)):
        with pytest.raises(KeyFileDamaged):
            unpacked(data[:at] + bytes((data[at] ^ 0x10,)) + data[at + 1 :], SECRET, "keys", LOG)


def test_every_length_but_its_own_is_damage() -> None:
    data = packed(table(), HOST)
    for length in (*range(0, len(data), 7), len(data) - 1):
        with pytest.raises(KeyFileDamaged):
            unpacked(data[:length], SECRET, "keys", LOG)
    with pytest.raises(KeyFileDamaged):
        unpacked(data + b"\0", SECRET, "keys", LOG)


def test_another_host_key_is_told_from_damage() -> None:
    with pytest.raises(WrongHostKey):
        unpacked(packed(table(), HOST), bytes(32), "keys", LOG)


def test_a_key_file_of_another_log_is_named() -> None:
    with pytest.raises(KeyFileOfAnotherLog) as caught:
        unpacked(packed(table(), HOST), SECRET, "keys", LOG[::-1])
    assert (caught.value.expected, caught.value.actual) == (LOG[::-1], LOG)


def test_a_newer_format_is_refused_by_its_number() -> None:
    data = packed(table(), HOST)
    newer = data[:8] + b"\x02" + data[9:-64]
    hashed = sha256(newer).digest()
    with pytest.raises(KeyFileNewer, match="format 2"):
        unpacked(newer + hashed + digest(HOST.vouching, hashed, "sha256"), SECRET, "keys", LOG)


def test_what_somebody_without_the_key_has_put_in_is_damage() -> None:
    """A session's wrap is taken out, and the plain hash made to fit again."""
    data = packed(table(), HOST)
    short = data[:48] + (3).to_bytes(4, "little") + data[52:144] + data[224:-64]
    with pytest.raises(KeyFileDamaged, match="with this key"):
        unpacked(short + sha256(short).digest() + data[-32:], SECRET, "keys", LOG)


def test_counts_that_do_not_fit_are_damage() -> None:
    data = packed(table(), HOST)
    wrong = data[:48] + (99).to_bytes(4, "little") + data[52:-64]
    hashed = sha256(wrong).digest()
    with pytest.raises(KeyFileDamaged, match="counts"):
        unpacked(wrong + hashed + digest(HOST.vouching, hashed, "sha256"), SECRET, "keys", LOG)


def test_a_table_without_the_stores_own_key_is_damage() -> None:
    bare = Keys(LOG, 1, {}, {})
    with pytest.raises(KeyFileDamaged, match="own chain"):
        unpacked(packed(bare, HOST), SECRET, "keys", LOG)


def test_no_key_stands_in_it() -> None:
    keys = table()
    data = packed(keys, HOST)
    for name in keys.wraps:
        key = keys.key(name, HOST)
        assert key is not None
        assert key not in data
    assert SECRET not in data


def test_a_key_that_is_in_it_twice_is_damage() -> None:
    data = packed(table(), HOST)
    twice = data[:48] + (5).to_bytes(4, "little") + data[52:144] + data[64:144] + data[144:-64]
    hashed = sha256(twice).digest()
    with pytest.raises(KeyFileDamaged, match="twice"):
        unpacked(twice + hashed + digest(HOST.vouching, hashed, "sha256"), SECRET, "keys", LOG)


def test_a_table_that_has_grown_is_written_as_one_that_is_made_anew() -> None:
    """What is known of its bytes from before is not made again."""
    read, host = unpacked(packed(table(), HOST), SECRET, "keys", LOG)
    begun = Beginning(read, host, os.urandom)
    begun.begin(CHILD, 9, (CHILD, 1))
    begun.begin(b"one more session", 1, None)
    grown = begun.keys
    anew = Keys(grown.log_id, grown.serial, grown.wraps, grown.links, grown.destroyed)
    assert packed(grown, host) == packed(anew, host)
    assert grown.newest == anew.newest
