"""The variables of the environment that say what a command is told by options as well.

The one rule: names, and nothing that reads them; so that who only needs the name of one loads nothing else.
"""

from __future__ import annotations

from typing import Final

ACTORS: Final = "KEEVE_ACTORS"
"""Names actor types for all commands, with spaces between."""

CONFIG: Final = "KEEVE_SERVER_CONFIG"
"""Names a file of settings."""

SERVER: Final = "KEEVE_SERVER"
"""Names the server that has the store."""

STORE: Final = "KEEVE_STORE"
"""Names the folder of the store for all commands."""
