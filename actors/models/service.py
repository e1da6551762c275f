"""A service that is asked over HTTP: where it is, the connections to it, and what is read of its responses.

The one rule: of the models, only this file imports the HTTP library, and it is imported when a model is made: who makes
none does not wait for it. (A connection to a server of tools imports it for itself, when it is made.)
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final

import httpx2
import trio

from actors.models.failures import BadModelURL, ModelNonsense
from dataspace.urls import flaw_in, no_url, shown

LINGER: Final = 1.0
"""Seconds that a service has to end its response after the end of its answer."""


class Reply:
    """A response, of which the body is still to be read.

    status: that of HTTP. kind: its media type. moved_to: where the service is now, if it says that it has moved.
    wait: the seconds that it asks to wait.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        headers = response.headers
        self.status = response.status_code
        self.kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self.moved_to = shown(headers.get("location", "")) if response.is_redirect else None
        self.wait = _wait_wanted(headers)

    @asynccontextmanager
    async def pieces(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """The pieces of its body, of which not all have to be taken."""
        pieces = self._response.aiter_bytes()
        patience = 0.0
        try:
            yield pieces
            patience = LINGER
        finally:
            # The library's generators stand one in another, and closing the outer ones leaves inner ones behind. So
            # they end by being read: to the end of the response, if that comes soon (its connection can be used again
            # then), or else by a cancellation, which goes through all of them.
            with suppress(httpx2.HTTPError), trio.move_on_after(patience):
                async for _ in pieces:
                    pass

    async def body(self, most: int, *, cut: bool = False) -> bytes:
        """Its body; of one that is too long the beginning, or `ModelNonsense`."""
        body = bytearray()
        async with self.pieces() as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > most:
                    if cut:
                        break
                    raise ModelNonsense(f"it is longer than {most} bytes")
        return bytes(body[:most])


class Service:
    """What stands at a base URL. Connections are kept for as long as somebody has come in and not gone.

    `client` is one of the caller's own, who closes it. Raises `BadModelURL`.
    """

    failed = httpx2.HTTPError
    """What is raised when the network or the service fails, also in reading. It holds the request, with its headers."""

    def __init__(self, base_url: str, client: httpx2.AsyncClient | None, timeout: float) -> None:
        self._url = _completions(base_url)
        self._client = client
        self._timeout = httpx2.Timeout(timeout, connect=min(timeout, 15.0))
        self._own: httpx2.AsyncClient | None = None
        self._hosts = 0

    def come(self) -> None:
        """Connections are kept from here on."""
        self._hosts += 1

    async def go(self) -> None:
        """The last one to go closes them."""
        self._hosts -= 1
        if not self._hosts and self._own is not None:
            own, self._own = self._own, None
            await own.aclose()

    @asynccontextmanager
    async def asked(self, body: bytes, headers: Mapping[str, str]) -> AsyncIterator[Reply]:
        """What it replies. Raises `failed`."""
        async with (
            self._connected() as client,
            client.stream("POST", self._url, content=body, headers=headers, timeout=self._timeout) as response,
        ):
            yield Reply(response)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[httpx2.AsyncClient]:
        if self._client is not None:
            yield self._client
            return
        if not self._hosts:
            async with _client() as client:
                yield client
            return
        if self._own is None:
            self._own = _client()
        yield self._own

    def __str__(self) -> str:
        return shown(str(self._url))


def _client() -> httpx2.AsyncClient:
    # How many calls there are at once is the policy's affair; the library's own limit would fail those over 100.
    return httpx2.AsyncClient(
        verify=_certificates(), limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Which authorities are trusted. Read once: it takes longer than a call on a near service."""
    return httpx2.create_ssl_context()


def _completions(base_url: str) -> httpx2.URL:
    url = None
    with suppress(httpx2.InvalidURL):  # and not from the error, which quotes the URL
        url = httpx2.URL(base_url)
    flaw = flaw_in(base_url)
    if url is None or flaw is not None:
        flaw = flaw or no_url(base_url)
        raise BadModelURL(flaw.reason, flaw.shown)
    path = url.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return url.copy_with(path=path, fragment=None)


def _wait_wanted(headers: httpx2.Headers) -> float | None:
    """The seconds that a response asks to wait; a date counts from the response's own."""
    text = headers.get("retry-after", "").strip()
    try:
        if text.isdecimal():
            return float(text)
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
