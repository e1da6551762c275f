"""A script that does everything a host can do, and the check of what is left when its process dies on the way.

`Reference` is the script run to its end. `Story` is a store that is killed, opened again, and brought to the same end;
its `Journal` holds what the world outside saw. Time and randomness stand still, so whatever two runs record is the
same byte for byte, and a session's chain is compared by its hashes.

The one rule: the journal counts only what happened while the process lived, and nothing in it may be lost.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
import trio
import trio.testing

from dataspace.errors import KeeveError
from keeve.api import open_host, open_store
from keeve.testing.crashes import CrashFiles
from keeve.testing.lives import suppress_crash
from tests.crash.crash_actors import Bank, Counter, Oracle
from tests.crash.crash_audit import (
    Audit,
    audit,
    audited,
    check_forks,
    check_messages,
    constant,
    dump,
    restored,
    standing,
)
from vat.errors import Deleted
from vat.host.host import Host
from vat.host.outside import Snapshot
from vat.host.settings import Settings

Move: TypeAlias = tuple[Any, ...]
"""What is asked of the host: a verb and its arguments."""

NEVER = 1 << 40

SETTINGS = Settings(first_snapshot=NEVER, snapshot_records=NEVER, closing_records=NEVER, retry=0.001)
"""Snapshots only where the script asks for them."""

PATIENCE = 600
"""Ticks of a tenth of a second that a life may take before it is taken to hang."""

UNPAID = "unpaid OutcomeUnknown"

LONG = "all of this is too long to stand in the record, and is kept beside it " * 12

SCRIPT: Sequence[Move] = (
    ("spawn", "a"),
    ("spawn", "b"),
    ("call", "a", "add", "one"),
    ("call", "a", "put", "long", LONG),
    ("call", "a", "claim", "x"),
    ("snapshot", "a"),
    ("with", "a", "tell", "b", "hello"),
    ("call", "a", "fail", "two"),
    ("fork", "a", "c"),
    ("call", "c", "add", "only here"),
    ("call", "a", "pay", 5),
    ("call", "a", "ask", "why"),
    ("call", "a", "drop", "x"),
    ("with", "b", "tell", "a", "back"),
    (
        "at once",
        ("call", "a", "add", "all"),
        ("call", "b", "pay", 7),
        ("call", "c", "ask", "how"),
    ),
    ("snapshot", "a"),
    ("call", "a", "put", "long", LONG[::-1]),
    ("spawn", "d"),
    ("call", "d", "pay", 9),
    ("with", "a", "meet", "d"),
    ("call", "a", "greet", "friend"),
    ("delete", "d"),
    ("call", "a", "greet", "lost"),
    ("call", "c", "put", "end", "end"),
)


def under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every batch written by the writer's thread, as when many vats are at work, and none in line."""
    monkeypatch.setattr("vat.host.commits.LONE", 0)


class SlowFiles(CrashFiles):
    """A disk that takes its time to sync, so that others get ahead of a writer that they do not wait for."""

    def sync(self, fd: int) -> None:
        time.sleep(0.002)
        super().sync(fd)


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Let what hangs fail, with `TooSlowError`. Ticks are counted: a process that was stopped has missed but one."""
    failed: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_ticks)
        try:
            yield
        except trio.Cancelled:
            raise
        except BaseException as error:  # noqa: BLE001  # it leaves as it is, not in a group
            failed = error
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed


async def _ticks() -> None:
    for _ in range(PATIENCE):
        await trio.sleep(0.1)
    raise trio.TooSlowError


@attrs.define
class Journal:
    """What the world outside saw: calls of devices, answers by move, events that an observer heard."""

    calls: list[tuple[str, str, Any]] = attrs.field(factory=list)
    told: dict[str, Any] = attrs.field(factory=dict)
    heard: dict[int, str] = attrs.field(factory=dict)
    """The hashes of the records that events came from, by position."""


async def perform(host: Host, move: Move, request: str) -> Any:
    """Make a move; gives what the caller was told. What the actor raised is an answer too."""
    verb, id, *rest = move
    if verb == "spawn":
        await host.spawn(Counter, id, request=request)
        return "made"
    if verb == "delete":
        try:
            await host.delete(id)
        except Deleted:
            return "gone"
        return "gone"
    session = await host.get(id)
    if verb == "snapshot":
        return await session.snapshot()
    if verb == "fork":
        await session.fork(into=rest[0], request=request)
        return "made"
    if verb == "with":
        method, other, *rest = rest
        return await getattr(session, method)(await host.get(other), *rest, request=request)
    try:
        return await getattr(session, rest[0])(*rest[1:], request=request)
    except KeeveError:
        raise
    except ValueError as error:
        return f"{type(error).__name__}: {error.args[0]}"


class Story:
    """A store and the lives that it leads through, each a process of its own."""

    def __init__(self, folder: Path, moves: Sequence[Move] = SCRIPT) -> None:
        self.folder = folder
        self.moves = moves
        self.journal = Journal()
        self.states: dict[str, Any] = {}
        """What each session says of itself, at the end."""
        self.clock: Callable[[], int] = standing
        self._forking = ""
        self.settings = SETTINGS
        self.doubtful: set[int] = set()
        """Payments that had begun, and had no outcome, when a process died."""

    def live(self, files: CrashFiles) -> None:
        """A process: goes on where the world was told last, until the files die or the moves are done."""
        with suppress_crash():
            trio.run(self._live, files)

    async def _live(self, files: CrashFiles) -> None:
        async with in_time():
            await self._lead(files)

    async def _lead(self, files: CrashFiles) -> None:
        journal = self.journal

        def note(device: str, id: str, said: Any) -> None:
            if not files.dead:
                journal.calls.append((device, id, said))

        async def hear(event: Any) -> None:
            if not files.dead:
                journal.heard[event.position] = event.hash.hex()

        async with self.host(files, note) as host:
            host.observe("(_ . _)", hear, after="start")
            for at, move in enumerate(self.moves):
                if move[0] == "at once":
                    async with trio.open_nursery() as nursery:
                        for n, each in enumerate(move[1:]):
                            nursery.start_soon(self._make, host, each, f"{at}.{n}", files)
                else:
                    await self._make(host, move, str(at), files)
                await settled(host)
            states = {row.id: await (await host.get(row.id)).state() for row in host.sessions() if not files.dead}
            if not files.dead:  # the log is settled after a while, and that is an operation to die in as well
                self.states = states

    def host(self, files: CrashFiles, note: Any, **options: Any) -> Any:
        """The host of a life."""
        return open_host(
            self.folder,
            files=files,
            actors=[Counter],
            devices={"bank": Bank(note), "oracle": Oracle(note)},
            clock=self.clock,
            entropy=self._entropy,
            settings=self.settings,
            segment_bytes=9000,
            **options,
        )

    def _entropy(self, count: int) -> bytes:
        # Forks have uids of their own, which are the same in every run.
        if self._forking and count == 16:
            return sha256(self._forking.encode()).digest()[:16]
        return constant(count)

    async def _make(self, host: Host, move: Move, name: str, files: CrashFiles) -> None:
        if name not in self.journal.told:
            self._forking = move[2] if move[0] == "fork" else ""
            answer = await perform(host, move, f"move {name}")
            if not files.dead:
                self.journal.told[name] = answer

    def move(self, name: str) -> Move:
        """The move of that name."""
        at, _, n = name.partition(".")
        move: Move = self.moves[int(at)]
        return move[int(n) + 1] if n else move

    def kept(self, spare: Path) -> Audit:
        """Check that all which the world saw is in the store, and what is there fits together. Gives what is there."""
        found = audited(self.folder, spare)
        check_messages(found)
        check_forks(found)
        for device, id, _ in self.journal.calls:
            assert id in found.wanted, f"{device} was called for an effect that is not in the log"
            assert device != "bank" or id in found.started, "the bank was called before that was durable"
        for position, hash in self.journal.heard.items():
            assert found.hashes.get(position) == hash, f"an observer heard of a record at {position} that is not there"
        for name, answer in self.journal.told.items():
            self._remembered(found, name, answer)
        self.doubtful |= {found.wanted[id][1][0] for id in found.started - found.ended}
        paid = [id for device, id, _ in self.journal.calls if device == "bank"]
        assert len(paid) == len(set(paid)), "a payment was made twice"
        return found

    def _remembered(self, found: Audit, name: str, answer: Any) -> None:
        verb, id, *rest = self.move(name)
        chain = found.by_id(id)
        assert chain is not None, f"{id} is lost"
        if verb == "fork":
            assert found.by_id(rest[0]) is not None, f"{rest[0]} is lost"
        elif verb == "delete":
            assert chain.deleted
        elif verb == "snapshot":
            assert isinstance(answer, Snapshot)
            assert chain.hashes[answer.seq - chain.base - 1].hex() == answer.hash
        elif verb in ("call", "with") and not chain.deleted:
            answered = found.requests.get((chain.uid, f"move {name}"))
            assert answered is not None, f"what move {name} was answered is lost"
            succeeded, value = answered
            said = value if succeeded else f"{value['error']}: {value['message']}"
            assert said == answer, f"move {name} was answered {answer!r}, and is {said!r}"


async def settled(host: Host) -> None:
    """Return when nothing is on its way in the host."""
    engine = host._engine
    await trio.testing.wait_all_tasks_blocked()
    await engine.quiet()


class Reference(Story):
    """The script, run to its end by a process that nothing happens to."""

    def __init__(self, folder: Path, moves: Sequence[Move] = SCRIPT) -> None:
        super().__init__(folder, moves)
        files = CrashFiles()
        self.live(files)
        self.calls = files.names
        """The calls that changed something on the disk, in order."""
        store, catalog = open_store(folder, clock=standing, entropy=constant)
        self.found = audit(store, catalog)
        self.heaps = {
            (chain.uid, seq): dump(restored(store, catalog, chain.uid, seq))
            for chain in self.found.chains.values()
            for seq in range(chain.base + 1, chain.seq + 1)
        }
        """The heap of each session after each of its records."""
        catalog.close()
        store.close()

    def holds(self, found: Audit) -> None:
        """Check that what is found is this run up to some point: each session's heap that of k cranks, whole."""
        for chain in found.chains.values():
            whole = self.found.chains[chain.uid]
            assert chain.hashes == whole.hashes[: len(chain.hashes)], f"{chain.id} has records of its own"
            if not chain.deleted:
                assert found.heaps[chain.uid] == self.heaps[chain.uid, chain.seq]

    def ends_like(self, story: Story) -> None:
        """Check that a story came to the same end, but for the payments of which nobody can know."""
        assert story.journal.told.keys() == self.journal.told.keys()
        states = {id: dict(state) for id, state in self.states.items()}
        for name, answer in self.journal.told.items():
            _, _, *rest = self.move(name)
            if story.journal.told[name] == "OutcomeUnknown" and rest[:1] == ["pay"]:
                assert rest[1] in story.doubtful, f"payment {rest[1]} had its outcome"
                for state in states.values():  # a fork has seen it as well
                    state["seen"] = [UNPAID if said == f"paid {answer}" else said for said in state["seen"]]
            elif not isinstance(answer, Snapshot):
                assert story.journal.told[name] == answer, f"move {name}"
                assert rest[:1] != ["pay"] or rest[1] not in story.doubtful
        assert story.states == states
