"""Who looks at the pages: a browser for each file, and a server with a model and tools.

Of these tests one file belongs to `make test`; `make page` runs all of them, and then nothing may be missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from keeve import signing_key
from tests.page.browsing import chromium, missing
from tests.page.model import Model, model
from tests.server_process import Server, server

ALL = os.environ.get("KEEVE_PAGE") == "all"
"""Whether all of them are run, and what cannot be had is a failure."""

collect_ignore_glob = [] if ALL else ["test_browser_*.py"]

LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmütze" * 8


def says(words: str) -> str | list[tuple[str, dict[str, Any]]]:
    """What the model says to these words."""
    if words.startswith("tools"):
        return [("lines", {"count": 500}), ("fails", {"why": "no such thing"})]
    if words.startswith("drop"):
        return [("drop", {"table": "users"})]
    if words.startswith("long"):
        return f"{LONG} https://example.org/{'a' * 300}"
    if words.startswith("rtl"):
        return "שלום עולם, זה טקסט מימין לשמאל.\nمرحبا بالعالم 123 abc"
    return f"You said: {words}.\n\n- one\n- two\n\n    code = 1\n"


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """The browser."""
    if why := missing():
        if ALL:
            pytest.fail(why)
        pytest.skip(why)
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def small() -> Iterator[Model]:
    """The model."""
    with model(says) as made:
        yield made


@pytest.fixture(scope="module")
def served(small: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that signs."""
    folder = tmp_path_factory.mktemp("page")
    signing_key(folder / "key.pem", make=True)
    words = ("--tools", "tests.page.tools:ALL", "--actors", "tests.page.agents", "--signer", folder / "key.pem")
    with server(folder / "store", *words, env=small.environment) as running:
        yield running
