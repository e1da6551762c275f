"""What the server was not set up for is 503: whoever asks is told who mends it, and the log what it is. Nobody outside
learns names and paths of the server's (Invariant 20, 43)."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from actors.mcp import McpTools
from actors.tools import Tools
from keeve import Vault
from keeve import errors as known
from keeve.server.errors import ANSWERS, refusal_of, set_up_of
from tests.actors.scenes import Says
from tests.actors.test_tools_mcp import SERVER
from tests.server_worlds import World, world

API = "/api/v1/sessions"
WHAT = "the server has not the credential that this needs"
REMEDY = "whoever keeps the server has to see to it: its log says what is missing"
LACKING = known.NoCredential("canary-bank", "the variable CANARY_BANK_KEY is not set; set it where the host is started")

OF_SET_UP = [kind for kind, answer in ANSWERS.items() if answer.of_set_up]


def said_in(w: World, request: str) -> list[str]:
    """What the log says is not set up, of a request."""
    lines = [json.loads(line) for line in w.log.getvalue().splitlines()]
    return [line["why"] for line in lines if line.get("event") == "not set up" and line["request"] == request]


@pytest.mark.parametrize("kind", OF_SET_UP)
def test_each_is_answered_without_what_its_own_words_name(kind: type[known.KeeveError]) -> None:
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    values = {"int": 7, "int | None": 7, "BaseException": ValueError("canary")}
    given = [values.get(each.annotation, "canary") for each in parameters if each.kind < 2]
    error = kind(*given)
    refusal = refusal_of(error)
    assert refusal is not None
    assert (refusal.status, refusal.remedy) == (503, REMEDY)
    assert "canary" not in refusal.whole().message
    assert set_up_of(error) is not None


def test_credentials_keys_and_packages_are_among_them() -> None:
    assert {known.NoCredential, known.NotInstalled, known.SignerFailed, known.KeyFileError} <= {*OF_SET_UP}
    assert set_up_of(known.KeyFileMissing("keys")) is not None
    assert set_up_of(known.Busy("s", "a turn")) is None
    assert set_up_of(ValueError("x")) is None


async def test_a_session_whose_tools_need_a_credential_that_is_not_there() -> None:
    tools = Tools(McpTools(SERVER, secrets={"TOKEN": "canary-bank"}))
    async with world(devices={"model": Says(), "tools": tools}, vault=Vault({})) as w:
        answer = await w.ann.post(API, headers={"x-request-id": "request-1"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["message"]) == (503, "no_credential", WHAT)
        assert error["remedy"] == REMEDY
        assert "canary" not in answer.text
        [why] = said_in(w, "request-1")
        assert why.startswith("NoCredential: no credential 'canary-bank': ")


async def test_a_turn_whose_model_needs_one_by_every_door(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "keeve")
    async with world(devices={"model": Says(*[LACKING] * 6)}) as w:
        await w.ann.post(API, json={"id": "s"})
        said: list[Any] = [
            await w.ann.post(f"{API}/s/turn", json={"input": "a"}, headers={"x-request-id": "request-1"}),
            await w.ann.post("/v1/responses", json={"input": "a"}),
            await w.ann.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "a"}]}),
        ]
        for answer in said:
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_credential")
            assert answer.json()["error"]["message"].startswith(WHAT)
            assert "canary" not in answer.text.lower()
        assert len(said_in(w, "request-1")) == 1
        assert len([line for line in caplog.messages if "model.complete failed" in line and "canary-bank" in line]) == 3
        stream = {"accept": "text/event-stream", "x-request-id": "request-2"}
        told = (await w.ann.post(f"{API}/s/turn", json={"input": "a"}, headers=stream)).text
        [error] = [part for part in told.split("\n\n") if "event: error" in part]
        assert WHAT in error
        assert "canary" not in error.lower()
        assert len(said_in(w, "request-2")) == 1
