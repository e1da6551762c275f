"""`keeve.blocking`: what is known of a ref is said at once, and not by a call that nobody makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from keeve import Actor, List, Ref, Session, actor, blocking, open_host
from keeve.errors import Deleted, NoSuchMethod, NotAssignable, Refused, Revoked, UnknownActorType


@actor("test.box", version=1)
class Box(Actor):
    """Holds something."""

    held: str = ""

    def put(self, what: str) -> Ref:
        self.held = what
        return self.ref


@pytest.fixture
def host(store_folder: Path) -> Iterator[Any]:
    with blocking.open_host(store_folder / "s", actors=[Box]) as host:
        yield host


@pytest.mark.parametrize("name", ["histroy", "begin", "Turn"])
def test_a_name_that_an_actor_does_not_have_is_refused_where_it_is_read(host: Any, name: str) -> None:
    s = host.spawn(Session, "s1")
    with pytest.raises(NoSuchMethod, match=f"keeve.session has no method or public field '{name}'; it has .*history"):
        getattr(s, name)
    assert not hasattr(host.spawn(Box, "b1").put("x"), name)


def test_all_that_a_ref_has_can_be_reached_and_is_listed(host: Any) -> None:
    s = host.spawn(Session, "s1")
    assert s.turn("hello") == "hello"
    assert (s.history, s.describe()["id"]) == (["hello"], "s1")
    assert s.fork(into="s2").history == ["hello"]
    assert s.snapshot().session == "s1"
    guest = s.narrow("history")
    s.revoke(guest)
    assert {"turn", "history", "fork", "narrow"} <= set(dir(s))
    assert "_begin" not in dir(s)


def test_an_assignment_is_refused_with_the_method_that_does_it(host: Any) -> None:
    s, box = host.spawn(Session, "s1"), host.spawn(Box, "b1")
    with pytest.raises(NotAssignable, match=r"call configure\(max_steps=\.\.\.\)"):
        s.max_steps = 4
    with pytest.raises(NotAssignable, match=r"'held' cannot be assigned through a ref: .* call put$"):
        box.held = "x"
    assert (s.max_steps, box.held) == (100, "")


async def test_an_assignment_through_a_ref_of_trio_is_refused(store_folder: Path) -> None:
    async with open_host(store_folder / "s") as host:
        s: Any = await host.spawn(Session, "s1")
        with pytest.raises(NotAssignable, match="changed by its methods"):
            s.max_steps = 4
        await trio.lowlevel.checkpoint()


@actor("test.shelf", version=1)
class Shelf(Actor):
    """Holds refs to others."""

    kept: List[Ref]

    def put(self, ref: Ref) -> None:
        self.kept.append(ref)


def test_a_ref_to_what_is_gone_or_unknown_can_be_had_and_says_so_when_it_is_used(store_folder: Path) -> None:
    with blocking.open_host(store_folder / "s", actors=[Box, Shelf]) as host:
        shelf, box = host.spawn(Shelf, "shelf"), host.spawn(Box, "box")
        shelf.put(box)
        host.delete("box")
        [gone] = shelf.kept
        assert gone == box
        assert "put" not in dir(gone)
        with pytest.raises(NotAssignable):
            gone.held = "x"
        with pytest.raises(Deleted):
            gone.put("x")
    with blocking.open_host(store_folder / "s", actors=[Box]) as host:
        [listed] = host.directory.list()
        with pytest.raises(UnknownActorType, match=r"test\.shelf"):
            listed["ref"].put(listed["ref"])


def test_a_ref_can_be_narrowed_again(host: Any) -> None:
    once = host.spawn(Session, "s1").narrow("turn", "history", "narrow")
    twice = once.narrow("history")
    assert twice.history == []
    with pytest.raises(Refused, match="does not reach 'turn'"):
        twice.turn("hello")
    once.revoke(twice)
    with pytest.raises(Revoked):
        twice.history  # noqa: B018  # a field is read
