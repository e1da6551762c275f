"""What the records of a session are of: which call each one took, whose it was, and what it has asked devices for.

So a person finds the one that brought something, as to have that erased.

The one rule: names and numbers alone. What was given, and what came of it, is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.log.store import Stored
from vat.heap.messages import asker_in
from vat.heap.opcodes import Op

NAME: Final = 200
"""Characters of a method's name that are told: whoever calls may have sent anything as one."""


def of_record(stored: Stored) -> dict[str, Any] | None:
    """What a record is of, in JSON; None where that cannot be read here. Costs the reading of its body.

    method: what was called. effect: the number of the effect that has started, or ended. by, via, request: who asked,
    how, and with which request id. calls: the effects that it wants. Each is None (or empty) where there is none.
    """
    try:
        deeds = read_deeds(stored.body().deeds)
    except (KeeveError, ValueError):  # damaged, away, or without its key
        return None
    said: Mapping[str, Any] = deeds.message if isinstance(deeds.message, Mapping) else {}
    asker, method = asker_in(said), said.get("method")
    return {
        "method": method[:NAME] if isinstance(method, str) else None,
        "effect": said.get("effect"),
        "by": None if asker is None else asker.by,
        "via": None if asker is None else asker.via,
        "request": None if asker is None else asker.request,
        "calls": [_wanted(operation) for operation in deeds.operations if operation[0] == Op.WANTED],
    }


def _wanted(operation: Any) -> dict[str, Any]:
    _, number, _, device, method, *_ = operation
    return {"effect": number, "device": device, "method": method}
