"""`keeve fork`: another session from one that is there.

The one rule: nothing else happens to the store. The parent's pending work stays as it is, for the host that can do it.
"""

from __future__ import annotations

from pathlib import Path

from keeve.api import open_host
from keeve.cli.effects import ALONE
from keeve.cli.output import Output
from keeve.cli.reading import must_be_there, reading
from vat.outside import place


async def fork_session(folder: Path, output: Output, id: str, *, at: int | None, into: str | None) -> None:
    """Fork a session at a seq (its head). Raises `NoSuchSession`, `Deleted`, `NoSuchPoint`, `IdInUse`, `StoreOwned`."""
    must_be_there(folder)
    async with open_host(folder, settings=ALONE, via="cli") as host:
        parent = await host.get(id)
        uid, _ = place(await parent.fork(at=at, into=into))
    with reading(folder) as store:
        row = store.catalog.by_uid(uid)
        assert row is not None
        if output.as_json:
            output.document({"session": row.id, "uid": uid.hex(), "from": id, "at": row.parent_seq})
        else:
            output.say(row.id)
