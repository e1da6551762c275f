"""The outline of msgpack bytes from outside, looked over before anything is made of them.

It promises that decoding what passes takes memory and time in proportion to its length: every announced
item has bytes left for it, nothing is nested deeper than a value may be, map keys are strings, ext types
are allowed ones, and the bytes end where the value does.

The one rule: a header is believed only as far as the bytes behind it reach. Nothing is built here.
"""

from __future__ import annotations

from typing import Final

from dataspace.errors import KeeveError


class BadEncoding(KeeveError, ValueError):
    """Bytes that are not the encoding of a value; `reason` says what is wrong, and at which byte."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"not the encoding of a value: {self.reason}; if these bytes are a store's, run `keeve verify`"


_NEVER, _PLAIN, _STR, _EXT, _ARRAY, _MAP = range(6)


def _heads() -> list[tuple[int, int, int]]:
    """For each first byte: what it begins, the bytes its size takes, and the size where it takes none."""
    heads = [(_PLAIN, 0, 0)] * 256
    for low in range(16):
        heads[0x80 | low] = (_MAP, 0, low)
        heads[0x90 | low] = (_ARRAY, 0, low)
    for low in range(32):
        heads[0xA0 | low] = (_STR, 0, low)
    for first, kind, widths in (
        (0xC4, _PLAIN, (1, 2, 4)),  # bytes
        (0xC7, _EXT, (1, 2, 4)),
        (0xD9, _STR, (1, 2, 4)),
        (0xDC, _ARRAY, (2, 4)),
        (0xDE, _MAP, (2, 4)),
    ):
        for offset, width in enumerate(widths):
            heads[first + offset] = (kind, width, 0)
    for first, kind, sizes in (
        (0xCB, _PLAIN, (8, 1, 2, 4, 8, 1, 2, 4, 8)),  # float64, unsigned and signed integers
        (0xD4, _EXT, (1, 2, 4, 8, 16)),
    ):
        for offset, size in enumerate(sizes):
            heads[first + offset] = (kind, 0, size)
    heads[0xC1] = heads[0xCA] = (_NEVER, 0, 0)  # msgpack leaves the one out; the other is float32
    return heads


_HEADS: Final = _heads()


def check_outline(data: bytes, ext_types: range, max_depth: int, max_items: int | None = None) -> None:
    """Raise `BadEncoding` unless `data` is the outline of exactly one value, of `max_items` in all containers at most.

    One pass over the headers.
    """
    end = len(data)
    at = 0
    room = end if max_items is None else max_items
    owed = 1  # items announced and not yet met, in all that is open; each will take a byte at least
    left, in_map = 1, False  # items to come in the innermost container; a map's keys and values both count
    outer: list[tuple[int, bool]] = []
    while owed:
        if owed > end - at:
            raise BadEncoding(f"byte {at}: {owed} more items are announced, and {end - at} bytes are left")
        start = at
        kind, width, size = _HEADS[data[at]]
        if in_map and not left & 1 and kind != _STR:
            raise BadEncoding(f"byte {at}: a dict key that is not a string")
        at += 1 + width
        if width:
            size = int.from_bytes(data[at - width : at], "big")
        owed -= 1
        left -= 1
        if kind >= _ARRAY:
            items = size if kind == _ARRAY else 2 * size
            if len(outer) >= max_depth:
                raise BadEncoding(f"byte {start}: nested more than {max_depth} deep")
            outer.append((left, in_map))
            owed += items
            room -= items
            if room < 0 and max_items is not None:
                raise BadEncoding(f"byte {start}: more than {max_items} items")
            left, in_map = items, kind == _MAP
        else:
            if kind == _NEVER:
                raise BadEncoding(f"byte {start}: 0x{data[start]:02x} begins no value")
            if kind == _EXT:
                if at < end and data[at] not in ext_types:
                    raise BadEncoding(f"byte {at}: an unknown ext type, {data[at]}")
                at += 1
            at += size
        if at > end:
            raise BadEncoding(f"byte {start}: {at - end} bytes are missing")
        while not left and outer:
            left, in_map = outer.pop()
    if at != end:
        raise BadEncoding(f"byte {at}: {end - at} bytes after the value")
