"""A host for one command that changes something in a store.

The one rule: nothing else happens to the store. What its sessions wait for stays as it is, for the host that has
their devices; only what the command itself asks for is taken up, if it is to be.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from keeve.api import open_host
from keeve.archive_places import archives_from
from keeve.cli.reading import must_be_there
from keeve.host_keys import host_key_from
from vat.devices.vault import Vault
from vat.host.host import Host
from vat.host.settings import Settings


@asynccontextmanager
async def owning(
    folder: Path,
    actors: Sequence[type],
    *,
    devices: Mapping[str, Any] | None = None,
    vault: Vault | None = None,
    makes: bool = False,
) -> AsyncIterator[Host]:
    """A host of the store that is there, with these actor types.

    devices: it has these, with their keys in the vault, and takes up what is asked; None: it takes up nothing. makes:
    the store is made if there is none.

    Raises `NotAStore`, `StoreOwned`, or what opening raises.
    """
    if not makes:
        must_be_there(folder)
    how: dict[str, Any] = {"actors": actors, "key": host_key_from(os.environ), "archives": archives_from(os.environ)}
    if devices is None:
        how |= {"settings": Settings(takes_up="nothing")}
    else:
        how |= {"devices": devices, "vault": vault, "unknown": "hold", "settings": Settings(takes_up="asked")}
    async with open_host(folder, **how, via="cli") as host:
        yield host
