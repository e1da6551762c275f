"""A value as text, the way patterns write it.

| value | text |
|---|---|
| `None`, `True`, `False` | `#nil`, `#t`, `#f` |
| int, float | `12`, `-1.5`, `1e+22`, `+inf.0`, `-inf.0`, `+nan.0` |
| str, bytes | `"in JSON quotes"`, `#"68ff"` (hex) |
| list, dict | `(1 "two" three)`, `{"key": 1, "other": (2)}` |
| `Symbol` | `turn` |
| `Ref`, `Promise` | `#ref(3)`, `#ref(#"0011…" 3)`, `#promise(4)` |
| `Blob` | `#blob("text/plain" #"6869")` |
| `ERASED` | `#erased` |
| other NaNs, very large ints | `#nan(#"fff8000000000000")`, `#int("-1f…")` (hex) |

The one rule: different values have different texts, and the text of a value is one term.
"""

from __future__ import annotations

import json
import math
from struct import pack
from typing import Final

from dataspace.values.kinds import Blob, CelledBlob, CellRef, Erased, NotAValue, Promise, Ref, Symbol, Value

_MAX_DECIMAL_BITS: Final = 8192  # Python refuses to write much larger ones in decimal


def render(value: Value) -> str:
    """The text of a value, as patterns write it; one line. Raises `NotAValue` for what is none."""
    if value is None:
        return "#nil"
    if value is True:
        return "#t"
    if value is False:
        return "#f"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _MAX_DECIMAL_BITS else f'#int("{value:x}")'
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, bytes):
        return f'#"{value.hex()}"'
    if isinstance(value, list):
        return f"({' '.join(map(render, value))})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)}: {render(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, Ref):
        session = "" if value.session is None else f"{render(value.session)} "
        return f"#ref({session}{value.actor})"
    if isinstance(value, Promise):
        return f"#promise({value.id})"
    if isinstance(value, Blob | CelledBlob):
        return f"#blob({_quoted(value.media_type)} {render(value.content)})"
    if isinstance(value, Erased):
        return "#erased"
    if isinstance(value, CellRef):
        return f"#cell({value.seq} {value.number})"
    raise NotAValue("value", type(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    if math.isinf(value):
        return "+inf.0" if value > 0 else "-inf.0"
    bits = pack(">d", value)
    return "+nan.0" if bits == b"\x7f\xf8\0\0\0\0\0\0" else f'#nan(#"{bits.hex()}")'
