"""Every error says what was wrong and what to do, in the words of who asks over HTTP."""

from __future__ import annotations

import inspect
import io
import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest

from dataspace.errors import KeeveError
from keeve import errors as known
from keeve.remedies import worded
from keeve.server.errors import ANSWERS, Refusal, refusal_of
from keeve.server.logs import LogHandler, Secrets, make_log
from keeve.server.openai.objects import failure_of
from tests.keeve.server.test_openai_chat import user
from tests.server_worlds import world
from vat.objects.types import UnknownActorType

PYTHON = re.compile(
    r"\bawait\b|\bhost\.\w|\w\(\.\.\.|\w=\.\.\.|open_host|self\.|\bnear\(|@effect|@actor|readonly=|=True|\bNone\b"
    r"|\w\(\)|\bspawn\(|configure\(|Settings\("
)
"""What only a program in Python can do something with."""

OF_PROGRAMS = {
    *(
        "BadHostSetting",
        "BadPolicy",
        "ClientClosed",
        "ClientTooLarge",
        "NoToken",
        "NotAsync",
        "NotAwaitable",
        "NotFetched",
        "NotNear",
    ),
    *("NotTrio", "OwnThread"),
}
"""Errors of whoever writes actors, devices or programs: what they say is said to them."""

SAMPLES: dict[str, tuple[Any, ...]] = {
    "BadSetting": ("parallel", "is 1: it is True, or False for one tool call after another"),
    "BadInput": ("part 0 holds what JSON does not have (bytes without a Blob, NaN, ...)",),
    "StoreReadOnly": ("this host", "it was opened with readonly=True"),
    "TurnOver": ("turn 1 of 's' has no more time: give turns more with max_seconds",),
}
"""What some of them are made with, where it is said elsewhere what they say."""


def made(kind: type[KeeveError]) -> KeeveError | None:
    """An error of that class, made with anything."""
    if kind.__name__ in SAMPLES:
        return kind(*SAMPLES[kind.__name__])
    given: list[Any] = []
    for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        if (
            parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            and parameter.default is parameter.empty
        ):
            words = str(parameter.annotation)
            given.append(7 if words in ("int", "float") else b"x" if words == "bytes" else "x")
    try:
        error = kind(*given)
        return error if str(error) is not None else None
    except (AttributeError, TypeError):
        return None  # it is made of something else


KINDS = {name: kind for name, kind in vars(known).items() if isinstance(kind, type) and issubclass(kind, KeeveError)}


def test_every_error_is_said_in_words_of_http_with_what_to_do() -> None:
    seen = 0
    for name, kind in KINDS.items():
        error = made(kind)
        if error is None or name in OF_PROGRAMS:
            continue
        refusal = refusal_of(error)
        assert refusal is not None
        assert refusal.remedy, name
        assert PYTHON.search(refusal.whole().message) is None, (name, refusal.whole().message)
        seen += 1
    assert seen > 100


def test_every_answer_of_the_table_says_what_to_do() -> None:
    assert [kind.__name__ for kind, answer in ANSWERS.items() if not answer.remedy] == []


def test_what_was_recorded_of_a_turn_is_said_so_too() -> None:
    error = {"error": "UnknownDevice", "message": str(known.UnknownDevice("gpt.complete", ("model.complete",)))}
    refusal = failure_of({"span": {"error": error}}).whole()
    assert (
        refusal.message
        == "there is no gpt.complete here; there are: model.complete; name a model or a tool that the server has"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "input: it has to be there; send a text, or a list of items"),
        ({"input": "a", "temperature": 9}, "temperature: it has to be a number from 0 to 2; correct it and ask again"),
        (
            {"input": "a", "nonsense": 1},
            "the parameter 'nonsense' is not supported here, and an answer without it would "
            "be another one; leave it out",
        ),
    ],
)
async def test_the_message_of_a_refusal_says_all_of_it_to_clients_that_show_nothing_else(
    body: dict[str, Any], message: str
) -> None:
    async with world() as w:
        error = (await w.ann.post("/v1/responses", json=body)).json()["error"]
        assert error["message"] == message
        assert error["remedy"]


async def test_the_same_holds_for_what_is_refused_before_and_behind_the_endpoints() -> None:
    async with world() as w:
        said = [
            (await w.nobody.get("/v1/models")).json()["error"],
            (await w.ann.get("/v1/nowhere")).json()["error"],
            (await w.ann.get("/v1/responses/resp_1")).json()["error"],
            (await w.ann.post("/v1/chat/completions", json={"messages": [user("a")], "model": "x"})).json()["error"],
        ]
        assert all(each["remedy"] in each["message"] for each in said), said
        kept = (await w.ann.get("/api/v1/sessions/none")).json()["error"]
        assert kept["remedy"] not in kept["message"]


def test_a_refusal_says_once_what_it_says() -> None:
    assert Refusal(400, "c", "n is odd: leave it out", "leave it out", "n").whole().message == "n is odd: leave it out"
    assert Refusal(400, "c", "is it there?", "look").whole().message == "is it there? Look"


def test_whoever_runs_a_server_is_told_of_its_settings_where_a_program_is_told_of_its_host() -> None:
    out = io.StringIO()
    log = make_log(Secrets(), out=out)
    waits = (
        "session s: slow.complete waits: it was asked for before this host opened, which was given no device 'slow' "
        "that has it. Open the store with devices={'slow': ...}, or settle it: keeve resolve 3-1, or host.resolve"
    )
    for said in (waits, str(UnknownActorType("shop.agent", ["other"])), NOT_THERE):
        LogHandler(log).emit(logging.LogRecord("keeve", logging.WARNING, "", 0, said, (), None))
    assert "[models.slow]" in out.getvalue()
    assert "[models.NAME]" in out.getvalue()
    assert "setting `actors`" in out.getvalue()
    assert not PYTHON.search(out.getvalue())
    assert "setting `actors`" in worded(str(UnknownActorType("shop.agent", ["other"])), "http")


NOT_THERE = (
    "this host has no slow.complete; its devices offer: model. "
    "Give the device to the host, and mark its method with @effect"
)


def test_what_cannot_be_shown_is_said_to_be_that_in_a_log():
    """Invariant 23: it may come from users' code, and is told while a turn is taken."""

    class Deep:
        def __repr__(self) -> str:
            raise RecursionError

    told = []

    def tell(event: str, **said: Any) -> None:
        told.append((event, said["why"]))

    LogHandler(SimpleNamespace(info=tell, error=tell)).emit(
        logging.LogRecord("keeve", logging.INFO, "", 0, "it failed: %r", (Deep(),), None)
    )
    assert told == [("this cannot be shown", "RecursionError")]
