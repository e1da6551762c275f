"""The commands for the key of a host: `keeve new-key` and `keeve rekey`.

The one rule: no key is an argument, since everybody on a machine can read those: a key is in a file, or in the
environment.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from dataspace.errors import KeeveError
from keeve.cli.options import OPTIONS, Flag, Options
from keeve.cli.reading import must_be_there
from keeve.host_keys import host_key, host_key_from
from keeve.host_keys import rekey as have_rekeyed


class KeyIsThere(KeeveError, FileExistsError):
    """A file in whose place a key was to be made."""

    usage: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already, and stays as it is: name a new file")


def new_key(file: Path, /, *, common: Options = OPTIONS) -> int:
    """Make the key of a host, in a new file that its owner alone may read. A store that is made with it is encrypted.

    Keep a copy in another place than the copies of the store: without it nobody can read them, ever.

    ```
    keeve new-key host.key
    KEEVE_KEY_FILE=host.key keeve chat s1
    ```

    Parameters
    ----------
    file
        The file to make.
    """
    if file.exists() or file.is_symlink():
        raise KeyIsThere(file)
    host_key(file, make=True)
    if common.json:
        common.output.document({"key": str(file)})
    else:
        common.output.say(str(file))
        common.output.note(f"export KEEVE_KEY_FILE={file} before the first command on a new store encrypts that store")
    return 0


def rekey(*, to: Path, make: Annotated[bool, Flag] = False, common: Options = OPTIONS) -> int:
    """Have an encrypted store open with another key from here on. Nobody may own it now.

    The key until now is the one that the environment names, in KEEVE_KEY_FILE or KEEVE_KEY. Only the key file is
    written. Keep the old key for as long as you keep copies of the store from before.

    ```
    keeve rekey --to new.key --make
    ```

    Parameters
    ----------
    to
        The file of the new key.
    make
        Make it if it is not there.
    """
    folder = common.where.files("rekey")
    must_be_there(folder)
    have_rekeyed(folder, host_key_from(os.environ), partial(host_key, to, make=make))
    if common.json:
        common.output.document({"key": str(to)})
    else:
        common.output.say(f"from here on {folder} opens with the key in {to}")
    return 0
