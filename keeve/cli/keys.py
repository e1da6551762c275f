"""The commands for the key of a host: `keeve rekey`.

The one rule: no key is an argument, since everybody on a machine can read those: a key is in a file, or in the
environment.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

from keeve.cli.app import OPTIONS, Flag, Options, app
from keeve.cli.reading import must_be_there
from keeve.host_keys import host_key, host_key_from
from keeve.host_keys import rekey as have_rekeyed

__all__ = ["app"]


@app.command
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
    must_be_there(common.store)
    have_rekeyed(common.store, host_key_from(os.environ), partial(host_key, to, make=make))
    if common.json:
        common.output.document({"key": str(to)})
    else:
        common.output.say(f"from here on {common.store} opens with the key in {to}")
    return 0
