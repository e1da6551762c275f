"""`keeve gc` and `keeve erase`: what was deleted goes from the files, and what was said once goes from a session.

The one rule: what they say is gone is gone from the files of the store, durably, when they say it.
"""

from __future__ import annotations

from pathlib import Path

from dataspace.errors import KeeveError
from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.progress import telling
from keeve.cli.text import size
from keeve.cli.where import Where


class OnePlace(KeeveError, ValueError):
    """Neither or both of `--turn` and `--seq` were given."""

    usage = True

    def __init__(self) -> None:
        super().__init__(
            "one thing is erased at a time: give either --turn (what was said in it) or --seq (of a record)"
        )


async def collect(where: Where, output: Output, *, own: Own) -> None:
    """Have what was deleted go from the files. Raises `NotAStore`, `StoreOwned`, or what the disk refuses."""
    folder = None if where.server is not None else where.folder
    before = _taken(folder)

    def freed_by_now() -> str:
        return "" if folder is None else f"freed: {size(max(0, before - _taken(folder)))}"

    async with where.acting(own) as store, telling(output, freed_by_now):
        gone = await store.reclaim()
    freed = None if folder is None else max(0, before - _taken(folder))
    if output.as_json:
        output.document({name: gone[name] for name in ("sessions", "bodies", "pages", "archived")} | {"freed": freed})
        return
    if gone["sessions"] or gone["bodies"]:
        sessions = "1 deleted session" if gone["sessions"] == 1 else f"{gone['sessions']} deleted sessions"
        output.say(f"{sessions}: {gone['bodies']} bodies (of records, contents and pages) are gone{_said(freed)}")
    if gone["pages"]:
        pages = "1 page" if gone["pages"] == 1 else f"{gone['pages']} pages"
        output.say(f"old snapshots: {pages} are gone that no session needs{_said(freed, ' in all')}")
    if gone["archived"]:
        bodies = f"{gone['archived']} bodies (of records, contents and pages)"
        output.say(f"archives: {bodies} are gone that were erased since")
    if not any(gone.values()):
        output.say("nothing to do")


async def erase(
    where: Where, output: Output, id: str, *, seq: int | None, turn: int | None, force: bool, own: Own
) -> None:
    """Erase what a record of a session brought, or what was said in a turn.

    Raises `NothingToErase`, `Busy` (unless it is forced), `NoSuchSession`, `Deleted`, `StoreOwned`.
    """
    async with where.acting(own) as store:
        pieces = await store.erase(id, seq, turn, force)
    if output.as_json:
        output.document({"session": id, "seq": seq, "turn": turn, "erased": pieces})
    else:
        output.say(f"erased {pieces} pieces of content" if pieces != 1 else "erased 1 piece of content")


def _said(freed: int | None, more: str = "") -> str:
    if freed is None:
        return ""
    return (
        f"; {size(freed)} of disk are freed{more}" if freed else f"; too little for a block of disk to be freed{more}"
    )


def _taken(folder: Path | None) -> int:
    """Bytes of disk that a store's log takes; 0 where nobody can look."""
    return 0 if folder is None else sum(path.stat().st_blocks * 512 for path in (folder / "log").glob("*.seg"))
