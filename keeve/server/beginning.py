"""Beginning: what a session made here begins with, by whichever door: its model by its name, the tools of the server.

    keeve.session, or a type of the server's own that is one    `tools`, unless they are given
    another type of the server's own                            its field of the kind `Toolbox`, where it has one such
    what names a model                                          the device behind the name, which has to be there

The one rule: every door asks here, so that the same session comes of the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.session import Session
from actors.talking import Model
from actors.toolbox import Toolbox
from keeve.looking import CONVERSATION
from keeve.server.models import no_model
from keeve.server.serving import Serving
from vat.objects.types import type_of


def kinds_of(serving: Serving) -> dict[str, type]:
    """The types of which sessions are made here, by name."""
    return {CONVERSATION: Session, **serving.types}


def beginning(serving: Serving, kind: type, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a session of that type begins with, where these are given. Raises a `Refusal`."""
    begins = dict(fields)
    for name in _names(kind, "model", Model):
        if isinstance(asked := begins.get(name), str):
            if asked not in serving.named:
                raise no_model(asked, serving.named, f"fields.{name}", 422)
            begins[name] = serving.named[asked]
    holds = _names(kind, "tools", Toolbox)
    if serving.tools is not None and len(holds) == 1:  # with several, only who wrote them knows which is for what
        begins.setdefault(holds[0], serving.tools.schemas)
    return begins


def _names(kind: type, of_session: str, part: type) -> list[str]:
    """The fields that hold such a thing."""
    if issubclass(kind, Session):
        return [of_session]
    fields = type_of(kind).fields.values()
    return [field.name for field in fields if isinstance(field.kind, type) and issubclass(field.kind, part)]
