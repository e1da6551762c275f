"""A model behind an API: where the key goes, and where it does not."""

from __future__ import annotations

import pytest

from actors.models import (
    BadModelURL,
    ChatModel,
    ModelBusy,
    ModelUnreachable,
)
from tests.model_calls import KEY, Call, ask, impatient, run_to_outcome
from tests.model_server import Answer, chunk, failing, model_server, stream, streamed, whole
from vat.devices.vault import NoCredential


class Leaky:
    """A service that quotes the key in whatever it says."""

    answers = (
        failing(401, f"Incorrect API key provided: {KEY}"),
        failing(500, f"upstream failed for Bearer {KEY}"),
        Answer(403, {}, (f"<html>{KEY}".encode(),)),
        stream(f"oops {KEY}"),
        stream({"error": f"bad key {KEY}"}),
        stream(chunk({"content": f"your key is {KEY}"}, "stop")),
        whole({"role": "assistant", "content": f"your key is {KEY}", KEY: 1}),
        Answer(307, {"Location": f"https://else.example/{KEY}"}),
    )


@pytest.mark.parametrize("answer", Leaky.answers)
async def test_the_key_is_in_no_outcome_whatever_the_service_says(answer):
    """Invariant 20."""
    async with model_server(answer) as server:
        outcome = await run_to_outcome(ChatModel(server.url, "small", "openai", policy=impatient()))
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    said = outcome.value if outcome.error is None else (str(outcome.error), vars(outcome.error), outcome.error.args)
    assert KEY not in repr((outcome, said, outcome.trace))
    assert "‹credential openai›" in repr(said)


@pytest.mark.parametrize("key", [f"{KEY} ", f" {KEY}", f"\t{KEY}\n", f"{KEY}\u00a0"])
async def test_a_key_with_blanks_around_it_is_not_in_an_outcome_without_them(key):
    """Invariant 20. They are taken off for the header, so the service has never seen them."""
    for answer in Leaky.answers:
        async with model_server(answer) as server:
            outcome = await run_to_outcome(ChatModel(server.url, "small", "openai", policy=impatient()), key=key)
            assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in repr((outcome, str(outcome.error), getattr(outcome.error, "__dict__", None), outcome.trace))


@pytest.mark.parametrize(
    "answer",
    [
        lambda text: failing(401, text),
        lambda text: Answer(403, {}, (text.encode(),)),
        lambda text: stream({"error": text}),
        lambda text: whole({"role": "assistant"}, error={"message": text}),
        lambda text: stream(text),
    ],
)
@pytest.mark.parametrize("edge", [1000, 80, 79])
async def test_a_key_on_the_cut_of_what_a_service_says_leaves_nothing_of_itself(answer, edge):
    """Invariant 20."""
    text = "." * (edge - len(KEY) + 1) + KEY + "." * 2000
    async with model_server(answer(text)) as server:
        outcome = await run_to_outcome(ChatModel(server.url, "small", "openai", policy=impatient()))
    assert outcome.error is not None
    assert KEY[:6] not in repr((str(outcome.error), vars(outcome.error), outcome.error.args, outcome.trace))


async def test_no_error_of_the_http_library_is_carried_along():
    """Invariant 20. Such an error holds the request, with its headers."""
    async with model_server(streamed("hi")) as server:
        pass
    with pytest.raises(ModelUnreachable) as caught:
        await ask(ChatModel(server.url, "small", "openai"))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel", "nul\x00"])
async def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key):
    async with model_server(streamed("hi")) as server:
        with pytest.raises(NoCredential) as caught:
            await Call(key)(ChatModel(server.url, "small", "openai"))
    assert repr(key)[1:-1] not in str(caught.value)
    assert server.requests == []


async def test_space_around_a_key_is_not_part_of_it():
    async with model_server(streamed("hi")) as server:
        await Call(f" {KEY}\n")(ChatModel(server.url, "small", "openai"))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url", ["api.example.com/v1", "ftp://x/v1", "", "http://", "https://me:canary@x/v1", "http://\x00canary/v1"]
)
def test_a_base_url_that_cannot_be_used_is_refused_without_showing_it(url):
    with pytest.raises(BadModelURL) as caught:
        ChatModel(url, "small")
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://x.example/v1", "https://x.example/v1/chat/completions"),
        ("https://x.example/v1/", "https://x.example/v1/chat/completions"),
        ("https://x.example/v1/chat/completions", "https://x.example/v1/chat/completions"),
        ("http://x.example:8080", "http://x.example:8080/chat/completions"),
    ],
)
def test_a_base_url_is_completed(url, asked):
    assert repr(ChatModel(url, "small")) == f"ChatModel({asked!r}, 'small', credential=None)"


async def test_the_query_of_a_base_url_is_sent_and_not_shown():
    async with model_server(failing(500)) as server:
        model = ChatModel(f"{server.url}?api-version=7#canary", "small")
        with pytest.raises(ModelBusy):
            await ask(model)
    assert "canary" not in repr(model)
    assert server.requests[0].path == "/v1/chat/completions?api-version=7"
    assert "api-version" not in repr(model)
