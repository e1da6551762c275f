"""Credentials through a host: looked up at each use, and found nowhere afterwards. Canaries, and a search of all."""

from __future__ import annotations

import json
import logging
import urllib.parse
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataspace.values import Blob, Text
from keeve.api import open_host
from tests.vat.hosts import Worker
from vat.devices.devices import Effect, effect
from vat.devices.vault import Environment, File, Vault

CANARY = "sk-canary-5f0c9d/'\"+7"
ROTATED = "sk-canary-e81b44/'\"+9"

FORMS: dict[str, Callable[[str], Any]] = {
    "as it is": lambda key: key,
    "in a header": lambda key: {"headers": [["Authorization", f"Bearer {key}"]]},
    "as a key": lambda key: {key: 1},
    "in bytes": lambda key: key.encode(),
    "in a blob": lambda key: Blob("text/plain", f"key={key}".encode()),
    "in a text": lambda key: Text(f"it was {key}"),
    "in json": lambda key: json.dumps({"key": key}),
    "in a url": lambda key: "https://x.example/?" + urllib.parse.urlencode({"key": key}),
    "in base64": lambda key: b64encode(key.encode()).decode(),
    "in basic": lambda key: "Basic " + b64encode(f"user:{key}".encode()).decode(),
    "in hex": lambda key: key.encode().hex(),
    "after a long text": lambda key: "long " * 200 + key,
}


class Echo:
    """A device that lets its key out in every way."""

    @effect(on_crash="retry")
    async def give(self, effect: Effect, form: str) -> Any:
        echoed = FORMS[form](effect.credential("shop"))
        effect.progress(echoed)
        return echoed

    @effect
    async def fail(self, effect: Effect, form: str) -> Any:
        key = effect.credential("shop")
        error = ConnectionError(FORMS[form](key))
        error.request = {"key": key}  # type: ignore[attr-defined]  # as libraries do
        error.add_note(f"with {key}")
        raise error from RuntimeError(key)


def needles(key: str) -> list[bytes]:
    """What would betray a key."""
    core = [b64encode(bytes(n) + key.encode())[n and n + 1 : -4] for n in range(3)]
    texts = [json.dumps(key)[1:-1], urllib.parse.quote(key, safe=""), urllib.parse.quote_plus(key), key.encode().hex()]
    return [key.encode(), key[3:14].encode(), *core, *(text.encode() for text in texts)]


def search(folder: Path, texts: list[str], *keys: str) -> None:
    """Look for keys in every file, and in what was said."""
    files = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any("catalog" in path for path in files)
    assert any(".seg" in path for path in files)
    said = {f"said {number}": text.encode() for number, text in enumerate(texts)}
    for name, content in {**files, **said}.items():
        for key in keys:
            for needle in needles(key):
                assert needle not in content, (name, needle)


async def test_a_credential_is_in_no_file_no_log_no_error_and_no_progress(
    store_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Invariant 20: plant canaries, search everything."""
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    vault = Vault({"shop": lambda: CANARY})
    options: dict[str, Any] = {"actors": [Worker], "devices": {"tool": Echo()}, "vault": vault}
    async with open_host(store_folder, **options) as host:
        host.on_progress(lambda *what: said.append(repr(what)))
        s = await host.spawn(Worker, "s1")
        for form in FORMS:
            said.append(repr(await s.work("give", form)))
            said.append(repr(await s.work("fail", form)))
            with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever became of it
                await s.ask("fail", form)
            said += [repr(caught.value), str(caught.value), repr(vars(caught.value))]
        said.append(repr(await s.snapshot()))
        said += [repr(event) for event in host.query("(_ . _)")]
    async with open_host(store_folder, **options) as host:
        said.append(repr(await (await host.get("s1")).results))
    assert "‹credential shop›" in "".join(said)
    search(store_folder, [*said, caplog.text, repr(vault)], CANARY)


async def test_a_rotated_credential_is_used_from_the_next_call_on_and_neither_is_kept(
    store_folder: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "key"
    keys.write_text(CANARY)
    keys.chmod(0o600)
    used: list[str] = []

    @effect
    async def uses(effect: Effect) -> str:
        used.append(effect.credential("shop"))
        return f"used {used[-1]}, and before that {used[0]}"

    vault = Vault({"shop": File(keys)})
    async with open_host(store_folder, actors=[Worker], devices={"tool": uses}, vault=vault) as host:
        s = await host.spawn(Worker, "s1")
        await s.work("call")
        keys.write_text(ROTATED)
        assert await s.work("call") == "used ‹credential shop›, and before that ‹credential shop›"
    assert used == [CANARY, ROTATED]
    search(store_folder, [], CANARY, ROTATED)


async def test_of_a_credential_that_is_missing_only_the_name_is_recorded(store_folder: Path) -> None:
    @effect(on_crash="retry")
    async def uses(effect: Effect) -> int:
        return len(effect.credential("shop"))

    environ = {"SHOP_KEY": CANARY}
    vault = Vault({"shop": Environment("SHOP_KEY", environ)})
    async with open_host(store_folder, actors=[Worker], devices={"tool": uses}, vault=vault) as host:
        s = await host.spawn(Worker, "s1")
        assert await s.work("call") == len(CANARY)
        del environ["SHOP_KEY"]
        with pytest.raises(LookupError, match=r"no credential 'shop': the environment variable SHOP_KEY is not set"):
            await s.ask("call")
        environ["SHOP_KEY"] = ROTATED
        assert await s.work("call") == len(ROTATED)
        assert await s.results == [len(CANARY), len(ROTATED)]
    search(store_folder, [], CANARY, ROTATED)


async def test_a_file_that_others_may_read_is_refused_and_its_content_is_nowhere(
    store_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @effect
    async def uses(effect: Effect) -> int:
        return len(effect.credential("shop"))

    keys = tmp_path / "key"
    keys.write_text(CANARY)
    keys.chmod(0o644)
    async with open_host(
        store_folder, actors=[Worker], devices={"tool": uses}, vault=Vault({"shop": File(keys)})
    ) as host:
        s = await host.spawn(Worker, "s1")
        with pytest.raises(LookupError, match="mode 0644, so others may read it: chmod 600") as caught:
            await s.ask("call")
    search(store_folder, [str(caught.value), caplog.text], CANARY)
