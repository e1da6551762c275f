"""Models that need no network, and which model the environment names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actors.models import (
    BadModelSetting,
    BadModelURL,
    ChatModel,
    EchoModel,
    ScriptedModel,
    ScriptMismatch,
    model_from_environment,
)
from dataspace.values import ERASED, freeze
from tests.model_calls import HELLO, KEY, ask
from vat.devices.devices import methods_of
from vat.devices.vault import Vault

TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "data" / "transcripts"


# The echo


async def test_the_echo_says_again_what_was_said_last():
    answer = await ask(EchoModel(), [*HELLO, {"role": "user", "content": "again"}])
    assert answer["message"] == {"role": "assistant", "content": "again"}


@pytest.mark.parametrize(
    ("said", "echoed"),
    [
        ([{"type": "text", "text": "look: "}, {"type": "image_url"}, {"type": "text", "text": "a cat"}], "look: a cat"),
        (None, ""),
        (ERASED, "[erased]"),
        ("", ""),
    ],
)
async def test_the_echo_says_the_text_of_any_content(said, echoed):
    assert (await ask(EchoModel(), [{"role": "user", "content": said}]))["message"]["content"] == echoed


async def test_the_echo_looks_at_the_last_message_only():
    class History:
        def __len__(self):
            return 10_000

        def __getitem__(self, index):
            assert index == -1
            return {"role": "user", "content": "hello"}

    assert (await ask(EchoModel(), History()))["message"]["content"] == "hello"


async def test_the_echo_of_an_empty_conversation_is_empty():
    assert (await ask(EchoModel(), []))["message"]["content"] == ""


def test_models_may_run_again_after_a_crash():
    for model in (EchoModel(), ScriptedModel([]), ChatModel("http://localhost/v1", "small")):
        assert {name: method.policy.on_crash for name, method in methods_of(model).items()} == {"complete": "retry"}


# The script


SCRIPT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "what is there?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"b":1,"a":2}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a file"},
    {"role": "assistant", "content": "a file"},
    {"role": "user", "content": "thanks"},
]


async def test_the_script_answers_with_what_comes_next():
    model = ScriptedModel(SCRIPT)
    assert (await ask(model, SCRIPT[:2]))["message"] == SCRIPT[2]
    assert (await ask(model, freeze(SCRIPT[:4])))["message"] == SCRIPT[4]


def changed(*path, to):
    copy = json.loads(json.dumps(SCRIPT[:4]))
    *way, last = path
    place = copy
    for step in way:
        place = place[step]
    place[last] = to
    return copy


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (
            changed(1, "content", to="what?"),
            "messages[1].content: the transcript has 'what is there?', the conversation 'what?'",
        ),
        (changed(2, "content", to=""), "messages[2].content: the transcript has None, the conversation ''"),
        (
            changed(2, "tool_calls", 0, "id", to=True),
            "messages[2].tool_calls[0].id: the transcript has 'c1', the conversation True",
        ),
        (
            changed(2, "tool_calls", to=[]),
            "messages[2].tool_calls: the transcript has 1 items, the conversation 0 items",
        ),
        (
            [{"content": "be brief", "role": "system"}, *SCRIPT[1:4]],
            "messages[0]: the transcript has the keys ['role', 'content'], the conversation ['content', 'role']",
        ),
        (SCRIPT[:1], "messages[1]: the transcript has a message of 'user', the conversation wants an answer"),
        (SCRIPT, "messages[6]: the transcript has ended, the conversation wants an answer"),
    ],
)
async def test_the_script_names_the_first_difference(messages, says):
    with pytest.raises(ScriptMismatch) as caught:
        await ask(ScriptedModel(SCRIPT), messages)
    assert str(caught.value) == says


async def test_of_long_texts_the_script_shows_where_they_part():
    script = [{"role": "user", "content": "x" * 5000 + "left"}, {"role": "assistant", "content": ""}]
    given = [{"role": "user", "content": "x" * 5000 + "right"}]
    with pytest.raises(ScriptMismatch, match=r"'x{20}left' \(from character 4980\), the conversation 'x{20}right'"):
        await ask(ScriptedModel(script), given)


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded agent runs are not beside this project")
async def test_the_script_plays_real_agent_runs_to_their_end():
    for path in sorted(TRANSCRIPTS.glob("*.jsonl")):
        script = [json.loads(line) for line in path.read_text().splitlines()]
        model, messages, played = ScriptedModel(script), [], 0
        for message in script:
            if message["role"] == "assistant":
                assert (await ask(model, messages))["message"] == message
                played += 1
            messages.append(freeze(message))
        assert played == sum(message["role"] == "assistant" for message in script) > 50


# From the environment


def test_without_a_name_the_echo_is_chosen_whatever_keys_there_are():
    chosen = model_from_environment({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://x.example/v1"})
    assert isinstance(chosen.device, EchoModel)
    assert chosen.credentials == {}


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({}, "ChatModel('https://api.openai.com/v1/chat/completions', 'small', credential=None)"),
        (
            {"OPENAI_BASE_URL": "https://b/v1", "OPENAI_API_KEY": KEY},
            "ChatModel('https://b/v1/chat/completions', 'small', credential='model')",
        ),
        (
            {
                "OPENAI_BASE_URL": "https://b/v1",
                "KEEVE_MODEL_URL": "http://a/v1",
                "KEEVE_MODEL_KEY": "MINE",
                "MINE": KEY,
            },
            "ChatModel('http://a/v1/chat/completions', 'small', credential='model')",
        ),
    ],
)
def test_a_name_chooses_a_service_and_what_it_needs(environ, shown):
    chosen = model_from_environment({"KEEVE_MODEL": "small", **environ})
    assert repr(chosen.device) == shown
    vault = Vault(chosen.credentials)
    assert [vault.resolve(name) for name in vault.names()] == ([KEY] if KEY in environ.values() else [])
    assert KEY not in repr(chosen)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"KEEVE_MODEL_URL": "http://a/v1"}, "KEEVE_MODEL_URL is set, but KEEVE_MODEL is not"),
        ({"KEEVE_MODEL": "small", "KEEVE_MODEL_KEY": "sk-canary-1"}, "KEEVE_MODEL_KEY is the name of the variable"),
        ({"KEEVE_MODEL": "small", "KEEVE_MODEL_KEY": "canary1"}, "KEEVE_MODEL_KEY names a variable that is not set"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused_without_showing_them(environ, says):
    with pytest.raises(BadModelSetting, match=says) as caught:
        model_from_environment(environ)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"KEEVE_MODEL_URL": "127.0.0.1:8919/v1"}, "KEEVE_MODEL_URL=127.0.0.1:8919/v1 is no URL that begins with"),
        ({"OPENAI_BASE_URL": "localhost:80"}, "OPENAI_BASE_URL=localhost:80 is no URL that begins with"),
        ({"KEEVE_MODEL_URL": "sk-proj.canary-1_x"}, "KEEVE_MODEL_URL is no URL that begins with"),
        ({"KEEVE_MODEL_URL": "wJal/canary/x"}, "KEEVE_MODEL_URL is no URL that begins with"),
        ({"KEEVE_MODEL_URL": "https://me:canary@x/v1"}, "KEEVE_MODEL_URL holds a user or a password"),
    ],
)
def test_a_url_that_is_none_is_named_by_its_variable_and_shown_where_it_can_be_no_key(environ, says):
    with pytest.raises(BadModelURL) as caught:
        model_from_environment({"KEEVE_MODEL": "small", **environ})
    assert str(caught.value).startswith(says)
    assert "canary" not in str(caught.value)
