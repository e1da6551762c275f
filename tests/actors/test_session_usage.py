"""What models have used, counted once: over restarts, attempts and forks, and as the model's service has counted it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from actors.counts import summed
from actors.models import ChatModel, ModelBusy
from actors.session import Session
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import memory_host
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, calls, says
from tests.model_server import Answer, failing, model_server, whole
from vat.devices.devices import Policy
from vat.heap.refs import Promise
from vat.objects.actor import actor


def used(tokens: int) -> dict[str, Any]:
    return {"prompt_tokens": tokens - 1, "completion_tokens": 1, "total_tokens": tokens}


def session(*answers: Any) -> Driven:
    return Driven(Session, {"model": Says(*answers), "tools": Does(a="seen")})


def take(driven: Driven, input: str) -> None:
    driven.call("turn", input)
    driven.run()


def test_it_is_kept_by_the_model_that_answered_and_by_purpose() -> None:
    first, second, nameless = says("1", usage=used(3)), says("2", usage=used(4)), says("3", usage=used(5))
    second["model"] = "other"
    nameless["model"] = None
    driven = session(first, second, nameless)
    for input in ("one", "two", "three"):
        take(driven, input)
        driven.restart()
    assert driven.read("usage") == {
        "model": {"turn": used(5) | {"prompt_tokens": 4}},
        "other": {"turn": used(4)},
        "said": {"turn": used(3)},
    }


def test_it_is_counted_with_each_answer_and_not_at_the_end_of_the_turn() -> None:
    driven = session(says(None, calls("a"), usage=used(3)), says("done", usage=used(4)))
    driven.call("turn", "go")
    driven.advance()
    assert driven.read("usage") == {"said": {"turn": used(3)}}
    driven.call("interrupt")
    assert driven.read("usage") == {"said": {"turn": used(3)}}
    take(driven, "again")
    assert driven.read("usage")["said"]["turn"]["total_tokens"] == 7
    assert driven.stated("turn-done")[0].keywords["usage"] == used(4)


def test_an_answer_that_came_after_the_interrupt_is_not_counted() -> None:
    driven = session(says("late", usage=used(3)))
    driven.call("turn", "go")
    (number,) = driven.open
    outcome = driven.carry_out(number)
    driven.call("interrupt")
    driven.end(number, outcome)
    assert driven.read("usage") == {}


def test_a_fork_goes_on_from_its_parents_and_has_its_own_apart() -> None:
    answers = [says("x", usage=used(tokens)) for tokens in (10, 20, 30, 40)]
    driven = session(*answers)
    take(driven, "one")
    child = driven.fork("s2")
    assert child.read("usage") == driven.read("usage")
    assert child.call("own_usage").value == {}
    take(child, "two")
    take(driven, "three")
    grandchild = child.fork("s3")
    grandchild.restart()
    assert grandchild.call("own_usage").value == {}
    take(grandchild, "four")
    total = {each: each.read("usage")["said"]["turn"]["total_tokens"] for each in (driven, child, grandchild)}
    own = {each: each.call("own_usage").value["said"]["turn"]["total_tokens"] for each in (driven, child, grandchild)}
    assert list(total.values()) == [40, 30, 70]
    assert list(own.values()) == [40, 20, 40]


@actor("test.titled", version=1)
class Titled(Session):
    """A session that asks its model for something besides its turns."""

    def title(self) -> Promise:
        return self.model.complete([*self.messages]).then(self._titled)

    def _titled(self, answer: Any) -> None:
        self._count(answer, "title")


def test_what_a_session_of_ones_own_asks_for_is_counted_apart() -> None:
    driven = Driven(Titled, {"model": Says(*(says("x", usage=used(tokens)) for tokens in (10, 20, 40)))})
    take(driven, "one")
    driven.call("title")
    driven.run()
    assert driven.read("usage") == {"said": {"turn": used(10), "title": used(20)}}
    child = driven.fork()
    child.call("title")
    child.run()
    assert child.call("own_usage").value == {"said": {"title": used(40)}}
    assert child.read("usage")["said"]["turn"] == used(10)


def test_names_of_models_that_are_none_do_no_harm() -> None:
    strange: list[Any] = ["m" * 100_000, "", 3, ["x"], "\ud800"]
    answers = []
    for name in strange:
        answers.append(says("x", usage=used(2)))
        answers[-1]["model"] = name
    driven = session(*answers)
    for place in range(len(strange)):
        take(driven, str(place))
    assert len(driven.stated("turn-done")) == len(strange)
    assert sum(each["turn"]["total_tokens"] for each in driven.read("usage").values()) == 2 * len(strange)


NO_COUNTS = [math.nan, math.inf, -math.inf, -5, -(10**5000), 10**5000, 1e300, True, "5", None, [1], {"a": 5}]


@pytest.mark.parametrize("count", NO_COUNTS, ids=range(len(NO_COUNTS)))
def test_a_count_that_cannot_be_one_is_not_taken_and_the_limit_on_tokens_holds(count: Any) -> None:
    counts = [1000, count, 1000, count, 1000, 1000]
    answers = [says(None, calls("a"), usage={"total_tokens": each, "odd": each}) for each in counts]
    driven = Driven(Session, {"model": Says(*answers), "tools": Does(a="seen")}, max_tokens=3000)
    take(driven, "go")
    [done] = driven.stated("turn-done")
    assert done.keywords["limit"] == "tokens"
    assert (done.keywords["usage"]["total_tokens"], len(driven.stated("model-output"))) == (3000, 5)
    counted = driven.read("usage")["said"]["turn"]
    assert counted["total_tokens"] == 3000
    is_number = isinstance(count, int | float) and count is not True
    assert counted.get("ignored", 0) == (4 if is_number or isinstance(count, Mapping) else 0)


def test_counts_of_any_names_and_depth_leave_those_of_tokens_where_they_are() -> None:
    deep: Any = {"n": 1}
    for _ in range(55):
        deep = {"n": deep}
    odd = [{f"{turn}-{n}": 1 for n in range(5000)} for turn in range(3)]
    answers = [says(None, calls("a"), usage={**odd[0], "deep": deep, "n" * 10**6: 1})]
    answers += [says(None, calls("a"), usage={**each, **used(1000)}) for each in odd]
    driven = Driven(Session, {"model": Says(*answers), "tools": Does(a="seen")}, max_tokens=2000)
    take(driven, "go")
    assert driven.stated("turn-done")[0].keywords["limit"] == "tokens"
    counted = driven.read("usage")["said"]["turn"]
    assert counted["total_tokens"] == 2000
    assert len(counted) <= 104
    assert counted["ignored"] > 10_000


def totals(*usages: Mapping[str, Any]) -> dict[str, Any]:
    """All of several usages, in one."""
    total: dict[str, Any] = {}
    for usage in usages:
        for purposes in usage.values():
            for counts in purposes.values():
                total = summed(total, counts)
    return total


def answer(text: str | None, tokens: int, *called: dict[str, Any]) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if called:
        message["tool_calls"] = list(called)
    return whole(message, usage=used(tokens))


async def test_it_is_what_the_service_has_counted_over_attempts_restarts_and_forks() -> None:
    """Invariant 14: no answer is asked for twice, and none is counted twice."""
    given = [
        failing(500),
        answer(None, 11, calls("a")),
        answer("one", 12),
        answer("two", 20),
        failing(429),
        answer("child", 30),
        Answer(silent=True),  # the host ends while it waits for this one
        answer("three", 40),
        answer("grandchild", 50),
    ]
    counted = 11 + 12 + 20 + 30 + 40 + 50
    policy = Policy(on_crash="retry", attempts=3, retry_on=(ModelBusy,), backoff=0)
    log = MemoryLog()
    async with model_server(*given) as server:

        def devices() -> dict[str, object]:
            return {"model": ChatModel(server.url, "small", policy=policy), "tools": Does(a="seen")}

        async with memory_host(log, devices=devices()) as host, trio.open_nursery() as nursery:
            s = await host.spawn(Session, "s1")
            assert await s.turn("one") == "one"
            child = await s.fork(into="s2")
            assert await s.turn("two") == "two"
            assert await child.turn("other") == "child"
            nursery.start_soon(s.turn, "three")
            await server.asked(7)
            nursery.cancel_scope.cancel()
        async with memory_host(log, devices=devices()) as host:
            s, child = await host.get("s1"), await host.get("s2")
            async for _ in host.observe('(turn-done 3 "s1" . _)'):
                break
            grandchild = await child.fork(into="s3")
            await grandchild.turn("and on")
            own = [await each.own_usage() for each in (s, child, grandchild)]
            assert totals(*own) == {"total_tokens": counted, "completion_tokens": 6, "prompt_tokens": counted - 6}
            assert totals(await grandchild.usage)["total_tokens"] == 11 + 12 + 30 + 50
            assert list(await s.usage) == ["small-1"]
    keys = Counter(request.headers["idempotency-key"] for request in server.requests)
    assert sorted(keys.values()) == [1, 1, 1, 2, 2, 2]
