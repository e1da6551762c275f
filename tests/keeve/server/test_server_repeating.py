"""The Idempotency-Key: what it may be is the same wherever one is taken, and is what the document says."""

from __future__ import annotations

import pytest

from keeve import Session
from tests.server_worlds import world

DOORS = [
    ("/api/v1/sessions", {}),
    ("/api/v1/sessions/s/turn", {"input": "x"}),
    ("/api/v1/sessions/s/queue", {"input": "x"}),
    ("/api/v1/sessions/s/steer", {"input": "x"}),
    ("/api/v1/sessions/s/fork", {}),
    ("/api/v1/sessions/s/snapshot", {}),
    ("/v1/responses", {"model": "model", "input": "x"}),
    ("/v1/conversations", {}),
]


@pytest.mark.parametrize(("path", "body"), DOORS)
async def test_a_key_has_one_bound_whatever_it_is_sent_with(path: str, body: dict[str, str]) -> None:
    async with world() as w:
        await w.host.asking("ann").spawn(Session, "s")
        for keys in ([""], ["k" * 1001], ["a", "b"]):
            answer = await w.ann.post(path, json=body, headers=[("idempotency-key", key) for key in keys])
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (422, "bad_request_id")
            assert "1 to 1,000 characters" in error["remedy"]
        answer = await w.ann.post(path, json=body, headers={"idempotency-key": "k" * 1000})
        assert answer.status_code < 300


async def test_the_document_has_the_bound_of_a_key() -> None:
    async with world() as w:
        said = (await w.nobody.get("/api/v1/openapi.json")).json()["components"]["parameters"]["IdempotencyKey"]
        assert said["schema"] == {"type": "string", "minLength": 1, "maxLength": 1000}
