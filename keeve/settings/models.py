"""The models that settings and the environment name, as devices, and the names under which they may be asked for: that
of each device, and before it the name that the environment gives its model (`KEEVE_MODEL`), which its user knows.

The one rule: whoever opens a store with the same settings has the same models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from actors.models import BadModelURL, ChatModel, EchoModel, model_from_environment
from dataspace.urls import shown
from keeve.settings.credentials import vault_of
from keeve.settings.settings import BadServerSetting, LoadedSettings, ModelSource, ServerSettings
from vat.devices.vault import Environment, Vault


def named(environ: Mapping[str, str], devices: Iterable[str]) -> dict[str, str]:
    """The device behind each name, in the order in which they are listed.

    >>> named({"KEEVE_MODEL": "gpt"}, ["model", "small"])
    {'gpt': 'model', 'model': 'model', 'small': 'small'}
    """
    known = {device: device for device in devices} or {"model": "model"}
    own = environ.get("KEEVE_MODEL", "").strip()
    return {own: "model", **known} if own and own not in known else known


def models_of(settings: ServerSettings, environ: Mapping[str, str]) -> tuple[dict[str, Any], Vault]:
    """The models as devices, those of the settings, and the environment's as `model`; and the vault with their keys and
    the credentials of the settings.

    Without any of them there is the host's own stand-in, an echo. Raises `BadServerSetting`, `BadModelSetting`.
    """
    chosen = model_from_environment(environ)
    devices: dict[str, Any] = {} if isinstance(chosen.device, EchoModel) else {"model": chosen.device}
    keys: dict[str, Environment] = dict(chosen.credentials)
    for model in settings.models.values():
        if model.name in devices:
            raise BadServerSetting(f"models.{model.name}", model.where, "the environment has a model of that name")
        if model.key is not None:
            if not environ.get(model.key):
                reason = f"key names the variable {model.key}, which is not set"
                raise BadServerSetting(f"models.{model.name}", model.where, reason)
            keys[f"model.{model.name}"] = Environment(model.key, environ)
        devices[model.name] = _model(model)
    if devices and "model" not in devices:
        devices["model"] = devices[next(iter(devices))]
    for each in settings.credentials.values():
        if each.name in keys:
            raise BadServerSetting(
                f"credentials.{each.name}", each.where, "a model's key has that name: choose another"
            )
    return devices, vault_of(settings, environ, keys)


def _model(source: ModelSource) -> ChatModel:
    try:
        return ChatModel(source.url, source.model, None if source.key is None else f"model.{source.name}")
    except BadModelURL as error:
        said = f"its url {f'{error.shown} {error.reason}'.lstrip()}"
        raise BadServerSetting(f"models.{source.name}", source.where, said) from None


def model_names(settings: ServerSettings, environ: Mapping[str, str], devices: Mapping[str, Any]) -> dict[str, str]:
    """By the name of a device that is a model, the model's own name."""
    named = {each.name: each.model for each in settings.models.values()}
    first = next(iter(named.values()), "model")
    return {name: named.get(name) or environ.get("KEEVE_MODEL") or first for name in devices}


def answering(settings: ServerSettings, environ: Mapping[str, str]) -> str:
    """Which model answers where none is named, for people."""
    chosen = model_from_environment(environ)
    first = settings.models.get("model") or next(iter(settings.models.values()), None)
    if first is None or not isinstance(chosen.device, EchoModel):
        return chosen.description
    return f"{first.model} at {shown(first.url)}"


def model_shown(loaded: LoadedSettings, environ: Mapping[str, str]) -> tuple[str, str]:
    """The same, and where it comes from. Raises `BadModelSetting`."""
    if not isinstance(model_from_environment(environ).device, EchoModel):
        source = "environment"
    else:
        source = loaded.sources["models"] if loaded.settings.models else "default"
    return answering(loaded.settings, environ), source
