"""`keeve delete`: a session is gone for ever.

The one rule: nothing else happens to the store.
"""

from __future__ import annotations

from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.where import Where


async def delete_session(where: Where, output: Output, id: str, *, force: bool, own: Own) -> None:
    """Delete a session. Raises `Busy` (unless it is forced), `NoSuchSession`, `Deleted`, `StoreOwned`."""
    async with where.acting(own) as store:
        await store.delete(id, force)
    if output.as_json:
        output.document({"session": id, "deleted": True})
    else:
        output.say(f"deleted {id}")
