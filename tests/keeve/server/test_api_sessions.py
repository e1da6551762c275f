"""Sessions over HTTP: made, listed by pages, shown, forked, snapshotted, deleted; and those of others."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from dataspace.log.memory import MemoryStore
from keeve import Session, Settings
from keeve.server import ServerSettings
from tests.server_worlds import world
from tests.vat.hosts import catalog_of

API = "/api/v1/sessions"


async def made(client: httpx2.AsyncClient, id: str | None = None, **body: Any) -> dict[str, Any]:
    answer = await client.post(API, json={"id": id, **body})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_session_is_made_and_shown() -> None:
    async with world() as w:
        answer = await w.ann.post(API, json={"id": "s 1/x", "fields": {"system": "Be brief."}})
        assert answer.headers["location"] == f"{API}/s%201%2Fx"
        shown = (await w.ann.get(answer.headers["location"])).json()
        assert (shown["id"], shown["type"], shown["seq"]) == ("s 1/x", "keeve.session", 1)
        assert shown["status"] == {"accepted": 0, "over": 0, "running": None, "limit": None, "stated": True}
        assert w.host.made_by("s 1/x") == ("ann", "http")


async def test_an_id_is_made_where_none_is_given() -> None:
    async with world() as w:
        assert (await made(w.ann))["id"].startswith("s-")


async def test_the_same_key_makes_one_session() -> None:
    async with world() as w:
        key = {"idempotency-key": "k1"}
        one = await w.ann.post(API, json={}, headers=key)
        other = await w.ann.post(API, json={}, headers=key)
        assert one.json() == other.json()
        assert code(await w.ann.post(API, json={"id": "x"}, headers=key)) == (409, "request_conflict")


async def test_what_cannot_be_made_is_refused_with_its_reason() -> None:
    async with world() as w:
        await made(w.ann, "taken")
        assert code(await w.ann.post(API, json={"id": "taken"})) == (409, "id_in_use")
        assert code(await w.ann.post(API, json={"id": "a\nb"})) == (422, "bad_session_id")
        assert code(await w.ann.post(API, json={"type": "no.such"})) == (422, "unknown_actor_type")
        assert code(await w.ann.post(API, json={"fields": {"colour": 1}})) == (422, "bad_fields")
        assert code(await w.ann.post(API, json={"fields": {"max_steps": 0}})) == (422, "bad_setting")
        assert code(await w.ann.post(API, json={"nonsense": 1})) == (422, "bad_body")
        assert code(await w.ann.post(API, json={"fields": {"system": {"$what": 1}}})) == (422, "not_a_value")
        assert code(await w.ann.post(API, content=b"{", headers={"content-type": "application/json"})) == (
            400,
            "not_json",
        )
        assert code(await w.ann.post(API, content=b"{}", headers={"content-type": "text/plain"})) == (415, "not_json")


async def test_the_list_comes_in_pages_by_prefix() -> None:
    async with world() as w:
        for n in range(5):
            await made(w.owner, f"a-{n}")
        await made(w.owner, "b")
        one = (await w.owner.get(API, params={"prefix": "a-", "limit": 2})).json()
        assert ([each["id"] for each in one["sessions"]], one["next"]) == (["a-0", "a-1"], "a-1")
        last = (await w.owner.get(API, params={"prefix": "a-", "limit": 3, "after": "a-1"})).json()
        assert ([each["id"] for each in last["sessions"]], last["next"]) == (["a-2", "a-3", "a-4"], None)


async def test_a_principal_lists_its_own_sessions_and_the_owner_all() -> None:
    async with world() as w:
        await made(w.ann, "a")
        await made(w.bob, "b")
        for client, ids in ((w.ann, ["a"]), (w.bob, ["b"]), (w.owner, ["a", "b"])):
            assert [each["id"] for each in (await client.get(API)).json()["sessions"]] == ids


REACHES = [
    ("GET", "", None),
    ("DELETE", "", None),
    ("GET", "/turns", None),
    ("GET", "/messages", None),
    ("POST", "/turn", {"input": "hello"}),
    ("POST", "/queue", {"input": "hello"}),
    ("POST", "/steer", {"input": "hello"}),
    ("POST", "/interrupt", {}),
    ("POST", "/snapshot", None),
    ("POST", "/fork", {}),
    ("GET", "/approvals", None),
    ("POST", "/approvals/c1", {"approve": True}),
    ("GET", "/effects", None),
    ("POST", "/effects/e1/resolve", {"value": 1}),
    ("GET", "/receipts/1", None),
]


@pytest.mark.parametrize(("method", "path", "body"), REACHES)
async def test_a_session_of_somebody_else_is_not_there(method: str, path: str, body: Any) -> None:
    async with world() as w:
        await made(w.ann, "hers")
        theirs = await w.bob.request(method, f"{API}/hers{path}", json=body)
        nobodys = await w.bob.request(method, f"{API}/none{path}", json=body)
        assert (theirs.status_code, nobodys.status_code) == (404, 404)
        said = [{**answer.json()["error"], "request_id": ""} for answer in (theirs, nobodys)]
        assert repr(said[0]).replace("hers", "none") == repr(said[1])


async def test_a_deleted_session_is_gone_for_the_owner_and_not_there_for_others() -> None:
    async with world() as w:
        await made(w.ann, "a")
        assert (await w.ann.delete(f"{API}/a")).json() == {"session": "a", "deleted": True}
        assert code(await w.ann.get(f"{API}/a")) == (404, "no_such_session")
        assert code(await w.owner.get(f"{API}/a")) == (410, "deleted")
        assert code(await w.ann.post(API, json={"id": "a"})) == (410, "deleted")


async def test_a_fork_parts_after_a_turn_or_at_a_seq() -> None:
    async with world() as w:
        await made(w.ann, "s")
        for text in ("one", "two"):
            await w.ann.post(f"{API}/s/turn", json={"input": text})
        by_turn = (await w.ann.post(f"{API}/s/fork", json={"turn": 1, "into": "t"})).json()
        assert by_turn["forked_from"]["session"] == "s"
        assert await (await w.host.get("t")).history == ["one"]
        by_seq = (await w.ann.post(f"{API}/s/fork", json={"at": by_turn["forked_from"]["at"]})).json()
        assert await (await w.host.get(by_seq["id"])).history == ["one"]
        assert w.host.made_by("t") == ("ann", "http")
        assert code(await w.ann.post(f"{API}/s/fork", json={"turn": 9})) == (422, "no_such_turn")
        assert code(await w.ann.post(f"{API}/s/fork", json={"at": 999})) == (422, "no_such_point")
        assert code(await w.ann.post(f"{API}/s/fork", json={"into": "t"})) == (409, "id_in_use")
        shown = (await w.ann.get(f"{API}/s")).json()
        assert [fork["session"] for fork in shown["forks"]] == ["t", by_seq["id"]]
        await w.ann.delete(f"{API}/t")
        shown = (await w.ann.get(f"{API}/s")).json()
        assert [fork["deleted"] for fork in shown["forks"]] == [True, False]
        await w.ann.delete(f"{API}/s")
        parted = (await w.ann.get(f"{API}/{by_seq['id']}")).json()["forked_from"]
        assert (parted["session"], parted["deleted"]) == ("s", True)


async def test_turns_and_messages_come_in_pages() -> None:
    async with world() as w:
        await made(w.ann, "s")
        for text in ("one", "two", "three"):
            await w.ann.post(f"{API}/s/turn", json={"input": text})
        page = (await w.ann.get(f"{API}/s/turns", params={"limit": 2})).json()
        assert ([turn["input"] for turn in page["turns"]], page["next"]) == (["one", "two"], 2)
        page = (await w.ann.get(f"{API}/s/turns", params={"after": 2})).json()
        assert ([turn["output"] for turn in page["turns"]], page["next"]) == (["three"], None)
        page = (await w.ann.get(f"{API}/s/messages", params={"limit": 2, "after": 2})).json()
        assert ([each["content"] for each in page["messages"]], page["next"]) == (["two", "two"], 4)


async def test_a_page_of_turns_or_messages_costs_the_same_however_long_the_session_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Invariant 36: nothing costs more as finished history grows."""
    reads = 0
    read = MemoryStore.read

    def counted(self: MemoryStore, address: int) -> Any:
        nonlocal reads
        reads += 1
        return read(self, address)

    monkeypatch.setattr(MemoryStore, "read", counted)
    costs: list[list[int]] = []
    async with world(settings=Settings(snapshot_records=16)) as w:  # so far back a restore begins, at the most
        s = await w.host.asking("ann").spawn(Session, "s")
        for turns in (20, 120):
            for _ in range(turns - (20 if turns > 20 else 0)):
                await s.turn("again")
            cost: list[int] = []
            for path, after, first in (("turns", 10, 11), ("turns", turns - 3, turns - 2), ("messages", 20, None)):
                reads = 0
                catalog_of(w.host).recall.forget()
                page = (await w.ann.get(f"{API}/s/{path}", params={"after": after, "limit": 2})).json()
                assert len(page[path]) == 2
                assert page["next"] == (first + 1 if first else 22)
                assert first is None or [turn["turn"] for turn in page["turns"]] == [first, first + 1]
                cost.append(reads)
            reads = 0
            assert (await w.ann.post(f"{API}/s/fork", json={"turn": 10})).status_code == 201
            costs.append([*cost, reads])
    few, many = costs
    # What is searched grows by a few steps of halving.
    assert all(later <= earlier + 20 for earlier, later in zip(few, many, strict=True)), costs


async def test_a_snapshot_names_the_session_as_it_is() -> None:
    async with world() as w:
        await made(w.ann, "s")
        named = (await w.ann.post(f"{API}/s/snapshot")).json()
        assert (await w.host.restore(named)) == await w.host.get("s")


async def test_a_principal_has_no_more_sessions_than_it_may() -> None:
    async with world(ServerSettings(sessions=2)) as w:
        await w.host.spawn(Session, "not-hers")
        await made(w.ann, "a")
        await made(w.ann, "b")
        assert code(await w.ann.post(API, json={"id": "c"})) == (403, "too_many_sessions")
        assert code(await w.ann.post(f"{API}/a/fork", json={})) == (403, "too_many_sessions")
        await w.ann.delete(f"{API}/a")
        await made(w.ann, "c")
        for n in range(3):
            await made(w.owner, f"o{n}")


async def test_paths_lead_nowhere_else(tmp_path: Any) -> None:
    async with world() as w:
        await made(w.ann, "s")
        for path in (
            "/api/v1/sessions/../../token",
            "/api/v1/sessions/%2e%2e%2f%2e%2e%2ftoken",
            "/api/v1/sessions/s%00",
            "/api/v1/sessions/%ff",
            "/api/v1//sessions",
            "/api/v1/sessions/s%2Fturns",
            "/%61pi/v1/sessions",
        ):
            answer = await w.ann.get(path)
            assert answer.status_code == 404, path
        assert (await w.nobody.get("/api/v1/openapi.json%2f..%2fsessions")).status_code == 401


async def test_a_session_is_shown_as_it_was() -> None:
    async with world() as w:
        await made(w.ann, "s")
        for text in ("one", "two"):
            await w.ann.post(f"{API}/s/turn", json={"input": text})
        now = (await w.ann.get(f"{API}/s/state")).json()
        assert (now["seq"], now["hash"]) == (w.host.row("s").seq, w.host.row("s").hash.hex())
        assert [message["content"] for message in now["fields"]["messages"]] == ["one", "one", "two", "two"]
        assert now["fields"]["messages"] == (await w.ann.get(f"{API}/s/messages")).json()["messages"]
        began = (await w.ann.get(f"{API}/s/state?at=1")).json()
        assert (began["type"], began["seq"], began["fields"]["messages"]) == ("keeve.session", 1, [])
        assert code(await w.ann.get(f"{API}/s/state?at=99")) == (422, "no_such_point")
        assert code(await w.bob.get(f"{API}/s/state?at=1")) == (404, "no_such_session")


@pytest.mark.parametrize(("id", "part"), [(".", ".%3B"), ("..", "..%3B"), ("..;", "..%3B%3B"), (";", "%3B")])
async def test_ids_that_clients_take_for_directions_have_a_way_to_be_written(id: str, part: str) -> None:
    async with world() as w:
        made = await w.ann.post("/api/v1/sessions", json={"id": id})
        assert made.headers["location"] == f"/api/v1/sessions/{part}"
        assert (await w.ann.get(f"/api/v1/sessions/{part}")).json()["id"] == id
