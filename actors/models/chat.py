"""A model behind any OpenAI-compatible chat completions API, asked over HTTP.

    ChatModel("https://api.openai.com/v1", "gpt-4.1-mini", credential="openai")

An answer is streamed where the service does that; each piece is told as progress, `{"attempt": n, "delta": {...}}`
(with a new `attempt` what was told before is void). An attempt after which there is another one tells why, as
`{"attempt": n, "failed": text}`. A request carries the effect's id as `Idempotency-Key`. What is
worth another attempt (no connection, 408, 409, 429, 5xx, a cut stream) is tried again as the policy says, with regard
to `Retry-After`.

The one rule: the key lives from `effect.credential` to the header of one request, and nowhere else. So no error here
carries another one: those of an HTTP library hold the request.
"""

from __future__ import annotations

import json
import math
import re
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import cache
from types import TracebackType
from typing import Any, ClassVar, Final

import httpx2
import trio

from actors.models.answers import Assembly, Events, answer_of, body_of, message_of, refusal
from actors.models.failures import ModelBusy, ModelCut, ModelError, ModelNonsense, ModelUnreachable, words_of
from dataspace.errors import KeeveError
from vat.devices.devices import Effect, Policy, effect
from vat.devices.vault import NoCredential

LARGEST_ANSWER: Final = 64 << 20
"""Bytes of a response; one that is longer is refused."""

LARGEST_REFUSAL: Final = 1 << 16
"""Bytes of an error's response that are read."""

LINGER: Final = 1.0
"""Seconds that a service has to end its response after the end of its answer."""

POLICY: Final = Policy(
    on_crash="retry", timeout=900, attempts=4, retry_on=(ModelUnreachable, ModelBusy, ModelCut), backoff=1
)


_ADDRESS: Final = re.compile(
    r"(?:\w+://)?(?:localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?::\d{1,5}(?:/[\w./-]*)?|/[\w./-]*)", re.ASCII
)
"""What is an address of a service and no key: a host with a port, or a path behind one with a dot in its name."""


class BadModelURL(KeeveError, ValueError):
    """A base URL that cannot be used; says why (`reason`), and what it was (`shown`) unless it may hold a key.

    `setting` is where it comes from, as the name of a variable; "" for an argument.
    """

    usage: ClassVar[bool] = True

    def __init__(self, reason: str, shown: str = "", setting: str = "") -> None:
        super().__init__(reason, shown, setting)
        self.reason = reason
        self.shown = shown
        self.setting = setting

    def __str__(self) -> str:
        where = f"{self.setting}=" if self.setting and self.shown else self.setting or "the model's base URL "
        return f"{(where + self.shown).strip()} {self.reason}; give one like https://api.openai.com/v1"


class ChatModel:
    """A device that completes conversations with `model`, a name that the service at `base_url` knows.

    credential: name of the key in the host's vault; without one none is sent.
    client: an `httpx2.AsyncClient` of your own (proxies, certificates); it stays yours to close.
    timeout: seconds of silence after which an attempt is given up.
    stream: ask for the answer in pieces.
    options: sent with each request (`temperature`, ...); a call's own come after them.
    policy: another policy than the usual one, say with a `concurrency`.

    Connections are kept while a host runs it. Raises `BadModelURL`.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        credential: str | None = None,
        *,
        client: httpx2.AsyncClient | None = None,
        timeout: float = 120.0,
        stream: bool = True,
        options: Mapping[str, Any] | None = None,
        policy: Policy = POLICY,
    ) -> None:
        self._url = _completions(base_url)
        self._model = model
        self._credential = credential
        self._client = client
        self._timeout = httpx2.Timeout(timeout, connect=min(timeout, 15.0))
        self._stream = stream
        self._options = dict(options or {})
        self._own: httpx2.AsyncClient | None = None
        self._hosts = 0
        self.policies = {"complete": policy}

    async def __aenter__(self) -> ChatModel:
        self._hosts += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hosts -= 1
        if not self._hosts and self._own is not None:
            own, self._own = self._own, None
            await own.aclose()

    @effect(on_crash="retry")
    async def complete(
        self,
        effect: Effect,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """The next message of a conversation; see the package.

        Raises `ModelUnreachable`, `ModelBusy`, `ModelRefused`, `ModelNonsense`, `ModelCut`, `NotJSON`, `NoCredential`.
        """
        body = body_of(self._model, messages, tools, {**self._options, **options}, stream=self._stream)
        failure: ModelError
        response = None
        try:
            async with (
                self._connected() as client,
                client.stream(
                    "POST", self._url, content=body, headers=self._headers(effect), timeout=self._timeout
                ) as response,
            ):
                return await self._read(response, effect)
        except httpx2.HTTPError as error:
            words = words_of(error)
            failure = ModelUnreachable(self._shown(), words) if response is None else ModelCut(words)
        except self.policies["complete"].retry_on as error:
            self._tell(error, effect)
            raise
        # Outside of the handler: in it, the error would carry the library's, which holds the request and its headers.
        self._tell(failure, effect)
        raise failure

    def _tell(self, error: BaseException, effect: Effect) -> None:
        """Tell who watches why it is asked again, if it is."""
        policy = self.policies["complete"]
        if effect.attempt < policy.attempts and isinstance(error, policy.retry_on):
            effect.progress({"attempt": effect.attempt, "failed": str(error)})

    async def _read(self, response: httpx2.Response, effect: Effect) -> dict[str, Any]:
        if response.status_code != 200:
            text = (await _body(response, LARGEST_REFUSAL, cut=True)).decode(errors="replace")
            said = _json(text)
            message = message_of(text.strip() if said is None else said, effect.redact)
            if response.is_redirect:
                message = (
                    f"it has moved to {_without_query(response.headers.get('location', ''))}; use that as base URL"
                )
            raise refusal(response.status_code, message, _retry_after(response.headers))
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            return await self._assemble(response, effect)
        answer = _json((await _body(response, LARGEST_ANSWER)).decode(errors="replace"))
        if answer is None:
            raise ModelNonsense(f"it is no JSON but {kind or 'of no type'}")
        return answer_of(answer, self._model, effect.id, effect.redact)

    async def _assemble(self, response: httpx2.Response, effect: Effect) -> dict[str, Any]:
        assembly = Assembly(effect.redact)
        events = Events(LARGEST_ANSWER)
        done = False
        async with _pieces(response) as pieces:
            async for piece in pieces:
                for data in events.of(piece):
                    done = done or data == "[DONE]"
                    if not done:
                        self._add(data, assembly, effect)
                if done:
                    break
        # Some services close after the last piece, and say nothing more.
        if not done and assembly.finish_reason is None:
            raise ModelCut("the stream ended before the model did")
        return assembly.answer(self._model, effect.id)

    def _add(self, data: str, assembly: Assembly, effect: Effect) -> None:
        chunk = _json(data)
        if chunk is None:
            raise ModelNonsense(f"a piece of the stream is no JSON: {effect.redact(data)[:80]!r}")
        delta = assembly.add(chunk)
        if delta:
            effect.progress({"attempt": effect.attempt, "delta": delta})

    def _headers(self, effect: Effect) -> dict[str, str]:
        # Compressed, a small response could grow to any size before it can be measured.
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json" if self._stream else "application/json",
            "Accept-Encoding": "identity",
            "Idempotency-Key": effect.id,
        }
        if self._credential is not None:
            key = effect.credential(self._credential).strip()
            if not key.isascii() or not key.isprintable():
                raise NoCredential(
                    self._credential,
                    "its value has characters that no HTTP header can carry; correct it where it comes from",
                )
            headers["Authorization"] = f"Bearer {key}"
        return headers

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

    def _shown(self) -> str:
        return _without_query(str(self._url))

    def __repr__(self) -> str:
        return f"ChatModel({self._shown()!r}, {self._model!r}, credential={self._credential!r})"


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
    if url is None or url.scheme not in ("http", "https") or not url.host:
        shown = base_url if _ADDRESS.fullmatch(base_url) else ""
        raise BadModelURL("is no URL that begins with http:// or https:// and names a host", shown)
    if url.userinfo:
        raise BadModelURL("holds a user or a password; put that into the vault")
    path = url.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return url.copy_with(path=path, fragment=None)


def _without_query(url: str) -> str:
    return url.partition("?")[0]


@asynccontextmanager
async def _pieces(response: httpx2.Response) -> AsyncIterator[AsyncIterator[bytes]]:
    """The pieces of a response's body, of which not all have to be taken."""
    pieces = response.aiter_bytes()
    patience = 0.0
    try:
        yield pieces
        patience = LINGER
    finally:
        # The library's generators stand one in another, and closing the outer ones leaves inner ones behind. So they
        # end by being read: to the end of the response, if that comes soon (its connection can be used again then), or
        # else by a cancellation, which goes through all of them.
        with suppress(httpx2.HTTPError), trio.move_on_after(patience):
            async for _ in pieces:
                pass


async def _body(response: httpx2.Response, most: int, *, cut: bool = False) -> bytes:
    """The body of a response; of one that is too long the beginning, or `ModelNonsense`."""
    body = bytearray()
    async with _pieces(response) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > most:
                if cut:
                    break
                raise ModelNonsense(f"it is longer than {most} bytes")
    return bytes(body[:most])


def _json(text: str) -> Any:
    """What a JSON text says, or `None` if it is none. Numbers that JSON does not have (NaN, 1e999) are null."""
    try:
        return json.loads(text, parse_constant=lambda name: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _retry_after(headers: httpx2.Headers) -> float | None:
    """The seconds that a response asks to wait; a date counts from the response's own."""
    text = headers.get("retry-after", "").strip()
    try:
        if text.isdecimal():
            return float(text)
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
