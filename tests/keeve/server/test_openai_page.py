"""What `docs/openai.md` says of parameters, events and paths is what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import openai
import pytest

from keeve.server.openai import response_events, routes
from keeve.server.openai.asking import CHAT, HARMLESS, RESPONSES
from tests.openai_clients import client_of
from tests.server_worlds import world

PAGE = (Path(__file__).parents[3] / "docs" / "openai.md").read_text()
CODE = set(re.findall(r"`([^`]+)`", re.sub(r"(?s)```.*?```", "", PAGE)))


def test_every_parameter_is_on_the_page() -> None:
    assert sorted((RESPONSES | CHAT | HARMLESS) - CODE) == []


def test_every_event_is_on_the_page() -> None:
    told = set(re.findall(r'"(response\.[a-z_.]+)"', inspect.getsource(response_events)))
    assert sorted(told - CODE) == []


async def test_every_path_is_on_the_page() -> None:
    async with world() as w:
        paths = {route.path for route in routes(w.serving)}  # type: ignore[attr-defined]  # each has one
    said = PAGE.replace("…/items/{item}", "/v1/conversations/{id}/items/{item}")
    assert sorted(path for path in paths if path.replace("{name:path}", "{name}") not in said) == []


async def test_a_repetition_of_what_was_not_to_be_stored_is_refused() -> None:
    async with world() as w:
        key = {"Idempotency-Key": "k"}
        await client_of(w).responses.create(input="a", store=False, extra_headers=key)
        with pytest.raises(openai.APIStatusError) as caught:
            await client_of(w).responses.create(input="a", store=False, extra_headers=key)
        assert caught.value.code == "deleted"
