"""Checkpoints, receipts and keys over HTTP: what a client can check without the server's word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from dataspace.observe.words import Words
from keeve import Receipt, Session, Verifier, open_host, signing_key
from keeve.server import Serving, application
from tests.server_worlds import asked_by, world

API = "/api/v1"


async def test_a_receipt_is_proven_by_the_keys_of_the_log(store_folder: Path, tmp_path: Path) -> None:
    key = signing_key(tmp_path / "log.pem", make=True)
    async with world() as w, open_host(store_folder / "s", signer=key) as host:
        serving: Serving = attrs.evolve(
            w.serving, host=host, gate=type(w.serving.gate)(host, w.serving.clock, w.serving.gate.ways)
        )
        s = await host.asking("ann", "http").spawn(Session, "s")
        await s.turn("hello")
        async with asked_by("ann", application(serving)) as ann, asked_by("bob", application(serving)) as bob:
            keys = [Verifier.parse(each) for each in (await ann.get(f"{API}/keys")).json()["keys"]]
            found: dict[str, Any] = (await ann.get(f"{API}/sessions/s/receipts/2", params={"words": "true"})).json()
            Receipt.parse(found["receipt"]).verify(keys)
            assert any("hello" in str(each) for each in Words.parse(found["words"]).verify(keys))
            text = await ann.get(f"{API}/sessions/s/receipts/2", headers={"accept": "text/plain"})
            assert Receipt.parse(text.text).header.hash.hex() == found["hash"]
            for seq in ("0", "99", "x", "1e3", "-1"):
                answer = await ann.get(f"{API}/sessions/s/receipts/{seq}")
                assert (answer.status_code, answer.json()["error"]["code"]) == (422, "no_such_point")
            assert (await bob.get(f"{API}/sessions/s/receipts/2")).status_code == 404
            checkpoint = (await ann.get(f"{API}/checkpoint", params={"since": "1"})).json()
            assert checkpoint["size"] >= found["position"]
            assert checkpoint["extension"].startswith("old 1\n")
            host.expect(checkpoint["note"])


async def test_without_a_signer_it_is_said_what_to_do() -> None:
    async with world() as w:
        answer = await w.owner.get(f"{API}/checkpoint")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_signing")
        assert "signer" in answer.json()["error"]["remedy"]


async def test_the_store_is_verified_for_whom_may_ask_that() -> None:
    async with world() as w:
        await w.host.spawn(Session, "s")
        report = (await w.owner.post(f"{API}/verify")).json()
        assert report["sound"] is True
        refused = await w.ann.post(f"{API}/verify")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
