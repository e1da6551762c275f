"""Closing a coroutine comes to an end, whatever its code makes of it."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from vat.crank.closing import close


@types.coroutine
def wait() -> Any:
    return (yield)


def outside() -> None:
    raise RuntimeError("there is no crank")


async def poll() -> None:
    started = False
    while True:
        try:
            if started:
                outside()
            started = True
            await wait()
        except:  # noqa: E722, S112  # the tests are of such code
            continue


async def poll_within() -> None:
    while True:
        try:
            await poll()
        except:  # noqa: E722, S112  # the same
            continue


async def keep_the_last() -> None:
    last: Any = None
    started = False
    while True:
        try:
            if started:
                outside()
            started = True
            await wait()
        except BaseException as error:  # noqa: BLE001  # what users may write
            last = error  # noqa: F841  # it keeps the error


async def wait_again() -> None:
    while True:
        try:
            await wait()
        except:  # noqa: E722, S112  # the same
            continue


async def clean_up(done: list[str]) -> None:
    try:
        await wait()
    finally:
        done.append("cleaned up")


@pytest.mark.parametrize("method", [poll, poll_within, keep_the_last, wait_again])
def test_a_loop_that_swallows_all_errors_comes_to_its_end(method):
    before = sys.gettrace()
    coroutine = method()
    coroutine.send(None)
    close(coroutine)
    assert sys.gettrace() is before


def test_a_coroutine_that_is_closed_runs_its_finally_once():
    done: list[str] = []
    coroutine = clean_up(done)
    coroutine.send(None)
    close(coroutine)
    close(coroutine)
    assert (done, coroutine.cr_frame) == (["cleaned up"], None)


def test_a_coroutine_that_has_not_begun_is_closed():
    coroutine = clean_up([])
    close(coroutine)
    assert coroutine.cr_frame is None
