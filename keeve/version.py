"""Which Keeve this is, as installed.

The one rule: looked for where it is told, and once.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def installed() -> str:
    """The version; `unknown` for a checkout that is not installed."""
    try:
        return version("keeve")
    except PackageNotFoundError:
        return "unknown"
