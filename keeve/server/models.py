"""The models of a server, by the names under which they may be asked for: that of each device, and before it the name
that the environment gives its model (`KEEVE_MODEL`), since that is the one that its user knows.

The one rule: a name that is none is refused where it is named, and not when it is first asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keeve.server.errors import Refusal, there_are


def named(environ: Mapping[str, str], devices: Iterable[str]) -> dict[str, str]:
    """The device behind each name, in the order in which they are listed.

    >>> named({"KEEVE_MODEL": "gpt"}, ["model", "small"])
    {'gpt': 'model', 'model': 'model', 'small': 'small'}
    """
    known = {device: device for device in devices} or {"model": "model"}
    own = environ.get("KEEVE_MODEL", "").strip()
    return {own: "model", **known} if own and own not in known else known


def no_model(name: Any, known: Iterable[str], param: str = "model", status: int = 404) -> Refusal:
    """There is no model of that name."""
    return Refusal(status, "model_not_found", f"there is no model {name!r:.100} here", there_are(known), param=param)
