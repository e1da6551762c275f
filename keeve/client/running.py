"""A client that runs: its links in a task of their own, for as long as a block lasts.

The one rule: what the block raises leaves it as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from keeve.client.client import Client, Dial


@asynccontextmanager
async def running(dial: Dial, token: str, url: str, patience: float) -> AsyncIterator[Client]:
    """A client whose channels `dial` makes. Raises what the first attempt to connect does."""
    client = Client(dial, token, url, patience)
    link = await client.connected()
    failed: Exception | None = None
    async with anyio.create_task_group() as tasks:
        client.use(link)
        tasks.start_soon(client.run, link)
        try:
            yield client
        except Exception as error:  # noqa: BLE001  # it leaves the block as it is, not in a group
            failed = error
        client.close()
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
