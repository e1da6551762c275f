"""What answers have used, added up.

The one rule: a service is not trusted. What cannot be a count is left out, and how much was is counted itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

MOST: Final = 10**12
"""The largest count that is taken from one answer's usage."""

MOST_COUNTS: Final = 100
"""Names of counts that are kept of a usage, at each level."""

KEPT_COUNTS: Final = ("total_tokens", "prompt_tokens", "completion_tokens")
"""Those that are kept whatever else there is."""

DEEPEST_COUNT: Final = 8
"""Levels of a usage that are kept."""

LONGEST_NAME: Final = 200
"""Characters of a model's name, or a count's, that are kept."""


def summed(total: Mapping[str, Any], more: Mapping[str, Any], deepest: int = DEEPEST_COUNT) -> dict[str, Any]:
    """Two usages as one: counts are added, key by key, at any depth; what is no number is left out.

    What a service says is not trusted: numbers that cannot be counts (NaN, negative, more than `MOST`), and what comes
    beyond `MOST_COUNTS` names or `deepest` levels, are left out as well, and `ignored` says how many there were.

    >>> summed({"total": 3, "details": {"cached": 1}}, {"total": 4, "details": {"cached": 1}, "tier": "x"})
    {'total': 7, 'details': {'cached': 2}}
    >>> summed({"total": 3}, {"total": -7})
    {'total': 3, 'ignored': 1}
    """
    result = dict(total)
    ignored = 0
    for key, value in more.items():
        before = result.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not isinstance(value, Mapping):
            continue
        if key not in KEPT_COUNTS and before is None and (len(result) >= MOST_COUNTS or len(key) > LONGEST_NAME):
            ignored += 1
        elif isinstance(value, Mapping):
            if _counted(before) or not deepest:  # nothing takes a count away
                ignored += 1
            else:
                result[key] = summed(before if isinstance(before, Mapping) else {}, value, deepest - 1)
        elif 0 <= value <= MOST:  # which NaN is not
            result[key] = value + _count_in(before)
        else:
            ignored += 1
    if ignored:
        result["ignored"] = ignored + _count_in(result.get("ignored"))
    return result


def _counted(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _count_in(value: Any) -> int | float:
    return value if _counted(value) else 0
