"""Parts: actors that are made with another one; and promises that an actor owes."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import World, assert_restores

from dataspace.log.memory import MemoryLog
from dataspace.values import NotAValue
from keeve.testing.hosts import memory_host
from vat.crank.upgrading import UpgradeFailed
from vat.errors import NotOwed
from vat.heap.refs import Promise, Ref, near
from vat.objects.actor import Actor, NotDeclared, actor
from vat.objects.collections import List
from vat.objects.owing import fail, owe, owes, pay
from vat.objects.parts import Part
from vat.objects.types import BadActorType


@actor("parts.drawer", version=1)
class DrawerActor(Actor):
    label: str = ""
    things: List[str]

    def put(self, thing: str) -> int:
        self.things.append(thing)
        return len(self.things)

    def lose(self) -> None:
        self.things.clear()
        raise LookupError("gone")


class Drawer(Part):
    __keeve_part__ = DrawerActor

    @classmethod
    def __keeve_given__(cls, value: Any) -> Any:
        return {"things": value} if isinstance(value, list) else super().__keeve_given__(value)


@actor("parts.desk", version=1)
class Desk(Actor):
    upper: Drawer
    lower: Drawer

    def store(self, thing: str) -> int:
        count: int = self.upper.put(thing)
        return count

    def slip(self) -> str:
        try:
            self.upper.lose()
        except LookupError as error:
            return str(error)
        return ""

    def swap(self) -> None:
        self.upper = self.lower

    def handed(self) -> Any:
        return self.device("model").complete([], tools=self.upper)

    def pair(self) -> Ref:
        return self.spawn(Desk, lower={"label": "inner"})


async def test_a_part_is_made_with_its_owner_and_called_at_once() -> None:
    async with memory_host(actors=[Desk]) as host:
        desk = await host.spawn(Desk, "desk", lower=["pen"])
        assert await desk.store("key") == 1
        assert await (await desk.upper).things == ["key"]
        assert await (await desk.lower).things == ["pen"]


async def test_a_part_that_raises_is_undone_alone() -> None:
    async with memory_host(actors=[Desk]) as host:
        desk = await host.spawn(Desk, "desk", upper=["key"])
        assert await desk.slip() == "gone"
        assert await (await desk.upper).things == ["key"]


async def test_a_part_survives_and_a_fork_has_its_own() -> None:
    log = MemoryLog()
    async with memory_host(log, actors=[Desk]) as host:
        desk = await host.spawn(Desk, "desk")
        await desk.store("key")
    async with memory_host(log, actors=[Desk]) as host:
        desk = await host.get("desk")
        twin = await desk.fork(into="twin")
        assert await twin.store("pen") == 2
        assert await (await desk.upper).things == ["key"]
        assert await (await twin.upper).things == ["key", "pen"]


async def test_an_actor_that_is_spawned_within_has_its_parts_too() -> None:
    async with memory_host(actors=[Desk]) as host:
        desk = await host.spawn(Desk, "desk")
        inner = await desk.pair()
        assert await (await inner.lower).label == "inner"


async def test_a_part_cannot_be_assigned_and_begins_with_what_it_can_be_given() -> None:
    async with memory_host(actors=[Desk]) as host:
        desk = await host.spawn(Desk, "desk")
        with pytest.raises(NotDeclared, match="is an actor of its own"):
            await desk.swap()
        with pytest.raises(NotAValue, match=r"Drawer is not a value \(it is a part: give what it holds, as \.view\(\)"):
            await desk.handed()
        with pytest.raises(TypeError, match="Drawer begins with a dict of its fields: give that, not a int"):
            await host.spawn(Desk, "other", upper=3)
        with pytest.raises(TypeError, match="has no field 'colour'"):
            await host.spawn(Desk, "other", upper={"colour": "red"})


def test_a_part_has_no_default() -> None:
    with pytest.raises(BadActorType, match="made with this one: take its default away"):

        @actor("parts.bad", version=1)
        class Bad(Actor):
            drawer: Drawer = None  # type: ignore[assignment]  # that is what is refused


async def test_a_type_that_has_a_part_for_the_first_time_gets_it_when_it_is_used() -> None:
    log = MemoryLog()

    @actor("parts.table", version=1)
    class Before(Actor):
        name: str = ""

    @actor("parts.table", version=1)
    class After(Actor):
        name: str = ""
        drawer: Drawer

        def store(self, thing: str) -> Any:
            return self.drawer.put(thing)

    async with memory_host(log, actors=[Before]) as host:
        await host.spawn(Before, "table")
    async with memory_host(log, actors=[After]) as host:
        table = await host.get("table")
        assert [await table.store("a"), await table.store("b")] == [1, 2]


@actor("parts.debtor", version=1)
class Debtor(Actor):
    owed: Any = None

    def ask(self) -> Promise:
        self.owed = owe(self)
        return self.owed

    def begin(self) -> None:
        self.ask()

    def when(self) -> Promise:
        return Promise(self.owed.id).then(self.seen, broken=self.lost)

    def seen(self, value: Any) -> Any:
        return ["seen", value]

    def lost(self, error: Exception) -> Any:
        return [type(error).__name__, str(error)]

    def answer(self, value: Any) -> None:
        pay(self, self.owed, value)

    def give_up(self, why: str) -> None:
        fail(self, self.owed, LookupError(why))

    def open(self) -> bool:
        return owes(self, self.owed)

    def lend(self) -> None:
        near(self.spawn(Debtor)).ask().then(self.note, broken=self.note)

    def note(self, outcome: Any) -> None:
        self.owed = self.lost(outcome)

    def heard(self) -> Any:
        return self.owed

    def steal(self) -> None:
        pay(self, near(self.spawn(Debtor)).ask(), "mine")


async def test_what_is_owed_is_paid_in_a_later_message() -> None:
    async with memory_host(actors=[Debtor]) as host:
        debtor = await host.spawn(Debtor, "d")
        await debtor.begin()
        assert await debtor.open()
        await debtor.answer(3)
        assert not await debtor.open()
        assert await debtor.when() == ["seen", 3]
        with pytest.raises(NotOwed, match="is not owed by this actor, or is settled"):
            await debtor.answer(4)


async def test_what_is_owed_may_break() -> None:
    async with memory_host(actors=[Debtor]) as host:
        debtor = await host.spawn(Debtor, "d")
        await debtor.begin()
        await debtor.give_up("no money")
        assert await debtor.when() == ["LookupError", "no money"]


async def test_what_is_owed_survives_and_a_fork_owes_its_own() -> None:
    log = MemoryLog()
    async with memory_host(log, actors=[Debtor]) as host:
        debtor = await host.spawn(Debtor, "d")
        await debtor.begin()
    async with memory_host(log, actors=[Debtor]) as host:
        debtor = await host.get("d")
        twin = await debtor.fork(into="twin")
        await twin.answer("twin's")
        assert await debtor.open()
        await debtor.answer("mine")
        assert [await debtor.when(), await twin.when()] == [["seen", "mine"], ["seen", "twin's"]]


def test_what_is_owed_by_an_actor_that_nothing_reaches_breaks() -> None:
    """Invariant 15."""
    world = World(Debtor)
    debtor = world.spawn(Debtor)
    world.tell(debtor, "lend")
    debtor.keep(debtor.vat.collect())
    assert world.ask(debtor, "heard")[0] == "Unpaid"
    assert_restores(world, debtor)


async def test_only_who_owes_a_promise_settles_it() -> None:
    async with memory_host(actors=[Debtor]) as host:
        debtor = await host.spawn(Debtor, "d")
        with pytest.raises(NotOwed, match="is not owed by this actor"):
            await debtor.steal()


# In a new version of the owner.


class Debts(Part):
    __keeve_part__ = Debtor


@actor("parts.clerk", version=1)
class Clerk(Actor):
    debts: Debts

    def wait(self) -> None:
        self.debts.begin()


def newer(moves: dict[str, Any]) -> type[Actor]:
    """The clerk, whose part has another name; `moves` are the fields that its `upgrade` fills, and from which other."""

    @actor("parts.clerk", version=2)
    class Newer(Actor):
        dues: Debts
        other: Debts

        @classmethod
        def upgrade(cls, state: Any, from_version: int) -> None:
            for name, former in moves.items():
                state[name] = state.pop(former) if isinstance(former, str) else former

        def answer(self, value: Any) -> bool:
            self.dues.answer(value)
            return bool(self.dues.open())

    return Newer


@pytest.fixture
async def waiting() -> MemoryLog:
    log = MemoryLog()
    async with memory_host(log, actors=[Clerk]) as host:
        await (await host.spawn(Clerk, "clerk")).wait()
        await host.spawn(Clerk, "idle")
    return log


async def test_a_part_that_moves_to_another_field_is_the_same_actor_with_all_that_it_owes(waiting: MemoryLog) -> None:
    async with memory_host(waiting, actors=[newer({"dues": "debts"})]) as host:
        before = await (await host.get("clerk")).dues
        assert await before.open() is True
    async with memory_host(waiting, actors=[newer({"dues": "debts"})]) as host:
        clerk = await host.get("clerk")
        assert await clerk.answer("paid") is False


async def test_a_part_that_owes_is_not_dropped_and_one_that_owes_nothing_is(waiting: MemoryLog) -> None:
    async with memory_host(waiting, actors=[newer({})]) as host:
        with pytest.raises(
            UpgradeFailed, match=r"1 call or promise waits for the part in 'debts'.*state.pop\('debts'\)"
        ):
            await (await host.get("clerk")).dues
        assert await (await (await host.get("idle")).dues).owed is None
    async with memory_host(waiting, actors=[Clerk]) as host:
        assert await (await (await host.get("clerk")).debts).open() is True


@pytest.mark.parametrize("given", [3, {"owed": 1}])
async def test_a_field_that_is_a_part_is_given_nothing_else_by_an_upgrade(waiting: MemoryLog, given: Any) -> None:
    async with memory_host(waiting, actors=[newer({"dues": "debts", "other": given})]) as host:
        with pytest.raises(UpgradeFailed, match=r"NoPart: other is a part, parts.debtor: upgrade\(\) can move one"):
            await (await host.get("clerk")).dues
