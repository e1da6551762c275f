"""Tools: functions that are called, each under its own policy, and what a model hears of what they do."""

from __future__ import annotations

import datetime
import sys
import threading
import time
from typing import Any

import pytest
import trio

from actors.session import Session
from actors.tools import LONGEST, ApprovalWanted, BadArguments, BadTool, NoSuchTool, Tools, tool
from dataspace.values import Blob, NotAValue
from tests.actors.driving import Driven
from tests.actors.scenes import Says, calls, says
from tests.actors.toolcalls import a_call, run
from tests.effect_host import Host, running
from vat.devices.devices import BadPolicy, Effect, Policy, methods_of
from vat.devices.outcomes import EffectTimeout, OutcomeUnknown
from vat.devices.vault import Vault


async def weather(city: str, days: int = 1) -> str:
    """The weather in a city."""
    return f"{city} {days}"


async def outcome_of(tools: Tools, name: str, arguments: Any = None, vault: Vault | None = None, **how: Any) -> Any:
    """What comes of a call that a runner carries out."""
    async with running(Host(tools, vault=vault)) as host:
        host.want(1, "run", a_call(name, arguments), **how)
        return await host.outcome()


# Calling


async def test_a_call_reaches_its_function_with_its_arguments() -> None:
    assert await run(Tools(weather), "weather", {"city": "Oslo", "days": 2}) == "Oslo 2"


async def test_a_function_that_asks_for_the_effect_is_given_it() -> None:
    async def look(effect: Effect, what: str) -> str:
        return f"{what} for {effect.session}"

    assert await run(Tools(look), "look", {"what": "this"}) == "this for s1"


async def test_a_plain_function_runs_in_a_thread_and_can_tell_and_ask_from_there() -> None:
    here = threading.get_ident()
    told: list[Any] = []

    def count(effect: Effect, to: int) -> str:
        assert threading.get_ident() != here
        effect.progress([to, threading.get_ident() == here])
        return effect.credential("bank")

    def hear(value: Any) -> None:
        told.append((value, threading.get_ident() == here))

    assert await run(Tools(count), "count", {"to": 3}, progress=hear) == "bank"
    assert told == [([3, False], True)]


async def test_plain_functions_run_beside_each_other() -> None:
    both = threading.Barrier(2, timeout=10)

    def meet() -> int:
        return both.wait()

    tools = Tools(meet)
    async with running(Host(tools)) as host:
        host.want(1, "run", a_call("meet"))
        host.want(2, "run", a_call("meet"))
        assert {(await host.outcome(1)).value, (await host.outcome(2)).value} == {0, 1}


async def test_an_unknown_tool_is_named_with_those_that_there_are() -> None:
    with pytest.raises(NoSuchTool, match="there is no tool 'sing'; there are weather"):
        await run(Tools(weather), "sing", {})


# Policies


def policy_of(tools: Tools, name: str, approved: bool = False) -> Any:
    return tools.variant(a_call(name), approved)


def test_each_tool_declares_how_it_is_run() -> None:
    @tool(on_crash="retry", timeout=5, concurrency=2)
    def look() -> None: ...

    tools = Tools(look, weather, policy=Policy(timeout=60))
    assert policy_of(tools, "look") == ("look", Policy("retry", 5, 2))
    assert policy_of(tools, "weather") == ("weather", Policy(timeout=60))
    assert policy_of(tools, "sing") is None
    assert methods_of(tools)["run"].policy == Policy(timeout=60)


def test_who_makes_the_tools_has_the_last_word() -> None:
    @tool(timeout=5)
    def look() -> None: ...

    assert policy_of(Tools(look, policies={"look": Policy(timeout=1)}), "look") == ("look", Policy(timeout=1))


def test_a_policy_for_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadTool, match="look cannot be a tool: something is said of it, and it is not here"):
        Tools(weather, policies={"look": Policy()})
    with pytest.raises(BadTool, match="look cannot be a tool: something is said of it, and it is not here"):
        Tools(weather, approval=["look"])
    with pytest.raises(BadPolicy, match="timeout"):
        tool(timeout=-1)


def test_a_tool_may_have_another_name_and_description() -> None:
    @tool(name="forecast", description="What is to come.")
    def look() -> None: ...

    shown = Tools(look).schemas[0]["function"]
    assert (shown["name"], shown["description"]) == ("forecast", "What is to come.")


async def test_after_a_crash_each_tool_is_treated_as_it_has_declared() -> None:
    ran: list[str] = []

    @tool(on_crash="retry")
    async def look() -> None:
        ran.append("look")

    async def pay() -> None:
        ran.append("pay")

    tools = Tools(look, pay)
    assert (await outcome_of(tools, "look", state="started")).error is None
    unknown = await outcome_of(tools, "pay", state="started")
    assert isinstance(unknown.error, OutcomeUnknown)
    assert str(unknown.error).startswith("nobody knows whether d.pay ")
    assert ran == ["look"]


# What goes wrong


@pytest.mark.parametrize("hanging", ["async", "thread"])
async def test_a_tool_that_hangs_comes_to_its_timeout(hanging: str) -> None:
    end = threading.Event()

    @tool(name="hang", timeout=0.05)
    async def wait() -> None:
        await trio.sleep_forever()

    @tool(name="hang", timeout=0.05)
    def block() -> None:
        end.wait(60)

    try:
        error = (await outcome_of(Tools(wait if hanging == "async" else block), "hang")).error
    finally:
        end.set()
    assert isinstance(error, EffectTimeout)
    assert str(error).startswith("d.hang did not answer in its 0.05 s; it may have happened all the same")


async def test_a_thread_can_find_out_that_nobody_waits_any_more() -> None:
    ended = threading.Event()

    @tool(timeout=0.05)
    def work() -> None:
        try:
            while True:
                trio.from_thread.check_cancelled()
                time.sleep(0.001)
        finally:
            ended.set()

    assert isinstance((await outcome_of(Tools(work), "work")).error, EffectTimeout)
    assert await trio.to_thread.run_sync(ended.wait, 30)


async def test_threads_that_hang_leave_the_hosts_own_alone() -> None:
    end = threading.Event()

    @tool(timeout=0.05)
    def block() -> None:
        end.wait(60)

    before = trio.to_thread.current_default_thread_limiter().borrowed_tokens
    tools = Tools(block, threads=1)
    try:
        async with running(Host(tools)) as host:
            for number in (1, 2):  # the second one does not even get a thread
                host.want(number, "run", a_call("block"))
                assert isinstance((await host.outcome(number)).error, EffectTimeout)
            assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == before
    finally:
        end.set()


async def test_a_tool_may_raise_whatever_it_likes() -> None:
    async def leave() -> None:
        sys.exit(3)

    def fail() -> None:
        raise LookupError("no such row")

    def stop() -> None:
        raise StopIteration

    tools = Tools(leave, fail, stop)
    assert str((await outcome_of(tools, "fail")).error) == "no such row"
    assert "SystemExit" in str((await outcome_of(tools, "leave")).error)
    assert isinstance((await outcome_of(tools, "stop")).error, Exception)


async def test_what_is_no_value_is_told_with_its_place() -> None:
    def when() -> Any:
        return {"at": [datetime.date(2026, 1, 1)]}

    with pytest.raises(NotAValue, match=r"when\(\)\.at\[0\]: date is not a value"):
        await run(Tools(when), "when")


async def test_what_is_printed_is_no_part_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    def chatter() -> str:
        print("thinking")  # the host's standard output, as anywhere
        return "done"

    assert await run(Tools(chatter), "chatter") == "done"
    assert capsys.readouterr().out == "thinking\n"


async def test_a_credential_never_leaves_with_an_answer_or_an_error() -> None:
    async def leak(effect: Effect, how: str) -> Any:
        key = effect.credential("bank")
        if how == "raise":
            raise ValueError(f"denied for {key}")
        return {"key": [key]}

    for how in ("raise", "return"):
        outcome = await outcome_of(Tools(leak), "leak", {"how": how}, Vault({"bank": lambda: "canary-12345"}))
        assert "canary" not in f"{outcome.value} {outcome.error!r} {outcome.trace}"
        assert "‹credential bank›" in f"{outcome.value} {outcome.error}"


# What is too long


async def test_a_long_answer_is_cut_and_says_so() -> None:
    def shout() -> str:
        return "a" * 50_000_000

    told = await run(Tools(shout), "shout")
    assert len(told) < LONGEST + 100
    assert "\n[… 49900000 of 50000000 characters left out …]\n" in told


async def test_a_long_answer_that_is_no_text_becomes_its_json_cut() -> None:
    @tool(longest=100)
    def rows() -> Any:
        return list(range(1000))

    told = await run(Tools(rows), "rows")
    assert told.startswith("[0, 1, 2, ")
    assert told.endswith("998, 999]")
    assert "characters left out" in told


KEY = "sk-canary-" + "abcdefghij" * 4
RIM = 75 - len(KEY)


@pytest.mark.parametrize("how", ["text", "parts", "json", "thread"])
@pytest.mark.parametrize("before", [RIM - 1, RIM + 1, RIM + 11, RIM + len(KEY) - 1, 175 - len(KEY) + 1])
async def test_a_credential_on_the_cut_of_a_long_answer_leaves_nothing_of_itself(how: str, before: int) -> None:
    def said(effect: Effect) -> str:
        return "." * before + effect.credential("bank") + "." * (200 - before)

    @tool(longest=100)
    async def dump(effect: Effect) -> Any:
        text = said(effect)
        return {"text": text, "parts": [{"type": "text", "text": text}], "json": [text]}[how]

    @tool(longest=100, name="dump")
    def in_thread(effect: Effect) -> str:
        return said(effect)

    tools = Tools(in_thread if how == "thread" else dump)
    outcome = await outcome_of(tools, "dump", {}, Vault({"bank": lambda: KEY}))
    assert "left out" in str(outcome.value)
    for start in range(len(KEY) - 5):
        assert KEY[start : start + 5] not in str(outcome.value)


async def test_a_short_answer_stays_the_value_that_it_is() -> None:
    def rows() -> Any:
        return {"rows": [1, 2.5, None]}

    assert await run(Tools(rows), "rows") == {"rows": [1, 2.5, None]}


async def test_texts_among_content_parts_are_cut_and_pictures_that_are_too_large_left_out() -> None:
    def picture(size: int) -> Any:
        url = Blob("image/png", b"x" * size)
        return [{"type": "text", "text": "y" * 500}, {"type": "image_url", "image_url": {"url": url}}]

    tools = Tools(picture, longest=100)
    text, small = await run(tools, "picture", {"size": 1000})
    assert "[… 400 of 500 characters left out …]" in text["text"]
    assert small["image_url"]["url"] == Blob("image/png", b"x" * 1000)
    _, large = await run(tools, "picture", {"size": 30 << 20})
    assert large == {"type": "text", "text": f"[image_url of {30 << 20} bytes left out]"}


# Approval


async def test_a_tool_that_needs_approval_is_not_called_without() -> None:
    ran: list[str] = []

    @tool(approval=True)
    def drop(table: str) -> None:
        ran.append(table)

    tools = Tools(drop)
    with pytest.raises(ApprovalWanted, match="drop was not called yet: wait until a person has approved of it"):
        await run(tools, "drop", {"table": "users"})
    assert ran == []
    await run(tools, "drop", {"table": "users"}, approved=True)
    assert ran == ["users"]


async def test_nobody_is_asked_about_a_call_that_does_not_fit() -> None:
    def drop(table: str) -> None: ...

    with pytest.raises(BadArguments):
        await run(Tools(drop, approval=["drop"]), "drop", {"tabel": "users"})


async def test_finding_out_that_approval_is_wanted_may_happen_again_after_a_crash() -> None:
    def drop() -> None: ...

    tools = Tools(drop, approval=["drop"])
    assert policy_of(tools, "drop") == ("drop?", Policy(on_crash="retry"))
    assert policy_of(tools, "drop", approved=True) == ("drop", Policy())
    assert isinstance((await outcome_of(tools, "drop", state="started")).error, ApprovalWanted)


# Messages


def test_a_message_tells_what_came_of_a_call() -> None:
    call = a_call("weather", {})
    assert tool(call, {"rows": 3}) == {"role": "tool", "content": '{"rows": 3}', "tool_call_id": "a"}
    assert tool(call, LookupError("no such city"))["content"] == "This call failed: LookupError: no such city"
    assert "outcome of this call is unknown" in tool(call, OutcomeUnknown("tools.pay", "0"))["content"]


def test_a_model_hears_what_was_wrong_with_its_call() -> None:
    tools = Tools(weather)
    wrong, right = calls("a", "weather", town="Oslo"), calls("b", "weather", city="Oslo")
    model = Says(says(None, wrong), says(None, right), says("done"))
    driven = Driven(Session, {"model": model, "tools": tools}, tools=tools.schemas)
    driven.call("turn", "go")
    driven.run()
    heard = [message["content"] for message in driven.read("messages") if message["role"] == "tool"]
    assert heard == [
        "This call failed: BadArguments: the arguments of weather do not fit: Object contains unknown field `town`; "
        "its parameters are city, days",
        "Oslo 1",
    ]


@pytest.mark.parametrize("name", ["bad name", "<lambda>", "x" * 65, "ä", ""])
def test_a_name_that_no_service_takes_is_refused(name: str) -> None:
    def function() -> None:
        pass

    function.__name__ = name
    with pytest.raises(BadTool, match="letters, digits, _ and -"):
        Tools(function)


def test_a_list_of_functions_is_refused_with_how_to_give_them() -> None:
    with pytest.raises(BadTool, match=r"Tools\(\*functions\)"):
        Tools([weather])  # type: ignore[arg-type]  # that is the point
