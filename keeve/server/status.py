"""How far a session is, as it tells it itself (`status`).

The one rule: it is asked only where its type has that to be read. An agent of one's own may call something else so.
"""

from __future__ import annotations

from typing import Any

from keeve.looking import status_of
from keeve.wire.verbs import READ, verb_of
from vat.host.host import Host
from vat.host.outside import HostRef


async def status_there(host: Host, ref: HostRef[Any]) -> Any:
    """What a session tells of how far it is; None for one of a type that has nothing to read that tells it."""
    return await status_of(ref) if verb_of(host, ref, "status") == READ else None
