"""`keeve archive`: content that no session needs any more goes from old segments to a folder, and comes back.

The one rule: what it says is archived is in that folder, durably, and was read there again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from dataspace.errors import KeeveError
from dataspace.remedies import command
from keeve.cli.options import OWNER_OPTIONS, Flag, OwnerOptions
from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.progress import telling, written
from keeve.cli.text import counted, size
from keeve.cli.where import Where


class OneDirection(KeeveError, ValueError):
    """Neither or both of `--into` and `--back` were given."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(
            "content goes to an archive or comes back: give either --into FOLDER (with --before or --keep), or --back "
            "(with --from FOLDER, if the archive is not where it was)"
        )


def archive(
    *,
    into: Path | None = None,
    before: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    keep: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    idle: Annotated[bool, Flag] = False,
    records: Annotated[bool, Flag] = False,
    back: Annotated[bool, Flag] = False,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    common: OwnerOptions = OWNER_OPTIONS,
) -> int:
    """Have content that no session needs any more go from old segments of the log to a folder, or come back.

    Sessions go on as before, and the log still verifies. What went is read where it is, for as long as it is there.

    ```
    keeve archive --into /mnt/cold/keeve --keep 2
    keeve archive --into /mnt/cold/keeve --keep 2 --idle
    keeve archive --into /mnt/cold/keeve --keep 2 --records
    keeve archive --back
    keeve archive --back --from /mnt/elsewhere/keeve
    ```

    Parameters
    ----------
    into
        The archive: a folder that is empty, new, or an archive of this store; with --server, one of its machine.
    before
        Only segments whose records all come before this position.
    keep
        So many of the newest segments stay as they are.
    idle
        With all content of sessions that have done nothing since, and wait for nothing: not for a person's word, a
        time, a call or a queued input. They go on when the archive is in its place.
    records
        With what old records did, but for what they state: each session writes its whole heap, from which it goes on.
        Only who goes back to an earlier point of a session needs the archive then.
    back
        Have all that was archived come back.
    from_
        Where the archive is now.
    """
    choice = before is not None or keep or idle or records
    if (into is None) != back or (back and choice) or (from_ is not None and not back):
        raise OneDirection
    where = common.where
    if into is not None:
        how: dict[str, Any] = {"before": before, "keep": keep, "idle": idle, "records": records}
        trio.run(partial(_go, where, common.output, _named(into, where), how, own=common.own))
    else:
        place = None if from_ is None else str(_named(from_, where))
        trio.run(partial(_come_back, where, common.output, place, own=common.own))
    return 0


def _named(folder: Path, where: Where) -> Path:
    """A folder as it is sent: one of a server's machine is what was given, since that has no working folder here."""
    return folder.absolute() if where.server is None else folder


async def _go(where: Where, output: Output, into: Path, how: dict[str, Any], *, own: Own) -> None:
    far = written(into if where.server is None else None, "archived")
    async with where.acting(own) as store, telling(output, far):
        done = await store.archive(str(into), how)
    if output.as_json:
        output.document(done)
        return
    went = f"{counted(done['pieces'], 'piece')} of content ({size(done['bytes'])})"
    output.say(f"{went} went from {counted(done['segments'], 'segment')} to {done['folder']}")
    if how["records"]:
        deeds = f"{counted(done['records'], 'record')} among them: what these did, but for what they state"
        output.say(f"{deeds}; {counted(done['bases'], 'session')} wrote the whole heap for that", "dim")
    if how["idle"]:
        slept = counted(done["idle"], "session")
        output.say(f"{slept} without anything new since: what was said there is not needed here", "dim")
    for session in done["waiting"]:
        what = f"it waits for something, and {command('effects', session=session)} tells for what"
        output.say(f"session {session} is not idle and keeps what it needs: {what}", "dim")
    for session in done["whole"]:
        output.say(f"session {session} keeps all it has: a method waits in it, or it cannot be read", "dim")


async def _come_back(where: Where, output: Output, place: str | None, *, own: Own) -> None:
    far = written(where.folder / "log" if where.server is None else None, "brought back")
    async with where.acting(own) as store, telling(output, far):
        done = await store.bring_back(place)
    if output.as_json:
        output.document(done)
    else:
        output.say(f"{counted(done['pieces'], 'piece')} of content came back to {counted(done['segments'], 'segment')}")
