"""Packing: lists of numbers that lie near each other, as few bytes.

    0      u8   the length of the base in bytes * 16 + the width of a distance (0 to 3: 1, 2, 4, 8 bytes)
    1      ...  the base, the least of the numbers, big endian
           ...  the distance of each number from it, in the machine's byte order

The one rule: pure, and at the speed of `array`. What is packed here is derived and never leaves its machine.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Final

_LETTERS: Final = "BHIQ"
_WIDTHS: Final = (1, 2, 4, 8)
_MOST: Final = (0xFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


def pack(numbers: Sequence[int]) -> bytes:
    """Numbers, from 0 to 2**64: the least of them, and the distances of all from it in the fewest bytes each."""
    base = min(numbers)
    top = max(numbers) - base
    code = next(code for code, most in enumerate(_MOST) if top <= most)
    length = (base.bit_length() + 7) // 8
    distances = array(_LETTERS[code], [number - base for number in numbers])
    return b"".join(((length << 4 | code).to_bytes(1, "big"), base.to_bytes(length, "big"), distances.tobytes()))


def unpack(data: bytes) -> list[int]:
    """What `pack` packed."""
    start = 1 + (data[0] >> 4)
    base = int.from_bytes(data[1:start], "big")
    return [base + distance for distance in array(_LETTERS[data[0] & 15], data[start:])]


def least(data: bytes) -> int:
    """The least of the packed numbers."""
    return int.from_bytes(data[1 : 1 + (data[0] >> 4)], "big")


def item(data: bytes, at: int) -> int | None:
    """Packed number `at`; None when there are not so many. O(1)."""
    width = _WIDTHS[data[0] & 15]
    start = 1 + (data[0] >> 4)
    place = start + at * width
    if place >= len(data):
        return None
    return int.from_bytes(data[1:start], "big") + int.from_bytes(data[place : place + width], sys.byteorder)
