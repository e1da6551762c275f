"""Verifying a log with checkpoints: each is held against the records before it, and its signature against the keys."""

from __future__ import annotations

import errno
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from signing_hosts import KEY, OTHER, Till, opened

from dataspace.log.marks import Certificate
from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.signers import SigningKey
from keeve.testing.crashes import CrashFiles
from tests.vat.hosts import store_of
from vat.host.host import Host


@pytest.fixture
def folder(store_folder: Path) -> Path:
    return store_folder


def forged(origin: str, size: int, root: bytes, key: SigningKey = KEY, name: str | None = None) -> bytes:
    text = Checkpoint(origin, size, root).text
    return str(Note(text).signed(key.signature(name or origin, text))).encode()


def spoiled(note: bytes) -> bytes:
    read = Note.parse(note)
    (line,) = read.signatures
    return str(Note(read.text, (line._replace(data=line.data[::-1]),))).encode()


def right(host: Host) -> tuple[str, int, bytes]:
    checkpoint = Checkpoint.parse(Note.parse(host.checkpoint()).text)
    return checkpoint.origin, checkpoint.size, checkpoint.root


WRONG = sha256(b"another history").digest()
FORGERIES: dict[str, tuple[Callable[[str, int, bytes], Certificate], str]] = {
    "a root of another history": (
        lambda origin, size, root: Certificate(size, WRONG, forged(origin, size, WRONG)),
        "records that are not those in the log",
    ),
    "a note of another size": (
        lambda origin, size, root: Certificate(size, root, forged(origin, size - 1, root)),
        "something else than its frame",
    ),
    "a key that the log never had": (
        lambda origin, size, root: Certificate(size, root, forged(origin, size, root, OTHER)),
        "signed by no key",
    ),
    "a signature of something else": (
        lambda origin, size, root: Certificate(size, root, spoiled(forged(origin, size, root))),
        "does not fit",
    ),
    "another log's": (
        lambda origin, size, root: Certificate(size, root, forged("keeve/another", size, root, KEY, origin)),
        "signed by no key",
    ),
    "no note": (lambda origin, size, root: Certificate(size, root, b"nonsense"), "no signed note"),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_checkpoint_that_is_not_the_log_s_is_found(folder: Path, name: str) -> None:
    make, said = FORGERIES[name]
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        await till.pay(1)
        assert (await host.verify()).sound
        store_of(host).settle(make(*right(host)))
        report = await host.verify()
        assert not report.sound
        assert any(said in trouble.what for trouble in report.troubles), report.troubles


async def test_what_was_signed_is_counted_and_sound(folder: Path) -> None:
    for _ in range(3):
        async with opened(folder) as host:
            await host.spawn(Till)
    async with opened(folder) as host:
        report = await host.verify(keys=host.log_keys(), expect=host.checkpoint())
        assert report.sound
        assert report.counts.checkpoints == 3
        bad = await host.verify(keys=[str(OTHER.verifier("somebody"))])
        assert [trouble.look for trouble in bad.troubles] == ["log"]


async def test_a_disk_that_is_full_for_the_file_alone_costs_nothing(folder: Path) -> None:
    """Invariant 21: the file beside the log is derived."""
    files = CrashFiles()
    async with opened(folder, files=files) as host:
        await host.spawn(Till, "till")
        certificate = host._engine.checkpoints.pending()
        assert certificate is not None
        files.fail(errno.ENOSPC, after=3, times=1)
        store_of(host).settle(certificate)
        assert files.names[-1].endswith("checkpoint.new")
        assert store_of(host).fault is None
    async with opened(folder) as host:
        assert str(host.checkpoint())
        assert (await host.verify()).sound
