"""A real server, and clients that mean no good: slow, oversized, many, with forged names and paths; secrets in logs."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from keeve.testing import folder_for_stores
from tests.server_process import Server, server

API = "/api/v1/sessions"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store = folder_for_stores(tmp_path_factory.mktemp("hostile")) / "s"
    limits = ("--body-bytes", "1000", "--body-seconds", "0.3", "--idle-seconds", "0.3", "--log-level", "debug")
    with server(store, *limits) as running:
        yield running


def head(served: Server, method: str, path: str, *lines: str, host: str = "127.0.0.1", token: str = "") -> bytes:
    said = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token or served.token}", *lines]
    return "\r\n".join([*said, "", ""]).encode("latin-1")


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_a_body_that_does_not_come_is_given_up(served: Server) -> None:
    answer = served.raw(head(served, "POST", API, "Content-Type: application/json", "Content-Length: 10") + b"{")
    assert status(answer) == 408
    assert b'"code":"body_too_slow"' in answer


def test_a_body_that_trickles_is_given_up_all_the_same(served: Server) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.settimeout(0.05)
        connection.sendall(head(served, "POST", API, "Content-Type: application/json", "Content-Length: 900"))
        answer = b""
        for _ in range(900):
            try:
                connection.sendall(b" ")
                answer = connection.recv(1000)
                break
            except TimeoutError:
                continue
        assert status(answer) == 408


def test_a_request_that_does_not_come_is_given_up(served: Server) -> None:
    assert status(served.raw(b"GET / HTTP/1.1\r\nHost: ")) in (0, 408)


def test_a_connection_that_says_nothing_is_ended(served: Server) -> None:
    assert served.raw(b"") == b""


def test_a_body_that_is_said_to_be_too_large_is_refused_unread(served: Server) -> None:
    for length in ("1001", "99999999999999999999", "1e3", "-1"):
        answer = served.raw(head(served, "POST", API, f"Content-Length: {length}"))
        assert status(answer) in (400, 413), length
    assert status(served.raw(head(served, "POST", API, "Content-Length: 1001"))) == 413


def test_a_body_that_grows_too_large_is_refused(served: Server) -> None:
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    chunks = (b"%x\r\n%s\r\n" % (200, b" " * 200)) * 20
    answer = served.raw(head(served, "POST", API, *lines) + chunks)
    assert status(answer) == 413


def test_after_what_was_refused_the_server_goes_on(served: Server) -> None:
    chunks = (b"%x\r\n%s\r\n" % (60000, b" " * 60000)) * 40
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
            try:
                connection.sendall(head(served, "POST", API, "Transfer-Encoding: chunked") + chunks)
            except OSError:
                continue
            assert status(served.rest(connection)) in (0, 413)
    assert status(served.raw(head(served, "GET", API, "Connection: close"))) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1@evil.example", "127.0.0.1, evil.example"]
)
def test_a_name_that_was_made_to_lead_here_is_refused(served: Server, host: str) -> None:
    assert status(served.raw(head(served, "GET", API, "Connection: close", host=host))) in (400, 421)


def test_two_hosts_are_refused(served: Server) -> None:
    assert status(served.raw(head(served, "GET", API, "Host: evil.example", "Connection: close"))) in (400, 421)


def test_a_header_cannot_be_made_of_what_was_sent(served: Server) -> None:
    key = "Idempotency-Key: a\r\n b"
    for lines in (
        ("X-Request-Id: a\rSet-Cookie: x=y",),
        ("X-Request-Id: a;b<c>",),
        ("Idempotency-Key: \x00",),
        (key,),
        ("Last-Event-ID: 1\rX: y",),
    ):
        answer = served.raw(head(served, "GET", API, *lines, "Connection: close"))
        assert b"set-cookie" not in answer.lower()
        assert b"a;b<c>" not in answer
        assert status(answer) in (200, 400)
    with served.client() as client:
        made = client.post(API, json={"id": "a b/ü?#"})
        assert made.headers["location"] == f"{API}/a%20b%2F%C3%BC%3F%23"


@pytest.mark.parametrize(
    "path",
    [
        "/../token",
        "/..%2ftoken",
        "/%2e%2e/token",
        "//token",
        "/token",
        "/api/v1/sessions/../../../token",
        "/api/v1/sessions/..%2f..%2f..%2ftoken",
        "/api/v1/openapi.json/../../../token",
        "/api/v1/sessions/%00",
        "/healthz/../token",
    ],
)
def test_no_path_leads_to_a_file(served: Server, path: str) -> None:
    answer = served.raw(head(served, "GET", path, "Connection: close"))
    assert status(answer) == 404, path
    assert served.token.encode() not in answer


@pytest.mark.parametrize("path", ["/healthz/../api/v1", "/healthz%2f..%2fapi%2fv1", "/api/v1/openapi.json/../sessions"])
def test_no_path_leads_around_the_token(served: Server, path: str) -> None:
    answer = served.raw(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    assert status(answer) == 401, path


def test_no_secret_is_in_the_log(served: Server) -> None:
    wrong = "wrong-token-that-nobody-has-1234"
    served.raw(head(served, "GET", API, "Connection: close"))
    served.raw(head(served, "GET", API, "Connection: close", token=wrong))
    served.raw(head(served, "GET", f"/{served.token}?token={served.token}", "Connection: close"))
    served.raw(head(served, "GET", f"{API}?token={wrong}", f"Cookie: keeve_token={served.token}", "Connection: close"))
    log = served.log.read_text()
    assert "/[secret]" in log
    assert served.token not in log
    assert wrong not in log
