"""`keeve ls` and `keeve show`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.session import Session
from keeve import Actor, Model, ScriptedModel, Toolbox, Tools, actor, open_host, tool
from keeve.cli.output import Output
from keeve.cli.sessions import in_words
from keeve.cli.talking import again_by
from keeve.faces import turns_of
from tests.cli_runner import keeve
from tests.cli_worlds import Asking, Caller, leave_a_ledger, leave_waiting, send
from tests.served_stores import asked, served_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


def chat(store: Path, id: str, *lines: str) -> None:
    assert keeve("chat", id, "--store", store, input="".join(f"{line}\n" for line in lines)).code == 0


def test_sessions_are_listed_in_the_order_of_their_ids(store: Path) -> None:
    for id in ("b", "a", "c"):
        chat(store, id, "hello")
    said = keeve("ls", "--store", store)
    assert [line.split()[0] for line in said.out.splitlines()] == ["SESSION", "a", "b", "c"]


def test_a_list_can_begin_with_a_prefix_end_after_some_and_go_on(store: Path) -> None:
    for id in ("x1", "x2", "x3", "y1"):
        chat(store, id, "hello")

    def ids(*words: str) -> list[str]:
        return [row["id"] for row in keeve("ls", *words, "--store", store, "--json").json["sessions"]]

    assert ids("x") == ["x1", "x2", "x3"]
    assert ids("x", "--limit", "2") == ["x1", "x2"]
    assert ids("x", "--after", "x2") == ["x3"]
    assert keeve("ls", "z", "--after", "x2", "--store", store).err == "no sessions that begin with 'z' after 'x2'\n"


def test_an_empty_list_is_said_to_be_empty(store: Path) -> None:
    keeve("chat", "--store", store)
    said = keeve("ls", "--store", store)
    assert (said.code, said.out, said.err) == (0, "", "no sessions\n")


async def test_deleted_sessions_are_listed_when_asked_for(store: Path) -> None:
    async with open_host(store) as host:
        await host.spawn(Session, "gone")
        await host.delete("gone")
    assert keeve("ls", "--store", store, "--json").json["sessions"] == []
    [row] = keeve("ls", "--deleted", "--store", store, "--json").json["sessions"]
    assert (row["id"], row["deleted"]) == ("gone", True)


async def test_lists_and_sessions_are_read_while_a_host_owns_the_store(store: Path) -> None:
    async with open_host(store) as host:
        session = await host.spawn(Session, "s1")
        await session.turn("hello")
        assert keeve("ls", "--store", store).out.count("s1") == 1
        assert keeve("show", "s1", "--store", store, "--json").json["turns"][0]["output"] == "hello"
        await session.turn("again")


def test_a_session_is_shown_with_its_turns_and_its_head(store: Path) -> None:
    chat(store, "s1", "hello", "again")
    shown = keeve("show", "s1", "--store", store, "--json").json
    assert [(turn["turn"], turn["state"], turn["input"], turn["output"]) for turn in shown["turns"]] == [
        (1, "done", "hello", "hello"),
        (2, "done", "again", "again"),
    ]
    assert shown["seq"] == 5
    assert len(shown["hash"]) == 64
    assert shown["pending"] == 0
    text = keeve("show", "s1", "--store", store).out
    assert f"head     seq 5, position 6, hash {shown['hash'][:16]}…" in text
    assert "turn 2  done" in text
    assert "pending  nothing" in text


def test_a_fork_is_shown_with_both_of_its_ends_and_the_turns_before_it(store: Path) -> None:
    chat(store, "s1", "hello", "again")
    keeve("fork", "s1", "--into", "s2", "--store", store)
    chat(store, "s2", "elsewhere")
    child = keeve("show", "s2", "--store", store, "--json").json
    assert child["forked_from"] == {"session": "s1", "at": 5, "deleted": False}
    assert [turn["input"] for turn in child["turns"]] == ["hello", "again", "elsewhere"]
    assert keeve("show", "s1", "--store", store, "--json").json["forks"] == [
        {"session": "s2", "at": 5, "deleted": False}
    ]
    assert "fork     s2 at seq 5" in keeve("show", "s1", "--store", store).out
    assert "fork of  s1 at seq 5" in keeve("show", "s2", "--store", store).out


def test_a_fork_that_is_deleted_is_said_to_be_that_and_so_is_a_parent(store: Path) -> None:
    chat(store, "s1", "hello")
    for fork in ("gone", "there"):
        assert keeve("fork", "s1", "--into", fork, "--store", store).code == 0
    keeve("delete", "gone", "--store", store)
    shown = keeve("show", "s1", "--store", store)
    assert "fork     gone (deleted) at seq" in shown.out
    assert "fork     there at seq" in shown.out
    forks = keeve("show", "s1", "--store", store, "--json").json["forks"]
    assert {fork["session"]: fork["deleted"] for fork in forks} == {"gone": True, "there": False}
    keeve("delete", "s1", "--store", store)
    assert "fork of  s1 (deleted) at seq" in keeve("show", "there", "--store", store).out
    assert "fork of s1 (deleted) at" in keeve("ls", "--store", store).out
    assert keeve("show", "there", "--store", store, "--json").json["forked_from"]["deleted"] is True


async def test_what_is_pending_is_shown_by_the_name_of_the_call(store: Path) -> None:
    await leave_waiting(store)
    said = keeve("show", "c1", "--store", store)
    assert "pending  tool.call (unknown)" in said.out
    [found] = keeve("show", "c1", "--store", store, "--json").json["effects"]
    assert (found["session"], found["device"], found["method"]) == ("c1", "tool", "call")
    assert (found["args"], found["state"]) == (["a stone"], "unknown")
    assert "1 pending" in keeve("ls", "--store", store).out


def test_what_would_control_a_terminal_is_not_shown(store: Path) -> None:
    chat(store, "s1", "\x1b[31mred\x07")
    assert "\x1b" not in keeve("show", "s1", "--store", store).out
    assert keeve("show", "s1", "--store", store, "--json").json["turns"][0]["input"] == "\x1b[31mred\x07"


async def test_a_session_of_a_type_that_is_not_known_here_is_shown(store: Path) -> None:
    async with open_host(store, actors=[Caller]) as host:
        await host.spawn(Caller, "c1")
    assert keeve("show", "c1", "--store", store, "--json").json["type"] == "test.caller"


def test_a_damaged_session_is_shown_as_far_as_it_can_be_read(store: Path) -> None:
    """Invariant 23: and the others as ever."""
    chat(store, "s1", "the first of them", "the second one here")
    chat(store, "s2", "hello")
    [segment] = (store / "log").iterdir()
    data = bytearray(segment.read_bytes())
    data[data.rindex(b"the second one here")] ^= 1
    segment.write_bytes(data)
    said = keeve("show", "s1", "--store", store, "--json")
    assert said.code == 1
    assert [turn["input"] for turn in said.json["turns"]][:1] == ["the first of them"]
    assert "is damaged at seq" in said.json["damage"]
    assert "not all of it can be read" in keeve("show", "s1", "--store", store).err
    assert keeve("show", "s2", "--store", store).code == 0


def test_turns_need_not_be_those_of_a_session_of_ours() -> None:
    assert turns_of([]) == []


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("hello", "hello"),
        (None, "(nothing)"),
        ([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}], "look [image_url]"),
        ({"error": "ValueError", "message": "no"}, "ValueError: no"),
        ({"City": "Genève", "rain": True}, '[{"City": "Genève", "rain": true}]'),
    ],
)
def test_content_is_shown_in_words(content: Any, shown: str) -> None:
    assert in_words(content) == shown


async def test_a_limit_that_a_turn_has_reached_is_shown(store: Path) -> None:
    async with open_host(store, devices={"model": Asking()}) as host:
        s = await host.spawn(Session, "s1", max_steps=1)
        assert await s.turn("send it") is None
    assert "turn 1  done at the limit of steps, " in keeve("show", "s1", "--store", store).out
    assert keeve("show", "s1", "--store", store, "--json").json["turns"][0]["limit"] == "steps"


async def test_a_turn_that_ends_at_a_limit_says_which_beside_its_answer(store: Path) -> None:
    async with served_store(store, devices={"model": Asking()}) as served:
        await served.host.spawn(Session, "s1", max_steps=1)
        said = await asked("turn", "s1", "send it", "--store", store)
        assert (said.code, said.out) == (0, "(nothing)\n")
        assert "turn 1 ended at its limit of steps: keeve show s1 tells how far it came\n" in said.err
        said = await asked("turn", "s1", "again", "--store", store, "--json")
        assert (said.json["limit"], said.err) == ("steps", "")


async def test_calls_that_failed_and_calls_that_were_refused_are_counted(store: Path) -> None:
    @tool
    def lose() -> str:
        """Lose it."""
        raise OSError("gone")

    names = ("send", "lose")
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    refused = "This call failed: CallRefused: a person has refused this call, so it was not made"
    said = {"send": refused, "lose": "This call failed: OSError: gone"}
    script = [
        {"role": "user", "content": "send it, and lose it"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "content": said[name], "tool_call_id": name} for name in names),
        {"role": "assistant", "content": "well"},
    ]
    tools = Tools(send, lose)
    async with open_host(store, devices={"model": ScriptedModel(script), "tools": tools}) as host:
        s = await host.spawn(Session, "s1", tools=tools)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(s.turn, "send it, and lose it")
            async for _ in host.observe('(approval-wanted _ "s1" . _)'):
                await (await s.approvals).refuse("send")
                break
    assert "2 tool calls (lose, send), 1 failed, 1 refused\n" in keeve("show", "s1", "--store", store).out
    [turn] = keeve("show", "s1", "--store", store, "--json").json["turns"]
    assert (turn["failed_calls"], turn["refused_calls"], turn["unknown_calls"]) == (1, 1, 0)


# Sessions of a type that is not known here.


async def test_the_fields_and_the_newest_facts_of_any_type_are_shown(store: Path) -> None:
    await leave_a_ledger(store, *(f"n{number}" for number in range(12)))
    said = keeve("show", "l1", "--store", store).out.splitlines()
    assert "  field    count: 12" in said
    assert '  field    inside: {"name": "n11"}' in said
    assert not any("_own" in line for line in said)
    facts = [line for line in said if line.startswith("  fact     ")]
    assert len(facts) == 10
    assert facts[-1].startswith('  fact     + (test.added "n11"), seq ')


async def test_long_values_are_cut_for_people_and_whole_in_json(store: Path) -> None:
    long = "\x1b[31m" + "x" * 500
    await leave_a_ledger(store, "a", long)
    said = keeve("show", "l1", "--store", store)
    assert max(map(len, said.out.splitlines())) < 250
    assert "\x1b" not in said.out
    shown = keeve("show", "l1", "--store", store, "--json").json
    assert shown["fields"] == {
        "by_name": {"a": 1, long: 2},
        "by_number": {"$map": [[1, "a"], [2, long]]},
        "count": 2,
        "inside": {"name": long},
        "names": ["a", long],
        "tags": sorted(["a", long]),
    }
    assert [fact["fields"] for fact in shown["facts"]] == [["a"], [long]]


async def test_of_a_long_collection_people_are_told_how_long_it_is(store: Path) -> None:
    await leave_a_ledger(store, *(f"n{number:03}" for number in range(60)))
    said = keeve("show", "l1", "--store", store).out
    assert '  field    names: 60 items, the last one "n059"\n' in said
    assert '  field    by_name: 60 items, the first one ["n000", 1]\n' in said


def test_a_conversation_is_shown_as_turns_and_its_fields_are_in_json(store: Path) -> None:
    chat(store, "s1", "hello")
    assert "field" not in keeve("show", "s1", "--store", store).out
    shown = keeve("show", "s1", "--store", store, "--json").json
    assert shown["fields"]["messages"] == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hello"},
    ]
    assert shown["facts"] == []


def test_an_input_with_a_request_id_is_said_once(store: Path) -> None:
    chat(store, "s1", "hello")
    first, again = (keeve("turn", "s1", "once", "--request-id", "r1", "--store", store, "--json") for _ in range(2))
    assert (first.code, again.json) == (0, first.json)
    queued = keeve("queue", "s1", "once", "--request-id", "r1", "--store", store, "--json")
    assert queued.json["turn"] == first.json["turn"]
    assert keeve("turn", "s1", "other", "--request-id", "r1", "--store", store).code != 0


@actor("test.has-parts", version=1)
class HasParts(Actor):
    model: Model
    tools: Toolbox


async def test_of_a_part_people_are_told_what_it_is_and_has(store: Path) -> None:
    async with open_host(store, actors=[HasParts]) as host:
        await host.spawn(HasParts, "a1", model="small", tools=Tools(send))
    told = keeve("show", "a1", "--store", store).out
    assert 'field    model: keeve.model (actor 2): model "small"' in told
    assert 'field    tools: keeve.toolbox (actor 3): send, tool_device "tools"' in told


@pytest.mark.parametrize("lost", [ConnectionError(), ExceptionGroup("", [ConnectionError()])])
def test_whose_server_has_gone_away_is_told_how_the_same_is_said_again(lost: Exception) -> None:
    told = io.StringIO()
    with pytest.raises(type(lost)), again_by(Output(err=told), "r1"):
        raise lost
    assert told.getvalue().startswith("with --request-id r1 it is said once")
    with pytest.raises(ValueError, match="no"), again_by(Output(err=told), "r2"):
        raise ValueError("no")
    assert "r2" not in told.getvalue()
