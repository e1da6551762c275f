"""Spans by the GenAI conventions, and numbers of turns, without a word of what was said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
import trio.testing
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from keeve import EchoModel, Session, effect
from keeve.server import application
from keeve.server.counting import count_turns
from keeve.server.tracing import Tracing
from tests.server_worlds import asked_by, world


class Small:
    """A model that counts."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        message = {"role": "assistant", "content": f"re: {messages[-1]['content']}"}
        return {"message": message, "model": "small-1", "usage": usage, "finish_reason": "stop"}


class Broken:
    """A model that fails."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        raise LookupError("a secret word")


@asynccontextmanager
async def traced(model: Any) -> AsyncIterator[tuple[Any, InMemorySpanExporter]]:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracing = Tracing(provider.get_tracer("keeve"))
    async with world(devices=tracing.of({"model": model}, {"model": "small"})) as w:
        await w.host.asking("ann", "http").spawn(Session, "s")
        async with asked_by("ann", application(attrs.evolve(w.serving, tracing=tracing))) as ann:
            yield ann, kept
    provider.shutdown()


async def test_a_turn_is_a_span_within_its_request_and_the_model_one_within_the_turn() -> None:
    async with traced(Small()) as (ann, kept):
        await ann.post("/api/v1/sessions/s/turn", json={"input": "hello"})
        chat, turn, request = kept.get_finished_spans()
        assert [span.name for span in (request, turn, chat)] == [
            "POST api:/sessions/{id}/turn",
            "invoke_agent keeve.session",
            "chat small",
        ]
        assert turn.parent is not None and turn.parent.span_id == request.context.span_id  # noqa: PT018  # one thing
        assert chat.parent is not None and chat.parent.span_id == turn.context.span_id  # noqa: PT018  # one thing
        assert dict(chat.attributes or {}) == {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "small",
            "gen_ai.conversation.id": "s",
            "gen_ai.response.model": "small-1",
            "gen_ai.response.finish_reasons": ("stop",),
            "gen_ai.usage.input_tokens": 3,
            "gen_ai.usage.output_tokens": 2,
        }
        assert all("hello" not in span.to_json() for span in (chat, turn, request))


async def test_a_request_goes_on_with_the_trace_of_its_client() -> None:
    async with traced(EchoModel()) as (ann, kept):
        await ann.get("/api/v1", headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
        [request] = kept.get_finished_spans()
        assert f"{request.context.trace_id:x}" == "a" * 32


async def test_a_model_that_fails_is_a_span_that_says_so() -> None:
    async with traced(Broken()) as (ann, kept):
        await ann.post("/api/v1/sessions/s/turn", json={"input": "hello"})
        chat, *_, request = kept.get_finished_spans()
        assert (chat.attributes or {})["error.type"] == "LookupError"
        assert (request.attributes or {})["http.response.status_code"] == 502
        assert all("secret word" not in span.to_json() for span in kept.get_finished_spans())


async def test_turns_are_counted_however_they_are_asked_for() -> None:
    async with world(devices={"model": Small()}) as w:
        count_turns(w.serving)
        s = await w.host.spawn(Session, "s")
        await s.turn("one")
        await s.turn("two")
        await trio.testing.wait_all_tasks_blocked()
        text = (await w.owner.get("/metrics")).text
        assert 'keeve_turns_total{state="accepted"} 2.0' in text
        assert 'keeve_turns_total{state="done"} 2.0' in text
        assert 'keeve_tokens_total{kind="prompt"} 6.0' in text
        assert f"keeve_log_position {w.host.row('s').position}.0" in text
