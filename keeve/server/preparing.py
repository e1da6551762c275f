"""What a server is made of, looked at before anything is made: its certificate, its models, its principals.

The one rule: a start that cannot be leaves nothing behind, so whatever can be wrong is found here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from actors.models import ChatModel, EchoModel, model_from_environment
from keeve.server.listening import must_be_free, tls
from keeve.server.owner import BadTokenFile, token_in
from keeve.server.settings import BadServerSetting, PrincipalFile, ServerSettings
from vat.devices.vault import Environment, Vault


@attrs.frozen
class Prepared:
    """What was found.

    devices: the models, by the names of their devices. models: the models' own names, by these. vault: their keys.
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
    principals = principals_of(settings)
    await must_be_free(settings)
    return Prepared(devices, model_names(settings, environ, devices), vault, principals, stands_in)


def principals_of(settings: ServerSettings) -> list[tuple[PrincipalFile, str]]:
    """All principals but the owner, and their tokens. Raises `BadServerSetting`."""
    found = []
    for each in settings.principals.values():
        try:
            found.append((each, token_in(each.token_file)[0]))
        except BadTokenFile as error:
            raise BadServerSetting(f"principals.{each.name}.token_file", each.where, str(error)) from error
    return found


def models_of(settings: ServerSettings, environ: Mapping[str, str]) -> tuple[dict[str, Any], Vault]:
    """The models as devices, and the vault with their keys: those of the settings, and the environment's as `model`.

    Without any of them there is the host's own stand-in, an echo. Raises `BadServerSetting`, `BadModelSetting`.
    """
    chosen = model_from_environment(environ)
    devices: dict[str, Any] = {} if isinstance(chosen.device, EchoModel) else {"model": chosen.device}
    credentials = dict(chosen.credentials)
    for model in settings.models.values():
        if model.name in devices:
            raise BadServerSetting(f"models.{model.name}", model.where, "the environment has a model of that name")
        if model.key is not None:
            if not environ.get(model.key):
                reason = f"key names the variable {model.key}, which is not set"
                raise BadServerSetting(f"models.{model.name}", model.where, reason)
            credentials[f"model.{model.name}"] = Environment(model.key, environ)
        devices[model.name] = ChatModel(model.url, model.model, None if model.key is None else f"model.{model.name}")
    if devices and "model" not in devices:
        devices["model"] = devices[next(iter(devices))]
    return devices, Vault(credentials)


def model_names(settings: ServerSettings, environ: Mapping[str, str], devices: Mapping[str, Any]) -> dict[str, str]:
    """By the name of a device that is a model, the model's own name."""
    named = {each.name: each.model for each in settings.models.values()}
    first = next(iter(named.values()), "model")
    return {name: named.get(name) or environ.get("KEEVE_MODEL") or first for name in devices}
