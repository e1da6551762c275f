"""A word on a call that waits no more: at every door it is said what became of it, when, and by whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from keeve import Actor, List, Text, Toolbox, Tools, actor, open_host, tool
from keeve.errors import KeeveError, NothingWaits
from tests.cli_runner import Said, keeve_process
from tests.keeve.server.test_server_wire import client_of
from tests.page_visits import browser, form_of, text_of
from tests.served_stores import asked, served_store
from tests.server_worlds import TOKENS, world

CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"what": "all"}'}}


@tool(approval=True)
async def pay(what: str) -> str:
    """Pay."""
    return what


TOOLS = Tools(pay)
LOG: dict[str, str] = {"said": "as it was"}


@actor("late.payer", version=1)
class Payer(Actor):
    tools: Toolbox
    log: List[str]

    async def turn(self, text: Text) -> str:
        self.log.append(LOG["said"])
        return str(await self.tools.run_all([CALL]))


@actor("late.payer", version=2)
class Raised(Actor):
    tools: Toolbox
    log: List[str]


Say = Callable[[bool], Awaitable[str]]


async def waits(host: Any, nursery: trio.Nursery) -> Any:
    payer = await host.spawn(Payer, "p1", tools=TOOLS)
    nursery.start_soon(quietly, payer)
    async for _ in host.observe("(approval-wanted . _)"):
        break
    return payer


async def quietly(payer: Any) -> None:
    with suppress(KeeveError):
        await payer.turn("x")


GIVEN, REFUSED = "it was approved of on ", ": too much"


@pytest.mark.parametrize("first", [True, False], ids=["given", "refused"])
@pytest.mark.parametrize("door", ["http", "wire", "page"])
async def test_a_second_word_is_told_of_the_first(door: str, first: bool) -> None:
    async with world(actors=[Payer], devices={"tools": TOOLS}) as w, trio.open_nursery() as nursery:
        await waits(w.host, nursery)
        async with client_of(w, TOKENS["owner"]) as client, browser(w, "owner") as owner:
            form = form_of((await owner.get("/sessions/p1")).text, "/sessions/p1/approvals/c1")
            keys = iter("abcd")

            async def http(yes: bool) -> str:
                body = {"approve": yes, "reason": "" if yes else "too much"}
                return str((await w.owner.post("/api/v1/sessions/p1/approvals/c1", json=body)).text)

            async def wire(yes: bool) -> str:
                try:
                    await client.desk("say", "p1", "c1", None if yes else "too much")
                except NothingWaits as error:
                    return str(error)
                return ""

            async def page(yes: bool) -> str:
                said = {**form, "key": next(keys), "word": "approve" if yes else "refuse", "reason": "too much"}
                return text_of((await owner.post("/sessions/p1/approvals/c1", data=said)).text)

            say: Say = {"http": http, "wire": wire, "page": page}[door]
            await say(first)
            for again in (True, False):
                said = await say(again)
                assert "waits for no approval any more" in said
                assert (GIVEN in said, REFUSED in said) == (first, not first)
                assert " by owner" in said
        nursery.cancel_scope.cancel()


async def left_waiting(folder: Path) -> None:
    async with open_host(folder, actors=[Payer], devices={"tools": TOOLS}) as host, trio.open_nursery() as nursery:
        await waits(host, nursery)
        nursery.cancel_scope.cancel()


async def words(folder: Path, served: bool, *said: tuple[str, ...], kind: str = "Payer") -> list[Said]:
    where = ("--store", folder)
    if not served:
        return [await asked(*each, *where, "--actors", f"{__name__}:{kind}") for each in said]
    async with served_store(folder, actors=[globals()[kind]], devices={"tools": TOOLS}):
        return [await asked(*each, *where) for each in said]


@pytest.mark.parametrize("served", [False, True], ids=["files", "server"])
async def test_a_command_says_what_became_of_the_call(store_folder: Path, served: bool) -> None:
    await left_waiting(store_folder)
    first, *others = await words(
        store_folder, served, ("refuse", "p1", "c1", "too much"), ("approve", "p1", "c1"), ("refuse", "p1", "c1")
    )
    assert first.code == 0, first
    for said in others:
        assert said.code == 2
        assert "the call 'c1' waits for no approval any more: it was refused on 20" in said.err
        assert ": too much" in said.err
    [unknown] = await words(store_folder, served, ("approve", "p1", "c9"))
    assert "no call 'c9' waits for approval; none does" in unknown.err


@pytest.mark.parametrize("served", [False, True], ids=["files", "server"])
async def test_after_the_version_was_raised_a_yes_is_told_that_the_method_is_over_and_why(
    store_folder: Path, served: bool
) -> None:
    await left_waiting(store_folder)
    for said in await words(store_folder, served, ("approve", "p1", "c1"), ("refuse", "p1", "c1"), kind="Raised"):
        assert said.code == 2
        assert "it was withdrawn, and not made, on 20" in said.err
        assert "was begun by version 1 of late.payer; the code now is version 2" in said.err


@pytest.mark.parametrize("served", [False, True], ids=["files", "server"])
async def test_after_its_code_was_changed_a_second_yes_is_told_it_too_and_show_has_the_whole_reason(
    store_folder: Path, served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await left_waiting(store_folder)
    monkeypatch.setitem(LOG, "said", "as it is now")
    first, second = await words(store_folder, served, ("approve", "p1", "c1"), ("approve", "p1", "c1"))
    why = 'The record says that it changes log of actor 1: append("as it was"); the code now'
    assert "was withdrawn in the place of being approved of" in first.err
    assert why in first.err
    assert "it was withdrawn, and not made, on 20" in second.err
    assert why.lower() in second.err.lower()
    shown = (await asked("show", "p1", "--store", store_folder)).out
    assert "under How it survives" in shown, "the end of the reason"
    assert why.lower() in shown.lower()
    assert "keeve show has why" in (await asked("doctor", "--store", store_folder)).out


async def test_one_command_tells_the_reason_once_and_its_warning_quotes_nothing(
    store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LOG, "said", "as it was once")
    await left_waiting(store_folder)
    with keeve_process(
        "approve", "p1", "c1", "--store", store_folder, "--actors", "tests.keeve.test_words_that_come_late:Payer"
    ) as process:
        said = (await trio.to_thread.run_sync(process.communicate))[1].decode()
    assert said.count("as it was once") == 1, said
    assert said.count("a method that waited is over") == 1
    assert said.count("under How it survives") == 0, "keeve show has it"
