"""`keeve.blocking` has all that the trio host has, by the same names and with the same parameters."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataspace.observe import dataspace
from keeve import Session, blocking, pattern
from keeve.errors import NoSuchSession, NotRunning, ObserverFailed
from vat.host import host as trio_host
from vat.host import observers

PAIRS = [
    (trio_host.Host, blocking.Host),
    (dataspace.Reader, blocking.Reader),
    (observers.Observer, blocking.Observer),
]


@pytest.fixture
def host(store_folder: Path) -> Iterator[blocking.Host]:
    with blocking.open_host(store_folder / "s") as host:
        yield host


def public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_what_is_public_in_one_is_public_in_both(theirs: type, ours: type) -> None:
    beside = {"close"} if ours is blocking.Host else {"failure"} if ours is blocking.Observer else set()
    away = {"run"} if ours is blocking.Observer else set()
    assert public(ours).keys() - beside == public(theirs).keys() - away


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_a_method_takes_the_same_in_both(theirs: type, ours: type) -> None:
    for name in public(theirs).keys() & public(ours).keys():
        one, other = getattr(theirs, name), getattr(ours, name)
        if inspect.isfunction(one):
            assert _takes(one) == _takes(other), name


def _takes(function: Any) -> set[str]:
    """The parameters by name, those of a `**how` among them."""
    signature = inspect.signature(function, eval_str=True)
    names = {name for name in signature.parameters if name != "how"}
    if "how" in signature.parameters:
        (how,) = signature.parameters["how"].annotation.__args__
        names |= how.__annotations__.keys()
    return names


def test_queries_come_whole_and_in_order(host: blocking.Host) -> None:
    s = host.spawn(Session, "s1")
    for number in range(100):
        s.turn(f"turn {number}")
    found = [event.value.fields[0] for event in host.query('(turn ? "s1" . _)')]
    assert found == list(range(1, 101))
    assert [event.captures["n"] for event in host.observe('(turn ?n "s1" . _)')] == found
    assert [event.seq for event in host.query("(turn . _)", after=50, upto=60)] == [
        event.seq for event in host.query("(turn . _)") if 50 < event.position <= 60
    ]


def test_a_reader_is_narrowed_and_reads(host: blocking.Host) -> None:
    host.spawn(Session, "s1").turn("hello")
    host.spawn(Session, "s2").turn("secret")
    reader = host.reader().narrow(session="s1").narrow(pattern="(turn . _)", without=["by"])
    [event] = reader.query("(_ . _)")
    assert (event.session, event.value.label, "by" in event.value.keywords) == ("s1", "turn", False)
    assert list(reader.observe("(_ . _)")) == [event]
    assert [held.session for held in reader.facts("(turn . _)")] == ["s1"]
    with pytest.raises(NoSuchSession):
        reader.query("(_ . _)", session="s2")
    heard: list[Any] = []
    reader.observe_with(pattern("turn", ...), heard.append, until="head")
    assert heard == [event]
    assert reader.proof(event).header.seq == event.seq


def test_a_reader_whose_handler_raises_says_where_to_go_on(host: blocking.Host) -> None:
    host.spawn(Session, "s1").turn("hello")
    seen: list[Any] = []

    def handler(event: Any) -> None:
        if seen:
            raise ValueError("no more")
        seen.append(event)

    with pytest.raises(ObserverFailed) as failed:
        host.reader().observe_with("(_ . _)", handler, until="head")
    assert failed.value.cursor == seen[0].cursor


def test_a_handler_is_called_beside_the_host_and_may_call_it(host: blocking.Host) -> None:
    s = host.spawn(Session, "s1")
    heard: list[Any] = []
    all_of_it = threading.Event()

    def handler(event: Any) -> None:
        heard.append((event.value.keywords["input"], len(host.get("s1").history), threading.current_thread()))
        if len(heard) == 2:
            all_of_it.set()

    observer = host.observe("(turn . _)", handler)
    s.turn("one")
    s.turn("two")
    assert all_of_it.wait(10)
    observer.cancel()
    observer.wait()
    assert observer.failure is None
    assert [input for input, _, _ in heard] == ["one", "two"]
    assert all(number >= 1 and thread.name != "keeve host" for _, number, thread in heard)


def test_a_handler_that_raises_stops_its_observer_alone(host: blocking.Host) -> None:
    """Invariant 32: an observer that raises stops at a known cursor."""
    s = host.spawn(Session, "s1")

    def handler(event: Any) -> None:
        raise ValueError("no")

    observer = host.observe("(turn . _)", handler)
    assert s.turn("one") == "one"
    with pytest.raises(ObserverFailed):
        observer.wait()
    assert isinstance(observer.failure, ObserverFailed)
    assert s.turn("two") == "two"


def test_the_end_of_a_host_waits_for_no_handler(store_folder: Path) -> None:
    """Also not for one that waits for the host."""
    at_it, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    with blocking.open_host(store_folder / "s") as host:

        def handler(event: Any) -> None:
            at_it.set()
            go_on.wait(10)
            try:
                host.get("s1")
            except NotRunning:
                ended.set()

        host.observe("(turn . _)", handler)
        host.spawn(Session, "s1").turn("one")
        assert at_it.wait(10)
    go_on.set()
    assert ended.wait(10)


def test_verifying_tells_how_far_it_is(host: blocking.Host) -> None:
    host.spawn(Session, "s1").turn("hello")
    told: list[str] = []
    report = host.verify(lambda look, done, total: told.append(look))
    assert report.sound
    assert report.counts.records >= 3
    assert {"snapshots", "catalog"} <= set(told) <= {"log", "snapshots", "catalog"}


def test_another_principal_asks_through_the_same_host(host: blocking.Host) -> None:
    ann = host.asking("ann", "web")
    s = ann.spawn(Session, "s1")
    s.turn("hello")
    [event] = host.query("(turn . _)")
    assert (event.value.keywords["by"], event.value.keywords["via"]) == ("ann", "web")
    assert host.get("s1") == s
    ann.close()
    with pytest.raises(NotRunning):
        host.get("s1")


def test_who_counts_facts_is_told_them_until_it_ends_that(tmp_path):
    with blocking.open_host(tmp_path / "store") as host:
        s = host.spawn(Session, "s1")
        heard: list[Any] = []
        end = host.on_fact(["turn-done"], heard.append)
        s.turn("hello")
        end()
        s.turn("again")
        assert [fact.keywords["output"] for fact in heard] == ["hello"]
