"""Texts as parts of a path: an id may be any text, and a path has its own ideas of some.

Browsers, and most clients, take `.` and `..` for directions, however they are encoded, and send them to nobody. So
these are written with a `;` behind them; and what would then be taken for them, with one more.

The one rule: what is written here is read here as the same text.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

DIRECTIONS: Final = re.compile(r"\.\.?;*")


def in_path(text: str) -> str:
    """A text as one part of a path.

    >>> in_path("a/b c"), in_path(".."), in_path("..;")
    ('a%2Fb%20c', '..%3B', '..%3B%3B')
    """
    return quote(f"{text};" if DIRECTIONS.fullmatch(text) else text, safe="")


def of_path(part: str) -> str:
    """The text that is written so. Raises `UnicodeDecodeError` for what is not UTF-8.

    >>> of_path("a%2Fb%20c"), of_path("..%3B"), of_path(".;;")
    ('a/b c', '..', '.;')
    """
    text = unquote(part, errors="strict")
    return text[:-1] if text.endswith(";") and DIRECTIONS.fullmatch(text) else text
