"""What a type checker knows of the front door: checked by mypy, never run (see `test_typing.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, assert_type

from dataspace.observe.events import Held, Unreadable
from dataspace.observe.observation import Observation
from keeve import CaughtUp, EffectStatus, Event, Host, HostRef, Session, SessionRow, Snapshot, blocking, open_host
from vat.host.observers import Observer
from vat.host.outside import Member
from vat.host.reports import Report


async def with_trio() -> None:
    """The host of trio."""
    async with open_host("./data") as host:
        assert_type(host, Host)
        s = await host.spawn(Session, "s1")
        assert_type(s, HostRef[Session])
        assert_type(await host.get("s1"), HostRef[Any])
        # Here Python's typing ends: a ref is not the actor, and its methods give what they give.
        assert_type(s.turn, Member)
        assert_type(await s.turn("hello"), Any)
        assert_type(await s.history, Any)
        async for event in host.observe("(turn . _)", after="start", until="head"):
            assert_type(event, Event)
        async for item in host.observe("(turn . _)", marks=True):
            assert_type(item, Event | CaughtUp | Unreadable)
        assert_type(host.observe("(turn . _)"), Observation[Event])
        assert_type(host.observe("(turn . _)", print, after=3), Observer)
        assert_type(host.query("(turn . _)", session="s1"), Iterator[Event])
        assert_type(host.facts("(turn . _)", at=3), list[Held])
        assert_type(host.sessions(), list[SessionRow])
        assert_type(host.effects(), list[EffectStatus])
        assert_type(await host.verify(), Report)
        assert_type(await host.restore(Snapshot("s1", 1, "", "")), HostRef[Any])
        assert_type(host.on_progress(lambda piece: print(piece.text)), Callable[[], None])
        await host.spawn(int)  # type: ignore[type-var]  # no actor type
        host.observe("(turn . _)", print, marks=True)  # type: ignore[call-overload]  # handlers get events alone
        host.observe("(turn . _)", untill="head")  # type: ignore[call-overload]  # a slip


def without_await() -> None:
    """The same of `keeve.blocking`."""
    with blocking.open_host("./data") as host:
        assert_type(host, blocking.Host)
        s = host.spawn(Session, "s1")
        assert_type(s, blocking.BlockingRef[Session])
        assert_type(s.turn("hello"), Any)
        assert_type(s.history, Any)
        for event in host.observe("(turn . _)"):
            assert_type(event, Event)
        for item in host.observe("(turn . _)", marks=True, until=None):
            assert_type(item, Event | CaughtUp | Unreadable)
        assert_type(host.observe("(turn . _)", print), blocking.Observer)
        assert_type(host.query("(turn . _)"), Iterator[Event])
        assert_type(host.facts("(turn . _)"), list[Held])
        assert_type(host.reader().narrow(session="s1"), blocking.Reader)
        assert_type(host.asking("ann"), blocking.Host)
        assert_type(host.verify(), Report)
        host.spawn(int)  # type: ignore[type-var]  # no actor type
