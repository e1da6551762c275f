"""Text as a terminal may be given it.

What models, tools and users have said is shown to somebody who did not write it. A terminal obeys control characters
and escape sequences, so none of them reaches it: `plain` takes them out of text that has lines, `visible` writes them
as `\\u001b` in what must stay one line, and in JSON, where that is the same text.

The one rule: everything that goes to a terminal and was not written in this package passes through here.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from keeve.faces import date_of

# Control characters but newline and tab; what turns the direction of text; halves of surrogate pairs.
_HOSTILE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ANY_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\u2028\u2029]")

# Escape sequences as ECMA-48 has them: strings (OSC and the like) to their end, CSI, and the short ones.
_STRING: Final = r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
_CSI: Final = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
_SHORT: Final = r"\x1b[ -/]*[0-~]?"
_SEQUENCE: Final = re.compile(f"{_STRING}|{_CSI}|{_SHORT}")

_UNFINISHED: Final = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*\x1b?$|(?:\x1b\[|\x9b)[0-?]*[ -/]*$|\x1b[ -/]*$"
)
_LONGEST: Final = 4096
"""Characters of a sequence that is not at its end which are waited for."""


def plain(text: str) -> str:
    """Text with its lines and tabs, without escape sequences and other control characters.

    >>> plain("\\x1b[31mred\\x1b[0m\\r\\nand \\x07on")
    'red\\nand on'
    """
    return _HOSTILE.sub("", _SEQUENCE.sub("", text))


def visible(text: str) -> str:
    """Text on one line, its control characters written as JSON writes them.

    >>> visible("a\\x1b[2Jb\\nc")
    'a\\\\u001b[2Jb\\\\u000ac'
    """
    return _ANY_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Cleaner:
    """`plain` for text that comes in pieces: a sequence may begin in one of them and end in another."""

    def __init__(self) -> None:
        self._held = ""

    def of(self, piece: str) -> str:
        """What of the pieces so far can be shown now."""
        text = self._held + piece
        begun = _UNFINISHED.search(text)
        self._held = "" if begun is None or len(text) - begun.start() > _LONGEST else text[begun.start() :]
        return plain(text[: len(text) - len(self._held)])


def local_time(time: int) -> str:
    """A time (µs since 1970) for people: to the second, in the local zone; empty for 0."""
    return date_of(time).astimezone().strftime("%Y-%m-%d %H:%M:%S") if time else ""


def time_said(text: str) -> int:
    """The time (µs since 1970) that was told in UTC.

    >>> time_said("2023-11-14T22:13:20.000001Z")
    1700000000000001
    """
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)


def size(count: int) -> str:
    """A number of bytes for people.

    >>> size(512), size(1536), size(3 << 30)
    ('512 bytes', '1.5 KiB', '3.0 GiB')
    """
    if count < 1024:
        return f"{count} bytes"
    amount = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if amount < 1024 or unit == "TiB":
            break
    return f"{amount:.1f} {unit}"


ERASED: Final = {"$erased": True}
"""What stands in JSON in the place of content that was erased."""


def as_given(value: Any) -> str:
    """What was given in a call, on one line: a text as it is, else JSON; `[erased]` where something was.

    >>> as_given("wet"), as_given({"n": 1}), as_given({"$erased": True}), as_given([{"$erased": True}, 2])
    ('wet', '{"n": 1}', '[erased]', '["[erased]", 2]')
    """
    said = _with_erased(value)
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def _with_erased(value: Any) -> Any:
    if value == ERASED:
        return "[erased]"
    if isinstance(value, list):
        return [_with_erased(item) for item in value]
    return {name: _with_erased(item) for name, item in value.items()} if isinstance(value, dict) else value


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "record"), counted(2, "record")
    ('1 record', '2 records')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(plain(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
