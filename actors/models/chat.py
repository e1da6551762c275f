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
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from actors.models.answers import Assembly, Events, answer_of, body_of, message_of, refusal
from actors.models.failures import ModelBusy, ModelCut, ModelError, ModelNonsense, ModelUnreachable, words_of
from vat.devices.devices import Effect, Policy, effect
from vat.devices.vault import NoCredential

if TYPE_CHECKING:
    import httpx2

    from actors.models.service import Reply

LARGEST_ANSWER: Final = 64 << 20
"""Bytes of a response; one that is longer is refused."""

LARGEST_REFUSAL: Final = 1 << 16
"""Bytes of an error's response that are read."""

POLICY: Final = Policy(
    on_crash="retry", timeout=900, attempts=4, retry_on=(ModelUnreachable, ModelBusy, ModelCut), backoff=1
)


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
        from actors.models.service import Service  # only now: see its rule

        self._service = Service(base_url, client, timeout)
        self._model = model
        self._credential = credential
        self._stream = stream
        self._options = dict(options or {})
        self.policies = {"complete": policy}

    async def __aenter__(self) -> ChatModel:
        self._service.come()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._service.go()

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
        reply = None
        try:
            async with self._service.asked(body, self._headers(effect)) as reply:
                return await self._read(reply, effect)
        except self._service.failed as error:
            words = words_of(error)
            failure = ModelUnreachable(str(self._service), words) if reply is None else ModelCut(words)
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

    async def _read(self, reply: Reply, effect: Effect) -> dict[str, Any]:
        if reply.status != 200:
            text = (await reply.body(LARGEST_REFUSAL, cut=True)).decode(errors="replace")
            said = _json(text)
            message = message_of(text.strip() if said is None else said, effect.redact)
            if reply.moved_to is not None:
                message = f"it has moved to {reply.moved_to}; use that as base URL"
            raise refusal(reply.status, message, reply.wait)
        if reply.kind == "text/event-stream":
            return await self._assemble(reply, effect)
        answer = _json((await reply.body(LARGEST_ANSWER)).decode(errors="replace"))
        if answer is None:
            raise ModelNonsense(f"it is no JSON but {reply.kind or 'of no type'}")
        return answer_of(answer, self._model, effect.id, effect.redact)

    async def _assemble(self, reply: Reply, effect: Effect) -> dict[str, Any]:
        assembly = Assembly(effect.redact)
        events = Events(LARGEST_ANSWER)
        done = False
        async with reply.pieces() as pieces:
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

    def __repr__(self) -> str:
        return f"ChatModel({str(self._service)!r}, {self._model!r}, credential={self._credential!r})"


def _json(text: str) -> Any:
    """What a JSON text says, or `None` if it is none. Numbers that JSON does not have (NaN, 1e999) are null."""
    try:
        return json.loads(text, parse_constant=lambda name: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
