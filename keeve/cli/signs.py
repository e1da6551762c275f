"""Signs: what a check of `keeve doctor` gives.

The one rule: one that warns, or is bad, says what to do.
"""

from __future__ import annotations

from typing import Final

import attrs

UNSEEN: Final = "contents"
"""Of the sign that says that there is more than could be looked at."""

OK, NOTE, WARN, BAD = "ok", "note", "warn", "bad"


@attrs.frozen
class Sign:
    """What was looked at (`of`), how it is (`state`: ok, note, warn or bad), what was seen, and the remedy."""

    of: str
    state: str
    seen: str
    remedy: str = ""
