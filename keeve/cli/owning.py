"""A host for one command that changes something in a store.

The one rule: nothing else happens to the store. What its sessions wait for stays as it is, for the host that has
their devices; only what the command itself asks for is taken up, if it is to be. But a session that is asked takes its
timers first whose time has come: what they give up, no word can save.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from actors.session import Session
from keeve.api import open_host
from keeve.archive_places import archives_from
from keeve.cli.own import Own, tools_of, types_of
from keeve.cli.reading import must_be_there
from keeve.cli.stores import Owned
from keeve.host_keys import host_key_from
from keeve.looking import CONVERSATION
from keeve.principals import OWNER
from keeve.settings import answering, begins_with, models_of, named, vault_of
from vat.devices.vault import Vault
from vat.host.host import Host
from vat.host.repetitions import also_as
from vat.host.settings import Settings
from vat.objects.types import type_of


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
        yield also_as(host, OWNER)


@asynccontextmanager
async def owned(folder: Path, own: Own, *, talking: bool, makes: bool) -> AsyncIterator[Owned]:
    """What a command asks of a host of its own, with what is brought for it, read as `keeve serve` reads it."""
    loaded = own.loaded()
    types, tools, settings = types_of(loaded), tools_of(loaded), loaded.settings
    kinds = {CONVERSATION: Session, **{type_of(each).name: each for each in types}}
    # Without a file the host that has the models is somebody's program: which it has is not known here.
    models = named(own.environ, ["model", *settings.models]) if settings.models else None

    async def begins(type: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        kind = kinds.get(type)
        return fields if kind is None else await begins_with(kind, fields, models, tools, vault)

    if not talking:
        vault = vault_of(settings, own.environ)
        # It carries nothing out, and servers of tools are asked for theirs all the same.
        async with owning(folder, types, makes=makes) as host, tools or nullcontext():
            yield Owned(host, passing=True, begins=begins)
        return
    answers = answering(settings, own.environ)
    devices, vault = models_of(settings, own.environ)
    if tools is not None:
        devices["tools"] = tools
    async with owning(folder, types, devices=devices, vault=vault, makes=makes) as host:
        yield Owned(host, passing=False, begins=begins, answers=answers)
