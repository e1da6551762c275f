"""The badge turns red, whatever was altered: the store, the checkpoint, its key, what the server says, what it shows.

What the server says is altered on its way, as a server that lies would have it.
"""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataspace.proofs.signers import SigningKey
from keeve import Session, blocking, signing_key
from tests.page.browsing import Visitor, visiting
from tests.server_process import Server, server


def lived(store: Path, key: Path | None, *inputs: str) -> None:
    """A session in a store."""
    with blocking.open_host(store, signer=None if key is None else signing_key(key, make=True), by="owner") as host:
        s = host.spawn(Session, "s") if not host.sessions() else host.get("s")
        for words in inputs:
            s.turn(words)


def opened(visitor: Visitor) -> None:
    visitor.go("/sessions/s")
    visitor.badge("chain", "good", "bad", "none")


def test_a_byte_of_the_store_that_is_altered_under_the_server(chrome: Any, tmp_path: Path) -> None:
    store = tmp_path / "store"
    lived(store, tmp_path / "key.pem", "the first words", "and more")
    with server(store, "--signer", tmp_path / "key.pem") as running, visiting(chrome, running) as visitor:
        visitor.expected += ["500", "503", "409"]
        visitor.go("/sessions/s")
        visitor.badge("chain", "good")
        visitor.badge("checkpoint", "good")
        segment = store / "log" / "00000001.seg"
        with segment.open("r+b") as file:
            data = file.read()
            at = data.index(b"the first words")
            file.seek(at)
            file.write(b"T")
        with running.client() as client:
            client.post("/api/v1/sessions", json={"id": "other"})
        visitor.page.evaluate("localStorage.clear()")
        visitor.page.reload()
        assert visitor.badge("chain", "bad").startswith("✗ Chain")
        visitor.picture("badge-red")


def other_words(document: dict[str, Any]) -> None:
    for record in document["records"]:
        if record["words"]:
            facts = bytearray(b64decode(record["words"]["facts"]))
            facts[-40] ^= 1
            record["words"]["facts"] = b64encode(facts).decode()


def other_header(document: dict[str, Any]) -> None:
    header = bytearray(b64decode(document["records"][1]["header"]))
    header[45] ^= 1  # its time
    document["records"][1]["header"] = b64encode(header).decode()


def one_left_out(document: dict[str, Any]) -> None:
    del document["records"][1]


def words_left_out(document: dict[str, Any]) -> None:
    for record in document["records"]:
        record["words"] = None


def other_note(document: dict[str, Any]) -> None:
    document["receipt"] = re.sub(
        r"(\n— \S+ \S{30})(\S)", lambda m: m[1] + ("A" if m[2] != "A" else "B"), document["receipt"]
    )


def other_proof(document: dict[str, Any]) -> None:
    above, _, note = document["receipt"].partition("\n\n")
    lines = above.split("\n")
    lines[-1] = b64encode(bytes(32)).decode()
    document["receipt"] = "\n".join(lines) + "\n\n" + note


def other_key(document: dict[str, Any]) -> None:
    name = document["keys"][0].partition("+")[0]
    document["keys"] = [str(SigningKey.of_seed(bytes(32)).verifier(name))]


@pytest.mark.parametrize(
    ("of", "alter", "line"),
    [
        ("**/chain?*", other_words, "chain"),
        ("**/chain?*", other_header, "chain"),
        ("**/chain?*", one_left_out, "chain"),
        ("**/chain?*", words_left_out, "chain"),
        ("**/receipts/*", other_note, "checkpoint"),
        ("**/receipts/*", other_proof, "checkpoint"),
        ("**/api/v1/keys", other_key, "checkpoint"),
    ],
)
def test_a_server_that_lies(
    chrome: Any, liar: Server, of: str, alter: Callable[[dict[str, Any]], None], line: str
) -> None:
    with visiting(chrome, liar) as visitor:

        def altered(route: Any) -> None:
            came = route.fetch()
            document = came.json()
            alter(document)
            route.fulfill(response=came, body=json.dumps(document))

        visitor.page.route(of, altered)
        visitor.go("/sessions/s")
        visitor.badge(line, "bad")
        assert visitor.page.locator(f"#badge-{line}[data-state='good']").count() == 0


@pytest.mark.parametrize(
    ("shown", "instead"),
    [
        (">the first words<", ">other words<"),
        (">owner<", ">somebody else<"),
        (">done", ">interrupted"),
        ('data-turn="2"', 'data-turn="9"'),
        ('<section class="turn" id="turn-2".*?</section>', ""),
    ],
)
def test_a_page_that_shows_something_else(chrome: Any, liar: Server, shown: str, instead: str) -> None:
    with visiting(chrome, liar) as visitor:

        def alters(route: Any) -> None:
            came = route.fetch()
            text = came.text()
            altered = re.sub(shown, instead, text, flags=re.DOTALL)
            assert altered != text, text
            route.fulfill(response=came, body=altered)

        visitor.page.route("**/sessions/s", alters)
        visitor.go("/sessions/s")
        visitor.badge("chain", "bad")


@pytest.fixture(scope="module")
def liar(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server whose answers are altered on their way."""
    folder = tmp_path_factory.mktemp("liar")
    lived(folder / "store", folder / "key.pem", "the first words", "and more", "the last")
    with server(folder / "store", "--signer", folder / "key.pem") as running:
        yield running


def test_a_log_that_was_cut_or_exchanged_or_has_another_key_since(chrome: Any, tmp_path: Path) -> None:
    """What a browser has seen of a log is what it holds the next one against, at the same address."""
    store, key = tmp_path / "store", tmp_path / "key.pem"
    lived(store, key, "one", "two")
    early = shutil.copytree(store, tmp_path / "early", ignore=shutil.ignore_patterns("lock"))
    lived(store, key, "three")
    lived(tmp_path / "another", tmp_path / "other.pem", "one")
    with server(store, "--signer", key) as running, visiting(chrome, running) as visitor:
        visitor.expected += ["ERR_", "Failed to load"]
        opened(visitor)
        assert "all 7 records" in visitor.badge("chain", "good")
        visitor.badge("checkpoint", "good")
        port = running.port
        running.stop()
        for each in (early, tmp_path / "another"):
            shutil.copy(store / "token", each)
        # The same log, without its last turn: every record of it is sound.
        with server(early, "--signer", key, port=port):
            opened(visitor)
            assert "has seen record 7" in visitor.badge("chain", "bad")
        # Another turn in the place of the last.
        lived(early, key, "something else", "and more")
        with server(early, "--signer", key, port=port):
            opened(visitor)
            assert "another than this browser has seen" in visitor.badge("chain", "bad")
            visitor.page.evaluate("localStorage.removeItem('keeve.chains')")
            opened(visitor)
            visitor.badge("chain", "good")
            assert "does not go on" in visitor.badge("checkpoint", "bad")
        # The same records, signed by another key.
        text = visitor.page.evaluate("localStorage.getItem('keeve.logs')")
        forged = text.replace(json.loads(text)[next(iter(json.loads(text)))]["keys"][0][-20:], "A" * 20)
        visitor.page.evaluate("text => localStorage.setItem('keeve.logs', text)", forged)
        visitor.page.evaluate("localStorage.removeItem('keeve.chains')")
        with server(store, "--signer", key, port=port):
            opened(visitor)
            assert "another key" in visitor.badge("checkpoint", "bad")
        # Another key, which the former one has signed in: nobody has checked that here, so a person is asked.
        visitor.page.evaluate("text => localStorage.setItem('keeve.logs', text)", text)
        newer = tmp_path / "newer.pem"
        with blocking.open_host(store, signer=signing_key(newer, make=True), former=signing_key(key)):
            pass
        with server(store, "--signer", newer, port=port):
            for _ in range(2):
                opened(visitor)
                assert "was not checked here" in visitor.badge("checkpoint", "warn")
            visitor.page.get_by_role("button", name=re.compile("It is meant to be so")).click()
            visitor.badge("checkpoint", "good")
        # Another log: the same.
        with server(tmp_path / "another", "--signer", tmp_path / "other.pem", port=port):
            opened(visitor)
            visitor.badge("checkpoint", "warn")
            opened(visitor)
            visitor.badge("checkpoint", "warn")
            visitor.page.get_by_role("button", name=re.compile("It is meant to be so")).click()
            visitor.badge("checkpoint", "good")


def test_of_a_long_session_the_newest_records_are_looked_at_and_all_on_demand(chrome: Any, tmp_path: Path) -> None:
    lived(tmp_path / "store", tmp_path / "key.pem", *(f"turn {n}" for n in range(1500)))
    with server(tmp_path / "store", "--signer", tmp_path / "key.pem") as running, visiting(chrome, running) as visitor:
        asked: list[str] = []
        visitor.page.on("request", lambda request: asked.append(request.url) if "/chain?" in request.url else None)
        visitor.go("/sessions/s")
        said = visitor.badge("chain", "good")
        assert re.search("records 10.. to 30..,", said)
        assert "were not looked at" in said
        visitor.badge("checkpoint", "good")
        assert len(asked) <= 5
        visitor.page.get_by_role("button", name="Check all records").click()
        visitor.sees(re.compile("all 30.. records"))
        asked.clear()
        visitor.page.reload()
        visitor.sees(re.compile("all 30.. records"))  # it has seen them
        assert len(asked) <= 5
        visitor.go("/sessions/s?before=100")
        assert "what is shown was said in them" in visitor.badge("chain", "good", "bad")
        visitor.badge("checkpoint", "good")


def test_a_text_that_is_cut_on_the_page_is_held_against_all_of_it(chrome: Any, tmp_path: Path) -> None:
    lived(tmp_path / "store", tmp_path / "key.pem", "words\r\n" + "and 2 more " * 20_000, "short")
    with server(tmp_path / "store", "--signer", tmp_path / "key.pem") as running, visiting(chrome, running) as visitor:
        opened(visitor)
        assert "more letters)" in visitor.page.locator("#turns").inner_text()
        first = visitor.page.locator("#turns [data-slot='text']").first
        first.evaluate("each => { each.textContent = each.textContent.replace('and 2', 'and 3') }")
        visitor.page.evaluate("document.dispatchEvent(new Event('stated'))")
        visitor.badge("chain", "bad")
