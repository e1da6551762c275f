"""Which Keeve this is, as installed.

The one rule: asked once, when the server starts.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("keeve")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


VERSION = _version()
