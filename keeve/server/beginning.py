"""Beginning: what a session made at this server begins with (`keeve.settings.begins_with`), by whichever door.

The one rule: a model that is not there is refused where it is named, and not when it is first asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from actors.mcp import ServerUnavailable
from actors.session import Session
from dataspace.log.archives import Archived
from keeve.looking import CONVERSATION
from keeve.server.errors import no_model
from keeve.server.serving import Serving
from keeve.settings import NoSuchModel, began_with, begins_with, may_have_begun_with
from vat.devices.vault import NoCredential
from vat.host.births import named_after
from vat.host.outside import HostRef, place
from vat.objects.types import type_of


def kinds_of(serving: Serving) -> dict[str, type]:
    """The types of which sessions are made here, by name."""
    return {CONVERSATION: Session, **serving.types}


async def beginning(
    serving: Serving, kind: type, fields: Mapping[str, Any], there: HostRef[Any] | None = None
) -> dict[str, Any]:
    """The fields that a session of that type begins with, where these are given. Raises a `Refusal`, and as
    `begins_with` where tools cannot be had.

    there: the session that was made for the same request; then the fields that it began with, whatever there is now, as
    far as that can be told; where not, what would be given now.
    """
    if there is not None:
        if (began := _began(serving, kind, fields, there)) is not None:
            return began
        with suppress(NoSuchModel, ServerUnavailable, NoCredential):
            return await begins_with(kind, fields, serving.named, serving.tools, serving.vault)
        return dict(fields)
    try:
        return await begins_with(kind, fields, serving.named, serving.tools, serving.vault)
    except NoSuchModel as error:
        raise no_model(error.model, serving.named, f"fields.{error.field}", 422) from None


def may_be_same(serving: Serving, kind: type, id: str | None, fields: Mapping[str, Any], there: HostRef[Any]) -> bool:
    """Whether that session, which was made for a request with the same id, may have been made for the same content,
    where that cannot be told any more: the tools in its first record are erased, or in an archive that is away.
    """
    # A record of before has the digest of the whole, and a part of that is gone: nothing tells whether the digest fits.
    # (One of now has that of what was sent, and looks no different.) Who repeats what was sent has a right to the first
    # answer, and a refusal would say of it what is not so; where the content was another one, who asks is given a
    # session of theirs that is there, and nothing is made or changed.
    uid = place(there)[0]
    row = serving.host.row(uid)
    if _began(serving, kind, fields, there) is not None or row.type != type_of(kind).name:
        return False
    if row.id != (named_after(uid) if id is None else id):
        return False
    try:
        return serving.host.look(row.id, lambda first: may_have_begun_with(kind, fields, serving.named, first.heap), 1)
    except Archived:
        return True


def _began(serving: Serving, kind: type, fields: Mapping[str, Any], there: HostRef[Any]) -> dict[str, Any] | None:
    """The fields that a session began with, where these were given; None where that cannot be told."""
    id = serving.host.row(place(there)[0]).id
    try:
        return serving.host.look(id, lambda first: began_with(kind, fields, serving.named, first.heap), 1)
    except Archived:
        return None
