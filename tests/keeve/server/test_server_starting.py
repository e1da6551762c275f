"""A start that fails leaves no token that nobody was told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.errors import KeeveError
from keeve.server import ServerSettings
from keeve.server.running import serve
from keeve.settings import PrincipalFile, settings_from

FAILS = ("a principal without a token", "nobody can be told")


@pytest.mark.parametrize("why", FAILS)
async def test_a_start_that_fails_before_its_token_is_told_leaves_none(tmp_path: Path, why: str) -> None:
    store = tmp_path / "store"
    told: list[Any] = []

    def started(address: str, made: str | None) -> None:
        told.append(made)
        raise BrokenPipeError(why)

    ann = PrincipalFile("ann", tmp_path / "none")
    principals = {"ann": ann} if why == FAILS[0] else {}
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever it is: what is left is asked
        await serve(ServerSettings(store=store, port=0, principals=principals), {}, started)
    assert len(told) == (why == FAILS[1])
    assert not (store / "token").exists()


async def test_a_start_that_can_be_known_to_fail_makes_no_store_and_says_what_is_wrong(tmp_path: Path) -> None:
    [taken] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = taken.socket.getsockname()[1]
    file = tmp_path / "server.toml"
    for text, *said in (
        (f"port = {port}", f"127.0.0.1:{port}"),
        ('[models.slow]\nurl = "http://x/v1"\nkey = "SLOW_KEY"', "models.slow", "SLOW_KEY", str(file)),
        ('[principals.ann]\ntoken_file = "/nix"', "principals.ann.token_file", "/nix", str(file)),
    ):
        file.write_text(text)
        settings = settings_from({"store": tmp_path / "store"}, {}, file).settings
        with pytest.raises(KeeveError) as caught:
            await serve(settings, {}, lambda address, made: None)
        assert all(each in str(caught.value) for each in said), caught.value
        assert not (tmp_path / "store").exists()
    await taken.aclose()
