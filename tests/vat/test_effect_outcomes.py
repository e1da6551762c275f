"""Everything that happens to an effect is an outcome."""

from __future__ import annotations

import sys

import pytest
import trio
import trio.testing

from dataspace.values import Blob, NotAValue, Text, freeze
from tests.effect_host import Device, Host, error_of, running
from vat.devices.outcomes import DeviceFailed, EffectOutcome, OutcomeTooLarge, UnknownDevice, larger_than

# Everything is an outcome


async def test_a_device_that_the_host_does_not_have_is_an_outcome_that_names_those_it_has():
    async with running(Host(Device())) as host:
        host.want(1, "complete", device="model")
        host.want(2, "thrice")
        assert str((await host.outcome(1)).error).startswith(
            "this host has no model.complete; its devices offer: d.again, d.once."
        )
        assert isinstance((await host.outcome(2)).error, UnknownDevice)


async def test_what_a_device_raises_is_the_outcome():
    async def fail(effect):
        raise LookupError("not on the shelf")

    error = await error_of(fail)
    assert (type(error), error.args) == (LookupError, ("not on the shelf",))


async def test_a_result_that_is_no_value_is_an_outcome_that_names_the_place():
    async def wrong(effect):
        return {"items": [1, object()]}

    error = await error_of(wrong)
    assert isinstance(error, NotAValue)
    assert str(error) == "d.again().items[1]: object is not a value"


async def test_a_result_that_cannot_even_be_read_is_an_outcome():
    class Trap(dict):
        def items(self):
            raise RuntimeError("a trap")

    async def wrong(effect):
        return Trap()

    assert str(await error_of(wrong)) == "a trap"


async def test_wrong_arguments_are_an_outcome():
    async def no_arguments(effect):
        raise AssertionError

    async with running(Host(Device())) as host:
        host.want(1, "again", no_arguments, 1, 2, 3)
        assert isinstance((await host.outcome()).error, TypeError)


async def test_a_device_that_ends_the_program_ends_its_effect_alone():
    async def leave(effect):
        sys.exit("enough")

    error = await error_of(leave)
    assert str(error) == "d.again raised SystemExit: enough"


async def test_one_error_in_a_nursery_is_that_error_and_several_are_told_together():
    async def fail(word):
        raise ValueError(word)

    async def in_a_nursery(effect, *words):
        async with trio.open_nursery() as nursery:
            for word in words:
                nursery.start_soon(fail, word)

    async def one(effect):
        await in_a_nursery(effect, "first")

    async def two(effect):
        await in_a_nursery(effect, "same", "same")

    error = await error_of(one)
    assert (type(error), error.args) == (ValueError, ("first",))
    error = await error_of(two)
    assert isinstance(error, DeviceFailed)
    assert str(error).endswith("(2 sub-exceptions): same; same")


async def test_an_error_that_cannot_be_shown_is_an_outcome():
    class Bad(Exception):
        def __str__(self):
            raise RuntimeError

        __repr__ = __str__

    async def fail(effect):
        raise Bad

    error = await error_of(fail)
    assert str(error) == "d.again raised Bad: its message cannot be shown (RuntimeError)"


async def test_a_very_large_result_is_an_error_unless_the_policy_allows_it():
    async def much(effect):
        return "x" * 50_000_000

    assert str(await error_of(much)).startswith("d.again returned more than the 16777216 bytes that its policy allows")
    assert await error_of(much, largest=50_000_000) is None
    assert isinstance(await error_of(much, largest=49_999_999), OutcomeTooLarge)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("abc", 3),
        ("\u00e4\u20ac", 5),
        (b"abcd", 4),
        (Blob("image/png", b"12345"), 5),
        (Text("ab"), 2),
        (7, 8),
        (None, 8),
        ([], 8),
        ({"key": [1, "two"]}, 8 + 3 + 8 + 8 + 3),
        ([{"a": "b" * 1000}] * 3, 8 + 3 * (8 + 1 + 1000)),
    ],
)
def test_the_size_of_a_result_is_that_of_its_texts_and_bytes_and_a_little_for_the_rest(value, size):
    assert larger_than(size - 1, freeze(value))
    assert not larger_than(size, freeze(value))


async def test_a_result_of_many_small_items_is_too_large_as_well():
    async def many(effect):
        return [0] * 1000

    assert isinstance(await error_of(many, largest=8000), OutcomeTooLarge)


async def test_whatever_devices_do_the_runner_goes_on():
    async def fail(effect):
        raise BaseExceptionGroup("all at once", [ValueError(), SystemExit()])

    async with running(Host(Device())) as host:
        host.want(1, "again", fail)
        host.want(2, "again", "value")
        assert isinstance((await host.outcome(1)).error, DeviceFailed)
        assert await host.outcome(2) == EffectOutcome("value")


async def test_an_outcome_keeps_no_frame_of_the_device_alive():
    async def fail(effect):
        try:
            raise LookupError("inner")
        except LookupError as error:
            raise ValueError("outer") from error

    async with running(Host(Device())) as host:
        host.want(1, "again", fail)
        outcome = await host.outcome()
    assert (outcome.error.__traceback__, outcome.error.__cause__, outcome.error.__context__) == (None, None, None)
    assert "LookupError: inner" in outcome.trace
    assert 'raise ValueError("outer") from error' in outcome.trace


# Progress


async def test_progress_reaches_the_host_in_order_and_before_the_outcome():
    async def act(effect):
        effect.progress("h")
        effect.progress({"i": 1})

    async with running(Host(Device())) as host:
        host.want(1, "again", act)
        await host.outcome()
        assert host.happened == [("progress", 1, "h"), ("progress", 1, {"i": 1}), ("settled", 1)]


async def test_progress_that_comes_after_the_outcome_is_dropped():
    kept = []

    async def act(effect):
        kept.append(effect)

    async with running(Host(Device())) as host:
        host.want(1, "again", act)
        await host.outcome()
        kept[0].progress("late")
        assert host.happened == [("settled", 1)]


# Devices that are opened and closed


class Opened(Device):
    def __init__(self, log, name="a", **policies):
        super().__init__(**policies)
        self.log, self.name = log, name

    async def __aenter__(self):
        self.log.append(f"open {self.name}")

    async def __aexit__(self, *error):
        await trio.sleep(1)
        self.log.append(f"close {self.name}")


async def test_devices_are_opened_in_order_and_closed_at_the_end_once_each(autojump_clock):
    log = []
    first = Opened(log, "a")
    async with running(Host(first, again=first, other=Opened(log, "b"))) as host:
        host.want(1, "again", "value")
        await host.outcome()
        assert log == ["open a", "open b"]
    assert log == ["open a", "open b", "close b", "close a"]


async def test_a_device_that_cannot_be_opened_is_told_to_the_host(autojump_clock):
    class Broken(Opened):
        async def __aenter__(self):
            raise OSError("no such program")

    log = []
    host = Host(Opened(log), broken=Broken(log))
    with pytest.raises(OSError, match="no such program"):
        await host.runner.run()
    assert log == ["open a", "close a"]
