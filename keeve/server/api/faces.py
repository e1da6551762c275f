"""What the operations give, made of what the host gives.

The one rule: the same fields as `keeve --json` has.
"""

from __future__ import annotations

from typing import Any

from dataspace.catalog.recent import SessionRow
from keeve.faces import session_face
from vat.host.host import Host
from vat.host.within import dataspace_of


def row_face(host: Host, row: SessionRow) -> dict[str, Any]:
    """A session; for a fork its parent's name is looked up in the catalog, and nothing is read."""
    parent = None if row.parent is None or row.deleted else dataspace_of(host).catalog.by_uid(row.parent)
    return session_face(row, parent)
