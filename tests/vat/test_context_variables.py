"""Context variables: what a delivery or a fiber sets is its own."""

from __future__ import annotations

from contextvars import ContextVar

from keeve.testing.hosts import memory_host
from vat.heap.refs import Promise, near
from vat.objects.actor import Actor, actor

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


@actor("context.desk", version=1)
class Desk(Actor):
    seen: str = ""

    def name(self, who: str) -> None:
        WHO.set(who)

    def me(self) -> str:
        return WHO.get()

    def send(self, who: str) -> Promise:
        WHO.set(who)
        return self.ref.me()

    async def log_in(self, who: str) -> str:
        token = WHO.set(who)
        await self.sleep(0)
        WHO.set(f"{WHO.get()}, still")
        await self.sleep(0)
        seen = WHO.get()
        WHO.reset(token)
        return seen

    async def beside(self) -> str:
        promise = near(self.ref).log_in("another")
        seen = WHO.get()
        await promise
        return f"{seen}, {WHO.get()}"


async def test_what_a_delivery_sets_no_other_sees() -> None:
    async with memory_host(actors=[Desk]) as host:
        one, other = await host.spawn(Desk, "one"), await host.spawn(Desk, "other")
        await one.name("ann")
        assert (await one.me(), await other.me()) == ("nobody", "nobody")
        assert await one.send("ann") == "nobody"
    assert WHO.get() == "nobody"


async def test_a_fiber_has_what_it_has_set_and_no_other_sees_it() -> None:
    async with memory_host(actors=[Desk]) as host:
        one, other = await host.spawn(Desk, "one"), await host.spawn(Desk, "other")
        assert await one.log_in("ann") == "ann, still"
        assert (await one.me(), await other.me()) == ("nobody", "nobody")
        assert await one.beside() == "nobody, nobody"
    assert WHO.get() == "nobody"
