"""`keeve chat` where no terminal is: lines in, answers out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio

from actors.models import ChatModel, ChosenModel
from keeve.settings import models
from tests.cli_runner import Said, keeve
from tests.cli_worlds import leave_a_turn_waiting
from tests.model_server import Answer, ModelServer, failing, model_server, streamed, whole
from vat.devices.devices import Policy


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def ask(store: Path, *answers: Answer, input: str = "hello\n", words: tuple[str, ...] = ("s1",)) -> Said:
    """Chat with a model service that gives these answers."""
    async with model_server(*answers) as server:
        return await trio.to_thread.run_sync(
            lambda: keeve("chat", *words, "--store", store, input=input, env=at(server))
        )


def at(server: ModelServer) -> dict[str, str]:
    return {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": server.url}


def test_each_line_of_the_input_is_answered_on_a_line_of_the_output(store: Path) -> None:
    assert keeve("chat", "s1", "--store", store, input="hello\nagain\n")[:2] == (0, "hello\nagain\n")


def test_a_last_line_without_its_end_is_answered(store: Path) -> None:
    assert keeve("chat", "s1", "--store", store, input="hello\nagain").out == "hello\nagain\n"


def test_lines_that_say_nothing_are_passed_over(store: Path) -> None:
    assert keeve("chat", "s1", "--store", store, input="\n  \nhello\n\n").out == "hello\n"
    assert [turn["input"] for turn in keeve("show", "s1", "--store", store, "--json").json["turns"]] == ["hello"]


def test_it_says_on_the_way_out_how_to_go_on(store: Path) -> None:
    said = keeve("chat", "s1", "--store", store, input="hello\n")
    assert f"resume it with: keeve chat --store {store} s1" in said.err


def test_the_command_that_it_names_goes_on_with_the_session(store: Path) -> None:
    said = keeve("chat", "it's mine", "--store", store, input="hello\n")
    assert f"keeve chat --store {store} 'it'\"'\"'s mine'" in said.err
    keeve("chat", "--store", store, "it's mine", input="again\n")
    turns = keeve("show", "it's mine", "--store", store, "--json").json["turns"]
    assert [turn["input"] for turn in turns] == ["hello", "again"]


def test_a_new_session_has_an_id_of_its_own_which_is_shown(store: Path) -> None:
    said = keeve("chat", "--store", store, input="hello\n")
    shown = re.search(r"session (s-[0-9a-f]+)\n", said.err)
    assert shown is not None
    assert [row["id"] for row in keeve("ls", "--store", store, "--json").json["sessions"]] == [shown[1]]


def test_no_session_is_made_when_nothing_is_said(store: Path) -> None:
    assert keeve("chat", "s1", "--store", store, input="").code == 0
    assert keeve("ls", "--store", store, "--json").json == {"sessions": []}


def test_with_json_each_turn_is_one_line(store: Path) -> None:
    said = keeve("chat", "s1", "--store", store, "--json", input="hello\nagain\n")
    assert said.lines == [
        {"session": "s1", "input": "hello", "output": "hello"},
        {"session": "s1", "input": "again", "output": "again"},
    ]


def test_what_would_control_a_terminal_is_not_printed(store: Path) -> None:
    hostile = "\x1b]0;title\x07\x1b[31mred\x1b[0m\u202eevil\x9b2J\b\b"
    said = keeve("chat", "s1", "--store", store, input=hostile + "\n")
    assert said.out == "redevil\n"
    said = keeve("chat", "s1", "--store", store, "--json", input=hostile + "\n")
    assert said.lines[0]["output"] == hostile
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said.out)


def test_bytes_that_are_no_text_are_answered_all_the_same(store: Path) -> None:
    assert keeve("chat", "s1", "--store", store, input=b"caf\xe9\nand on\n").out == "caf\ufffd\nand on\n"


def test_what_is_asked_here_is_recorded_as_asked_on_the_command_line(store: Path) -> None:
    keeve("chat", "s1", "--store", store, input="hello\n")
    assert keeve("show", "s1", "--store", store, "--json").json["turns"][0]["via"] == "cli"
    assert '#:via "cli"' in keeve("log", "(spawn . _)", "--store", store).out


def test_a_long_answer_is_printed_whole(store: Path) -> None:
    line = "word " * 5000 + "end"
    assert keeve("chat", "s1", "--store", store, input=line + "\n").out == line + "\n"


async def test_the_pending_work_of_other_sessions_is_left_for_the_host_that_can_do_it(store: Path) -> None:
    await leave_a_turn_waiting(store, "mailer")
    before = keeve("effects", "--store", store, "--json").json["effects"]
    assert keeve("chat", "s1", "--store", store, input="hello\n").code == 0
    assert keeve("effects", "--store", store, "--json").json["effects"] == before


async def test_the_model_that_the_environment_names_answers(store: Path) -> None:
    assert (await ask(store, streamed("hel", "lo back")))[:2] == (0, "hello back\n")


async def test_the_variables_of_openai_are_used_for_what_ours_do_not_say(store: Path) -> None:
    async with model_server(streamed("well")) as server:
        env = {"KEEVE_MODEL": "small", "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-theirs"}
        said = await trio.to_thread.run_sync(lambda: keeve("chat", "--store", store, input="hello\n", env=env))
        assert said[:2] == (0, "well\n")
        assert server.requests[0].headers["authorization"] == "Bearer sk-theirs"
        assert server.requests[0].body["model"] == "small"
        del env["KEEVE_MODEL"]
        said = await trio.to_thread.run_sync(lambda: keeve("chat", "--store", store, input="hello\n", env=env))
        assert said[:2] == (0, "hello\n")
        assert len(server.requests) == 1


async def test_an_answer_that_is_no_text_is_named(store: Path) -> None:
    said = await ask(store, whole({"role": "assistant", "content": None}))
    assert (said.code, said.out) == (0, "(nothing)\n")


async def test_a_model_that_refuses_ends_it_with_1_and_keeps_the_input(store: Path) -> None:
    said = await ask(store, failing(401, "who are you?"), input="hello\nagain\n")
    assert (said.code, said.out) == (1, "")
    assert "keeve: the model refused (401): who are you?" in said.err
    assert "resume it with" in said.err
    [turn] = keeve("show", "s1", "--store", store, "--json").json["turns"]
    assert (turn["input"], turn["state"]) == ("hello", "failed")


async def test_a_model_that_talks_nonsense_ends_it_with_1(store: Path) -> None:
    said = await ask(store, Answer(headers={"Content-Type": "text/html"}, pieces=(b"<html>welcome</html>",)))
    assert said.code == 1
    assert "the model's answer makes no sense" in said.err
    assert "Traceback" not in said.err


async def test_the_next_turn_after_a_failure_is_answered(store: Path) -> None:
    await ask(store, failing(400, "no"))
    assert (await ask(store, streamed("well")))[:2] == (0, "well\n")


def test_a_model_that_is_not_there_ends_it_with_1(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = ChatModel("http://127.0.0.1:9/v1", "small", policy=Policy(on_crash="retry"))
    monkeypatch.setattr(models, "model_from_environment", lambda environ: ChosenModel(absent, "absent", {}))
    said = keeve("chat", "s1", "--store", store, input="hello\n")
    assert said.code == 1
    assert "no answer from http://127.0.0.1:9/v1" in said.err
    assert "is the service running" in said.err


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"KEEVE_MODEL_URL": "http://127.0.0.1:9/v1"}, "KEEVE_MODEL_URL is set, but KEEVE_MODEL is not"),
        ({"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": "nowhere"}, "KEEVE_MODEL_URL is no URL"),
        ({"KEEVE_MODEL": "small", "KEEVE_MODEL_KEY": "sk-not-a-name"}, "not the key itself"),
    ],
)
def test_a_setting_that_cannot_be_meant_ends_it_with_2_and_makes_no_store(
    store: Path, variables: dict[str, str], message: str
) -> None:
    said = keeve("chat", "s1", "--store", store, input="hello\n", env=variables)
    assert said.code == 2
    assert message in said.err
    assert "sk-not-a-name" not in said.err
    assert not store.exists()


async def test_a_key_is_in_no_file_and_in_no_message(store: Path) -> None:
    """Invariant 20: on the command line too, the value goes to the model and nowhere else."""
    secret = "sk-canary-0123456789"
    async with model_server(failing(401, f"bad key {secret}")) as server:
        env = {**at(server), "KEEVE_MODEL_KEY": "MY_KEY", "MY_KEY": secret}
        said = await trio.to_thread.run_sync(lambda: keeve("chat", "s1", "--store", store, input="hello\n", env=env))
        assert server.requests[0].headers["authorization"] == f"Bearer {secret}"
    assert secret not in said.out + said.err
    assert not holding(secret, store)


def holding(secret: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
