"""A host against a model of it in plain Python, under whatever sequence of rules Hypothesis comes upon.

The rules: turns of all kinds, messages between sessions, forks (of now and of the past), snapshots, facts and their
retraction, sessions evicted, loaded again and deleted, restarts, and crashes of a machine that loses what was not
synced. After a crash a session is as before what was asked, or as after it; and asked again, as after it.

The one rule: the model knows nothing of logs, heaps or promises.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
import trio.testing
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dataspace.log.store import StoreFailed
from keeve.blocking import Host, open_host
from keeve.testing import folder_for_stores
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from keeve.testing.disk import Mode
from keeve.testing.lives import suppress_crash
from tests.crash.crash_actors import Bank, Counter, Oracle
from tests.crash.crash_suites import FULL
from vat.host.asking import NotRunning
from vat.host.host import Reclaimed
from vat.host.settings import Settings

EMPTY: dict[str, Any] = {"count": 0, "seen": [], "held": [], "kept": {}, "names": []}


@attrs.define
class Session:
    """What the model knows of a session."""

    state: dict[str, Any]
    past: dict[int, dict[str, Any]] = attrs.field(factory=dict)
    """Its states, by the seq at which it had them."""
    claims: set[str] = attrs.field(factory=set)
    """Keys of facts that it has asserted itself, and not retracted."""

    def add(self, who: str) -> None:
        state = self.state
        state["count"] += 1
        state["seen"] = [*state["seen"], who]
        state["names"] = sorted({*state["names"], who})


class Machine(RuleBasedStateMachine):
    """The host and the model."""

    deaths: ClassVar[defaultdict[str, int]] = defaultdict(int)
    """How often machines died, in all runs: between two requests, or on the way of one that then was done or not."""

    def __init__(self) -> None:
        super().__init__()
        self.root = folder_for_stores(Path(tempfile.mkdtemp(prefix="keeve-model-")))
        self.stores = 0
        self.folder = self.root / "store 0"
        self.files = CrashFiles()
        self.host: Host | None = None
        self.model: dict[str, Session] = {}
        self.facts: set[tuple[str, str]] = set()
        self.held_at: list[tuple[int, set[tuple[str, str]]]] = []
        self.deleted: set[str] = set()
        self.requests = 0
        self.danger: tuple[int, int] | None = None
        """After how many operations of what is asked next the machine dies, and how much of a write is done then."""
        self.paid: list[str] = []

    # The host.

    def opened(self) -> Host:
        if self.host is None:
            self.files = CrashFiles()
            self.host = open_host(
                self.folder,
                files=self.files,
                actors=[Counter],
                devices={"bank": Bank(self.note), "oracle": Oracle(self.note)},
                settings=Settings(first_snapshot=6, snapshot_records=9, vats=2, retry=0.001),
                segment_bytes=20_000,
            )
        return self.host

    def note(self, device: str, id: str, said: Any) -> None:
        if device == "bank" and not self.files.dead:
            self.paid.append(id)

    def die(self, mode: Mode, seed: int) -> None:
        """The machine loses its power; what is left of the disk is opened the next time."""
        host, self.host = self.host, None
        if host is None:
            return
        self.files.crash(0)
        with suppress_crash():
            host.close()
        self.stores += 1
        left = self.root / f"store {self.stores}"
        self.files.power_cut(self.folder, left, mode, seed)
        self.folder = left

    def settle(self) -> None:
        """Wait until nothing is on its way."""

        async def settled(host: Any) -> None:
            await trio.testing.wait_all_tasks_blocked(0.0005)
            await host._engine.quiet()

        host = self.opened()
        host._do(settled, host._host)

    def ask(self, do: Callable[[Host, str], Any], after: dict[str, dict[str, Any]]) -> Any:
        """Ask for something that leads to the states `after`; again if the machine dies on the way."""
        self.requests += 1
        before = {id: deepcopy(self.model[id].state) for id in after if id in self.model}
        host = self.opened()
        if self.danger is not None:
            after_calls, partial = self.danger
            self.files.crash(after_calls, partial=partial)
        while True:
            try:
                answer = do(host, f"request {self.requests}")
                self.settle()
                self.files.spare()
                self.settle()  # what has begun, as a host that idles writes how far its log is, is over
                break
            except (SimulatedCrash, NotRunning, StoreFailed):
                assert self.files.dead
                self.die(random.Random(self.requests).choice(list(Mode)), self.requests)
                host = self.opened()
                for id, state in before.items():
                    found = self.state(id)
                    assert found in (state, after[id])
                    self.deaths["before it was done" if found == state else "after it was done"] += 1
        self.danger = None
        for id, state in after.items():
            self.model.setdefault(id, Session({})).state = state
            self.remember(id)
        return answer

    def remember(self, id: str) -> None:
        session = self.model[id]
        session.past[self.opened().get(id).describe()["seq"]] = deepcopy(session.state)

    def state(self, id: str) -> Any:
        return self.opened().get(id).state()

    def one(self, number: int) -> str:
        return sorted(self.model)[number % len(self.model)]

    # What is asked.

    @initialize()
    def begin(self) -> None:
        self.spawn()

    @precondition(lambda self: len(self.model) < 5)
    @rule()
    def spawn(self) -> None:
        id = f"s{len(self.model) + len(self.deleted)}"
        self.ask(lambda host, request: host.spawn(Counter, id, request=request), {id: deepcopy(EMPTY)})

    @rule(n=st.integers(0, 9), who=st.sampled_from("abcdef"))
    def add(self, n: int, who: str) -> None:
        id = self.one(n)
        after = Session(deepcopy(self.model[id].state))
        after.add(who)
        said = self.ask(lambda host, request: host.get(id).add(who, request=request), {id: after.state})
        assert said == after.state["count"]

    @rule(n=st.integers(0, 9), key=st.sampled_from("xyz"), size=st.sampled_from([1, 40, 600]))
    def put(self, n: int, key: str, size: int) -> None:
        id = self.one(n)
        after = deepcopy(self.model[id].state)
        after["kept"] = {**after["kept"], key: f"{self.requests} " * size}
        self.ask(lambda host, request: host.get(id).put(key, after["kept"][key], request=request), {id: after})

    @rule(n=st.integers(0, 9), m=st.integers(0, 9), who=st.sampled_from("abcdef"))
    def tell(self, n: int, m: int, who: str) -> None:
        id, other = self.one(n), self.one(m)
        after = {each: Session(deepcopy(self.model[each].state)) for each in {id, other}}
        after[other].add(who)
        after[id].state["seen"].append(f"told {who}")
        self.ask(
            lambda host, request: host.get(id).tell(host.get(other), who, request=request),
            {each: session.state for each, session in after.items()},
        )

    @rule(n=st.integers(0, 9))
    def pay(self, n: int) -> None:
        """A payment that nothing interrupts: its outcome is known."""
        id = self.one(n)
        self.danger = None
        after = deepcopy(self.model[id].state)
        after["count"] += 1
        after["seen"].append(f"paid receipt {self.requests}")
        amount = self.requests
        self.ask(lambda host, request: host.get(id).pay(amount, request=request), {id: after})

    @rule(n=st.integers(0, 9))
    def ask_oracle(self, n: int) -> None:
        id = self.one(n)
        after = deepcopy(self.model[id].state)
        after["seen"].append(f"why? {len(after['seen'])}")
        self.ask(lambda host, request: host.get(id).ask("why", request=request), {id: after})

    @rule(n=st.integers(0, 9), key=st.sampled_from("pqr"))
    def claim(self, n: int, key: str) -> None:
        id = self.one(n)
        session = self.model[id]
        if key not in session.state["held"]:
            after = deepcopy(session.state)
            after["held"] = sorted([*after["held"], key])
            self.ask(lambda host, request: host.get(id).claim(key, request=request), {id: after})
            session.claims.add(key)
            self.facts.add((id, key))
            self.note_facts()

    @rule(n=st.integers(0, 9))
    def drop(self, n: int) -> None:
        id = self.one(n)
        session = self.model[id]
        if session.claims:
            key = min(session.claims)
            after = deepcopy(session.state)
            after["held"] = [held for held in after["held"] if held != key]
            self.ask(lambda host, request: host.get(id).drop(key, request=request), {id: after})
            session.claims.remove(key)
            self.facts.remove((id, key))
            self.note_facts()

    def note_facts(self) -> None:
        position = self.opened()._host._engine.store.head.position
        self.held_at.append((position, set(self.facts)))

    @precondition(lambda self: len(self.model) < 5)
    @rule(n=st.integers(0, 9), back=st.none() | st.integers(0, 9))
    def fork(self, n: int, back: int | None) -> None:
        id = self.one(n)
        child = f"s{len(self.model) + len(self.deleted)}"
        session = self.model[id]
        at = None if back is None else sorted(session.past)[-1 - back % len(session.past)]
        state = session.state if at is None else session.past[at]
        past = {seq: old for seq, old in session.past.items() if at is None or seq <= at}
        self.ask(lambda host, request: host.get(id).fork(at=at, into=child, request=request), {child: deepcopy(state)})
        self.model[child].past.update(past)

    @rule(n=st.integers(0, 9))
    def delete(self, n: int) -> None:
        id = self.one(n)
        if len(self.model) > 3:
            self.opened().delete(id)
            del self.model[id]
            self.deleted.add(id)
            for held in [self.facts, *(facts for _, facts in self.held_at)]:  # it says nothing any more
                held -= {fact for fact in held if fact[0] == id}

    # What changes nothing.

    @precondition(lambda self: self.deleted)
    @rule()
    def reclaim(self) -> None:
        self.ask(lambda host, request: host.reclaim(), {})
        assert self.opened().reclaim() == Reclaimed(0, 0)

    @rule(n=st.integers(0, 9))
    def snapshot(self, n: int) -> None:
        id = self.one(n)
        taken = self.ask(lambda host, request: host.get(id).snapshot(), {})
        assert self.opened().restore(taken).state() == self.model[id].state

    @rule(n=st.integers(0, 9))
    def load_again(self, n: int) -> None:
        id = self.one(n)
        self.ask(lambda host, request: host.restore_latest(id), {})

    @rule()
    def restart(self) -> None:
        self.opened().close()
        self.host = None

    @rule(mode=st.sampled_from(Mode), seed=st.integers(0, 1 << 16))
    def lose_power(self, mode: Mode, seed: int) -> None:
        self.opened()
        self.deaths["between two requests"] += 1
        self.die(mode, seed)

    @rule(after=st.integers(0, 7), partial=st.sampled_from([0, 1, 100, 700]))
    def lose_power_soon(self, after: int, partial: int) -> None:
        """The machine dies in one of the next operations, if what is asked next takes as many."""
        self.danger = after, partial

    # What holds.

    @invariant()
    def all_is_as_in_the_model(self) -> None:
        host = self.opened()
        for id, session in self.model.items():
            assert host.get(id).state() == session.state
        assert [row.id for row in host.sessions(limit=1000)] == sorted(self.model)
        assert {tuple(each.fact.fields) for each in host.facts("(crash.held . _)")} == self.facts
        for position, held in self.held_at[-2:]:
            assert {tuple(each.fact.fields) for each in host.facts("(crash.held . _)", at=position)} == held
        assert len(self.paid) == len(set(self.paid))

    def teardown(self) -> None:
        if self.host is not None:
            self.host.close()
        shutil.rmtree(self.root)


@pytest.mark.crash
def test_a_host_does_what_its_model_does() -> None:
    """Invariants 1, 2, 8, 9, 27, 28 and 30."""
    how = settings(
        max_examples=400 if FULL else 12,
        stateful_step_count=60 if FULL else 25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    Machine.deaths.clear()
    run_state_machine_as_test(Machine, settings=how)
    print(dict(Machine.deaths))
    assert len(Machine.deaths) == 3 if FULL else Machine.deaths
