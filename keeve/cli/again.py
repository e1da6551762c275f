"""The command that goes on with a session: what is said on the way out, and to whom an id is refused.

The one rule: typed as it is told, in the same folder and environment, it finds that session.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from keeve.variables import SERVER

DEFAULT = Path("data")
"""The store when nobody names one."""


def chat_with(id: str, folder: Path, own: Sequence[str] = (), server: str | None = None) -> str:
    """`keeve chat ...` for a session of the store in `folder`, or with a `server`; `own` are the options that a host of
    this command's own was given."""
    program = sys.argv[0]
    found = shutil.which("keeve")
    if Path(program).name != "keeve" or (found is not None and Path(found).resolve() == Path(program).resolve()):
        program = "keeve"
    store = [] if folder == DEFAULT else ["--store", str(folder)]
    if server is not None:
        store = [] if os.environ.get(SERVER) == server else ["--server", server]
    return shlex.join([program, "chat", *store, *own, *(["--"] if id.startswith("-") else []), id])
