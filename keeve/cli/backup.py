"""`keeve backup`: a copy of a store as it was at one moment, also while a server has it.

The one rule: what it says is in the copy was looked at there, frame by frame.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from dataspace.log.backup import Backup
from dataspace.log.backup import backup as copy_of
from keeve.cli.options import OPTIONS, Options
from keeve.cli.output import Output
from keeve.cli.text import counted, size
from keeve.guard import guard
from keeve.served import TOKEN


def backup(store: Path, new: Path, /, *, common: Options = OPTIONS) -> int:
    """Copy a store as it is now, also while a server has it: a store like any other, checked frame by frame.

    Ends with 1 when something in the store is damaged; it is copied as it is then. The key of the host, the token of a
    server and the file of a signing key are not in it.

    ```
    keeve backup data /mnt/backup/data-2026-11-30
    ```

    Parameters
    ----------
    store
        The folder of the store. It is only read, and whoever has it goes on.
    new
        The folder of the backup: nothing may be there yet.
    """
    guard(store)
    guard(new)
    output = common.output
    done = copy_of(store, new, progress=lambda far, total: output.passing(f"copied: {size(far)}"))
    output.passing("")
    if output.as_json:
        output.document({"format": 1, "sound": not done.troubles_in_all, **attrs.asdict(done)})
    else:
        _tell(done, store, output)
    return 1 if done.troubles_in_all else 0


def _tell(done: Backup, store: Path, output: Output) -> None:
    for trouble in done.troubles:
        output.say(trouble, "red")
    if done.troubles_in_all > len(done.troubles):
        output.say(f"{done.troubles_in_all - len(done.troubles)} more of that kind", "red")
    checked = "checked" if not done.troubles_in_all else "NOT SOUND, as the store is: `keeve verify` tells more"
    output.say(
        f"{done.folder}: {counted(done.position, 'record')} in {counted(done.segments, 'segment')} "
        f"({size(done.bytes)} were written), {checked}"
    )
    if done.keys:
        output.say(
            f"its key file is {done.keys}: keep it as secret as the store; the key of the host is not in it", "dim"
        )
    if done.sealed:
        output.say("what is sealed was looked at as it lies: `keeve verify` with the host's key opens it", "dim")
    for folder in done.archives:
        output.say(f"some of its content is in the archive {folder}, which is not copied", "dim")
    if (store / TOKEN).exists():
        output.say("the token of the server is not copied: another one is made where there is none", "dim")
