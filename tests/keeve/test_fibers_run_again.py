"""Fibers that are run again in processes with other hash seeds: those that come back, and those that would not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keeve import Actor, Effect, List, Map, Set, actor, blocking, effect, near
from keeve.testing import fibers_run_again
from keeve.testing.again import CannotBeFound

WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew")


@actor("again.orderly", version=1)
class Orderly(Actor):
    log: List[Any]
    table: Map[str, int]
    names: Set[str]

    def begin(self) -> None:
        near(self.ref).work()

    async def work(self) -> None:
        for word in sorted(set(WORDS)):
            self.names.add(word)
        for number, word in enumerate(self.names):
            self.table[word] = number
        counted = {word: len(word) for word in WORDS}
        await self.device("quick").look()
        for word, number in self.table.items():
            self.log.append([word, number, counted[word]])
        for word in sorted({*counted, *self.names}):
            self.log.append(word)
        shuffled = self.random.choice(sorted(set(WORDS)))
        await self.sleep(1_000_000)
        self.log.append(shuffled)


@actor("again.careless", version=1)
class Careless(Actor):
    log: List[Any]

    def begin(self) -> None:
        near(self.ref).work()

    async def work(self) -> None:
        for word in set(WORDS):
            self.log.append(word)
        await self.sleep(1_000_000)


class Quick:
    """A device that answers at once."""

    @effect(on_crash="retry")
    async def look(self, effect: Effect) -> str:
        return "seen"


def store_of(folder: Path, cls: type) -> Path:
    """A store in which a fiber waits."""
    with blocking.open_host(folder, actors=[cls], devices={"quick": Quick()}) as host:
        host.spawn(cls, "s").begin()
    return folder


def test_what_is_in_a_defined_order_comes_back_under_any_hash_seed(store_folder: Path) -> None:
    """Invariant 16: dicts, sorted sets, maps, sets of the actor's own, and chance."""
    folder = store_of(store_folder / "store", Orderly)
    assert fibers_run_again(folder, Orderly, seeds=(1, 77)) == 1
    with blocking.open_host(folder, actors=[Orderly], devices={"quick": Quick()}) as host:
        s = host.get("s")
        assert (s.describe()["fibers"], len(s.log)) == (1, 24)


def test_what_depends_on_the_order_of_a_set_is_found(store_folder: Path) -> None:
    folder = store_of(store_folder / "store", Careless)
    with pytest.raises(AssertionError, match=r"PYTHONHASHSEED=0: .*changes log of actor 1: append"):
        fibers_run_again(folder, Careless, seeds=(0,))


def test_a_type_that_another_process_cannot_import_is_refused(store_folder: Path) -> None:
    @actor("again.inner", version=1)
    class Inner(Actor):
        pass

    with pytest.raises(CannotBeFound, match="top level of a module"):
        fibers_run_again(store_folder, Inner)
