"""What a server is made of, looked at before anything is made: its certificate, its models, its credentials, its
principals.

The one rule: a start that cannot be leaves nothing behind, so whatever can be wrong is found here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from keeve.server.listening import must_be_free, tls
from keeve.server.owner import BadTokenFile, token_in
from keeve.settings import BadServerSetting, PrincipalFile, ServerSettings, model_names, models_of
from vat.devices.vault import NoCredential, Vault


@attrs.frozen
class Prepared:
    """What was found.

    devices: the models, by the names of their devices. models: the models' own names, by these. vault: their keys, and
    the credentials of the settings.
    principals: all but the owner, with their tokens. stands_in: the first model of the file, where that is what
    sessions ask.
    """

    devices: Mapping[str, Any]
    models: Mapping[str, str]
    vault: Vault
    principals: Sequence[tuple[PrincipalFile, str]]
    stands_in: str | None


async def prepared(settings: ServerSettings, environ: Mapping[str, str]) -> Prepared:
    """Look at all of it. Raises `BadServerSetting`, `BadModelSetting`, `NotListening`."""
    if settings.tls_cert is not None:
        tls(settings.tls_cert, settings.tls_key)
    devices, vault = models_of(settings, environ)
    first = next(iter(settings.models), "model")
    stands_in = first if first != "model" and devices["model"] is devices[first] else None
    must_have(settings, vault)
    principals = principals_of(settings)
    await must_be_free(settings)
    return Prepared(devices, model_names(settings, environ, devices), vault, principals, stands_in)


def must_have(settings: ServerSettings, vault: Vault) -> None:
    """Raise `BadServerSetting` unless all credentials can be had: from now on, none of them stands in a log."""
    for each in settings.credentials.values():
        try:
            vault.resolve(each.name)
        except NoCredential as error:
            raise BadServerSetting(f"credentials.{each.name}", each.where, error.reason) from error


def principals_of(settings: ServerSettings) -> list[tuple[PrincipalFile, str]]:
    """All principals but the owner, and their tokens. Raises `BadServerSetting`."""
    found = []
    for each in settings.principals.values():
        try:
            found.append((each, token_in(each.token_file)[0]))
        except BadTokenFile as error:
            raise BadServerSetting(f"principals.{each.name}.token_file", each.where, str(error)) from error
    return found
