"""`keeve.blocking`: calls from threads, from the host's own one, after the end, and Ctrl-C while it opens."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.values import NotAValue
from keeve import Actor, actor, blocking, effect
from keeve.blocking import OwnThread
from keeve.errors import KeeveError, NewerVersion
from keeve.host_thread import OtherThread, _ended_by
from keeve.testing import folder_for_stores
from vat.host.asking import NotRunning


@actor("threads.counter", version=1)
class Counter(Actor):
    count: int = 0

    def add(self, *values: Any) -> int:
        self.count += 1
        return self.count

    def call(self, name: str) -> None:
        here[name]()

    def ask(self, name: str) -> Any:
        self.assert_fact("threads.asked", name)
        return self.device("d").call_back(name)


class Device:
    @effect
    async def call_back(self, effect: Any, name: str) -> str:
        effect.progress("at it")
        return str(here[name]())


here: dict[str, Any] = {}


@pytest.fixture
def folder(tmp_path):
    return folder_for_stores(tmp_path) / "store"


@pytest.fixture
def host(folder):
    with blocking.open_host(folder, actors=[Counter], devices={"d": Device()}) as host:
        here.update(count=lambda: host.get("s").count, add=lambda: host.get("s").add(), close=host.close)
        yield host


@pytest.mark.parametrize("what", ["count", "add", "close"])
@pytest.mark.parametrize("method", ["call", "ask"])
def test_a_call_from_the_hosts_own_thread_is_refused_and_does_not_wait_for_itself(host, method, what):
    s = host.spawn(Counter, "s")
    with pytest.raises(OwnThread, match="the host's own thread"):
        getattr(s, method)(what)
    assert s.add() == 1


def test_a_listener_that_calls_the_host_breaks_no_effect(host):
    s = host.spawn(Counter, "s")
    host.on_progress(lambda *_: s.add())
    here["nothing"] = lambda: "done"
    assert s.ask("nothing") == "done"
    assert s.count == 0


def test_what_contains_itself_is_refused_by_name_and_at_once(host):
    s = host.spawn(Counter, "s")
    items: list[Any] = []
    items += [items, items]
    with pytest.raises(NotAValue, match=r"^add\(\): argument 1.*list that contains itself"):
        s.add(items)
    named: dict[str, Any] = {}
    named["me"] = named["too"] = named
    with pytest.raises(NotAValue, match="dict that contains itself"):
        host.spawn(Counter, "t", count=named)
    assert s.add() == 1


def test_threads_that_call_when_the_host_ends_are_all_told(folder):
    host = blocking.open_host(folder, actors=[Counter])
    s = host.spawn(Counter, "s")
    done, told = [], []

    def call() -> None:
        try:
            while True:
                done.append(s.add())
        except NotRunning:
            told.append(1)

    threads = [threading.Thread(target=call, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(done) < 20:
        time.sleep(0.001)
    host.close()
    for thread in threads:
        thread.join(10)
    assert len(told) == len(threads)
    with blocking.open_host(folder, actors=[Counter]) as host:
        assert host.get("s").count >= len(done)


def test_ctrl_c_while_a_host_opens_ends_it(folder):
    begun = threading.Event()

    def slow(size: int) -> bytes:
        if not begun.is_set():
            begun.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return os.urandom(size)

    with pytest.raises(KeyboardInterrupt):
        blocking.open_host(folder, entropy=slow)
    assert "keeve host" not in [thread.name for thread in threading.enumerate()]
    blocking.open_host(folder).close()


@pytest.mark.parametrize("what", ["watch", "observe"])
def test_what_is_being_listened_to_in_a_thread_ends_when_the_host_does(folder, what):
    host = blocking.open_host(folder, actors=[Counter], devices={"d": Device()})
    here["nothing"] = lambda: "done"
    s = host.spawn(Counter, "s")
    listens = host.watch(s) if what == "watch" else host.observe("(threads.asked . _)", after="start", until=None)
    heard, one, ended = [], threading.Event(), threading.Event()

    def listen() -> None:
        for item in listens:
            heard.append(item)
            one.set()
        ended.set()

    thread = threading.Thread(target=listen)
    thread.start()
    s.ask("nothing")
    assert one.wait(10)
    host.close()
    thread.join(10)
    assert ended.is_set()
    assert heard


def test_what_has_come_to_a_watch_is_given_after_the_end_of_the_host(folder):
    here["nothing"] = lambda: "done"
    with blocking.open_host(folder, actors=[Counter], devices={"d": Device()}) as host:
        s = host.spawn(Counter, "s")
        watch = host.watch(s)
        s.ask("nothing")
    assert [piece.value for piece in watch] == ["at it"]
    watch.close()


def frames(error: BaseException) -> set[str]:
    """The files that the traceback goes through, and those of what was being handled then, if that is shown."""
    found = {Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)}
    if error.__context__ is not None and not error.__suppress_context__:
        found |= frames(error.__context__)
    return found


def test_an_error_has_the_frames_of_who_called_and_none_of_the_hosts_thread(host, folder, caplog):
    s = host.spawn(Counter, "s")

    @actor("threads.counter", version=2)
    class Newer(Counter):
        pass

    def fails() -> None:
        raise ValueError("mine")

    here["fails"] = fails
    short = {Path(__file__).name, "blocking.py", "host_thread.py"}
    caplog.set_level(logging.DEBUG, "keeve")
    asked = [lambda: host.spawn(Counter, "s"), lambda: s.call("fails"), lambda: host.spawn(Newer, "t")]
    unfit = [lambda: s.fork(turn=1), lambda: host.spawn(Counter, "t", nothing=1)]
    for ask in (*asked, *unfit, lambda: blocking.open_host(folder)):
        caplog.clear()
        with pytest.raises((KeeveError, ValueError)) as raised:
            ask()
        assert frames(raised.value) <= short
        assert any(
            " in _main" in record.exc_text or " in do" in record.exc_text
            for record in caplog.records
            if record.exc_text
        )
    host.close()
    with blocking.open_host(folder, actors=[Newer]) as newer:
        newer.get("s").add()
    with blocking.open_host(folder, actors=[Counter]) as older, pytest.raises(NewerVersion) as raised:
        older.get("s").add()
    assert frames(raised.value) <= short


class Broke(KeeveError):
    """Why what is open has ended."""


def test_who_calls_while_a_host_dies_is_told_in_our_words():
    """What is open may take a while to end after something in it has failed."""
    begin, ending, leave = threading.Event(), threading.Event(), threading.Event()

    async def breaks(kind: type[Exception]) -> None:
        await trio.to_thread.run_sync(begin.wait)
        raise kind("broke")

    @asynccontextmanager
    async def opens() -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(breaks, RuntimeError)
            nursery.start_soon(breaks, Broke)
            try:
                yield
            finally:
                with trio.CancelScope(shield=True):
                    ending.set()
                    await trio.to_thread.run_sync(leave.wait)

    opened: OtherThread[None] = OtherThread(opens, "here")
    begin.set()
    assert ending.wait(10)
    for _ in range(2):
        with pytest.raises(NotRunning):
            opened.do(trio.lowlevel.checkpoint)
    leave.set()
    with pytest.raises(Broke) as raised:
        opened.close()
    assert raised.value.__notes__ == [
        "2 errors have ended the host, this one among them; its log has all, at the level debug"
    ]


def test_what_has_ended_a_host_is_said_in_words_of_its_own():
    """Trio says of what went wrong beneath it that it is a bug of trio's, and an interrupt is not that of who asks."""
    inside = trio.TrioInternalError("please file a bug")
    inside.__cause__ = BaseExceptionGroup("", [KeyboardInterrupt("deep")])
    ended = _ended_by(inside)
    assert isinstance(ended, NotRunning)
    assert ended.__notes__ == ["it was ended by KeyboardInterrupt: deep"]
    assert isinstance(ended.__cause__, KeyboardInterrupt)
    inside.__cause__ = failure = ValueError("no")
    assert _ended_by(inside) is failure
