"""What happens to sessions whose methods were drawn: told twice, undisturbed and disturbed, it leaves the same records.

A story is a list of moves: methods are called, effects settled, messages carried, sessions forked, collected and
snapshotted. Disturbances are between the moves: a session restarts, its coroutines are dropped, a crank fails at its
end and is taken again. With `Changed` the code of one method is another from some move on.

The one rule: a disturbance takes nothing of the world's time and chance, so that records can be compared by their hash.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from drawn_fibers import METHODS, build, concerned, small
from hypothesis import strategies as st
from vatmaker import ROOT, World, assert_restores, dump

from vat.crank.upkeep import Upkeep
from vat.errors import FiberDiverged
from vat.heap.refs import Ref
from vat.objects.actor import Actor
from vat.objects.types import Types

MOVES = st.one_of(
    st.tuples(st.just("call"), small, st.integers(0, METHODS - 1)),
    st.tuples(st.just("call"), small, st.integers(0, METHODS - 1)),
    st.tuples(st.just("settle"), small, small, st.sampled_from(["value", "value", "long", "error"])),
    st.tuples(st.just("settle"), small, small, st.sampled_from(["value", "list"])),
    st.tuples(st.just("carry")),
    st.tuples(st.sampled_from(["snapshot", "collect", "poke", "fork", "fork"]), small),
)
DISTURBANCES = st.tuples(st.sampled_from(["restart", "restart", "drop", "abandon"]), small)

moves = st.lists(MOVES, min_size=8, max_size=18)
disturbances = st.lists(st.lists(DISTURBANCES, max_size=2), min_size=40, max_size=40)
"""Before each move, and in the end."""

ENOUGH = 400
"""Moves after which a story that does not come to its end is left."""


DRAWN = {"ValueError", "TimeLimit", "PromiseGone", "PromiseCycle", "Forked"}
"""What drawn methods raise themselves."""


class Abandoned(Exception):
    """A crank that came to its end could not be kept."""


class Told(World):
    """A story that is told. `answers` are what callers got, by the move."""

    def __init__(self, cls: type[Actor], moves: Sequence[Any], disturbances: Sequence[Sequence[Any]] = ()) -> None:
        super().__init__(cls)
        self.cls = cls
        self.moves = moves
        self.disturbances = [*map(list, disturbances)]
        self.answers: dict[int, list[Any]] = {}
        self.told = 0
        self.failures: list[BaseException] = []
        self.uids = [self.spawn(cls, id).vat.uid for id in ("a", "b")]
        for uid, other in (self.uids, self.uids[::-1]):
            self.tell(self.sessions[uid], "meet", Ref(other, ROOT))

    def run(self) -> None:
        """To the end: what is open is settled, oldest first."""
        for at, move in enumerate(self.moves):
            self.before(at)
            self.move(move)
        for at in range(len(self.moves), len(self.moves) + ENOUGH):
            self.before(at)
            if self.sent:
                self.carry()
            elif open := [uid for uid in self.uids if self.sessions[uid].heap.system["effects"].count]:
                self.settle(self.sessions[open[0]], f"late {at}")
            else:
                break
        for uid in self.uids:
            assert_restores(self, self.sessions[uid])
            self.sessions[uid].vat.close()

    def move(self, move: Sequence[Any]) -> None:
        kind, *args = move
        session = self.sessions[self.uids[args[0] % len(self.uids)]] if args else None
        if kind == "carry":
            if self.sent:
                self.carry()
        elif kind == "call":
            self.told += 1
            self.tell(session, f"m{args[1]}", args[1])
            self.answers[self.told] = session.answers
        elif kind == "poke":
            self.tell(session, "plain", "poked")
        elif kind == "snapshot":
            session.snapshot()
        elif kind == "collect":
            session.keep(session.vat.collect())
        elif kind == "fork":
            if len(self.uids) < 4 and not session.heap.forking:
                self.uids.append(self.fork(session, f"fork {len(self.uids)}").vat.uid)
        else:
            open = [number for number, _ in session.heap.entries("effects")]
            if open:
                effect = open[args[1] % len(open)]
                value = {"value": effect, "long": f"{effect} " * 200, "list": [effect, {"x": [effect]}]}
                failure = {"error": "ValueError", "message": f"no {effect}"} if args[2] == "error" else None
                self.settle(session, value.get(args[2]), failure, effect)

    # What disturbs.

    def before(self, at: int) -> None:
        chance = next(self.chance)
        for kind, which in self.disturbances[at] if at < len(self.disturbances) else ():
            session = self.sessions[self.uids[which % len(self.uids)]]
            if kind == "restart":
                self.restart(session)
            elif kind == "drop":
                session.vat.close()
            else:
                self.abandons = True
        self.chance = itertools.count(chance)  # what is closed may ask for some

    abandons = False

    def restart(self, session: Any) -> None:
        """The session again from what is stored; others tell it again who waits for it and what was acknowledged."""
        old = session.vat
        again = self.reload(session).vat
        again.waiters.update(old.waiters)
        again.acked |= old.acked

    def carry(self) -> None:
        """Deliver the oldest message."""
        sender, number, uid, message = self.sent.popleft()
        self.take(self.sessions[uid], self.arriving(sender, number, message))
        self.sessions[sender.uid].vat.acked.add(number)

    def take(self, session: Any, message: Any) -> Any:
        if self.abandons and not session.vat.heap.forking:
            self.abandons = False
            self.abandon(session, message)
        step = super().take(session, message)
        if step.failure is not None:
            self.failures.append(step.failure)
        return step

    def abandon(self, session: Any, message: Any) -> None:
        """Take a message and abandon the crank at its end."""
        now, chance, vat = self.now, next(self.chance), session.vat
        waiters = {promise: list(waiting) for promise, waiting in vat.waiters.items()}

        def lost(*_: Any) -> Any:
            raise Abandoned

        seal, Upkeep._seal = Upkeep._seal, lost
        try:
            vat.take(message)
        except Abandoned:
            pass
        finally:
            Upkeep._seal = seal
        vat.waiters.clear()
        vat.waiters.update(waiters)
        self.now, self.chance = now, itertools.count(chance)

    def heaps(self) -> list[Any]:
        """What each session holds in the end."""
        return [dump(self.sessions[uid].heap) for uid in self.uids]

    def chains(self) -> list[list[str]]:
        """The hashes of all records."""
        return [[record.hash.hex()[:12] for record in self.sessions[uid].records] for uid in self.uids]


class Changed(Told):
    """A story in which the code of a method is another from some move on."""

    def __init__(self, cls: type[Actor], moves: Sequence[Any], other: type[Actor], since: int) -> None:
        super().__init__(cls, moves)
        self.other = other
        self.since = since

    def before(self, at: int) -> None:
        if at == self.since:
            self.types = Types([self.other])
            for uid in self.uids:
                self.restart(self.sessions[uid])


def same(methods: Sequence[Any], moves: Sequence[Any], disturbances: Sequence[Any]) -> Told:
    """Tell a story twice, and check that it is the same. Gives the disturbed one."""
    calm = Told(build(methods), moves)
    calm.run()
    disturbed = Told(build(methods), moves, disturbances)
    disturbed.run()
    diverged = [error for error in [*calm.failures, *disturbed.failures] if isinstance(error, FiberDiverged)]
    assert not diverged, diverged[0]
    assert disturbed.chains() == calm.chains()
    assert disturbed.heaps() == calm.heaps()
    assert disturbed.answers == calm.answers
    return disturbed


def changed(methods: Sequence[Any], other: Sequence[Any], which: int, moves: Sequence[Any], since: int) -> list[Any]:
    """Tell a story whose code changes on the way; check what is told of that. Gives it."""
    calm = Told(build(methods), moves)
    calm.run()
    story = Changed(build(methods), moves, build(other), since)
    story.run()
    # Who waits for one that has diverged fails with the same error, which then has its message alone.
    diverged = [error for error in story.failures if isinstance(error, FiberDiverged) and hasattr(error, "method")]
    raised = {type(error).__name__ for error in story.failures}
    assert raised <= {"FiberDiverged", *DRAWN}, raised
    known = concerned(methods, which) | concerned(other, which)
    for error in diverged:
        assert error.method in known, f"{error}: it runs nothing of m{which}"
    if other == methods:
        assert story.chains() == calm.chains()
    return diverged
