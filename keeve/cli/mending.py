"""The commands for what is damaged: their names, options and help.

The one rule: a command parses and hands over: what it does is in the module that it calls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from keeve.cli.dump import Wanted
from keeve.cli.dump import dump as show_frames
from keeve.cli.options import OPTIONS, Flag, Options
from keeve.cli.salvage import salvage as write_anew


def dump(
    file: Path | None = None,
    /,
    *,
    frames: Annotated[bool, Flag] = False,
    records: Annotated[bool, Flag] = False,
    session: str | None = None,
    start: Annotated[int, Parameter(name="--from", validator=Number(gte=0))] = 0,
    full: Annotated[bool, Flag] = False,
    common: Options = OPTIONS,
) -> int:
    """Show any file of a store, or all of them, frame by frame; what is damaged as well. With --json, a line for each.

    Ends with 1 when something in it is damaged. Reads, and nothing else: also files of a broken store, and single ones.

    ```
    keeve dump data/log/00000001.seg --from 1200
    keeve dump --session s1 --records
    ```

    Parameters
    ----------
    file
        The file, or the folder of a store; else the store.
    frames
        All frames, commits and zeros as well; that is what is shown unless --records is given.
    records
        Only records, with their cells and pages.
    session
        Only what is of this session: its id, or its uid (32 hex digits).
    start
        Begin with the record at this position.
    full
        Show values in full, however long they are.
    """
    wanted = Wanted(records=records and not frames, session=session, start=start, full=full)
    return show_frames(common.where.files("dump") if file is None else file, common.output, wanted)


def salvage(old: Path, new: Path, /, *, common: Options = OPTIONS) -> int:
    """Write all that is sound in a damaged store into a new one, and say what is not. The old one is left as it is.

    Each session is kept up to its damage, with its id, seqs and hashes. Ends with 1 when something was lost.

    ```
    keeve salvage data data-salvaged
    keeve verify --store data-salvaged
    ```

    Parameters
    ----------
    old
        The folder of the damaged store. It is only read, and no host may have it.
    new
        The folder of the new store: nothing may be there yet.
    """
    return write_anew(old, new, common.output)
