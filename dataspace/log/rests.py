"""What is left of records whose deeds are in an archive, or lost: their facts, and what proves them.

The one rule: facts are at hand wherever their record is; nobody who reads them needs an archive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dataspace.log.frames import Frame, rest_in
from dataspace.log.store import Stored
from dataspace.records import Header, Rest, split_rest

Open: TypeAlias = Callable[[Header, Frame, bytes], "bytes | None"]
"""Opens a sealed body of a record; gives None when its key was destroyed. Raises `Unopened` or `LookupError`."""


def facts_of(stored: Stored) -> bytes:
    """The facts of a record. Raises what reading it raises, but for `Archived`."""
    rest = stored.rest()
    return stored.body().facts if rest is None else rest.facts


def read_rest(header: Header, found: Frame, place: bytes, opener: Open | None) -> Rest | None:
    """What is left of a record, by the bytes in the place of its body; None where it is sealed, and nobody has the key.

    Raises `ValueError` when that is not what was written, and what opening it raises.
    """
    plain = rest_in(place)
    if plain is not None and found.flags:
        plain = None if opener is None else opener(header, found._replace(was=found.type), plain)
        if plain is None:
            return None
    rest = None if plain is None else split_rest(plain)
    if rest is None:
        raise ValueError("is not what was written")
    return rest
