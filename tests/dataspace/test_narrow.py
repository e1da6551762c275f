"""A narrowed reader sees what its limits leave, whatever it asks with, and can prove it."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import World

from dataspace.facts import fact
from dataspace.observe.dataspace import NoSuchSession, Reader
from dataspace.observe.events import Event, NotProven
from dataspace.patterns import BadPattern


def world_of_two() -> World:
    world = World()
    world.spawn("ada", "bob")
    for turn in range(1, 4):
        for id in ("ada", "bob"):
            world.say(
                id, fact("turn", turn, id, input="ask " * 100), fact("turn-done", turn, id, output=f"secret {turn}")
            )
    world.fork("ada", "eve", at=3)
    world.say("eve", fact("turn", 3, "eve", input="again"))
    return world


def seen(reader: Reader, pattern: str = "(_ . _)") -> list[str]:
    return [str(event.value) for event in reader.query(pattern)]


def test_a_reader_narrowed_to_a_session_sees_no_other() -> None:
    """Invariant 35."""
    world = world_of_two()
    reader = world.space.narrow(session="ada")
    assert {event.session for event in reader.query("(_ . _)")} == {"ada"}
    assert {held.session for held in reader.facts("(_ . _)")} == {"ada"}
    for session in ("bob", "nobody", world.uids["bob"]):
        with pytest.raises(NoSuchSession):
            reader.query("(_ . _)", session=session)
        with pytest.raises(NoSuchSession):
            reader.narrow(session=session)


def test_a_lineage_within_limits_is_what_both_allow() -> None:
    world = world_of_two()
    turns = "(turn ?n ?who . _)"
    whole = world.space.narrow(session="eve", lineage=True)
    assert len(list(whole.query(turns))) == 3
    assert len(list(whole.query(turns, session="ada"))) == 2
    assert len(list(world.space.narrow(session="eve").query(turns, session="eve", lineage=True))) == 1


def test_what_a_reader_may_not_see_it_cannot_ask_for() -> None:
    """Invariant 35: patterns are held against what is seen, so that they find out nothing about the rest."""
    reader = world_of_two().space.narrow(without=("output", "input"))
    assert seen(reader, '(turn-done 1 "ada" #:output "secret 1" . _)') == []
    assert seen(reader, '(turn-done 1 "ada" #:output _ . _)') == []
    assert seen(reader, '(turn-done 1 "ada")') == ['(turn-done 1 "ada")']


def test_a_text_is_no_list_of_keywords() -> None:
    """Invariant 35: it would be taken for its letters, and hide nothing."""
    with pytest.raises(BadPattern, match=r"give without=\['output'\]"):
        world_of_two().space.narrow(without="output")


def test_narrowing_only_adds_up() -> None:
    space = world_of_two().space
    reader = space.narrow(pattern="(turn-done . _)").narrow(pattern="(_ 2 . _)").narrow(without=["output"])
    assert seen(reader) == ['(turn-done 2 "ada")', '(turn-done 2 "bob")']
    assert seen(reader.narrow(session="bob")) == ['(turn-done 2 "bob")']
    assert seen(reader.narrow(pattern="(turn . _)")) == []
    assert seen(reader.narrow(pattern="(turn-done _ _ #:output _)")) == []
    assert len(seen(space.narrow(pattern="(turn-done _ _ #:output _)").narrow(without=["output"]))) == 6


limits = st.fixed_dictionaries(
    {},
    optional={
        "session": st.sampled_from(["ada", "bob", "eve"]),
        "lineage": st.booleans(),
        "pattern": st.sampled_from(["(turn . _)", '(_ _ "ada" . _)', "(_ 2 . _)", "(_ _ _ #:output _)"]),
        "without": st.sampled_from([("output",), ("input",), ("input", "output")]),
    },
)


@settings(max_examples=60)
@given(limits, limits, st.sampled_from(["(_ . _)", "(turn . _)", "(_ _ _)", "(_ _ _ #:output _ . _)"]))
def test_a_narrower_reader_sees_no_more_than_the_one_it_came_from(first: dict, second: dict, pattern: str) -> None:  # type: ignore[type-arg]  # of anything
    """Invariant 35."""
    reader = WORLD.space.narrow(**first)
    try:
        narrower = reader.narrow(**second)
    except NoSuchSession:
        return
    before = {(event.position, event.operation): event.value for event in reader.query("(_ . _)")}
    for event in narrower.query(pattern):
        whole = before[event.position, event.operation]
        assert (whole.label, whole.fields) == (event.value.label, event.value.fields)
        assert event.value.keywords.items() <= whole.keywords.items()


WORLD = world_of_two()


@pytest.mark.parametrize("pattern", ["(turn-done ?n _)", "(_ ?n . _)"])
async def test_a_reader_that_sees_less_of_a_fact_is_woken_all_the_same(pattern: str) -> None:
    world = world_of_two()
    reader = world.space.narrow(without=("output",))
    found: list[object] = []

    async def listen() -> None:
        async for item in reader.observe(pattern, after="head"):
            assert isinstance(item, Event)
            found.append(item.captures["n"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada", fact("turn-done", 4, "ada", output="secret 4"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert found == [4]


async def test_a_reader_of_a_finished_past_ends_and_is_never_woken() -> None:
    world = world_of_two()
    reader = world.space.narrow(session="eve", lineage=True)
    observation = reader.observe("(turn . _)", session="ada", until="head")
    assert len([event async for event in observation]) == 2
    live = reader.observe("(turn . _)", session="ada", after="head")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.__anext__)
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada", fact("turn", 4, "ada"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel()


# Proofs.


def test_an_event_is_proven_by_its_record() -> None:
    """Invariant 35: a narrowed stream still verifies."""
    world = world_of_two()
    for reader in (world.space, world.space.narrow(session="ada"), world.space.narrow(session="eve", lineage=True)):
        for event in reader.query("(_ . _)"):
            reader.proof(event).verify(event)


def test_an_event_that_was_changed_is_not_proven() -> None:
    world = world_of_two()
    event = next(iter(world.space.query("(turn-done . _)")))
    other = list(world.space.query("(turn-done . _)"))[1]
    proof = world.space.proof(event)
    assert proof.opened is not None
    cells = {number: data[:-1] + b"!" for number, data in proof.opened.cells.items()}
    for changed, changed_event in [
        (proof, attrs.evolve(event, value=fact("turn-done", 1, "ada", output="something else"))),
        (proof, attrs.evolve(event, kind="retract")),
        (proof, attrs.evolve(event, seq=9)),
        (proof, attrs.evolve(event, operation=5)),
        (proof, other),
        (attrs.evolve(proof, deeds=bytes(32)), event),
        (attrs.evolve(proof, opened=attrs.evolve(proof.opened, facts=b"")), event),
        (attrs.evolve(proof, opened=attrs.evolve(proof.opened, cells=cells)), event),
        (attrs.evolve(proof, opened=attrs.evolve(proof.opened, cells={})), next(iter(world.space.query("(turn . _)")))),
    ]:
        with pytest.raises(NotProven):
            changed.verify(changed_event)


def test_a_reader_with_limits_on_facts_proves_headers_and_opens_nothing() -> None:
    world = world_of_two()
    reader = world.space.narrow(pattern="(turn-done . _)", without=("output",))
    event = next(iter(reader.query("(_ . _)")))
    proof = reader.proof(event)
    proof.verify(event)
    assert proof.opened is None
    with pytest.raises(NotProven):
        proof.verify(attrs.evolve(event, hash=bytes(32)))


def test_a_reader_gets_no_proof_of_what_it_may_not_see() -> None:
    world = world_of_two()
    (event, *_) = world.space.query("(_ . _)", session="bob")
    with pytest.raises(NotProven):
        world.space.narrow(session="ada").proof(event)
