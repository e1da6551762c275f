"""The powers of a vat: what it is given, since it cannot make it itself.

The one rule: whoever runs a vat passes them in; what they give is recorded where it is used.
"""

from __future__ import annotations

from collections.abc import Callable

from dataspace.records import Salts


def perhaps(uid: bytes, effect: int) -> bool:
    """What `Powers.begun` is where nobody knows of effects."""
    return True


class Powers:
    """What a vat cannot make itself: time (µs since 1970), randomness, and where the log ends now, as a cursor.

    begun: whether a device may have been given an effect (by its session's uid, and its number) of which no record
      says that it has started. False where such a record would be there, because the device is given it after that; and
      where what wants it is not durable, so that nobody has been given it.
    carries: whether effects and messages are carried out, so that what a caller waits for can come.
    writes: whether records can be written. Where they cannot, nothing is collected either, so that a ref which is
      handed out for the first time leads to what stays.
    """

    __slots__ = ("begun", "carries", "clock", "cursor", "entropy", "log_id", "writes")

    def __init__(
        self,
        log_id: bytes,
        clock: Callable[[], int],
        entropy: Salts,
        cursor: Callable[[], str],
        begun: Callable[[bytes, int], bool] = perhaps,
        carries: bool = True,
        writes: bool = True,
    ) -> None:
        self.log_id = log_id
        self.clock = clock
        self.entropy = entropy
        self.cursor = cursor
        self.begun = begun
        self.carries = carries
        self.writes = writes
