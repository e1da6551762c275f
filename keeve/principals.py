"""The principals that have a name of their own: who has the files of a store, and who has the token in its folder.

A command is `LOCAL` where it opens the store itself, and `OWNER` where it asks the server that has the store. It is the
same person who says the same, so a request that is made again at the other door is known there.

The one rule: only these two are one person, and only where the owner's own token, or the files, say so. What others ask
is theirs alone, whatever they are called.
"""

from __future__ import annotations

from typing import Final

from vat.heap.messages import NOBODY

LOCAL: Final = NOBODY.by
"""Who asks a host of its own process, unless it says otherwise."""

OWNER: Final = "owner"
"""Who asks a server with the token in the folder of its store."""
