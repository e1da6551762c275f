"""Previews in a stream of facts: what a model is saying, for who begins to look in the middle of it."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from keeve import Actor, Session, actor
from keeve.server import Principal, heard
from keeve.server.api import dataspace
from keeve.server.api.previews import Previews
from keeve.server.streams import as_event
from tests.keeve.server.test_api_dataspace import ANN, Stream, reading
from tests.keeve.server.test_api_turns import events_of
from tests.keeve.server.test_own_agents import Agent
from tests.openai_clients import Streams
from tests.server_worlds import world


@actor("previews.quiet", version=1)
class Quiet(Actor):
    """It counts, and states nothing."""

    counted: int = 0

    def count(self) -> None:
        self.counted += 1


async def test_who_looks_in_the_middle_of_an_answer_is_told_what_has_come_and_then_the_rest_of_it() -> None:
    middle = trio.Event()
    async with world(devices={"model": Streams(["on", "e ", middle, "two"], ["three"])}) as w:
        s = await w.host.asking("ann").spawn(Session, "s")
        w.serving.nursery.start_soon(s.turn, "hello")
        await w.settled()
        told: list[Any] = []

        async def read(stream: Stream) -> None:
            async for body in stream.out:
                for event, id, data in events_of(body.decode()):
                    if event == "piece":
                        told.append((data["text"], data["so_far"]))
                        assert id == ""
                        middle.set()
                    elif event == "" and data["label"].startswith(("turn", "model")):
                        told.append(data["label"])
                        if told.count("turn-done") == 2:
                            return
                        if data["label"] == "turn-done":
                            w.serving.nursery.start_soon(s.turn, "again")

        await reading(w, ANN, "session=s&pieces=true&pattern=(_+%3Fn+.+_)", read)
        assert told[:5] == ["turn", ("one ", True), ("two", False), "model-output", "turn-done"]
        assert told[5:] == ["turn", ("three", False), "model-output", "turn-done"]


async def test_what_was_said_so_far_is_made_once_for_all_who_begin_to_look_before_more_is_said() -> None:
    middle = trio.Event()
    async with world(devices={"model": Streams(["on", "e ", middle, "two", trio.Event()])}) as w:
        s = await w.host.asking("ann").spawn(Session, "s")
        w.serving.nursery.start_soon(s.turn, "hello")
        await w.settled()

        def joins() -> Any:
            with closing(Previews(w.serving, "s")) as previews:
                [sent] = previews.upto(w.host.row("s").position)
                return sent

        first, second = joins(), joins()
        assert (first.data["text"], first.framed) == ("one ", as_event(second))
        assert first.framed is second.framed
        middle.set()
        await w.settled()
        assert joins().data["text"] == "one two"


async def test_of_an_agent_of_ones_own_it_is_said_that_the_beginning_was_missed() -> None:
    middle = trio.Event()
    devices = {"model": Streams(["one ", middle, "two ", "three"], ["four"])}
    async with world(devices=devices, actors=[Agent]) as w:
        agent = await w.host.asking("ann").spawn(Agent, "s")
        w.serving.nursery.start_soon(agent.turn, "hello")
        await w.settled()
        told: list[Any] = []

        async def read(stream: Stream) -> None:
            async for body in stream.out:
                for event, _, data in events_of(body.decode()):
                    if event == "caught-up" and not middle.is_set():
                        middle.set()
                    if event == "piece":
                        told.append((data["text"], data["missed"]))
                        if data["text"] == "three":
                            w.serving.nursery.start_soon(agent.turn, "again")
                        if data["text"] == "four":
                            return

        await reading(w, ANN, "session=s&pieces=true&pattern=(_+%3Fn+.+_)", read)
        assert told == [("two ", 1), ("three", 0), ("four", 0)]


@pytest.mark.parametrize(
    ("kept", "said"), [(2, [("one two ", 0), ("three", 0), ("four", 0)]), (1, [("three", 1), ("four", 0)])]
)
async def test_of_an_answer_of_which_not_all_was_kept_it_is_said_that_the_beginning_was_missed(
    monkeypatch: pytest.MonkeyPatch, kept: int, said: list[Any]
) -> None:
    middle = trio.Event()
    async with world(devices={"model": Streams(["one ", "two ", middle, "three", "four"])}) as w:
        s = await w.host.spawn(Session, "s")
        monkeypatch.setattr(heard, "PIECES", kept)
        w.serving.nursery.start_soon(s.turn, "hello")
        await w.settled()
        previews = Previews(w.serving, "s")
        middle.set()
        await w.settled()
        told: list[Any] = [sent.data for sent in previews.upto(1 << 60)]
        assert [(each["text"], each["missed"]) for each in told] == said
        previews.close()


async def test_how_far_a_session_is_is_told_at_once_and_after_each_record_also_of_one_that_states_nothing() -> None:
    async with world(actors=[Quiet]) as w:
        quiet, other = [await w.host.asking("ann").spawn(Quiet, id) for id in ("s", "t")]

        async def read(stream: Stream) -> None:
            told: list[Any] = []

            async def gather() -> None:
                async for body in stream.out:
                    told.extend((event, data["seq"]) for event, _, data in events_of(body.decode()) if event == "head")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(gather)
                for count in (quiet.count, other.count, quiet.count):
                    await w.settled()
                    await count()
                await w.settled()
                nursery.cancel_scope.cancel()
            assert told == [("head", 1), ("head", 2), ("head", 3)]

        await reading(w, ANN, "session=s&head=true&after=head", read)


async def test_pieces_and_the_head_are_told_of_one_session_that_is_reached() -> None:
    async with world() as w:
        await w.host.asking("bob").spawn(Session, "s")
        headers = {"accept": "text/event-stream"}
        for what in ("pieces", "head"):
            answer = await w.ann.get(f"/api/v1/dataspace?{what}=true", headers=headers)
            assert (answer.status_code, answer.json()["error"]["param"]) == (422, what)
            answer = await w.ann.get(f"/api/v1/dataspace?{what}=true&session=s", headers=headers)
            assert answer.status_code == 404
        for form in ("application/json", "application/x-ndjson"):  # these have no pieces, whatever is asked for
            path = "/api/v1/dataspace?pieces=true&until=head"
            assert (await w.ann.get(path, headers={"accept": form})).status_code == 200


async def test_who_never_comes_to_be_told_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(dataspace, "Previews", lambda *given: made.append(given))
    async with world() as w:
        request = SimpleNamespace(state=SimpleNamespace(principal=Principal("ann")))
        asked: Any = SimpleNamespace(serving=w.serving, request=request, query=SimpleNamespace(session="s"))
        dataspace.Telling(asked, w.host.observe("(_ . _)"), marks=True, pieces=True)
    assert made == []
