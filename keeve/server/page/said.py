"""What was said, as text: inputs, messages and outputs, which are strings, lists of parts, or any value.

It works on faces, which is what the modules in the browser have as well (`said.js` is its twin).

The one rule: nothing is left out in silence. What is no text is named, or written as JSON.
"""

from __future__ import annotations

import json
from typing import Any, Final

WIDTH: Final = 120
"""Characters of a text on one line."""
CUT: Final = 200
"""Characters of a part that is no text."""
LONG: Final = 1_500
"""Characters of a text that are shown among others, in `LINES` lines at the most."""
LINES: Final = 25


def as_text(said: Any) -> str:
    """A face as text, with its lines.

    >>> as_text([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), as_text({"a": 1})
    ('one\\ntwo', '{"a":1}')
    """
    if said is None:
        return ""
    if isinstance(said, str):
        return said
    if said == {"$erased": True}:
        return "[erased]"
    if isinstance(said, list) and said and all(isinstance(part, dict) and "type" in part for part in said):
        return "\n".join(_part(part) for part in said)
    return _json(said)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))  # as browsers write it


def _part(part: dict[str, Any]) -> str:
    if part["type"] in ("text", "input_text", "output_text"):
        return as_text(part.get("text"))
    rest = _json({name: value for name, value in part.items() if name != "type"})
    return f"[{part['type']}] {rest if len(rest) <= CUT else rest[:CUT] + '…'}"


def is_long(text: str) -> bool:
    """Whether a text is too long to be shown whole among others.

    >>> is_long("a" * 1500), is_long("a" * 1501), is_long("a\\n" * 25)
    (False, True, True)
    """
    return len(text) > LONG or text.count("\n") >= LINES


def beginning(text: str) -> str:
    """A text that is not long; of one that is, how it begins."""
    return "\n".join(text[:300].split("\n")[:8]) + "…" if is_long(text) else text


def in_line(said: Any) -> str:
    """The same on one line, which is cut.

    >>> in_line("one\\n  two")
    'one two'
    """
    line = " ".join(as_text(said)[: 4 * WIDTH].split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
