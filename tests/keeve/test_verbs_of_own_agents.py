"""What is asked of a session, at every door, of agents of one's own in all shapes: it is done, or refused by name with
nothing recorded.

The table says which, by the shape of the agent; the doors have no say in it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from keeve import open_host
from keeve.errors import KeeveError
from keeve.server.errors import code_of
from keeve.server.openai.keys import SESSIONS
from tests.cli_runner import Said
from tests.keeve.own_shapes import (
    Bare,
    ByName,
    Failing,
    Fields,
    Plain,
    Private,
    Properties,
    TakesMore,
    TakesNothing,
    Writing,
)
from tests.keeve.server.test_server_wire import client_of
from tests.page_visits import browser, form_of, text_of
from tests.served_stores import asked, served_store
from tests.server_worlds import TOKENS, world
from vat.objects.types import type_of

OK: Final = "ok"
NO, OTHER, UNSTATED, FIELD = "no_such_method", "other_parameters", "states_no_turns", "bad_call"
FAILED: Final = "value_error"

SHAPES: Final[dict[type, dict[str, str]]] = {
    #         a turn         queued           steered          steered by a program  interrupted  one of a number
    Bare: {"turn": NO, "queue": UNSTATED, "steer": UNSTATED, "own steer": NO, "interrupt": NO, "end 3": NO},
    Plain: {"turn": OK, "queue": UNSTATED, "steer": UNSTATED, "own steer": OK, "interrupt": OK, "end 3": OTHER},
    TakesNothing: {
        "turn": OTHER,
        "queue": OTHER,
        "steer": OTHER,
        "own steer": OTHER,
        "interrupt": OK,
        "end 3": OTHER,
    },
    TakesMore: {
        "turn": OTHER,
        "queue": UNSTATED,
        "steer": UNSTATED,
        "own steer": OTHER,
        "interrupt": OTHER,
        "end 3": OTHER,
    },
    ByName: {
        "turn": OTHER,
        "queue": UNSTATED,
        "steer": UNSTATED,
        "own steer": OTHER,
        "interrupt": OK,
        "end 3": OK,
    },
    Private: {"turn": NO, "queue": UNSTATED, "steer": UNSTATED, "own steer": NO, "interrupt": NO, "end 3": NO},
    Properties: {"turn": NO, "queue": UNSTATED, "steer": UNSTATED, "own steer": NO, "interrupt": NO, "end 3": NO},
    Fields: {
        "turn": FIELD,
        "queue": UNSTATED,
        "steer": UNSTATED,
        "own steer": FIELD,
        "interrupt": OK,
        "end 3": FIELD,
    },
    Failing: {
        "turn": FAILED,
        "queue": UNSTATED,
        "steer": UNSTATED,
        "own steer": NO,
        "interrupt": FAILED,
        "end 3": OTHER,
    },
    Writing: {"turn": OK, "queue": UNSTATED, "steer": UNSTATED, "own steer": OK, "interrupt": OK, "end 3": OTHER},
}
"""What comes of each verb, by the shape of the agent."""

ALWAYS: Final = ("show", "state", "snapshot", "fork")
"""What each can be asked for, whatever it has."""

SAID: Final = {
    NO: "has no method or public field",
    OTHER: "which cannot be called so",
    UNSTATED: "an input to it has no number to be known by",
    FIELD: "is a field, which takes no arguments",
    FAILED: "not today",
    "nothing_waits": "waits for approval",
    "no_such_effect": "no effect",
    "no_messages": "has no list of messages",
}
"""What is read of each, where there is no code."""

Verb = Callable[[str], Awaitable[str]]
"""Has a session asked for something; gives `OK`, or the code of what it was refused with."""

PLAIN_ANSWERS = (200, 201, 202, 303)


def by_words(said: Said) -> str:
    """How a command ended."""
    if said.code == 0:
        return OK
    assert said.err.startswith("keeve: "), said
    assert "Traceback" not in said.err
    return next((code for code, words in SAID.items() if words in said.err), said.err)


@asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[tuple[Any, dict[str, Verb]]]:
    async with world(actors=list(SHAPES)) as w:

        async def post(path: str, **body: Any) -> str:
            answer = await w.owner.post(f"/api/v1/sessions/{path}", json=body)
            return OK if answer.status_code in PLAIN_ANSWERS else str(answer.json()["error"]["code"])

        async def get(path: str) -> str:
            answer = await w.owner.get(f"/api/v1/sessions/{path}")
            return OK if answer.status_code in PLAIN_ANSWERS else str(answer.json()["error"]["code"])

        async def completed(id: str) -> str:
            body = {"model": "model", "messages": [{"role": "user", "content": "hello"}]}
            answer = await w.owner.post("/v1/chat/completions", json=body, headers={SESSIONS[0]: id})
            return OK if answer.status_code in PLAIN_ANSWERS else str(answer.json()["error"]["code"])

        yield (
            w.host,
            {
                "turn": lambda id: post(f"{id}/turn", input="hello"),
                "turn at /v1": completed,
                "queue": lambda id: post(f"{id}/queue", input="hello"),
                "steer": lambda id: post(f"{id}/steer", input="hello"),
                "interrupt": lambda id: post(f"{id}/interrupt"),
                "end 3": lambda id: post(f"{id}/interrupt", turn=3),
                "show": get,
                "state": lambda id: get(f"{id}/state"),
                "snapshot": lambda id: post(f"{id}/snapshot"),
                "fork": lambda id: post(f"{id}/fork"),
                "approve": lambda id: post(f"{id}/approvals/c1", approve=True),
                "resolve": lambda id: post(f"{id}/effects/e1/resolve", value=1),
                "messages": lambda id: get(f"{id}/messages"),
            },
        )


@asynccontextmanager
async def over_the_wire(folder: Path) -> AsyncIterator[tuple[Any, dict[str, Verb]]]:
    async with world(actors=list(SHAPES)) as w, client_of(w, TOKENS["owner"]) as client:

        async def outcome(call: Awaitable[Any]) -> str:
            try:
                await call
            except KeeveError as error:
                return code_of(error)
            except ValueError:
                return FAILED
            return OK

        yield (
            w.host,
            {
                "turn": lambda id: outcome(client.get(id).turn("hello")),
                "own steer": lambda id: outcome(client.get(id).steer("hello")),
                "interrupt": lambda id: outcome(client.get(id).interrupt()),
                "end 3": lambda id: outcome(client.get(id).interrupt(turn=3)),
                "snapshot": lambda id: outcome(client.get(id).snapshot()),
                "fork": lambda id: outcome(client.get(id).fork()),
                "approve": lambda id: outcome(client.desk("say", id, "c1")),
                "resolve": lambda id: outcome(client.desk("resolve", id, "e1", {"value": 1})),
                "messages": lambda id: outcome(client.desk("look", "messages", {"id": id, "after": 0, "limit": 9})),
            },
        )


@asynccontextmanager
async def on_the_page(folder: Path) -> AsyncIterator[tuple[Any, dict[str, Verb]]]:
    async with world(actors=list(SHAPES)) as w, browser(w, "owner") as owner:
        form, keys = form_of((await owner.get("/")).text, "/sessions"), count()

        def by_page(answer: Any) -> str:
            said = " ".join(text_of(answer.text).split())
            found = next((code for code, words in SAID.items() if words in said), None)
            assert "the server has made a mistake" not in said
            return OK if found is None and answer.status_code in PLAIN_ANSWERS else str(found)

        async def post(path: str, **said: str) -> str:
            return by_page(await owner.post(f"/sessions/{path}", data={**form, "key": f"k{next(keys)}", **said}))

        async def shown(id: str) -> str:
            answer = await owner.get(f"/sessions/{id}")
            return OK if answer.status_code == 200 else str(answer.status_code)

        yield (
            w.host,
            {
                "turn": lambda id: post(f"{id}/say", input="hello", how="ask"),
                "queue": lambda id: post(f"{id}/say", input="hello"),
                "steer": lambda id: post(f"{id}/say", input="hello", how="steer"),
                "end 3": lambda id: post(f"{id}/interrupt", turn="3"),
                "show": shown,
                "fork": lambda id: post(f"{id}/fork"),
                "approve": lambda id: post(f"{id}/approvals/c1", word="approve"),
            },
        )


def commands(folder: Path, *own: str) -> dict[str, Verb]:
    async def done(verb: str, id: str, *words: str) -> str:
        return by_words(await asked(verb, id, *words, *own, "--json", "--store", folder))

    async def looked(verb: str, id: str) -> str:
        return by_words(await asked(verb, id, "--json", "--store", folder))

    return {
        "turn": lambda id: done("turn", id, "hello"),
        "queue": lambda id: done("queue", id, "hello"),
        "steer": lambda id: done("steer", id, "hello"),
        "interrupt": lambda id: done("interrupt", id),
        "end 3": lambda id: done("interrupt", id, "--turn", "3"),
        "show": lambda id: looked("show", id),
        "state": lambda id: looked("state", id),
        "snapshot": lambda id: done("snapshot", id),
        "fork": lambda id: done("fork", id),
        "approve": lambda id: done("approve", id, "c1"),
        "messages": lambda id: looked("messages", id),
    }


@asynccontextmanager
async def by_commands_on_files(folder: Path) -> AsyncIterator[tuple[Any, dict[str, Verb]]]:
    yield None, commands(folder, "--actors", "tests.keeve.own_shapes")


@asynccontextmanager
async def by_commands_over_a_server(folder: Path) -> AsyncIterator[tuple[Any, dict[str, Verb]]]:
    async with served_store(folder, actors=list(SHAPES)) as served:
        yield served.host, commands(folder)


DOORS: Final = {
    "http": over_http,
    "wire": over_the_wire,
    "page": on_the_page,
    "files": by_commands_on_files,
    "server": by_commands_over_a_server,
}
RECORDED: Final = {FAILED}
"""What has been called, and has failed: the record says so."""


LOOKS: Final = ("show", "state", "messages")
"""What only looks, and records nothing."""


@pytest.mark.parametrize("kind", list(SHAPES), ids=lambda kind: str(type_of(kind).name))
@pytest.mark.parametrize("door", DOORS)
async def test_each_verb_is_done_or_refused_by_name_before_anything_is_recorded(
    door: str, kind: type, store_folder: Path
) -> None:
    expected = {**SHAPES[kind], **dict.fromkeys(ALWAYS, OK), "approve": "nothing_waits", "resolve": "no_such_effect"}
    expected |= {"turn at /v1": SHAPES[kind]["turn"], "messages": "no_messages"}

    async def made(host: Any) -> None:
        await host.spawn(kind, "own")

    def head(host: Any) -> int:
        return int(host.row("own").seq)

    async def on_files(what: Callable[[Any], Any]) -> Any:
        async with open_host(store_folder, actors=list(SHAPES)) as host:
            return await given if isinstance(given := what(host), Awaitable) else given

    if door == "files":
        await on_files(made)
    async with DOORS[door](store_folder) as (host, verbs):
        if host is not None:
            await made(host)
        before = 1
        for verb, does in verbs.items():
            came = await does("own")
            assert (verb, came) == (verb, expected[verb])
            now = head(host) if host is not None else await on_files(head)
            if verb in LOOKS or (came != OK and came not in RECORDED):
                assert (verb, now) == (verb, before)
            before = now


@pytest.mark.parametrize("door", DOORS)
async def test_a_status_that_is_not_to_be_read_is_called_by_nobody(door: str, store_folder: Path) -> None:
    async def calls(host: Any) -> int:
        return int(await (await host.get("own")).calls)

    async def on_files(what: Callable[[Any], Awaitable[Any]]) -> Any:
        async with open_host(store_folder, actors=[Writing]) as host:
            return await what(host)

    async def made(host: Any) -> None:
        await host.spawn(Writing, "own")

    if door == "files":
        await on_files(made)
    async with DOORS[door](store_folder) as (host, verbs):
        if host is not None:
            await made(host)
        for does in verbs.values():
            await does("own")
        assert await (on_files(calls) if host is None else calls(host)) == 0
