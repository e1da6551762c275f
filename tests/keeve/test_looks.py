"""Looks at a store, as they are asked for by name: whatever a session has stated, and however much is asked for."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

from keeve import Actor, actor
from keeve.looking import look, looks, parts, reading_of, sessions
from keeve.testing import memory_host


@actor("looks.shop", version=1)
class Shop(Actor):
    """It states facts whose first fields are no numbers."""

    messages: Any = None

    def state_all(self) -> None:
        self.assert_fact("shop.items", ["a"], {"b": 1})
        self.assert_fact("shop.none")


async def test_a_session_is_shown_whose_facts_begin_with_a_list() -> None:
    async with memory_host(actors=[Shop]) as host:
        await (await host.spawn(Shop, "s")).state_all()
        shown = await look(reading_of(host), "show", {"id": "s", "whole": True})
        assert [fact["text"] for fact in shown["facts"]] == ['(shop.items ("a") {"b": 1})', "(shop.none)"]


@actor("looks.holder", version=1)
class Holder(Actor):
    """It has refs to others, and keeps one to itself, narrowed, that it gives out."""

    held: Any = None
    kept: Any = None
    one: Any = None

    def hold(self, others: list[Any]) -> None:
        part = self.spawn(Shop, messages=["the part"])
        self.one = self.narrow("hold")
        self.held = [*others, part]
        self.kept = {"to": self.one}


async def test_a_state_has_words_for_its_refs_where_they_are_wanted_and_of_nobody_elses_sessions_any() -> None:
    async with memory_host(actors=[Shop, Holder]) as host:
        shop = await host.spawn(Shop, "s")
        await (await host.spawn(Holder, "h")).hold([shop])
        uid = host.row("s").uid.hex()
        far = f'#ref(#"{uid}" 1)'
        for reaches, said in ((True, "session s (looks.shop)"), (False, f"the session of uid {uid}")):
            store = reading_of(host, lambda row, reaches=reaches: reaches or row.id == "h")  # type: ignore[misc]  # a default
            told = await look(store, "state", {"id": "h", "at": None, "words": True})
            assert told["fields"]["held"][:2] == [{"$ref": far}, {"$ref": "#ref(2)"}]
            assert told["refs"] == {
                far: said,
                "#ref(2)": "looks.shop (actor 2)",
                "#ref(3)": "looks.holder (actor 1, narrowed)",
            }
            shown = await look(store, "show", {"id": "h", "whole": False})
            assert shown["fields"].pop("one").startswith("looks.holder (actor 1): held")
            assert shown["fields"] == {
                "held": f"[<{said}>, <looks.shop (actor 2)>]",
                "kept": '{"to": <looks.holder (actor 1, narrowed)>}',
            }
        assert "refs" not in await look(store, "state", {"id": "h", "at": None})


async def test_of_more_forks_than_are_shown_no_reading_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PAGE", 1)
    async with memory_host(actors=[Shop]) as host:
        shop = await host.spawn(Shop, "s", messages=["a", "b"])
        for _ in range(2):
            await shop.fork()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            shown: dict[str, Any] = await look(reading_of(host), "show", {"id": "s", "whole": False})
            gc.collect()
        assert (len(shown["forks"]), shown["truncated"]) == (1, ["forks"])
        assert [each for each in told if each.category is ResourceWarning] == []


@pytest.mark.parametrize("words", [False, True])
async def test_a_look_has_no_more_than_one_answer_may_have_whatever_is_asked_for(
    words: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with memory_host(actors=[Shop]) as host:
        shop = await host.spawn(Shop, "s", messages=["a", "b"])
        for _ in range(4):
            await shop.state_all()
        store = reading_of(host)
        all_of_it = {"id": "s", "after": -(10**6), "words": words}
        monkeypatch.setattr(looks, "PAGE", 2)
        for limit in (10**9, 2):
            page = await look(store, "chain", {**all_of_it, "limit": limit})
            assert ([each["seq"] for each in page["records"]], page["next"]) == ([1, 2], 2)
        for limit in (0, -1):
            assert (await look(store, "chain", {**all_of_it, "limit": limit}))["next"] == 1
        monkeypatch.undo()
        monkeypatch.setattr(parts, "ROOM", 100)  # characters, of which each header has more
        assert (await look(store, "chain", {**all_of_it, "limit": 1000}))["next"] == 1
        page = await look(store, "messages", {"id": "s", "after": -1, "limit": 1})
        assert page == {"messages": ["a"], "next": 1, "count": 2}
        for wrong in ({"limit": "5"}, {"after": None}, {"limit": True}):
            with pytest.raises(TypeError, match="is a number, not a"):
                await look(store, "messages", {"id": "s", "after": 0, "limit": 1, **wrong})
