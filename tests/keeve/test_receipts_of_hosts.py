"""Checkpoints and receipts through a host: what is given out, what it proves, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from signing_hosts import KEY, OTHER, Till, opened, verifiers

from dataspace.checkpoints.checkpoints import NotCovered, NotSigning
from dataspace.observe.events import NotProven
from dataspace.proofs.notes import BadSignature, Checkpoint, Note
from dataspace.proofs.proofs import Receipt
from dataspace.proofs.signers import SignerFailed, SigningKey
from dataspace.proofs.verifiers import Verifier
from keeve import Session, blocking, open_host
from tests.vat.hosts import store_of
from vat.heap.restore import NoSuchPoint

# Receipts


@pytest.fixture
def folder(store_folder: Path) -> Path:
    return store_folder


async def test_a_turn_gives_its_answer_and_a_receipt(folder: Path) -> None:
    async with opened(folder) as host:
        s = await host.spawn(Session, "s1")
        answer, receipt = await s.turn("hello", receipt=True)
        assert answer == "hello"
        assert Receipt.parse(str(receipt)).verify(verifiers(host))
        row = host.sessions()[0]
        assert (receipt.header.uid, receipt.header.seq) == (row.uid, row.seq)
        (done,) = host.query('(turn-done 1 "s1" . _)')
        assert receipt.header.seq >= done.seq


async def test_every_call_gives_the_receipt_of_the_record_that_it_depends_on(folder: Path) -> None:
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        for amount in (1, 2, 3):
            value, receipt = await till.pay(amount, receipt=True)
            assert receipt.header.seq == amount + 1
        assert value == 6
        seen, after = await till.total(receipt=True)
        assert (seen, after.header.seq) == (6, 4)  # a read makes no record, and depends on the last one
        money, field = await till.money(receipt=True)
        assert (money, field.header.seq) == (6, 4)


async def test_a_repeated_request_has_a_receipt_too(folder: Path) -> None:
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        first = await till.pay(5, request="r1", receipt=True)
        again = await till.pay(5, request="r1", receipt=True)
        assert (first.value, again.value) == (5, 5)
        assert again.receipt.header.seq == first.receipt.header.seq
        assert await till.money == 5


async def test_calls_at_once_each_have_their_own_which_needs_no_host(folder: Path) -> None:
    async with opened(folder) as host:
        tills = [await host.spawn(Till, f"t{n}") for n in range(20)]
        receipts: dict[int, Receipt] = {}

        async def pay(n: int) -> None:
            _, receipts[n] = await tills[n].pay(n, receipt=True)

        async with trio.open_nursery() as nursery:
            for n in range(20):
                nursery.start_soon(pay, n)
        uids, keys = {row.id: row.uid for row in host.sessions()}, verifiers(host)
    for n, receipt in receipts.items():
        assert receipt.header.uid == uids[f"t{n}"]
        assert Receipt.parse(str(receipt)).verify(keys)


async def test_a_call_that_fails_raises_and_a_snapshot_and_a_fork_have_receipts(folder: Path) -> None:
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        with pytest.raises(ValueError, match="no"):
            await till.refuse(receipt=True)
        snapshot, receipt = await till.snapshot(receipt=True)
        assert snapshot.session == "till"
        assert receipt.header.seq == snapshot.seq
        fork, receipt = await till.fork(receipt=True)
        assert await fork.money == 0
        assert receipt.header.seq > snapshot.seq


async def test_a_host_without_a_signer_refuses_before_anything_is_done(folder: Path) -> None:
    """Invariant 43."""
    async with opened(folder, None) as host:
        till = await host.spawn(Till, "till")
        with pytest.raises(NotSigning):
            await till.pay(1, receipt=True)
        assert await till.money == 0
        for ask in (host.checkpoint, lambda: host.receipt("till", 1), lambda: host.checkpoint(since=1)):
            with pytest.raises(NotSigning):
                ask()
        assert host.log_keys() == []
        for receipt in (1, "yes", None):
            with pytest.raises(TypeError):
                await till.pay(1, receipt=receipt)
        with pytest.raises(TypeError):
            await host.directory.list(receipt=True)


async def test_any_record_can_be_proven_later(folder: Path) -> None:
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        for _ in range(5):
            await till.pay(1)
        note = host.checkpoint()
        await till.pay(1)
        for seq in range(1, 7):
            assert host.receipt("till", seq).header.seq == seq
            assert host.receipt("till", seq).verify(verifiers(host))
            assert str(host.receipt("till", seq, checkpoint=note).note) == note
        with pytest.raises(NotCovered):
            host.receipt("till", 7, checkpoint=note)
        for seq in (0, 99):
            with pytest.raises(NoSuchPoint):
                host.receipt("till", seq)


async def test_an_event_is_proven_up_to_the_signed_checkpoint(folder: Path) -> None:
    async with opened(folder) as host:
        s = await host.spawn(Session, "s1")
        await s.turn("hello")
        (event,) = host.query('(turn 1 "s1" . _)')
        proof = host.reader().proof(event)
        receipt = host.receipt("s1", event.seq)
        proof.verify(event, receipt, verifiers(host))
        with pytest.raises(NotProven, match="another record"):
            proof.verify(event, host.receipt("s1", event.seq - 1), verifiers(host))
        with pytest.raises(NotProven, match="signed by no key"):
            proof.verify(event, receipt, [OTHER.verifier("somebody")])


# Checkpoints


async def test_a_checkpoint_covers_all_that_was_acknowledged(folder: Path) -> None:
    """Invariant 7: only what is durable is signed."""
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        await till.pay(1)
        checkpoint = Checkpoint.parse(Note.parse(host.checkpoint()).text)
        assert checkpoint.size == store_of(host).head.position
        assert Note.parse(host.checkpoint()).checked(verifiers(host))


async def test_it_is_kept_in_the_log_and_beside_it(folder: Path) -> None:
    async with opened(folder) as host:
        till = await host.spawn(Till, "till")
        await till.pay(1)
    async with open_host(folder, readonly=True) as reader:
        note = reader.checkpoint()
        assert note == (folder / "checkpoint").read_text()
        assert Checkpoint.parse(Note.parse(note).text).size == store_of(reader).head.position
        assert reader.receipt("till", 2).verify(verifiers(reader))
    (folder / "checkpoint").unlink()
    async with open_host(folder, readonly=True) as reader:
        assert reader.checkpoint() == note


async def test_an_idle_host_keeps_what_it_has_signed(folder: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with opened(folder) as host:
        await host.spawn(Till, "till")
        note = host.checkpoint()
        for _ in range(100):
            await trio.sleep(0.05)
            await host._engine.commits.writer.drain()
            if (folder / "checkpoint").exists():
                break
        assert (folder / "checkpoint").read_text() == note


async def test_a_reader_of_a_store_that_never_signed_says_so(folder: Path) -> None:
    async with opened(folder, None) as host:
        await host.spawn(Till, "till")
    async with open_host(folder, readonly=True) as reader:
        with pytest.raises(NotSigning):
            reader.checkpoint()


# The other face


def test_blocking_hosts_have_it_all_too(folder: Path) -> None:
    with blocking.open_host(folder, actors=[Till], signer=KEY) as host:
        till = host.spawn(Till, "till")
        value, receipt = till.pay(3, receipt=True)
        assert value == 3
        assert receipt.header == host.receipt("till", 2).header
        fork, receipt = till.fork(expect=receipt, receipt=True)
        assert fork.money == 3
        host.expect(host.checkpoint())
        assert receipt.verify([Verifier.parse(key) for key in host.log_keys()])
        assert host.restore_latest("till", expect=receipt).money == 3
        assert host.checkpoint(since=1).startswith("old 1\n")


# A signer that is away


class Away:
    """An agent that signs, and at times is not there."""

    def __init__(self) -> None:
        self.gone = False
        self.missed = trio.Event()

    def sign(self, data: bytes) -> bytes:
        if self.gone:
            self.missed.set()
            raise ConnectionRefusedError("no agent")
        return KEY.sign(data)


async def test_a_host_whose_signer_is_away_goes_on(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = Away()
    async with opened(folder, signer=SigningKey(KEY.public, agent.sign)) as host:
        till = await host.spawn(Till, "till")
        agent.gone = True
        await till.pay(1)
        with trio.fail_after(10):
            await agent.missed.wait()  # the log is settled
        await trio.sleep(0.05)
        assert await till.pay(2) == 3
        with pytest.raises(SignerFailed, match="no agent"):
            host.checkpoint()
    assert "no agent" in caplog.text
    async with opened(folder) as host:
        assert await (await host.get("till")).total() == 3
        assert host.receipt("till", 3).verify(verifiers(host))


async def test_a_signer_that_gives_something_else_than_bytes_has_not_signed(folder: Path) -> None:
    with pytest.raises(BadSignature):
        async with opened(folder, signer=SigningKey(KEY.public, lambda data: None)):  # type: ignore[arg-type,return-value] # the mistake
            pass
