"""Ciphers, against published vectors, and against what their page says of the bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import cryptography_vectors
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from dataspace.encryption.cipher import ENCRYPTED, NONCE, OVERHEAD, Cipher, Unopened, expand, named

VECTORS = Path(cryptography_vectors.__file__).parent
UID = b"a session's uid."


def vectors(file: str, between: str = "\n\n") -> Iterator[dict[str, str]]:
    """The blocks of a file of vectors."""
    for block in (VECTORS / file).read_text().replace("\r", "").split(between):
        found = dict(line.split("=", 1) for line in block.split("\n") if "=" in line)
        yield {key.strip(): value.strip() for key, value in found.items()} | {"FAIL": str("FAIL" in block)}


def ours(lengths: str) -> list[dict[str, str]]:
    """The vectors of a file with nonces of 96 bits and tags of 128, which are those that we use."""
    found, fits = [], False
    for block in vectors(lengths):
        if "[Keylen" in block:
            fits = block["[IVlen"] == "96]" and block["[Taglen"] == "128]"
        elif fits and "Key" in block:
            found.append(block)
    return found


def test_aes_256_gcm_gives_what_the_vectors_say() -> None:
    blocks = ours("ciphers/AES/GCM/gcmEncryptExtIV256.rsp")
    assert len(blocks) > 300
    for block in blocks:
        key, nonce, plain, bound, sealed, tag = (
            bytes.fromhex(block[name]) for name in ("Key", "IV", "PT", "AAD", "CT", "Tag")
        )
        assert AESGCM(key).encrypt(nonce, plain, bound) == sealed + tag


def test_aes_256_gcm_opens_what_the_vectors_open_and_nothing_else() -> None:
    blocks = ours("ciphers/AES/GCM/gcmDecrypt256.rsp")
    assert {block["FAIL"] for block in blocks} == {"True", "False"}
    for block in blocks:
        key, nonce, bound, sealed, tag = (bytes.fromhex(block[name]) for name in ("Key", "IV", "AAD", "CT", "Tag"))
        if block["FAIL"] == "True":
            with pytest.raises(InvalidTag):
                AESGCM(key).decrypt(nonce, sealed + tag, bound)
        else:
            assert AESGCM(key).decrypt(nonce, sealed + tag, bound) == bytes.fromhex(block["PT"])


def test_keys_for_a_purpose_are_those_of_rfc_5869() -> None:
    blocks = [block for block in vectors("KDF/rfc-5869-HKDF-SHA256.txt", "COUNT") if "PRK" in block]
    assert len(blocks) == 3
    for block in blocks:
        key, purpose, wanted = (bytes.fromhex(block[name]) for name in ("PRK", "info", "OKM"))
        assert expand(key, purpose)[: len(wanted)] == wanted[:32]


def test_a_body_is_sealed_as_its_page_says() -> None:
    key, head, nonce = os.urandom(32), b"the frame's head", os.urandom(NONCE)
    sealed = Cipher(key, UID, 7, 3).seal(2, head, b"what was said", 9, nonce)
    start = (7).to_bytes(4, "little") + (9).to_bytes(4, "little")
    info = b"keeve frames 1\n" + UID + (7).to_bytes(4, "little") + (3).to_bytes(4, "little")
    derived = HKDFExpand(SHA256(), 32, info).derive(key)
    assert sealed[:20] == start + nonce
    assert AESGCM(derived).decrypt(nonce, sealed[20:], start + bytes((2, ENCRYPTED)) + head) == b"what was said"
    assert len(sealed) == len(b"what was said") + OVERHEAD
    assert named(sealed) == (7, 9)


def test_a_body_opens_in_its_own_frame_alone() -> None:
    key = os.urandom(32)
    sealed = Cipher(key, UID, 1, 1).seal(2, b"head", b"plain", 1, bytes(NONCE))
    assert Cipher(key, UID, 1, 1).open(2, b"head", sealed) == b"plain"
    others = [
        (Cipher(key, UID, 1, 1), 3, b"head"),
        (Cipher(key, UID, 1, 1), 2, b"heap"),
        (Cipher(key, UID, 2, 1), 2, b"head"),
        (Cipher(key, UID, 1, 2), 2, b"head"),
        (Cipher(key, UID[::-1], 1, 1), 2, b"head"),
        (Cipher(key[::-1], UID, 1, 1), 2, b"head"),
    ]
    for cipher, kind, head in others:
        with pytest.raises(Unopened):
            cipher.open(kind, head, sealed)


def test_no_byte_of_a_sealed_body_can_be_another() -> None:
    cipher = Cipher(os.urandom(32), UID, 1, 1)
    sealed = cipher.seal(2, b"head", b"plain", 1, os.urandom(NONCE))
    for at in range(len(sealed)):
        with pytest.raises(Unopened):
            cipher.open(2, b"head", sealed[:at] + bytes((sealed[at] ^ 1,)) + sealed[at + 1 :])


@pytest.mark.parametrize("length", [0, 7, 19, OVERHEAD - 1])
def test_what_is_too_short_to_be_sealed_is_not_opened(length: int) -> None:
    with pytest.raises(Unopened):
        named(bytes(length))
    with pytest.raises(Unopened):
        Cipher(bytes(32), UID, 1, 1).open(2, b"", bytes(length))
