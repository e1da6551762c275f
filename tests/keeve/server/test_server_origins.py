"""Who gets in: the token, the Host and the Origin of a request, and the shape in which everything is refused."""

from __future__ import annotations

from tests.server_worlds import TOKENS, world


async def test_without_a_token_nothing_is_told() -> None:
    async with world() as w:
        answer = await w.nobody.get("/api/v1/sessions")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error"]["code"] == "not_authenticated"


async def test_a_wrong_token_is_refused_like_none() -> None:
    async with world() as w:
        for header in ("Bearer wrong-token-0123456789", "Basic b3duZXI=", "Bearer", f"Bearer {TOKENS['ann']}x"):
            answer = await w.nobody.get("/api/v1/sessions", headers={"authorization": header})
            assert answer.status_code == 401


async def test_whether_it_lives_needs_no_token() -> None:
    async with world() as w:
        assert (await w.nobody.get("/healthz")).json() == {"status": "alive"}
        assert (await w.nobody.get("/readyz")).json() == {"status": "ready"}


async def test_a_server_that_stops_is_not_ready() -> None:
    async with world() as w:
        w.serving.stopping.set()
        assert (await w.nobody.get("/readyz")).status_code == 503


async def test_a_path_that_is_not_there_is_refused_in_the_one_shape() -> None:
    async with world() as w:
        answer = await w.owner.get("/nowhere")
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "code": "no_such_path",
        "message": "/nowhere: Not Found",
        "remedy": "GET /api/v1/openapi.json has all paths",
        "type": "invalid_request_error",
        "param": None,
        "request_id": answer.headers["x-request-id"],
    }


async def test_a_client_of_openais_api_with_a_wrong_address_is_told_which_one_it_needs() -> None:
    async with world() as w:
        for path in ("/responses", "/chat/completions"):
            answer = await w.owner.post(path, json={})
            assert answer.status_code == 404
            message = f"{path}: Not Found; give a client of OpenAI's API a base_url that ends in /v1"
            assert answer.json()["error"]["message"] == message


async def test_a_request_under_the_name_of_another_site_is_refused() -> None:
    async with world() as w:
        for host in ("evil.example", "evil.example:8420", "127.0.0.1.evil.example", "192.0.2.7", "", "a:b:c"):
            answer = await w.owner.get("/healthz", headers={"host": host})
            assert (answer.status_code, answer.json()["error"]["code"]) == (421, "wrong_host"), host


async def test_a_page_of_another_site_may_not_ask() -> None:
    async with world() as w:
        for origin in ("http://evil.example", "null", "http://127.0.0.1:9", "file://"):
            answer = await w.owner.get("/healthz", headers={"origin": origin})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_origin"), origin
        assert (await w.owner.get("/healthz", headers={"origin": "http://127.0.0.1:8420"})).status_code == 200
