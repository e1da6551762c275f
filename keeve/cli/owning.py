"""A host for one command that changes something in a store.

The one rule: nothing else happens to the store. What its sessions wait for stays as it is, for the host that has
their devices.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from keeve.api import open_host
from keeve.archive_places import archives_from
from keeve.cli.own import named_types
from keeve.cli.reading import must_be_there
from keeve.host_keys import host_key_from
from vat.host.host import Host
from vat.host.settings import Settings


@asynccontextmanager
async def owning(folder: Path, actors: Sequence[str]) -> AsyncIterator[Host]:
    """A host of the store that is there, with the actor types of these names.

    Raises `NotAStore`, `StoreOwned`, `NoSuchActors`, or what opening raises.
    """
    must_be_there(folder)
    types = named_types(actors)
    key, settings = host_key_from(os.environ), Settings(takes_up="nothing")
    archives = archives_from(os.environ)
    async with open_host(folder, actors=types, settings=settings, key=key, archives=archives, via="cli") as host:
        yield host
