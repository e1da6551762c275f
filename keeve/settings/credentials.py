"""The vault of a host that settings describe: the keys of its models, and the credentials that the settings name.

The one rule: what stands in settings is where a credential is. It is looked up there whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from keeve.settings.settings import ServerSettings
from vat.devices.vault import Environment, File, Vault

ADD: Final = "say where it is in the file of settings, in a table [credentials.{name}], with variable or file"
"""What to do about a credential that a host of settings has not."""


def vault_of(
    settings: ServerSettings, environ: Mapping[str, str], keys: Mapping[str, Environment] | None = None
) -> Vault:
    """The vault with the credentials that settings name, and these `keys`. Each is looked up when it is asked for."""
    named = {
        each.name: File(each.file) if each.file is not None else Environment(str(each.variable), environ)
        for each in settings.credentials.values()
    }
    return Vault({**named, **(keys or {})}, add=ADD)
