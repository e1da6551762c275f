"""What an actor's fields begin with, as a host is given it."""

from __future__ import annotations

from typing import Any

import pytest

from keeve.testing.hosts import memory_host
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set


@actor("test.shelf", version=1)
class Shelf(Actor):
    """Has one of each kind."""

    titles: List[str]
    copies: Map[str, int]
    tags: Set[str]


async def test_collections_begin_with_what_spawn_is_given() -> None:
    async with memory_host(actors=[Shelf]) as host:
        s = await host.spawn(Shelf, titles=["b", "a"], copies={"b": 1, "a": 2}, tags=["y", "x", "y"])
        assert await s.titles == ["b", "a"]
        assert await s.copies == {"a": 2, "b": 1}
        assert await s.tags == ["x", "y"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"titles": "ab"}, "test.shelf.titles begins with a list, not with a str"),
        ({"titles": {"a": 1}}, "test.shelf.titles begins with a list, not with a FrozenDict"),
        ({"copies": ["a"]}, "test.shelf.copies begins with a dict, not with a FrozenList"),
        ({"tags": "ab"}, "test.shelf.tags begins with a set, or a list of its members, not with a str"),
    ],
)
async def test_a_collection_cannot_begin_with_something_else(fields: dict[str, Any], problem: str) -> None:
    """Invariant 43."""
    async with memory_host(actors=[Shelf]) as host:
        with pytest.raises(TypeError) as refused:
            await host.spawn(Shelf, "s1", **fields)
        assert str(refused.value) == problem
        assert host.sessions() == []
