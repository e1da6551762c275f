"""What a thing needs, it needs at every door: over HTTP, at /v1, on the page, over a connection, and in a token."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actors.approvals import Approver
from actors.responding import Responding
from keeve import Actor, Session, Text, actor, manage
from keeve.api import OURS
from keeve.cli.tokens import methods_of
from keeve.server import Principal
from keeve.server.api.operations import TABLE
from keeve.server.errors import Refusal
from keeve.server.page.visits import Visit
from keeve.wire.desk import Desk
from keeve.wire.sturdy import SturdyRefs
from keeve.wire.verbs import AT_THE_DESK, EVERY_REF, verb_in
from tests.keeve.server.test_server_wire import client_of
from tests.keeve.wire.wires import Free
from tests.server_worlds import World, _client, world
from vat.errors import Refused
from vat.heap.heap import ROOT_ACTOR
from vat.host.host import EVERY_REF as OF_THE_VAT
from vat.host.outside import place
from vat.objects.types import type_of

LESS = "a-token-with-less-123"

OPERATIONS = {
    "create_session": AT_THE_DESK["spawn"],
    "delete_session": AT_THE_DESK["delete"],
    "take_turn": verb_in(type_of(Session), "turn"),
    "queue_turn": verb_in(type_of(Session), "turn"),
    "steer_turn": verb_in(type_of(Session), "steer"),
    "interrupt_turn": verb_in(type_of(Session), "interrupt"),
    "snapshot_session": EVERY_REF["snapshot"],
    "fork_session": EVERY_REF["fork"],
    "say_word": AT_THE_DESK["refuse"],
    "resolve_effect": AT_THE_DESK["resolve"],
    "verify_store": "admin",
    "reclaim_space": "admin",
    "archive_content": "admin",
    "bring_back_content": "admin",
}
"""What the operations of the API do, by the verb that it has elsewhere; all others are `read`."""

ITEMS = {"items": [{"role": "user", "content": "x"}]}
AT_V1 = [
    (("turn", Session), "POST", "/v1/responses", {"model": "model", "input": "x", "conversation": "conv_{}"}),
    (("add", Responding), "POST", "/v1/conversations/conv_{}/items", ITEMS),
    (("describe_as", Responding), "POST", "/v1/conversations/conv_{}", {"metadata": {}}),
    (("remove", Responding), "DELETE", "/v1/conversations/conv_{}/items/msg_{}", None),
    (("forget", Responding), "DELETE", "/v1/responses/{response}", None),
    (("interrupt", Session), "POST", "/v1/responses/{response}/cancel", {}),
]


def less(w: World, *verbs: str) -> Any:
    """A client of ann's whose token has these verbs."""
    w.serving.auth.ways[0].add(LESS, Principal("ann", frozenset(verbs)))  # type: ignore[attr-defined]  # the first way has the tokens of the test
    return _client(w.app, LESS)


def others(verb: str) -> tuple[str, ...]:
    return tuple({"read", "turn", "manage", "admin"} - {verb})


async def test_what_decides_for_a_session_is_to_manage_it_whatever_the_door() -> None:
    assert {verb_in(type_of(Approver), name) for name in ("approve", "refuse")} == {"manage"}
    assert {verb_in(type_of(kind), "configure") for kind in OURS} == {"manage"}
    assert {verb_in(type_of(Responding), name) for name in ("remove", "describe_as", "forget")} == {"manage"}
    assert AT_THE_DESK["approve"] == AT_THE_DESK["refuse"] == "manage"
    assert EVERY_REF.keys() == OF_THE_VAT


@pytest.mark.parametrize("operation", TABLE, ids=lambda operation: operation.name)
async def test_an_operation_needs_the_verb_of_what_it_does_on_the_page_as_well(operation: Any) -> None:
    verb = OPERATIONS.get(operation.name, "read")
    assert operation.verb == verb
    async with world() as w:
        await w.host.asking("ann").spawn(Session, "s")
        client = less(w, *others(verb))
        path = re.sub(r"\{\w+\}", "1", operation.path.replace("{id}", "s"))
        answer = await client.request(operation.method, f"/api/v1{path}", json={"input": "x", "approve": True})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")
        asks = SimpleNamespace(state=SimpleNamespace(principal=Principal("ann", frozenset(others(verb)))))
        with pytest.raises(Refusal, match="may not"):  # as the page has it done
            await Visit.given(SimpleNamespace(serving=w.serving, request=asks), operation.name)  # type: ignore[arg-type]  # a visit by who has less


async def test_a_request_at_v1_needs_the_verb_of_what_it_does() -> None:
    async with world() as w:
        made = (await w.ann.post("/v1/conversations", json={})).json()["id"].removeprefix("conv_")
        said = {"model": "model", "input": "x", "conversation": f"conv_{made}"}
        response = (await w.ann.post("/v1/responses", json=said)).json()["id"]
        for (method, kind), verb, path, body in AT_V1:
            needed = verb_in(type_of(kind), method)
            where = path.replace("{response}", response).replace("{}", made)
            given = None if body is None else {**body}
            if given is not None and "conversation" in given:
                given["conversation"] = f"conv_{made}"
            answer = await less(w, *others(needed)).request(verb, where, json=given)
            assert answer.status_code == 403, (method, answer.text)


CALLED = [
    *((Session, name) for name in type_of(Session).public),
    *((Responding, name) for name in sorted({*type_of(Responding).public} - {*type_of(Session).public})),
    *((Session, name) for name in EVERY_REF),
]


async def test_a_call_over_a_connection_needs_the_verb_of_its_method(tmp_path: Path) -> None:
    async with world() as w:
        for kind in OURS:
            await w.host.asking("ann").spawn(kind, kind.__name__)
        waits = await (await w.host.get("Session")).approvals
        for kind, method in [*CALLED, *((Approver, name) for name in type_of(Approver).methods)]:
            verb = verb_in(type_of(kind), method)
            less(w, *others(verb), "get")
            async with client_of(w, LESS) as client:
                # `get` is read: who may not read has a ref by its sturdy form.
                sturdy = SturdyRefs(w.serving.secret).sturdy("ann", w.host.row(kind_of(kind)).uid, number(kind, waits))
                with pytest.raises(Refused, match="may not"):
                    await getattr(client.live(sturdy), method)()


def kind_of(kind: type) -> str:
    return "Session" if kind is Approver else kind.__name__


def number(kind: type, waits: Any) -> int:
    return place(waits)[1] if kind is Approver else ROOT_ACTOR


async def test_the_desk_asks_for_what_is_written_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[tuple[str, str]] = set()

    class Noting(Free):
        def must(self, verb: str, method: str, session: str | None = None) -> None:
            asked.add((method, verb))
            super().must(verb, method, session)

    async with world() as w:
        await w.host.spawn(Session, "s")
        guard = Noting(host=w.host)
        desk = Desk(w.host, guard, SturdyRefs("x"))
        for method, *args in (
            ("get", "s"),
            ("facts", "(turn . _)", None, "s"),
            ("look", "row", {"id": "s"}),
            ("sessions",),
            ("spawn", "keeve.session"),
            ("erase", "s", 1),
            ("resolve", "s", "ff", {"again": True}),
            ("say", "s", "call"),
            ("say", "s", "call", "no"),
            ("delete", "s"),
        ):
            with suppress(Exception):  # what comes of it is not asked here
                await desk.call(method, list(args), {}, None)
    assert {*AT_THE_DESK.items()} - asked == {("observe", "read"), ("watch", "read")}
    assert asked <= {*AT_THE_DESK.items()}


def test_a_token_can_name_all_that_can_be_asked_for_and_nothing_else() -> None:
    known = methods_of(())
    assert known >= AT_THE_DESK.keys() | EVERY_REF.keys() | {"read", "turn", "manage"}
    assert known >= {name for kind in (*OURS, Approver) for name in type_of(kind).public}
    assert "deny" not in known


@actor("verbs.guarded", version=1)
class Guarded(Actor):
    calls: int = 0

    @manage
    def turn(self, text: Text) -> int:
        self.calls += 1
        return self.calls

    @manage
    def interrupt(self, turn: object = None) -> int:
        return self.turn(Text(str(turn)))

    def status(self) -> dict[str, int]:
        self.calls += 1
        return {"accepted": 0}


async def test_a_method_of_an_own_type_needs_over_http_what_it_is_marked_with() -> None:
    """Who may say things calls nothing that is marked `@manage`, and who looks nothing that is not marked `@read`."""
    async with world(actors=[Guarded]) as w:
        await w.host.asking("ann").spawn(Guarded, "g")
        client, said = less(w, "read", "turn"), {"input": "x"}
        for name in ("turn", "interrupt"):
            answer = await client.post(f"/api/v1/sessions/g/{name}", json=said if name == "turn" else {})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")
        told = {"accept": "text/event-stream"}
        assert (await client.post("/api/v1/sessions/g/turn", json=said, headers=told)).status_code == 403
        chat = {"messages": [{"role": "user", "content": "x"}]}
        assert (
            await client.post("/v1/chat/completions", json=chat, headers={"x-keeve-session": "g"})
        ).status_code == 403
        assert (await client.get("/api/v1/sessions/g")).json()["status"] is None
        answer = await w.ann.post("/api/v1/sessions/g/queue", json=said)
        assert answer.json()["error"]["code"] == "states_no_turns"
        assert w.host.row("g").seq == 1, "nothing was called"
        assert (await w.ann.post("/api/v1/sessions/g/turn", json=said)).json()["output"] == 1
