"""A host for one command that changes something in a store.

The one rule: nothing else happens to the store. What its sessions wait for stays as it is, for the host that has
their devices; only what the command itself asks for is taken up, if it is to be.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from actors.models import ChosenModel, EchoModel
from keeve.api import open_host
from keeve.archive_places import archives_from
from keeve.cli.own import named_types
from keeve.cli.reading import must_be_there
from keeve.host_keys import host_key_from
from vat.devices.vault import Vault
from vat.host.host import Host
from vat.host.settings import Settings


@asynccontextmanager
async def owning(
    folder: Path, actors: Sequence[str], *, model: ChosenModel | None = None, makes: bool = False
) -> AsyncIterator[Host]:
    """A host of the store that is there, with the actor types of these names.

    model: it has this one, and takes up what is asked. makes: the store is made if there is none.

    Raises `NotAStore`, `StoreOwned`, `NoSuchActors`, or what opening raises.
    """
    if not makes:
        must_be_there(folder)
    types = named_types(actors)
    key, archives = host_key_from(os.environ), archives_from(os.environ)
    if model is None:
        settings = Settings(takes_up="nothing")
        async with open_host(folder, actors=types, settings=settings, key=key, archives=archives, via="cli") as host:
            yield host
        return
    # The echo stands in for a model, and must not answer what another one was asked.
    devices = {} if isinstance(model.device, EchoModel) else {"model": model.device}
    async with open_host(
        folder,
        actors=types,
        devices=devices,
        vault=Vault(model.credentials),
        unknown="hold",
        settings=Settings(takes_up="asked"),
        key=key,
        archives=archives,
        via="cli",
    ) as host:
        yield host
