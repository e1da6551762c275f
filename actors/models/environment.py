"""Which model a host has when nobody has said so in code: what the environment names, or else the echo.

| variable | what it says |
|---|---|
| `KEEVE_MODEL` | the model's name; without it the echo answers |
| `KEEVE_MODEL_URL` | base URL of the service; else `OPENAI_BASE_URL`, else OpenAI's own |
| `KEEVE_MODEL_KEY` | the **name** of the variable that holds the key; else `OPENAI_API_KEY`, if that is set |

The one rule: nothing is asked over the network unless `KEEVE_MODEL` says so; a key that happens to lie in the
environment is no wish to use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs

from actors.models.chat import ChatModel
from actors.models.echo import EchoModel
from actors.models.failures import BadModelURL
from dataspace.errors import KeeveError
from dataspace.urls import shown
from vat.devices.vault import Environment

CREDENTIAL: Final = "model"
"""The name of the key in the host's vault."""

OPENAI: Final = "https://api.openai.com/v1"


class BadModelSetting(KeeveError, ValueError):
    """A variable of the environment (`variable`) that cannot be followed; `reason` says why. Its value is not shown."""

    usage: ClassVar[bool] = True

    def __init__(self, variable: str, reason: str) -> None:
        super().__init__(variable, reason)
        self.variable = variable
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.variable} {self.reason}"


@attrs.frozen
class ChosenModel:
    """A model device, a description of it for people, and the credentials that the vault needs for it."""

    device: Any
    description: str
    credentials: dict[str, Environment]


def model_from_environment(environ: Mapping[str, str]) -> ChosenModel:
    """The model that these variables name, or the echo. Raises `BadModelSetting`, and `BadModelURL`."""
    model = environ.get("KEEVE_MODEL", "").strip()
    url = environ.get("KEEVE_MODEL_URL", "").strip()
    if not model:
        if url:
            raise BadModelSetting("KEEVE_MODEL_URL", "is set, but KEEVE_MODEL is not: name the model in it")
        return ChosenModel(EchoModel(), "the echo model (it says again what you say; set KEEVE_MODEL for another)", {})
    variable = "KEEVE_MODEL_URL" if url else "OPENAI_BASE_URL"
    url = url or environ.get("OPENAI_BASE_URL", "").strip() or OPENAI
    key = _key_variable(environ)
    try:
        device = ChatModel(url, model, None if key is None else CREDENTIAL)
    except BadModelURL as error:
        raise BadModelURL(error.reason, error.shown, variable) from None
    credentials = {} if key is None else {CREDENTIAL: Environment(key, environ)}
    return ChosenModel(device, f"{model} at {shown(url)}", credentials)


def _key_variable(environ: Mapping[str, str]) -> str | None:
    """The variable that holds the key, if there is one."""
    name = environ.get("KEEVE_MODEL_KEY", "").strip()
    if not name:
        return "OPENAI_API_KEY" if environ.get("OPENAI_API_KEY") else None
    # Neither error shows the value: it may be the key itself, put there by mistake.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise BadModelSetting("KEEVE_MODEL_KEY", "is the name of the variable that holds the key, not the key itself")
    if not environ.get(name):
        raise BadModelSetting(
            "KEEVE_MODEL_KEY", "names a variable that is not set: it takes a name, not the key itself"
        )
    return name
