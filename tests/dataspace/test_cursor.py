"""A cursor is a place in one history of one log, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import World

from dataspace.errors import KeeveError
from dataspace.facts import fact
from dataspace.observe.cursor import BadCursor, Cursor, CursorAhead, CursorChanged, CursorOfAnotherLog, WrongCursor

cursors = st.builds(
    Cursor,
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**62),
    st.binary(min_size=32, max_size=32),
    st.none() | st.integers(0, 2**40),
)


@given(cursors)
def test_a_cursor_is_its_text(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor


@given(st.text() | cursors.map(lambda cursor: str(cursor)[:-1]) | cursors.map(lambda cursor: str(cursor) + "\n"))
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadCursor, match="is no cursor"):
        Cursor.parse(text)


def spoken_world() -> World:
    world = World()
    world.spawn("ada")
    for turn in range(5):
        world.say("ada", fact("turn", turn, "ada"))
    return world


def refusals(world: World, cursor: Cursor) -> list[KeeveError]:
    """What everything that takes a cursor says to this one, as a beginning and as an end."""
    space = world.space
    asks: list[Callable[[], object]] = [
        lambda: space.query("(turn . _)", after=cursor),
        lambda: space.observe("(turn . _)", after=cursor),
        lambda: space.query("(turn . _)", upto=cursor),
        lambda: space.observe("(turn . _)", until=cursor),
        lambda: space.facts("(turn . _)", at=cursor),
    ]
    found = []
    for ask in asks:
        with pytest.raises(WrongCursor) as caught:
            ask()
        found.append(caught.value)
    return found


def test_a_cursor_of_another_log_is_refused() -> None:
    """Invariant 33."""
    world = spoken_world()
    cursor = world.space.cursor._replace(log_id=b"another log of t")
    assert all(isinstance(error, CursorOfAnotherLog) for error in refusals(world, cursor))


def test_a_cursor_ahead_of_the_head_is_refused() -> None:
    """Invariant 33."""
    world = spoken_world()
    cursor = world.space.cursor._replace(position=99)
    assert all(isinstance(error, CursorAhead) and error.head == 7 for error in refusals(world, cursor))


@pytest.mark.parametrize("position", range(8))
def test_a_cursor_whose_record_is_another_now_is_refused(position: int) -> None:
    """Invariant 33."""
    world = spoken_world()
    cursor = Cursor(world.store.log_id, position, b"x" * 32)
    assert all(isinstance(error, CursorChanged) for error in refusals(world, cursor))


def test_a_cursor_that_fits_is_where_reading_goes_on() -> None:
    world = spoken_world()
    events = list(world.space.query("(turn . _)"))
    for at, event in enumerate(events):
        assert list(world.space.query("(turn . _)", after=Cursor.parse(str(event.cursor)))) == events[at + 1 :]
    assert list(world.space.query("(turn . _)", after=Cursor.start(world.store.log_id))) == events


def test_a_cursor_of_what_is_durable_and_not_noted_yet_is_looked_up_in_the_log() -> None:
    world = spoken_world()
    world.deaf = True
    first, second = world.append(*[world.seal(world.saying("ada", fact("note.a"))) for _ in range(2)])
    for record in (first, second):
        cursor = Cursor(world.store.log_id, record.position, record.hash)
        assert world.space.places.at(cursor) == cursor
        with pytest.raises(CursorChanged):
            world.space.places.at(cursor._replace(hash=b"x" * 32))
