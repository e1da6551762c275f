"""What somebody has seen of a store, held against it when it opens; and the keys that it is signed with."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from signing_hosts import KEY, OTHER, Till, opened, verifiers

from dataspace.checkpoints.keys import WrongKey
from dataspace.log.store import NotAStore
from dataspace.log.verdicts import LogTampered, LogTruncated
from dataspace.proofs.proofs import BadReceipt, Receipt
from keeve.key_files import BadKeyFile, signing_key
from tests.vat.hosts import store_of

# What was seen


@pytest.fixture
def folder(store_folder: Path) -> Path:
    return store_folder


async def lived(folder: Path) -> Receipt:
    """A store in which two turns were paid; the receipt of the second."""
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        await till.pay(1)
    async with opened(folder) as host:
        till = await host.get("till")
        _, receipt = await till.pay(1, receipt=True)
        return receipt


def copied(folder: Path) -> Path:
    copy = folder.with_name(folder.name + "-copy")
    shutil.copytree(folder, copy)
    return copy


def put_back(copy: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)


async def test_a_store_that_went_on_has_all_that_was_seen(folder: Path) -> None:
    receipt = await lived(folder)
    async with opened(folder) as host:
        till = await host.get("till")
        await till.pay(1)
    for seen in (receipt, str(receipt), str(receipt.note)):
        async with opened(folder, expect=seen) as host:
            till = await host.get("till")
            host.expect(seen)
            fork = await till.fork(expect=seen)
            assert await fork.money == 3
            await host.restore_latest("till", expect=seen)
            await host.restore(await till.snapshot(), expect=seen)
        async with opened(folder, None, readonly=True, expect=seen) as host:
            assert await (await host.get("till")).money == 3


@pytest.mark.parametrize("readonly", [False, True])
async def test_an_older_copy_of_the_whole_store_is_found_out(folder: Path, readonly: bool) -> None:
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        await till.pay(1)
    copy = copied(folder)
    receipt = await lived_on(folder, 1)
    put_back(copy, folder)
    before = contents(folder)
    with pytest.raises(LogTruncated):
        async with opened(folder, None, readonly=readonly, expect=receipt):
            pass
    assert contents(folder, but="lock") == {name: data for name, data in before.items() if name != "lock"}
    await lived_on(folder, 7)
    with pytest.raises(LogTampered):
        async with opened(folder, None, readonly=readonly, expect=receipt):
            pass


async def lived_on(folder: Path, payments: int) -> Receipt:
    async with opened(folder) as host:
        till = await host.get("till")
        for number in range(payments):
            _, receipt = await till.pay(number, receipt=True)
        return receipt


def contents(folder: Path, but: str = "") -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != but and not path.name.startswith("catalog")
    }


async def test_a_fork_or_a_restore_that_expects_more_is_refused(folder: Path) -> None:
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        await till.pay(1)
    copy = copied(folder)
    receipt = await lived_on(folder, 1)
    put_back(copy, folder)
    async with opened(folder) as host:
        till = await host.get("till")
        head = store_of(host).head
        with pytest.raises(LogTruncated):
            await till.fork(expect=receipt)
        with pytest.raises(LogTruncated):
            await host.restore_latest("till", expect=receipt)
        with pytest.raises(BadReceipt):
            await till.fork(expect=17)
        assert store_of(host).head == head
        assert len(host.sessions()) == 1


async def test_what_was_seen_of_another_store_is_refused_and_nothing_is_made(folder: Path, tmp_path: Path) -> None:
    """Invariant 43."""
    receipt = await lived(folder)
    other = folder.with_name("other")
    with pytest.raises(NotAStore):
        async with opened(other, expect=receipt):
            pass
    assert contents(other) == {}
    async with opened(other, None):
        pass
    with pytest.raises(LogTampered):
        async with opened(other, None, expect=receipt):
            pass


# Keys


async def test_a_key_file_is_made_once_and_for_its_owner_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.pem"
    with pytest.raises(BadKeyFile, match="make=True"):
        signing_key(path)
    made = signing_key(path, make=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert signing_key(path) == signing_key(path, make=True) == made
    async with opened(folder, path) as host:
        assert host.log_keys() == [str(made.verifier(host.log_keys()[0].partition("+")[0]))]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "log.pem"
    signing_key(path, make=True)
    path.chmod(mode)
    with pytest.raises(BadKeyFile, match="chmod 600"):
        signing_key(path)


def test_what_is_no_ed25519_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.pem"
    curve = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content in (b"", b"nonsense", curve, b"x" * (1 << 20)):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(BadKeyFile):
            signing_key(path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for strange in (tmp_path, tmp_path / "pipe", tmp_path / "no" / "folder"):
        with pytest.raises(BadKeyFile):
            signing_key(strange, make=True)


async def test_a_bad_signer_is_refused_before_a_store_is_made(folder: Path, tmp_path: Path) -> None:
    """Invariant 43."""
    with pytest.raises(BadKeyFile):
        async with opened(folder, tmp_path / "nothing.pem"):
            pass
    with pytest.raises(TypeError):
        async with opened(folder, 17):
            pass
    with pytest.raises(ValueError, match="only reads"):
        async with opened(folder, KEY, readonly=True):
            pass
    assert contents(folder, but=".keeve-test-stores") == {}


async def test_another_key_takes_over_when_the_former_one_signs(folder: Path) -> None:
    receipt = await lived(folder)
    with pytest.raises(WrongKey):
        async with opened(folder, OTHER):
            pass
    async with opened(folder, OTHER, former=KEY) as host:
        assert len(host.log_keys()) == 2
        till = await host.get("till")
        _, newer = await till.pay(1, receipt=True)
        host.expect(receipt)
        assert newer.verify(verifiers(host)[1:])
        assert receipt.verify(verifiers(host)[:1])
        assert len([*host.query("(log-key . _)")]) == 2
    async with opened(folder, OTHER, expect=receipt):
        pass
