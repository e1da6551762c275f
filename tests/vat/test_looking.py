"""A session as it was: what is made of its heap as of any of its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from keeve import Actor, List, Session, actor, blocking
from keeve.errors import Deleted, NoSuchPoint, NoSuchSession
from keeve.faces import fields_face
from keeve.testing import memory_host


@actor("looking.notes", version=1)
class Notes(Actor):
    count: int = 0
    lines: List[str]

    def write(self, line: str) -> None:
        self.count += 1
        self.lines.append(line)


async def test_a_session_is_seen_as_it_was_after_each_record() -> None:
    async with memory_host(actors=[Notes]) as host:
        notes = await host.spawn(Notes, "n")
        for line in ("one", "two", "three"):
            await notes.write(line)
        seen = [host.look("n", lambda past: fields_face(past.heap), at) for at in (1, 2, 4, None)]
        assert [each["count"] for each in seen] == [0, 1, 3, 3]
        assert seen[1]["lines"] == ["one"]
        assert host.look("n", lambda past: (past.seq, past.hash)) == (4, host.row("n").hash)


async def test_a_look_records_nothing_and_what_is_done_to_it_changes_nothing() -> None:
    async with memory_host(actors=[Notes]) as host:
        notes = await host.spawn(Notes, "n")
        await notes.write("one")
        before = host.row("n")
        host.look("n", lambda past: setattr(past.heap, "time", 0))
        assert host.row("n") == before
        assert await notes.lines == ["one"]


async def test_a_fork_is_seen_in_its_parents_past() -> None:
    async with memory_host() as host:
        s = await host.spawn(Session, "s")
        await s.turn("one")
        at = host.row("s").seq
        await (await s.fork(into="t")).turn("two")
        for id in ("s", "t"):
            messages = host.look(id, lambda past: fields_face(past.heap), at)["messages"]
            assert [message["content"] for message in messages] == ["one", "one"]


async def test_where_nothing_was_nothing_is_seen() -> None:
    async with memory_host() as host:
        await host.spawn(Session, "s")
        for at in (0, -1, 2):
            with pytest.raises(NoSuchPoint):
                host.look("s", lambda past: past.seq, at)
        with pytest.raises(NoSuchSession):
            host.look("t", lambda past: past.seq)
        await host.delete("s")
        with pytest.raises(Deleted):
            host.look("s", lambda past: past.seq)


def test_with_threads_it_is_looked_at_in_the_hosts(store_folder: Path) -> None:
    with blocking.open_host(store_folder / "s") as host:
        host.spawn(Session, "s").turn("hello")
        assert host.look("s", lambda past: fields_face(past.heap), 1)["messages"] == []


async def test_the_headers_of_a_session_are_its_chain() -> None:
    async with memory_host() as host:
        s = await host.spawn(Session, "s")
        await s.turn("one")
        await s.fork(into="t")
        headers = host.headers("t")
        assert [header.seq for header in headers] == list(range(1, host.row("t").seq + 1))
        assert [header.previous for header in headers] == [bytes(32), *(header.hash for header in headers[:-1])]
        assert headers[-1].hash == host.row("t").hash
        assert host.headers("t", after=1, limit=1) == headers[1:2]
        assert host.headers("t", after=99) == host.headers("t", limit=0) == []
