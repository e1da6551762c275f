"""Deleted and erased content is searched for in every file of a store, in every form in which it could lie there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.values import ERASED
from keeve import Session
from keeve.api import open_store
from keeve.testing import FakeClock
from snapshots.cache import PageCache
from tests.keeve.canaries import LONG, Keeper, Model, answer, converse, found, host_of, keep
from tests.vat.hosts import settled, store_of
from vat.heap.checking import fingerprint
from vat.heap.restore import Lineage, restore
from vat.host.erasing import NothingToErase
from vat.host.host import Host
from vat.host.sessions import Busy

FIRST, SECOND, KEPT = "CANARYONE", "CANARYTWO", "CANARYKEPT"


class _NoSnapshots:
    """The catalog, as if there were no snapshots."""

    def __init__(self, catalog: Any) -> None:
        self.lineage, self.locate = catalog.lineage, catalog.locate

    def snapshots(self, uid: bytes, upto: int) -> list[Any]:
        return []


def heaps(folder: Path) -> dict[tuple[str, int, bool], bytes]:
    """The heap of each living session after each of its records, from snapshots and from the beginning."""
    store, catalog = open_store(folder, readonly=True)
    found = {}
    for row in catalog.sessions():
        lineage = Lineage(row.uid, catalog, store.read)
        for seq in range(1, row.seq + 1):
            for index in (catalog, _NoSnapshots(catalog)):
                heap = restore(lineage, index, PageCache(8 << 20), seq).heap
                found[row.id, seq, index is catalog] = fingerprint(heap)
    catalog.close()
    store.close()
    return found


def headers(folder: Path) -> list[bytes]:
    """The hashes of all records."""
    store, catalog = open_store(folder, readonly=True)
    hashes = [stored.header.hash for stored in store.scan()]
    catalog.close()
    store.close()
    return hashes


async def contents(host: Host, id: str) -> list[Any]:
    """What the messages of a session say."""
    return [message["content"] for message in await (await host.get(id)).messages]


async def test_a_deleted_session_leaves_nothing_in_any_file(tmp_path: Path) -> None:
    """Invariant 26: Content goes with its last user: inputs, answers, calls, facts, pages, queues, fibers."""
    async with host_of(tmp_path) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is queued")
        await keep(host, "keeper", KEPT)
        await converse(host, "other", "nothing special")
        assert [word for word in (FIRST, SECOND, KEPT) if found(tmp_path, word)] == [FIRST, SECOND, KEPT]
        await host.delete("talk")
        await host.delete("keeper", force=True)
        await host.reclaim()
        assert found(tmp_path, FIRST, SECOND, KEPT) == []
        assert (await host.verify()).sound
    assert found(tmp_path, FIRST, SECOND, KEPT) == []
    async with host_of(tmp_path) as host:
        assert (await contents(host, "other"))[1] == "nothing special"
        assert (await host.verify()).sound


async def test_headers_and_checkpoints_made_before_still_verify(tmp_path: Path) -> None:
    """The Merkle tree, and what was signed of it, do not change when content goes."""
    from keeve import signing_key

    key = signing_key(tmp_path / "key.pem", make=True)
    folder = tmp_path / "store"
    async with host_of(folder, signer=key) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is queued")
        before = host.checkpoint()
        await host.erase("talk", turn=1)
        await host.delete("talk")
        await host.reclaim()
        assert (await host.verify()).sound
        host.expect(before)
    async with host_of(folder, signer=key, expect=before) as host:
        assert (await host.verify(expect=before)).sound
    assert found(folder, FIRST, SECOND) == []


async def test_one_turn_is_erased_and_the_session_goes_on(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is queued", "and then")
        assert await host.erase("talk", turn=2) > 3
        assert found(tmp_path, SECOND) == []
        assert found(tmp_path, FIRST) != []
        said = await contents(host, "talk")
        assert said[1] == f"{FIRST} is said"
        assert said.count(ERASED) == 3
        session = await host.get("talk")
        assert await session.turn("go on") == answer("go")
    async with host_of(tmp_path) as host:
        assert (await contents(host, "talk"))[: len(said)] == said
        assert (await (await host.get("talk")).turn("and on")) == answer("and")
        assert (await host.verify()).sound
    assert found(tmp_path, SECOND) == []


@pytest.mark.parametrize("turn", [1, 2, 3])
async def test_whichever_turn_is_erased_the_others_are_whole(tmp_path: Path, turn: int) -> None:
    words = ["WORDONE", "WORDTWO", "WORDTHREE"]
    async with host_of(tmp_path) as host:
        await converse(host, "talk", *[f"{word} is said" for word in words])
        await host.erase("talk", turn=turn)
    for n, word in enumerate(words, 1):
        assert bool(found(tmp_path, word)) == (n != turn)


async def test_what_a_tool_has_failed_with_is_erased_too(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        await converse(host, "talk", "NOWHEREATALL is said")
        assert "NOWHEREATALL" in str(await (await host.get("talk")).messages)
        await host.erase("talk", turn=1)
        assert found(tmp_path, "NOWHEREATALL") == []
        assert await (await host.get("talk")).turn("on") == answer("on")
        assert (await host.verify()).sound


async def test_facts_tell_that_something_was_erased(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        await converse(host, "talk", f"{FIRST} is said")
        await host.erase("talk", turn=1)
        inputs = [event.value async for event in host.observe('(turn 1 "talk" #:input ?i . _)', until="head")]
        assert [fact.keywords["input"] for fact in inputs] == [ERASED]
        assert [held.fact.keywords["input"] for held in host.facts("(turn . _)")] == [ERASED]
        (event,) = [event async for event in host.observe("(erased . _)", until="head")]
        assert str(event.value) == '(erased "talk" #:turn 1 #:by "local" #:via "python")'


async def test_what_one_record_brought_is_erased_by_its_seq(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        keeper = await host.spawn(Keeper, "keeper")
        await keeper.keep(FIRST + LONG)
        await keeper.keep(SECOND + LONG)
        assert await host.erase("keeper", seq=2) > 0
        assert found(tmp_path, FIRST) == []
        assert await keeper.last == SECOND + LONG
        assert list(await keeper.lines) == [ERASED, f"{SECOND}{LONG} 0"]
        assert (await host.verify()).sound


async def test_what_was_said_again_later_goes_too_and_what_was_said_before_stays(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        keeper = await host.spawn(Keeper, "keeper", last=FIRST + LONG)
        await keeper.keep(SECOND + LONG)
        await keeper.copy()
        child = await keeper.fork(into="child")
        await child.copy()
        before = host.sessions("child")[0].seq
        await child.keep(FIRST + LONG)
        assert await host.erase("keeper", seq=2) > 3
        assert found(tmp_path, SECOND) == []
        assert list(await keeper.lines) == [ERASED, ERASED]
        assert list(await child.lines) == [ERASED, ERASED, ERASED, f"{FIRST}{LONG} 0"]
        assert await host.erase("child", seq=before + 1) > 0  # the one before, which is its parent's, said the same
        assert found(tmp_path, FIRST) != []
        assert await child.last is ERASED
        await host.erase("keeper", seq=1)
        assert found(tmp_path, FIRST) == []


async def test_forks_lose_what_they_share_and_keep_what_is_theirs(tmp_path: Path) -> None:
    """Erasing is for all who have it: the session, its parent, its forks and theirs; each of them goes on."""
    async with host_of(tmp_path) as host:
        await converse(host, "parent", f"{FIRST} is said")
        parent = await host.get("parent")
        child = await parent.fork(into="child")
        await child.turn("only in the child")
        await child.fork(into="grandchild")
        sibling = await parent.fork(at=1, into="sibling")
        await sibling.turn("only in the sibling")
        await host.erase("grandchild", turn=1)
        assert found(tmp_path, FIRST) == []
        for id in ("parent", "child", "grandchild"):
            assert (await contents(host, id)).count(ERASED) == 3
        assert "only in the child" in await contents(host, "grandchild")
        assert ERASED not in await contents(host, "sibling")
        for id in ("parent", "child", "grandchild", "sibling"):
            assert await (await host.get(id)).turn("on") == answer("on")
        assert (await host.verify()).sound
    async with host_of(tmp_path) as host:
        assert (await host.verify()).sound


async def test_an_erasure_changes_no_heap_and_no_header(tmp_path: Path) -> None:
    """Every heap, after each record, is what it was, from snapshots and from the beginning: content is beside it."""
    async with host_of(tmp_path) as host:
        await converse(host, "parent", f"{FIRST} is said", "and more")
        await (await host.get("parent")).fork(into="child")
        keeper = await host.spawn(Keeper, "keeper")
        await keeper.keep(KEPT + LONG, 40)
    before, hashes = heaps(tmp_path), headers(tmp_path)
    async with host_of(tmp_path) as host:
        await host.erase("child", turn=1)
        await host.erase("keeper", seq=2)
    after = heaps(tmp_path)
    assert {key: after[key] for key in before} == before
    assert headers(tmp_path)[: len(hashes)] == hashes
    assert found(tmp_path, FIRST, KEPT) == []


async def test_a_fiber_that_holds_what_was_erased_goes_on_with_the_marker(tmp_path: Path) -> None:
    clock = FakeClock()
    async with host_of(tmp_path, clock=clock) as host:
        keeper = await host.spawn(Keeper, "keeper")
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await keeper.wait(FIRST + LONG, 60))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await settled(host)
            await host.erase("keeper", seq=2)
            clock.move(61)
        assert answers == [ERASED]
    assert found(tmp_path, FIRST) == []


async def test_what_is_queued_is_erased_before_it_begins(tmp_path: Path) -> None:
    model = Model()
    async with host_of(tmp_path, model=model) as host:
        session = await host.spawn(Session, "talk")
        model.gate = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.turn, f"{FIRST} comes first")
            while not model.asked:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(session.turn, f"{SECOND} waits")
            while len(await session.history) < 2:
                await trio.lowlevel.checkpoint()
            await host.erase("talk", turn=2, force=True)
            assert await session.history == [f"{FIRST} comes first", ERASED]
            model.gate.set()
        assert found(tmp_path, SECOND) == []
        assert ERASED in model.asked
        assert (await host.verify()).sound


async def test_while_a_model_runs_that_has_heard_it_erasing_is_refused_unless_forced(tmp_path: Path) -> None:
    model = Model()
    async with host_of(tmp_path, model=model) as host:
        await converse(host, "talk", f"{FIRST} is said")
        session = await host.get("talk")
        child = await session.fork(into="child")
        model.gate = trio.Event()
        model.asked.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.turn, "on")
            while not model.asked:
                await trio.lowlevel.checkpoint()
            with pytest.raises(Busy, match=r"'child' is busy \(model\.complete is running\).*force"):
                await host.erase("talk", turn=1)
            assert (await contents(host, "talk"))[1] == f"{FIRST} is said"
            model.gate.set()
        await host.erase("talk", turn=1)
        assert found(tmp_path, FIRST) == []


async def test_what_is_not_there_is_refused_and_nothing_is_recorded(tmp_path: Path) -> None:
    """Invariant 43: A refusal to erase names what was wrong, and leaves nothing behind."""
    async with host_of(tmp_path) as host:
        await converse(host, "talk", f"{FIRST} is said")
        keeper = await host.spawn(Keeper, "keeper")
        await keeper.keep("short")
        head = store_of(host).head
        for asked in ({"turn": 7}, {"seq": 99}, {"seq": 0}):
            with pytest.raises(NothingToErase):
                await host.erase("talk", **asked)
        with pytest.raises(NothingToErase, match="short strings"):
            await host.erase("keeper", seq=1)
        for wrong in ({}, {"seq": 1, "turn": 1}):
            with pytest.raises(ValueError, match="either"):
                await host.erase("talk", **wrong)
        assert store_of(host).head == head
        await host.erase("talk", turn=1)
        with pytest.raises(NothingToErase, match="any more"):
            await host.erase("talk", turn=1)


async def test_a_reader_beside_the_owner_sees_the_marker(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        await converse(host, "talk", f"{FIRST} is said")
        async with host_of(tmp_path, readonly=True) as reader:
            query = '(turn 1 "talk" #:input ?i . _)'
            assert [held.captures["i"] for held in reader.facts(query)] == [f"{FIRST} is said"]
            assert (await contents(reader, "talk"))[1] == f"{FIRST} is said"
            await host.erase("talk", turn=1)
            await reader.get("talk")
            assert [held.captures["i"] for held in reader.facts(query)] == [ERASED]
            assert (await contents(reader, "talk"))[1] is ERASED
