"""The powers of a vat: what it is given, since it cannot make it itself.

The one rule: whoever runs a vat passes them in; what they give is recorded where it is used.
"""

from __future__ import annotations

from collections.abc import Callable

from dataspace.records import Salts


class Powers:
    """What a vat cannot make itself: time (µs since 1970), randomness, and where the log ends now, as a cursor."""

    __slots__ = ("clock", "cursor", "entropy", "log_id")

    def __init__(self, log_id: bytes, clock: Callable[[], int], entropy: Salts, cursor: Callable[[], str]) -> None:
        self.log_id = log_id
        self.clock = clock
        self.entropy = entropy
        self.cursor = cursor
