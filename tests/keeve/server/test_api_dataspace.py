"""The dataspace over HTTP: pages, lines and events; past and live without a gap; and nothing of what others state."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest
import trio

from keeve import Session
from keeve.looking import parts
from tests.keeve.server.test_api_turns import events_of
from tests.server_worlds import World, world

API = "/api/v1"


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def said(w: World, by: str, id: str, *texts: str) -> None:
    s = await w.host.asking(by, "http").spawn(Session, id)
    for text in texts:
        await s.turn(text)


class Stream:
    """A stream of the application itself, read as it comes: what the client's transport would gather first."""

    def __init__(self, w: World, token: str, path: str, accept: str, **headers: str) -> None:
        self._app = w.app
        path, _, query = path.partition("?")
        given = {"host": "127.0.0.1:8420", "authorization": f"Bearer {token}", "accept": accept, **headers}
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8420),
        }
        self._into, self.out = trio.open_memory_channel[bytes](0)
        self.gone = trio.Event()

    async def run(self) -> None:
        async def receive() -> Any:
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message.get("body"):
                await self._into.send(message["body"])

        async with self._into:
            await self._app(self._scope, receive, send)


async def reading(
    w: World,
    token: str,
    query: str,
    read: Callable[[Stream], Awaitable[None]],
    accept: str = "text/event-stream",
    **h: str,
) -> None:
    stream = Stream(w, token, f"{API}/dataspace?{query}", accept, **h)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.run)
        await read(stream)
        stream.gone.set()


OWNER, ANN = "owner-token-0123456789", "ann-token-0123456789"


async def test_events_come_in_pages_behind_a_cursor() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one", "two", "three")
        query = {"pattern": "(turn ?n . _)", "limit": 2}
        page = (await w.ann.get(f"{API}/dataspace", params=query)).json()
        assert ([each["captures"]["n"] for each in page["events"]], page["more"]) == ([1, 2], True)
        page = (await w.ann.get(f"{API}/dataspace", params={**query, "after": page["cursor"]})).json()
        assert ([each["captures"]["n"] for each in page["events"]], page["more"]) == ([3], False)
        page = (await w.ann.get(f"{API}/dataspace", params={**query, "after": page["cursor"]})).json()
        assert page["events"] == []


async def test_past_and_live_are_one_stream() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one")

        async def read(stream: Stream) -> None:
            told = []
            async for body in stream.out:
                for event, id, data in events_of(body.decode()):
                    told.append((event, data.get("captures", {}).get("n")))
                    assert id == data["cursor"]
                if told[-1] == ("caught-up", None) and len(told) == 2:
                    w.serving.nursery.start_soon((await w.host.get("s")).turn, "two")
                if told[-1][1] == 2:
                    break
            assert [each for each in told if each[1]] == [("", 1), ("", 2)]

        await reading(w, ANN, "pattern=(turn+%3Fn+.+_)", read)


async def test_a_stream_says_that_it_is_caught_up_once_until_it_has_told_something_more() -> None:
    async with world() as w:
        s, other = await w.host.asking("ann").spawn(Session, "s"), await w.host.asking("bob").spawn(Session, "other")

        async def read(stream: Stream) -> None:
            kinds: list[str] = []

            async def gather() -> None:
                async for body in stream.out:
                    kinds.extend(event for event, _, _ in events_of(body.decode()))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(gather)
                for turn in (other.turn, other.turn, s.turn, other.turn):
                    await turn("one")
                    await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            assert kinds == ["caught-up", "", "caught-up"]

        await reading(w, ANN, "pattern=(turn+%3Fn+.+_)", read)


async def test_without_a_pattern_all_is_told() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one")
        for path in ("dataspace", "facts"):
            some = (await w.ann.get(f"{API}/{path}", params={"pattern": "(_ . _)"})).json()
            assert (await w.ann.get(f"{API}/{path}")).json() == some


async def test_a_stream_goes_on_behind_the_last_event_id() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one", "two")
        [first, _] = list(w.host.query("(turn . _)"))

        async def read(stream: Stream) -> None:
            [(_, _, data)] = events_of((await stream.out.receive()).decode())
            assert data["captures"] == {"n": 2}

        for place in (str(first.cursor), str(first.position)):  # as `after` takes them
            await reading(w, ANN, "pattern=(turn+%3Fn+.+_)", read, **{"last-event-id": place})
        for place, why in (("nonsense", (422, "bad_cursor")), ("99999", (409, "cursor_ahead"))):
            refused = await w.ann.get(f"{API}/dataspace", headers={"last-event-id": place})
            assert code(refused) == why


async def test_lines_of_json_end_where_they_are_to() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one", "two")
        query = {"pattern": "(turn ?n . _)", "until": "head"}
        answer = await w.ann.get(f"{API}/dataspace", params=query, headers={"accept": "application/x-ndjson"})
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert [json.loads(line)["captures"]["n"] for line in answer.text.splitlines()] == [1, 2]


async def test_a_stream_is_told_that_the_server_stops() -> None:
    async with world() as w:

        async def read(stream: Stream) -> None:
            assert events_of((await stream.out.receive()).decode())[0][0] == "caught-up"
            w.serving.stopping.set()
            assert events_of((await stream.out.receive()).decode())[0][0] == "stopping"
            with pytest.raises(trio.EndOfChannel):
                await stream.out.receive()

        await reading(w, OWNER, "", read)


async def test_a_quiet_stream_says_something_now_and_then(autojump_clock: trio.testing.MockClock) -> None:
    async with world() as w:

        async def read(stream: Stream) -> None:
            await stream.out.receive()
            assert (await stream.out.receive()).startswith(b":")

        await reading(w, OWNER, "", read)


async def test_who_reads_slowly_holds_back_nobody() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one")

        async def read(stream: Stream) -> None:
            s = await w.host.get("s")
            for n in range(20):
                await s.turn(str(n))
            numbers = []
            async for body in stream.out:
                numbers += [data["captures"]["n"] for _, _, data in events_of(body.decode()) if "captures" in data]
                if len(numbers) == 21:
                    break
            assert numbers == list(range(1, 22))

        await reading(w, ANN, "pattern=(turn+%3Fn+.+_)", read)


async def test_a_principal_sees_what_its_own_sessions_state() -> None:
    async with world() as w:
        await said(w, "ann", "hers", "ann's words")
        await said(w, "bob", "his", "bob's words")
        for path in ("dataspace", "facts"):
            both = await w.owner.get(f"{API}/{path}", params={"limit": 1000})
            assert "ann's words" in both.text
            assert "bob's words" in both.text
            one = await w.bob.get(f"{API}/{path}", params={"limit": 1000})
            assert "ann" not in one.text
            assert "bob's words" in one.text
            hers = await w.bob.get(f"{API}/{path}", params={"session": "hers"})
            assert code(hers) == (404, "no_such_session")
        lines = await w.bob.get(
            f"{API}/dataspace", params={"until": "head"}, headers={"accept": "application/x-ndjson"}
        )
        assert {json.loads(line)["session"] for line in lines.text.splitlines()} == {"his"}


async def test_what_holds_can_be_asked_for_as_it_was() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one", "two")
        [first, _] = list(w.host.query("(turn . _)"))
        query = {"pattern": "(turn . _)", "at": first.position}
        assert [fact["fields"][0] for fact in (await w.ann.get(f"{API}/facts", params=query)).json()["facts"]] == [1]


async def test_a_lineage_has_what_came_before_the_fork() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one")
        await (await w.host.asking("ann").get("s")).fork(into="t")
        query = {"pattern": "(turn . _)", "session": "t"}
        assert (await w.ann.get(f"{API}/dataspace", params=query)).json()["events"] == []
        page = (await w.ann.get(f"{API}/dataspace", params={**query, "lineage": "true"})).json()
        assert [each["session"] for each in page["events"]] == ["s"]


@pytest.mark.parametrize(
    ("query", "status", "refused"),
    [
        ({"pattern": "(turn"}, 422, "bad_pattern"),
        ({"after": "nonsense"}, 422, "bad_cursor"),
        ({"after": "999999"}, 409, "cursor_ahead"),
        ({"after": f"{'f' * 32}:1:{'0' * 64}"}, 409, "cursor_of_another_log"),
        ({"limit": "0"}, 422, "bad_query"),
        ({"limit": "many"}, 422, "bad_query"),
        ({"colour": "red"}, 422, "bad_query"),
        ({"session": "nobody"}, 404, "no_such_session"),
    ],
)
async def test_what_cannot_be_read_is_refused_before_anything_is_told(query: Any, status: int, refused: str) -> None:
    async with world() as w:
        for accept in ("application/json", "text/event-stream", "application/x-ndjson"):
            answer = await w.owner.get(f"{API}/dataspace", params=query, headers={"accept": accept})
            assert code(answer) == (status, refused)


async def test_what_holds_comes_in_pages_at_one_position() -> None:
    async with world() as w:
        await said(w, "ann", "s", "one", "two")
        await said(w, "bob", "t", "other")
        query: dict[str, Any] = {"pattern": "(turn ?n . _)", "limit": 1}
        first = (await w.ann.get(f"{API}/facts", params=query)).json()
        assert ([each["captures"]["n"] for each in first["facts"]], first["more"]) == ([1], True)
        await said(w, "ann", "u", "later")
        query = {**query, "at": first["at"], "after": first["next"]}
        page = (await w.ann.get(f"{API}/facts", params=query)).json()
        assert ([each["captures"]["n"] for each in page["facts"]], page["more"], page["next"]) == ([2], False, None)
        answer = await w.ann.get(f"{API}/facts", params={**query, "after": "nonsense"})
        assert code(answer) == (422, "bad_cursor")


@pytest.mark.parametrize(("path", "told"), [("dataspace", "events"), ("facts", "facts")])
async def test_a_page_ends_where_it_has_many_bytes_or_has_looked_at_much(
    path: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world() as w:
        await said(w, "ann", "s", *("x" * 400 for _ in range(4)))
        await said(w, "bob", "t", *("y" for _ in range(4)))
        query = {"pattern": "(turn . _)", "limit": 100, "until": "head"}
        query = {name: value for name, value in query.items() if path == "dataspace" or name != "until"}
        monkeypatch.setattr(parts, "ROOM", 700)
        pages = [page async for page in all_pages(w.ann, path, query)]
        assert [len(page[told]) for page in pages] == [2, 2]
        monkeypatch.setattr(parts, "LOOKED_AT", 3)
        pages = [page async for page in all_pages(w.bob, path, query)]
        assert [len(page[told]) for page in pages if page[told]] == [2, 2]
        assert len(pages) == 3


async def all_pages(client: httpx2.AsyncClient, path: str, query: dict[str, Any]) -> AsyncIterator[Any]:
    while True:
        page = (await client.get(f"{API}/{path}", params=query)).json()
        yield page
        if not page["more"]:
            return
        query = {**query, "after": page["next"] if path == "facts" else page["cursor"]}
