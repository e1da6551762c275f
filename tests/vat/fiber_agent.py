"""An actor whose methods wait for a tool, and the tool that answers when it is open."""

from __future__ import annotations

from typing import Any

import trio

from tests.vat.hosts import World
from vat.errors import Forked
from vat.heap.refs import cancel, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.types import read


@actor("fibers.agent", version=1)
class Agent(Actor):
    log: List[Any]
    count: int = 0

    async def work(self, *values: Any) -> list[Any]:
        seen: list[Any] = []
        try:
            for value in values:
                seen.append(await self.device("tool").again(value))
                self.log.append(seen[-1])
        except Forked:
            self.log.append("forked")
        finally:
            self.count += 1
        return seen

    async def once(self, value: Any) -> Any:
        return await self.device("tool").once(value)

    async def pair(self, *values: Any) -> None:
        promises = [self.device("tool").again(value) for value in values]
        for promise in promises:
            self.log.append(await promise)

    async def nap(self, first: Any, last: Any) -> None:
        await self.sleep(3600)
        self.log.append(f"slept from {first} to {last}")

    async def started(self, how: str = "work") -> str:
        getattr(near(self.ref), how)(1, 2)
        return "begun"

    async def limited(self) -> Any:
        work = near(self.ref).work("a", "b")
        await self.device("tool").once("enough")
        return cancel(work, ValueError("enough"))

    def poke(self) -> None:
        self.count += 100

    @read
    def seen(self) -> list[Any]:
        return list(self.log)


def shut(world: World) -> None:
    world.tool.open, world.tool.gate = False, trio.Event()


def open(world: World) -> None:
    world.tool.open = True
    world.tool.gate.set()
