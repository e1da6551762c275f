"""Places in the log, as requests name them.

The one rule: a cursor that is no place in this log is refused before anything is answered.
"""

from __future__ import annotations

from typing import Any

from dataspace.observe.cursor import Cursor
from dataspace.observe.places import place_of
from keeve.server.api.table import Asked
from vat.host.host import Host


def head_of(host: Host) -> Cursor:
    """The cursor at the end of the log."""
    return host.observe("(_ . _)", after="head").cursor


def cursor_of(asked: Asked, otherwise: Any) -> Any:
    """Where a stream goes on: behind Last-Event-ID, or else where it was told to. Raises `BadCursor`, `WrongCursor`."""
    given = asked.request.headers.get("last-event-id")
    return asked.serving.host.observe("(_ . _)", after=place_of(given)).cursor if given else otherwise
