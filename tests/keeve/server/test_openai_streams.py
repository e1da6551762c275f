"""The events of a response as it comes: with the pieces, without them, cut off and taken up again."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing
from openai.types.responses import ResponseStreamEvent

from actors.models import ModelCut
from actors.tools import Tools
from keeve.server.openai.response_events import ResponseEvents
from tests.actors.scenes import Says, says
from tests.actors.test_session_on_host import Waits
from tests.keeve.server.test_openai_responses import weather
from tests.openai_clients import Streams, client_of, schema
from tests.server_worlds import TOKENS, World, world
from vat.devices.devices import Effect, effect
from vat.host.host import Host


def piece(index: int, arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    """A piece of a call, as services stream it."""
    return {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}


async def streamed(world: World, **asked: Any) -> list[Any]:
    stream = await client_of(world).responses.create(input="a", stream=True, **asked)
    return [event async for event in stream]


def kinds(events: Sequence[ResponseStreamEvent]) -> list[str]:
    return [event.type.removeprefix("response.") for event in events]


def deltas(events: Sequence[Any], kind: str = "response.output_text.delta") -> list[str]:
    return [event.delta for event in events if event.type == kind]


TEXT = [
    *("created", "in_progress", "output_item.added", "content_part.added"),
    *("output_text.done", "content_part.done", "output_item.done", "completed"),
]
"""The events of a response that says something, without the deltas."""


async def test_the_pieces_are_told_as_they_come_and_the_whole_at_the_end() -> None:
    async with world(devices={"model": Streams(["hel", "lo ", "you"])}) as w:
        events = await streamed(w)
        made = events[-1].response
        again = await client_of(w).responses.retrieve(made.id)
    assert [kind for kind in kinds(events) if kind != "output_text.delta"] == TEXT
    assert deltas(events) == ["hel", "lo ", "you"]
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    assert (made.status, made.output_text) == ("completed", "hello you")
    assert made.to_dict() == again.to_dict()
    assert events[-2].item.to_dict() == made.output[0].to_dict()


async def test_the_package_puts_the_answer_together_from_the_events() -> None:
    async with (
        world(devices={"model": Streams(["hel", "lo"])}) as w,
        client_of(w).responses.stream(model="model", input="a") as stream,
    ):
        texts = [event.snapshot async for event in stream if event.type == "response.output_text.delta"]
        final = await stream.get_final_response()
    assert texts == ["hel", "hello"]
    assert final.output_text == "hello"


async def test_an_answer_is_whole_when_no_piece_was_told() -> None:
    async with world(devices={"model": Says(says("hello"))}) as w:
        events = await streamed(w)
    assert [kind for kind in kinds(events) if kind != "output_text.delta"] == TEXT
    assert "".join(deltas(events)) == "hello"


async def test_calls_of_functions_come_in_pieces() -> None:
    answer = ["I look.", piece(0, "", "c1", "f"), piece(0, '{"a"'), piece(0, ": 1}"), piece(1, "{}", "c2", "f")]
    async with world(devices={"model": Streams(answer)}) as w:
        events = await streamed(w, tools=[schema("f")])
    assert deltas(events, "response.function_call_arguments.delta") == ['{"a"', ": 1}", "{}"]
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [(event.arguments, event.name) for event in done] == [('{"a": 1}', "f"), ("{}", "f")]
    assert [item.type for item in events[-1].response.output] == ["message", "function_call", "function_call"]
    indexes = [event.output_index for event in events if event.type == "response.output_item.added"]
    assert indexes == [0, 1, 2]
    told = [event.item.to_dict() for event in events if event.type == "response.output_item.done"]
    assert told == [item.to_dict() for item in events[-1].response.output]


async def test_tools_of_the_host_are_told_in_the_order_of_their_calls() -> None:
    tools = Tools(weather)
    model = Streams(
        [piece(0, '{"city": "Ulm"}', "c1", "weather"), piece(1, '{"city": "Atlantis"}', "c2", "weather")], ["rain"]
    )
    async with world(devices={"model": model, "tools": tools}) as w:
        events = await streamed(w, model="model+tools")
    assert [kind for kind in kinds(events) if "mcp" in kind and "delta" not in kind] == [
        *("mcp_call.in_progress", "mcp_call.in_progress", "mcp_call_arguments.done", "mcp_call_arguments.done"),
        *("mcp_call.completed", "mcp_call.failed"),
    ]
    assert deltas(events) == ["rain"]
    told = {event.item.id: event.item.to_dict() for event in events if event.type == "response.output_item.done"}
    assert [told[item.id] for item in events[-1].response.output] == [
        item.to_dict() for item in events[-1].response.output
    ]


async def test_a_stream_is_taken_up_again_after_any_of_its_events() -> None:
    """Cut anywhere, even within a delta, the rest is what was missing."""
    tools = Tools(weather)
    model = Streams(["I look. ", piece(0, '{"city": "Ulm"}', "c1", "weather")], ["It ", "rains."])
    async with world(devices={"model": model, "tools": tools}) as w:
        events = await streamed(w, model="model+tools")
        made = events[-1].response
        whole = text_by_number(events)
        for after in range(events[-1].sequence_number + 1):
            stream = await client_of(w).responses.retrieve(made.id, stream=True, starting_after=after)
            rest = [event async for event in stream]
            assert all(event.sequence_number > after for event in rest[:-1])
            assert rest[-1].to_dict() == events[-1].to_dict()
            assert text_by_number(rest) == {
                n: told for n, told in whole.items() if n > after or n == rest[-1].sequence_number
            }


def text_by_number(events: Sequence[Any]) -> dict[int, Any]:
    """By number what is told: each character of a delta has its own."""
    found: dict[int, Any] = {}
    for event in events:
        if event.type.endswith(".delta"):
            first = event.sequence_number - len(event.delta) + 1
            found |= {first + at: (event.type, event.item_id, char) for at, char in enumerate(event.delta)}
        else:
            found[event.sequence_number] = event.to_dict()
    return found


class Cut:
    """A model whose first attempt breaks after some pieces."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self.attempts = [first, second]

    @effect(on_crash="retry", attempts=2, retry_on=(ModelCut,), backoff=0)
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        pieces = self.attempts[effect.attempt - 1]
        await trio.testing.wait_all_tasks_blocked(0.05)
        for text in pieces:
            effect.progress({"attempt": effect.attempt, "delta": {"content": text}})
        if effect.attempt == 1:
            raise ModelCut("in the middle")
        return says("".join(pieces))


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (["one ", "tw"], ["one ", "two ", "three"], ["one ", "tw", "o ", "three"]),
        (["uno "], ["one ", "two"], ["uno "]),
        (["a very long beginning"], ["short"], ["a very long beginning"]),
    ],
)
async def test_another_attempt_goes_on_where_it_says_the_same(
    first: list[str], second: list[str], told: list[str]
) -> None:
    async with world(devices={"model": Cut(first, second)}) as w:
        events = await streamed(w)
    assert deltas(events) == told
    [done] = [event for event in events if event.type == "response.output_text.done"]
    assert done.text == events[-1].response.output_text == "".join(second)
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))


async def test_a_turn_that_waits_is_not_told_what_another_one_says() -> None:
    gate = trio.Event()
    async with world(devices={"model": Streams(["first ", gate, "one"], ["second"])}) as w:
        client = client_of(w)
        first = await client.responses.create(input="a", background=True)
        events: list[Any] = []

        async def listen() -> None:
            stream = await client.responses.create(input="b", previous_response_id=first.id, stream=True)
            events.extend([event async for event in stream])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await w.settled()
            gate.set()
    assert deltas(events) == ["second"]


async def test_of_a_response_that_is_cancelled_stays_what_was_whole() -> None:
    told = trio.Event()
    call = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": "{}"}}
    model = Streams(["I look.", {"tool_calls": [call]}], ["half of an ", told, "answer"])
    async with world(devices={"model": model, "tools": Tools(weather)}) as w:
        client = client_of(w)
        made = await client.responses.create(model="model+tools", input="a", background=True)
        while len(model.asked) < 2:
            await trio.testing.wait_all_tasks_blocked(0.01)  # the model waits so as well
        await w.settled()
        cancelled = await client.responses.cancel(made.id)
        assert cancelled.to_dict() == (await client.responses.retrieve(made.id)).to_dict()
    assert cancelled.status == "cancelled"
    assert [item.type for item in cancelled.output] == ["message", "mcp_call"]
    assert cancelled.output_text == "I look."


async def test_a_stream_of_a_turn_that_fails_or_is_cancelled_says_so() -> None:
    async with world(devices={"model": Says(LookupError("no such model"))}) as w:
        events = await streamed(w)
        assert kinds(events) == ["created", "in_progress", "failed"]
        assert events[-1].response.error.message.startswith("LookupError: no such model; if it goes on, ")
    model = Waits()
    async with world(devices={"model": model}) as w, trio.open_nursery() as nursery:

        async def cancel() -> None:
            await model.began.wait()
            [session] = w.host.sessions()
            await (await w.host.get(session.id)).interrupt()

        nursery.start_soon(cancel)
        events = await streamed(w)
        assert kinds(events)[-1] == "incomplete"
        assert events[-1].response.status == "cancelled"


async def test_a_request_that_is_streamed_twice_with_the_same_key_is_answered_once() -> None:
    model = Streams(["one"])
    async with world(devices={"model": model}) as w:
        first = await streamed(w, extra_headers={"Idempotency-Key": "k"})
        again = await streamed(w, extra_headers={"Idempotency-Key": "k"})
        plain = await client_of(w).responses.create(input="a", extra_headers={"Idempotency-Key": "k"})
    assert [event.to_dict() for event in first] == [event.to_dict() for event in again]
    assert len(model.asked) == 1
    assert plain.id == first[-1].response.id


async def test_functions_of_both_kinds_in_one_answer_are_told_in_the_order_in_which_they_stand() -> None:
    tools = Tools(weather)
    answer = [piece(0, "{}", "c1", "theirs"), piece(1, '{"city": "Ulm"}', "c2", "weather")]
    async with world(devices={"model": Streams(answer), "tools": tools}) as w:
        events = await streamed(w, model="model+tools", tools=[schema("theirs")])
    made = events[-1].response
    assert [item.type for item in made.output] == ["mcp_call", "function_call"]
    added = [event.item.id for event in events if event.type == "response.output_item.added"]
    assert added == [item.id for item in made.output]


async def test_a_stream_is_taken_up_by_a_server_that_was_started_again() -> None:
    from keeve.testing import MemoryLog

    log = MemoryLog()
    model = Waits()
    async with world(log=log, devices={"model": model}) as w:
        made = await client_of(w).responses.create(input="a", background=True)
        await model.began.wait()
    async with world(log=log, devices={"model": Says(says("after all"))}) as w:
        stream = await client_of(w).responses.retrieve(made.id, stream=True, starting_after=1)
        events = [event async for event in stream]
    assert "".join(deltas(events)) == "after all"
    assert events[-1].response.status == "completed"


async def streamed_to(
    w: World, path: str, body: Any, send: Callable[[Any], Awaitable[None]], gone: trio.Event | None = None
) -> None:
    """Have ann ask for a stream, unless `body` says otherwise, each message of which `send` is given; when `gone` is
    set, she is. Nothing else ends it, as a server may that finds the connection closed."""
    given = [{"type": "http.request", "body": json.dumps({"stream": True, **body}).encode(), "more_body": False}]
    headers = [(b"host", b"127.0.0.1:8420"), (b"authorization", f"Bearer {TOKENS['ann']}".encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8420),
    }

    async def receive() -> Any:
        if not given:
            await (trio.Event() if gone is None else gone).wait()
            return {"type": "http.disconnect"}
        return given.pop()

    await w.app(scope, receive, send)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
async def test_who_goes_before_the_stream_begins_is_followed_for_no_more(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = 0
    on_progress = Host.on_progress

    def counted(host: Host, hear: Any, *of: Any) -> Callable[[], None]:
        nonlocal listening
        listening += 1
        stop = on_progress(host, hear, *of)

        def stopped() -> None:
            nonlocal listening
            listening -= 1
            stop()

        return stopped

    async with world(devices={"model": Streams(["one"])}) as w:
        monkeypatch.setattr(Host, "on_progress", counted)
        body = {"input": "a"} if path == "/v1/responses" else {"messages": [{"role": "user", "content": "a"}]}
        with trio.CancelScope() as gone:

            async def send(message: Any) -> None:
                assert (message["type"], message["status"], listening) == ("http.response.start", 200, 1)
                gone.cancel()
                await trio.lowlevel.checkpoint()

            await streamed_to(w, path, body, send)
        assert listening == 0


def test_all_events_are_of_the_package() -> None:
    """What is told has the types that the package knows: it parses them loosely, so they are compared by name."""
    import inspect
    import re

    known = str(ResponseStreamEvent)
    told = set(re.findall(r'"(response\.[a-z_.]+)"', inspect.getsource(inspect.getmodule(ResponseEvents))))  # type: ignore[arg-type]  # it has one
    for kind in told:
        name = "".join(part.capitalize() for part in re.split(r"[._]", kind.replace("output_text.d", "text.d")))
        name = name.replace("ResponseMcpCallArguments", "ResponseMcpCallArguments")
        assert f"{name}Event" in known, kind
