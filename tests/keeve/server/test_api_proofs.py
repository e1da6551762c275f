"""Checkpoints, receipts and keys over HTTP: what a client can check without the server's word."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs

from dataspace.drafts import read_used
from dataspace.observe.words import Words
from dataspace.records import Header
from keeve import Receipt, Session, Verifier, open_host, signing_key
from keeve.server import Serving, application
from tests.server_worlds import asked_by, world

API = "/api/v1"
NO_SEQS = ("x", "1e3", "-1", "+1", "01", "1.0", "%201", "1%20", "٢", "1_0", "9" * 19)


async def test_a_receipt_is_proven_by_the_keys_of_the_log(store_folder: Path, tmp_path: Path) -> None:
    key = signing_key(tmp_path / "log.pem", make=True)
    async with world() as w, open_host(store_folder / "s", signer=key) as host:
        serving: Serving = attrs.evolve(
            w.serving, host=host, auth=type(w.serving.auth)(host, w.serving.clock, w.serving.auth.ways)
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
            for seq, code in (
                {"0": "no_such_point", "99": "no_such_point"} | dict.fromkeys(NO_SEQS, "bad_seq")
            ).items():
                answer = await ann.get(f"{API}/sessions/s/receipts/{seq}")
                assert (answer.status_code, answer.json()["error"]["code"]) == (422, code), seq
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
        await w.host.spawn(Session, "s")
        answer = await w.owner.get(f"{API}/sessions/s/receipts/1")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_signing")
        answer = await w.owner.get(f"{API}/keys")  # there are none
        assert (answer.status_code, answer.json()) == (200, {"keys": []})


async def test_the_store_is_verified_for_whom_may_ask_that() -> None:
    async with world() as w:
        await w.host.spawn(Session, "s")
        report = (await w.owner.post(f"{API}/verify")).json()
        assert report["sound"] is True
        refused = await w.ann.post(f"{API}/verify")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")


def links_of(found: dict[str, Any]) -> list[bytes]:
    return [b64decode(each["header"]) for each in found["records"]]


async def test_the_chain_of_a_session_is_checked_by_who_hashes_it() -> None:
    async with world() as w:
        s = await w.host.asking("ann", "http").spawn(Session, "s")
        await s.turn("hello")
        await (await s.fork(into="t")).turn("on")
        found = (await w.ann.get(f"{API}/sessions/t/chain")).json()
        links = links_of(found)
        assert [each["seq"] for each in found["records"]] == list(range(1, w.host.row("t").seq + 1))
        headers = [Header.of_hashed(link, each["position"]) for link, each in zip(links, found["records"], strict=True)]
        assert headers[0].previous == bytes(32)
        for before, link, after in zip(headers, links, headers[1:], strict=False):
            assert before.hash == sha256(link).digest() == after.previous
        assert headers[-1].hash == w.host.row("t").hash
        assert {header.uid for header in headers} == {w.host.row(id).uid for id in "st"}


async def test_the_chain_comes_in_pages() -> None:
    async with world() as w:
        await (await w.host.spawn(Session, "s")).turn("hello")
        whole = links_of((await w.owner.get(f"{API}/sessions/s/chain")).json())
        pages, after = [], 0
        while after is not None:
            page = (await w.owner.get(f"{API}/sessions/s/chain", params={"after": after, "limit": 2})).json()
            pages += links_of(page)
            after = page["next"]
        assert pages == whole
        beyond = (await w.owner.get(f"{API}/sessions/s/chain", params={"after": 1 << 60})).json()
        assert beyond == {"records": [], "next": None}


async def test_what_was_stated_is_checked_against_the_chain() -> None:
    long = "x" * 1000
    async with world() as w:
        await (await w.host.asking("ann").spawn(Session, "s")).turn(long)
        found = (await w.ann.get(f"{API}/sessions/s/chain", params={"words": "true"})).json()
        stated = [each for each in found["records"] if each["words"] is not None]
        assert stated
        for each in stated:
            words = {name: b64decode(each["words"][name]) for name in ("deeds", "salt", "facts")}
            body = sha256(words["deeds"] + sha256(words["salt"] + words["facts"]).digest()).digest()
            assert body == Header.of_hashed(b64decode(each["header"]), 1).body_digest
            numbers, digests = read_used(words["facts"])
            cells = {cell["number"]: b64decode(cell["data"]) for cell in each["words"]["cells"]}
            assert {n: sha256(cells[n]).digest() for n in numbers} == dict(zip(numbers, digests, strict=True))
        everything = b"".join(b64decode(cell["data"]) for each in stated for cell in each["words"]["cells"])
        assert long.encode() in everything


async def test_the_chain_of_somebody_elses_session_is_not_there() -> None:
    async with world() as w:
        await w.host.asking("ann").spawn(Session, "s")
        assert (await w.bob.get(f"{API}/sessions/s/chain")).status_code == 404
