"""The order of scalars: in which the keys of maps and sets are kept and iterated.

The one rule: types first (`None`, bool, int, float, str, bytes, symbol, ref), then within the type. So the
order is total, and keys that Python takes for equal (`1`, `1.0`, `True`) are not.
"""

from __future__ import annotations

from struct import Struct
from types import NoneType
from typing import Any, Final

from dataspace.values.kinds import NotAValue, Ref, Symbol, Value

_DOUBLE: Final = Struct(">d")
_BITS: Final = Struct(">q")
_RANKS: Final[dict[type, int]] = {NoneType: 0, bool: 1, int: 2, str: 4, bytes: 5}


def scalar_key(value: Value) -> tuple[int, Any]:
    """What to order a key of a map or set by, and to tell it from others: `(rank of its type, comparable)`.

    Strings and symbols go by code points, floats by IEEE 754's total order (so `-0.0` comes before `0.0`,
    and NaNs lie beyond the infinities by sign and payload), refs by session, this vat's first. Raises
    `NotAValue` for what is no scalar.
    """
    kind = type(value)
    rank = _RANKS.get(kind)
    if rank is not None:
        return rank, value if value is not None else 0
    if kind is float:
        (bits,) = _BITS.unpack(_DOUBLE.pack(value))
        return 3, bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF
    if kind is Symbol:
        return 6, value.name
    if isinstance(value, Ref):
        return 7, (value.session or b"", value.actor)
    raise NotAValue(
        "key",
        kind,
        f"{kind.__name__} cannot be a key; keys are None, bool, int, float, str, bytes, Symbol or Ref",
    )
