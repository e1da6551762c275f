"""Traces: spans of requests, of turns, and of what models are asked, by OpenTelemetry's GenAI conventions.

A turn is `invoke_agent`, within its request; a model's answer is `chat`, within the turn of its session, where one is
known. Where OpenTelemetry is not installed nothing is done, and where no SDK is configured next to nothing.

The one rule: nothing that was said is in a span, and no token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from starlette.types import Scope

from vat.devices.devices import Effect, effect

PROVIDER: Final = "openai"
"""By whose protocol models are asked."""


def tracer() -> Any:
    """The tracer of the process; None where OpenTelemetry is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("keeve")


class Tracing:
    """Makes spans with a tracer, or none."""

    def __init__(self, tracer: Any = None) -> None:
        self._tracer = tracer
        self._turns: dict[str, Any] = {}
        """The context of the turn that was asked for last, by session."""

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Any]:
        """For as long as a request lasts; gives its span, or None."""
        if self._tracer is None:
            yield None
            return
        from opentelemetry import propagate, trace

        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method = scope.get("method", "WEBSOCKET")
        with self._span(
            method,
            context=propagate.extract(carrier),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method, "url.scheme": scope["scheme"]},
        ) as span:
            yield span

    def answered(self, span: Any, method: str, route: str, status: int) -> None:
        """A request is about to be over."""
        if span is None:
            return
        from opentelemetry.trace import StatusCode

        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_status(StatusCode.ERROR)

    @contextmanager
    def turn(self, session: str, agent: str) -> Iterator[None]:
        """For as long as a turn is waited for."""
        if self._tracer is None:
            yield
            return
        from opentelemetry import context

        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": session,
        }
        with self._span(f"invoke_agent {agent}", attributes=attributes):
            here = self._turns[session] = context.get_current()
            try:
                yield
            finally:
                if self._turns.get(session) is here:
                    del self._turns[session]

    @contextmanager
    def chat(self, session: str, model: str) -> Iterator[Any]:
        """For as long as a model is asked; gives the span."""
        from opentelemetry import trace

        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.request.model": model,
            "gen_ai.conversation.id": session,
        }
        with self._span(
            f"chat {model}", context=self._turns.get(session), kind=trace.SpanKind.CLIENT, attributes=attributes
        ) as span:
            yield span

    @contextmanager
    def _span(self, name: str, **how: Any) -> Iterator[Any]:
        """A span. Of an error it says the class: its message may be what somebody has said."""
        from opentelemetry.trace import StatusCode

        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False, **how
        ) as span:
            try:
                yield span
            except Exception as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    def of(self, devices: Mapping[str, Any], models: Mapping[str, str]) -> dict[str, Any]:
        """The same devices, of which those that are models (their names, by device) make spans."""
        if self._tracer is None:
            return dict(devices)
        return {
            name: TracedModel(device, models[name], self) if name in models else device
            for name, device in devices.items()
        }


class TracedModel:
    """A model that is asked within a span."""

    def __init__(self, device: Any, model: str, tracing: Tracing) -> None:
        self._device = device
        self._model = model
        self._tracing = tracing
        self.policies = dict(getattr(device, "policies", {}))

    async def __aenter__(self) -> TracedModel:
        if hasattr(self._device, "__aenter__"):
            await self._device.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if hasattr(self._device, "__aexit__"):
            await self._device.__aexit__(kind, error, trace)

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        """What the model answers."""
        with self._tracing.chat(effect.session, self._model) as span:
            answer = await self._device.complete(effect, messages, **options)
            for name, value in said_of(answer).items():
                span.set_attribute(name, value)
            return answer


def said_of(answer: Any) -> dict[str, Any]:
    """What a span has of an answer.

    >>> said_of({"model": "m-1", "usage": {"prompt_tokens": 3, "completion_tokens": "x"}})
    {'gen_ai.response.model': 'm-1', 'gen_ai.usage.input_tokens': 3}
    """
    answer = answer if isinstance(answer, Mapping) else {}
    usage = answer.get("usage") or {}
    said: dict[str, Any] = {}
    if isinstance(answer.get("model"), str):
        said["gen_ai.response.model"] = answer["model"]
    if isinstance(answer.get("finish_reason"), str):
        said["gen_ai.response.finish_reasons"] = [answer["finish_reason"]]
    for ours, theirs in (("input", "prompt_tokens"), ("output", "completion_tokens")):
        if isinstance(usage, Mapping) and type(usage.get(theirs)) is int:
            said[f"gen_ai.usage.{ours}_tokens"] = usage[theirs]
    return said
