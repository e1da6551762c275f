"""A start that fails leaves no token that nobody was told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keeve.server import ServerSettings
from keeve.server.running import serve
from keeve.server.settings import PrincipalFile

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
