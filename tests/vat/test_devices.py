"""What a device is, and what its methods declare."""

from __future__ import annotations

import re

import pytest

from dataspace.values import NotAValue
from vat.devices.devices import BadPolicy, Effect, NotADevice, Policy, effect, methods_of
from vat.heap.entries import effect_id


class Clock:
    @effect(on_crash="retry", timeout=5)
    async def tell(self, effect: Effect) -> str:
        return "noon"

    @effect
    async def ring(self, effect: Effect) -> None: ...

    async def helper(self) -> None: ...


def an_effect(progress=lambda value: None, credential=lambda name: "") -> Effect:
    return Effect(id="ab", device="d", method="m", session="s1", attempt=1, progress=progress, credential=credential)


async def test_a_device_offers_its_marked_methods_bound_to_it():
    methods = methods_of(Clock())
    assert set(methods) == {"tell", "ring"}
    assert methods["tell"].policy == Policy(on_crash="retry", timeout=5)
    assert await methods["tell"].function(an_effect()) == "noon"


def test_what_a_crash_means_is_unknown_unless_declared():
    assert methods_of(Clock())["ring"].policy.on_crash == "unknown"


def test_a_marked_function_is_a_device_with_one_method():
    @effect(timeout=3)
    async def look(effect: Effect) -> None: ...

    assert {name: method.policy.timeout for name, method in methods_of(look).items()} == {"call": 3}


def test_an_object_may_have_policies_of_its_own():
    clock = Clock()
    clock.policies = {"ring": Policy(concurrency=1)}
    assert methods_of(clock)["ring"].policy.concurrency == 1
    assert methods_of(clock)["tell"].policy.timeout == 5


def test_a_policy_for_a_method_that_is_not_there_is_refused():
    clock = Clock()
    clock.policies = {"rign": Policy()}
    with pytest.raises(BadPolicy, match="no such method; it has ring, tell"):
        methods_of(clock)


def test_a_property_is_not_run_to_see_whether_it_is_an_effect():
    class Device(Clock):
        @property
        def broken(self):
            raise AssertionError("was run")

    assert set(methods_of(Device())) == {"tell", "ring"}


async def plain() -> None: ...


@pytest.mark.parametrize(
    ("thing", "remedy"),
    [
        (Clock, r"give an object of it, Clock\(...\)"),
        (plain, "mark the function with @effect"),
        (object(), "no public `async def` marked with @effect"),
    ],
)
def test_what_is_no_device_is_refused_with_the_remedy(thing, remedy):
    with pytest.raises(NotADevice, match=remedy):
        methods_of(thing)


def test_only_async_functions_can_be_marked():
    with pytest.raises(NotADevice, match="`async def`"):

        @effect
        def wrong(effect: Effect) -> None: ...


def test_an_override_that_is_not_marked_is_refused_and_not_left_out():
    class Louder(Clock):
        async def ring(self, effect: Effect) -> None: ...

    with pytest.raises(NotADevice, match="ring overrides an effect"):
        methods_of(Louder())


@pytest.mark.parametrize(
    "wrong",
    [
        {"on_crash": "ignore"},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"concurrency": 0},
        {"attempts": 0},
        {"attempts": 3},
        {"backoff": -1},
        {"backoff": 31},
        {"retry_on": [OSError]},
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_by_name(wrong):
    with pytest.raises(BadPolicy) as caught:
        effect(**wrong)
    assert caught.value.field in {*wrong, "retry_on"}


def test_pauses_double_up_to_a_limit_and_are_shortened_by_chance():
    policy = Policy(backoff=0.5)
    assert [policy.pause(n, 0.0) for n in (1, 2, 3, 7, 100_000)] == [0.5, 1.0, 2.0, 30.0, 30.0]
    assert policy.pause(1, 0.999) > 0.25


def test_an_effect_has_one_id_for_ever():
    assert effect_id(b"L" * 16, b"S" * 16, 7, 2) == "498d51889aab8b7e5e3c43835d633b0d"


def test_each_part_of_its_place_changes_the_id_of_an_effect():
    ids = {
        effect_id(log, session, seq, number)
        for log in (b"L" * 16, b"M" * 16)
        for session in (b"S" * 16, b"T" * 16)
        for seq in (1, 256)
        for number in (1, 256)
    }
    assert len(ids) == 16
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)


def test_progress_is_frozen_and_what_is_no_value_is_refused_where_it_is_told():
    heard = []
    running = an_effect(progress=heard.append)
    running.progress({"done": [1, 2]})
    with pytest.raises(NotAValue, match=r"progress\.done: set is not a value"):
        running.progress({"done": {1}})
    with pytest.raises(TypeError, match="cannot be changed"):
        heard[0]["done"].append(3)


def test_progress_after_the_end_of_an_attempt_is_heard_by_nobody():
    heard = []
    late = an_effect(progress=heard.append)
    late.end()
    late.progress("still here")
    assert heard == []


@pytest.mark.parametrize(("make_async", "said"), [(False, "make it an `async def`, and mark"), (True, "device: mark")])
def test_a_function_that_is_no_device_is_told_all_that_it_lacks_at_once(make_async, said):
    async def later(effect): ...

    def now(effect): ...

    with pytest.raises(NotADevice, match=said):
        methods_of(later if make_async else now)


def test_a_method_that_does_not_take_its_effect_first_is_refused_where_the_device_is_given():
    class Forgetful:
        @effect
        async def price(self, what: str) -> int:
            return len(what)

    with pytest.raises(NotADevice, match=r"Forgetful\.price .*`async def price\(effect: Effect, what, \.\.\.\)`"):
        methods_of(Forgetful())


def test_a_function_that_takes_nothing_is_no_device():
    @effect
    async def ring() -> None: ...

    with pytest.raises(NotADevice, match=r"`async def ring\(effect: Effect\)`"):
        methods_of(ring)


def test_an_effect_may_have_any_name_and_no_annotation():
    class Loose:
        @effect
        async def one(self, call): ...

        @effect
        async def two(self, _: object, *rest): ...

        @effect
        async def three(self, *everything): ...

    assert set(methods_of(Loose())) == {"one", "two", "three"}


@pytest.mark.parametrize("device", [[print], (len, print)])
def test_several_functions_are_no_device(device: object) -> None:
    with pytest.raises(NotADevice, match=r"give one object; several functions for a model are Tools\(\*them\)"):
        methods_of(device)
