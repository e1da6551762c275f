"""What a tool gave, made fit for a model: cut where it is longer than a model should be told.

The one rule: what is short enough stays as it is, the very same value. Credentials are taken out before that
(`Effect.redact`), since half of one is not known again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from actors.chat import told
from dataspace.values import Blob

LONGEST: Final = 100_000
"""Characters: the longest answer of a tool that a model is told whole, unless the tool says otherwise."""

LARGEST: Final = 20 << 20
"""Bytes of pictures and the like in one answer."""


def cut(text: str, longest: int) -> str:
    """The beginning and the end of a text that is too long, and between them how much was left out.

    >>> cut("a" * 90 + "z" * 10, 20)
    'aaaaaaaaaaaaaaa\\n[… 80 of 100 characters left out …]\\nzzzzz'
    """
    if len(text) <= longest:
        return text
    end = longest // 4
    left = len(text) - longest
    return f"{text[: longest - end]}\n[… {left} of {len(text)} characters left out …]\n{text[len(text) - end :]}"


def shortened(value: Any, longest: int = LONGEST) -> Any:
    """A tool's answer, with at most about `longest` characters of what a model would be told of it.

    A string is cut, and so are the texts of content parts; anything else that is too long becomes its JSON, cut.
    Pictures of more than 20 MiB together are left out, and it says so.
    """
    if isinstance(value, str):
        return cut(value, longest)
    output = told(value)
    if isinstance(output, str):
        return value if len(output) <= longest else cut(output, longest)
    parts: list[Any] = []
    changed = False
    left, room = longest, LARGEST
    for part in output:
        text = part.get("text")
        kept = part
        if isinstance(text, str):
            if len(text) > left:
                kept = {**part, "text": cut(text, left)}
            left = max(0, left - len(text))
        elif (size := _size(part)) > room:
            kept = {"type": "text", "text": f"[{part['type']} of {size} bytes left out]"}
        else:
            room -= size
        changed = changed or kept is not part
        parts.append(kept)
    return parts if changed else value


def _size(part: Any) -> int:
    """The bytes of what is no text in a content part."""
    if isinstance(part, Blob):
        return len(part.content)
    if isinstance(part, str | bytes):
        return len(part)
    if isinstance(part, Mapping):
        return sum(_size(value) for key, value in part.items() if key != "type")
    return sum(map(_size, part)) if isinstance(part, list) else 0
