"""Served: whether somebody serves a store to other processes of this machine, and if not, why it cannot be reached.

The one rule: a socket that was left by a server that is gone is none. So what is asked is whether somebody takes
connections there, not whether there is a file.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final

from dataspace.log.ownership import owner_of
from dataspace.remedies import command

SOCKET: Final = "socket"
"""The Unix socket of a server, in the folder of its store."""

TOKEN: Final = "token"
"""The file of the owner's token, in the folder of the store that is served."""

LONGEST: Final = 107
"""Bytes of the path of a Unix socket, at the most."""


def is_served(path: Path) -> bool:
    """Whether a server takes connections at that socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(str(path))
        except BlockingIOError:
            return True  # so many want to be served that there is no room to wait
        except OSError:
            return False
    return True


def why_not_served(path: Path) -> str:
    """Why no server is reached at that socket, for people."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if path.name != SOCKET:
        return "nobody takes connections there"
    if len(os.fsencode(path)) > LONGEST:
        return f"the path of a Unix socket has at most {LONGEST} bytes: connect to the server's http address"
    owner = owner_of(folder / "lock")
    if owner is None:
        return f"nobody serves the store in {folder}: {command('serve', folder)} does"
    named = f"process {owner}" if owner else "another process"
    serve = command("serve", folder)
    return f"{named} owns the store in {folder}, and does not serve it: close it there, and start {serve}"
