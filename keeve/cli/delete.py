"""`keeve delete`: a session is gone for ever.

The one rule: nothing else happens to the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keeve.api import open_host
from keeve.cli.effects import ALONE
from keeve.cli.output import Output
from keeve.cli.own import named_types
from keeve.cli.reading import must_be_there


async def delete_session(folder: Path, output: Output, id: str, *, force: bool, actors: Sequence[str]) -> None:
    """Delete a session. Raises `Busy` (unless it is forced), `NoSuchSession`, `Deleted`, `StoreOwned`."""
    must_be_there(folder)
    async with open_host(folder, actors=named_types(actors), settings=ALONE, via="cli") as host:
        await host.delete(id, force=force)
    if output.as_json:
        output.document({"session": id, "deleted": True})
    else:
        output.say(f"deleted {id}")
