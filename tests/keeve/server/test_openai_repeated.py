"""A request of an OpenAI client that comes again is known by its body: whichever models and tools there are by then.

Invariant 30.
"""

from __future__ import annotations

from typing import Any

import pytest

from keeve.server import ServerSettings
from keeve.testing import MemoryLog
from tests.keeve.server.test_repeated_requests import KEY, add, code, down, having
from tests.server_worlds import world

BODIES: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": "hi", "tools": [{"type": "mcp", "server_label": "tools"}]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_openai_clients_are_answered_again_whichever_model_is_the_first_by_then(path: str, stream: bool) -> None:
    log, body = MemoryLog(), {**BODIES[path], "stream": stream}
    async with world(log=log, devices=having(add)) as w:
        first = await w.ann.post(path, json=body, headers=KEY)
        assert (first.status_code, "hi" in first.text) == (200, True)
    for devices in (having(add, model="another"), down()):
        async with world(log=log, devices=devices) as w:
            again = await w.ann.post(path, json=body, headers=KEY)
            assert again.status_code == 200, again.text
            assert stream or again.json() == first.json()
            assert "hi" in again.text
            assert len(w.host.sessions()) == 1
            other = await w.ann.post(path, json={**body, "temperature": 0.5, "model": w.serving.models[0]}, headers=KEY)
            assert code(other)[0] in (409, 503)


async def test_one_that_went_on_in_a_fork_is_answered_there_again() -> None:
    log = MemoryLog()
    async with world(log=log, devices=having(add)) as w:
        first = await w.ann.post("/v1/responses", json={"input": "a"})
        after = {"previous_response_id": first.json()["id"]}
        await w.ann.post("/v1/responses", json={"input": "b", **after})
        forked = await w.ann.post("/v1/responses", json={"input": "c", **after}, headers=KEY)
        assert len(w.host.sessions()) == 2
    async with world(ServerSettings(sessions=2), log=log, devices=having(add, model="another")) as w:
        again = await w.ann.post("/v1/responses", json={"input": "c", **after}, headers=KEY)
        assert again.json() == forked.json()


async def test_a_response_of_older_records_is_the_same_where_what_is_put_to_it_is(monkeypatch: Any) -> None:
    log, body = MemoryLog(), BODIES["/v1/responses"]
    async with world(log=log, devices=having(add)) as w:
        with monkeypatch.context() as before:
            before.setattr("keeve.server.openai.talking.sent", lambda request, *_: request)
            before.setattr("keeve.server.openai.talking.is_known", _no)
            first = await w.ann.post("/v1/responses", json=body, headers=KEY)
        again = await w.ann.post("/v1/responses", json=body, headers=KEY)
        assert again.json() == first.json()
        other = await w.ann.post("/v1/responses", json={**body, "input": "ho"}, headers=KEY)
        assert code(other) == (409, "request_conflict")
        [row] = w.host.sessions()
        assert row.type == "keeve.responding"


async def _no(*_: Any) -> bool:
    return False


async def test_what_cannot_be_is_refused_before_anything_is_made() -> None:
    async with world(devices=down()) as w:
        for path, body in BODIES.items():
            answer = await w.ann.post(path, json={**body, "model": "model+tools"}, headers=KEY)
            assert code(answer) == (503, "server_unavailable")
        assert w.host.sessions() == []
