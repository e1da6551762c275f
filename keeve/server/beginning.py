"""Beginning: what a session made at this server begins with (`keeve.settings.begins_with`), by whichever door.

The one rule: a model that is not there is refused where it is named, and not when it is first asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.session import Session
from keeve.looking import CONVERSATION
from keeve.server.errors import no_model
from keeve.server.serving import Serving
from keeve.settings import NoSuchModel, began_with, begins_with
from vat.host.outside import HostRef, place


def kinds_of(serving: Serving) -> dict[str, type]:
    """The types of which sessions are made here, by name."""
    return {CONVERSATION: Session, **serving.types}


async def beginning(
    serving: Serving, kind: type, fields: Mapping[str, Any], there: HostRef[Any] | None = None
) -> dict[str, Any]:
    """The fields that a session of that type begins with, where these are given. Raises a `Refusal`, and as
    `begins_with` where tools cannot be had.

    there: the session that was made for the same request; then the fields that it began with, whatever there is now.
    """
    if there is not None:
        row = serving.host.row(place(there)[0])
        return serving.host.look(row.id, lambda first: began_with(kind, fields, serving.named, first.heap), 1)
    try:
        return await begins_with(kind, fields, serving.named, serving.tools, serving.vault)
    except NoSuchModel as error:
        raise no_model(error.model, serving.named, f"fields.{error.field}", 422) from None
