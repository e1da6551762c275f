"""Programs that are drawn: messages to two vats whose actors do drawn things, effects and messages settled or not,
forks, snapshots, restarts, collecting."""

from __future__ import annotations

from random import Random

from doers import LONG, Doer
from hypothesis import strategies as st
from vatmaker import ROOT, World, assert_restores, dump, everything

from dataspace.errors import KeeveError
from dataspace.values import FrozenList
from vat.heap.refs import Ref

values = st.one_of(
    st.none(),
    st.integers(-2, 2),
    st.just("x"),
    st.just(LONG),
    st.lists(st.integers(0, 3), max_size=2),
    st.just({"a": [LONG]}),
)
picks = st.integers(0, 5)
keys = st.one_of(st.integers(0, 3), st.sampled_from(["a", "b"]), st.booleans())


def nested(steps):
    some = st.lists(steps, max_size=3)
    waits = st.lists(st.one_of(steps, st.tuples(st.sampled_from(["wait", "both", "either"]), picks)), max_size=4)
    return st.one_of(
        st.tuples(st.just("near"), picks, some),
        st.tuples(st.just("try"), picks, some),
        st.tuples(st.just("send"), picks, some, st.booleans()),
        st.tuples(st.just("tell"), picks, some, st.booleans()),
        st.tuples(st.just("begin"), picks, waits),
        st.tuples(st.just("go"), picks, waits, st.booleans()),
    )


steps = st.recursive(
    st.one_of(
        st.tuples(st.just("set"), st.just("value"), values),
        st.tuples(st.just("set"), st.just("text"), st.just("tiny")),
        st.tuples(st.just("append"), values),
        st.tuples(st.just("change"), st.sampled_from(["set", "delete", "insert", "clear"]), picks),
        st.tuples(st.just("put"), keys, values),
        st.tuples(st.just("remove"), keys),
        st.tuples(st.just("spawn")),
        st.tuples(st.just("forget")),
        st.tuples(st.just("want"), st.booleans(), st.booleans()),
        st.tuples(st.just("react"), picks, st.sampled_from(["take", "pass", "do", "near"])),
        st.tuples(st.sampled_from(["give", "inside", "cancel", "carry"]), picks),
        st.tuples(st.sampled_from(["narrow", "revoke", "observe", "unobserve"]), picks),
        st.tuples(st.just("fact"), st.integers(1, 2), values),
        st.tuples(st.sampled_from(["retract", "chance"])),
        st.tuples(st.sampled_from(["fail", "bad"])),
    ),
    nested,
    max_leaves=6,
)
calls = st.tuples(
    st.just("call"),
    st.integers(0, 3),
    st.lists(steps, min_size=1, max_size=6),
    st.sampled_from([None, None, None, "r1", "r2"]),
)
moves = st.one_of(
    calls,
    calls,
    st.tuples(st.just("settle"), st.sampled_from(["value", "steps", "error", "bad", "again"])),
    st.tuples(st.just("carry"), st.booleans()),
    st.tuples(st.just("observed")),
    st.tuples(st.sampled_from(["snapshot", "forget", "collect", "started", "reload", "fork"]), st.integers(0, 3)),
    st.tuples(
        st.just("read"),
        st.integers(0, 3),
        st.sampled_from(["look", "value", "items", "refs", "promises", "describe"]),
    ),
)
programs = st.lists(moves, min_size=4, max_size=16)


class Drawn:
    """Programs from a seed: longer ones, in which everything comes up."""

    def __init__(self, seed):
        self.random = Random(seed)

    def value(self):
        return self.random.choice([None, 1, -2, "x", LONG, [1, [2]], {"a": [LONG]}, {}])

    def steps(self, depth=0, count=4):
        return [self.step(depth) for _ in range(self.random.randint(1, count))]

    def step(self, depth):
        pick, random = self.random.randrange(6), self.random
        kinds = [
            lambda: ["set", random.choice(["value", "text", "count"]), random.choice(["tiny", 7])],
            lambda: ["append", self.value()],
            lambda: ["change", random.choice(["set", "delete", "insert", "clear"]), pick],
            lambda: ["put", random.choice([0, 1, True, "a", "b"]), self.value()],
            lambda: ["remove", random.choice([0, 1, True, "a", "b"])],
            lambda: ["spawn"],
            lambda: ["want", bool(pick % 2), bool(pick % 3)],
            lambda: ["react", pick, random.choice(["take", "pass", "do", "near"])],
            lambda: [random.choice(["give", "inside", "cancel", "carry"]), pick],
            lambda: [random.choice(["narrow", "narrow", "revoke", "observe", "unobserve"]), pick],
            lambda: ["fact", 1 + pick % 2, self.value()],
            lambda: ["retract"],
            lambda: ["chance"],
        ]
        if random.random() < 0.06:
            return [random.choice(["fail", "bad", "forget"])]
        if depth < 3 and random.random() < 0.35:
            inner = self.steps(depth + 1, 3)
            if random.random() < 0.3:
                inner.insert(random.randrange(len(inner) + 1), [random.choice(["wait", "both", "either"]), pick])
                inner.append(["wait", pick + 1])
                return random.choice([["begin", pick, inner], ["go", pick, inner, bool(pick % 2)]])
            how = random.choice(["near", "try", "send", "tell"])
            return [how, pick, inner] if how in ("near", "try") else [how, pick, inner, bool(pick % 2)]
        return random.choice(kinds)()

    def move(self):
        random, pick = self.random, self.random.randrange(4)
        kind = random.choice(["call"] * 4 + ["settle", "settle", "carry", "carry", "observed", "read", "other"])
        if kind == "call":
            return ["call", pick, self.steps(), random.choice([None, None, "r1", "r2", "r3"])]
        if kind == "settle":
            return ["settle", random.choice(["value", "steps", "error", "bad", "again"])]
        if kind == "carry":
            return ["carry", pick == 0]
        if kind == "read":
            return ["read", pick, random.choice(["look", "value", "items", "refs", "promises", "describe"])]
        if kind == "observed":
            return ["observed"]
        return [random.choice(["snapshot", "forget", "collect", "collect", "started", "reload", "fork"]), pick]

    def program(self, count):
        return [self.move() for _ in range(count)]


class Run:
    """A drawn program at work."""

    def __init__(self):
        self.world = World(Doer)
        self.uids = [self.world.spawn(Doer, name).vat.uid for name in ("a", "b")]
        for mine, other in (self.uids, self.uids[::-1]):
            self.world.ask(self.world.sessions[mine], "meet", Ref(other, ROOT))

    def session(self, pick):
        return self.world.sessions[self.uids[pick % len(self.uids)]]

    def move(self, kind, *args):
        world = self.world
        if kind == "carry":
            if world.sent:
                brought = world.sent[0]
                receiver = world.carry()
                if args[0]:  # once more: nothing comes of it
                    sender, number, _, message = brought
                    assert receiver.vat.take(world.arriving(sender, number, message)).record is None
            return
        if kind in ("settle", "observed"):
            what = "effects" if kind == "settle" else "subscriptions"
            for uid in self.uids:
                session = self.world.sessions[uid]
                for number, _ in session.heap.entries(what)[:1]:
                    if kind == "settle":
                        self.settle(session, number, *args)
                    else:
                        world.observed(session, number, {"text": LONG}, "further")
                    return
            return
        session, *args = self.session(args[0]), *args[1:]
        if kind == "call":
            try:
                world.tell(session, "do", args[0], request=args[1])
            except KeeveError:  # a request that came with other content
                assert session.heap.mark() == 0
        elif kind == "read":
            head, before = session.vat.seq, dump(session.heap)
            world.tell(session, args[0])
            if session.vat.seq == head:
                assert dump(session.heap) == before
        elif kind == "snapshot":
            session.snapshot()
        elif kind == "forget":
            session.keep(session.vat.forget())
        elif kind == "collect":
            session.keep(session.vat.collect())
        elif kind == "started":
            for number, _ in session.heap.entries("effects")[:1]:
                session.keep(session.vat.started(number))
        elif kind == "reload":
            self.reload(session)
        elif len(self.uids) < 4:
            self.uids.append(world.fork(session, f"fork {len(self.uids)}").vat.uid)

    def settle(self, session, number, how):
        if how == "error":
            self.world.settle(session, error={"error": "OSError", "message": LONG}, effect=number)
        elif how == "bad":
            self.world.settle(session, {"a": object()}, effect=number)
        else:
            value = FrozenList([FrozenList(["append", LONG])]) if how == "steps" else {"text": LONG}
            self.world.settle(session, value, effect=number)
            if how == "again":
                assert self.world.settle(session, 1, effect=number).record is None

    def reload(self, session):
        waiters = dict(session.vat.waiters)  # else what fails then is told of as what nobody waits for
        again = self.world.reload(session)
        again.vat.waiters.update(waiters)
        again.vat.acked |= session.vat.acked
        self.world.sent = type(self.world.sent)(
            (again.vat if sender is session.vat else sender, *more) for sender, *more in self.world.sent
        )

    def check(self):
        for uid in self.uids:
            session = self.world.sessions[uid]
            assert session.heap.mark() == 0
            assert_restores(self.world, session)
            for record in session.records:
                assert b"canary" not in everything(record).replace(b"my.canary", b"")
