"""`keeve gc` and `keeve erase`: what was deleted goes from the files, and what was said once goes from a session.

The one rule: what they say is gone is gone from the files of the store, durably, when they say it.
"""

from __future__ import annotations

from pathlib import Path

from dataspace.errors import KeeveError
from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.owning import owning
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


async def collect(folder: Path, output: Output, *, own: Own) -> None:
    """Have what was deleted go from the files. Raises `NotAStore`, `StoreOwned`, or what the disk refuses."""
    before = _taken(folder)

    def freed_by_now() -> str:
        return f"freed: {size(max(0, before - _taken(folder)))}"

    async with owning(folder, own.types()) as host, telling(output, freed_by_now):
        gone = await host.reclaim()
    freed = max(0, before - _taken(folder))
    if output.as_json:
        output.document(
            {
                "sessions": gone.sessions,
                "bodies": gone.bodies,
                "pages": gone.pages,
                "archived": gone.archived,
                "freed": freed,
            }
        )
        return
    if gone.sessions or gone.bodies:
        sessions = "1 deleted session" if gone.sessions == 1 else f"{gone.sessions} deleted sessions"
        output.say(f"{sessions}: {gone.bodies} bodies (of records, contents and pages) are gone; {_said(freed)}")
    if gone.pages:
        pages = "1 page" if gone.pages == 1 else f"{gone.pages} pages"
        output.say(f"old snapshots: {pages} are gone that no session needs; {_said(freed)} in all")
    if gone.archived:
        output.say(f"archives: {gone.archived} bodies (of records, contents and pages) are gone that were erased since")
    if not (gone.sessions or gone.bodies or gone.pages or gone.archived):
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


def _said(freed: int) -> str:
    return f"{size(freed)} of disk are freed" if freed else "too little for a block of disk to be freed"


def _taken(folder: Path) -> int:
    """Bytes of disk that a store's log takes."""
    return sum(path.stat().st_blocks * 512 for path in (folder / "log").glob("*.seg"))
