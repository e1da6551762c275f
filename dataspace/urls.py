"""URLs of services, as users give them: whether one can be used, and what of one may be shown.

The one rule: of a user, a password, a query and a fragment nothing is shown, since any of them may be a secret. Where
nobody can say what of a text they are, none of it is.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

import attrs

HIDDEN: Final = "…"
"""What stands for a text of which nothing may be shown."""

_ADDRESS: Final = re.compile(
    r"(?:\w+://)?(?:localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?::\d{1,5}(?:/[\w./-]*)?|/[\w./-]*)", re.ASCII
)
"""What is an address of a service and no key: a host with a port, or a path behind one with a dot in its name."""


@attrs.frozen
class Flaw:
    """Why a URL cannot be used (`reason`), and what it was (`shown`), "" where that may be a secret."""

    reason: str
    shown: str = ""

    def __str__(self) -> str:
        return f"{self.shown} {self.reason}".lstrip()


def flaw_in(url: str) -> Flaw | None:
    """What is wrong with the URL of a service that is asked over HTTP; None where nothing is.

    >>> str(flaw_in("localhost:8000/mcp"))
    'localhost:8000/mcp is no URL that begins with http:// or https:// and names a host'
    >>> str(flaw_in("https://me:secret@tools.example/mcp"))
    'holds a user or a password; put that into the vault'
    """
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https"):
        return no_url(url)
    if "@" in parts.netloc:
        return Flaw("holds a user or a password; put that into the vault")
    return None


def no_url(text: str) -> Flaw:
    """That a text is no URL of a service."""
    reason = "is no URL that begins with http:// or https:// and names a host"
    return Flaw(reason, text if _ADDRESS.fullmatch(text) else "")


def shown(url: str) -> str:
    """A URL, or a text that is none, without what may be a secret.

    >>> shown("https://me:secret@tools.example:8000/mcp?token=secret#secret"), shown("me:secret@tools"), shown("./data")
    ('https://tools.example:8000/mcp', '…', './data')
    """
    parts = _parts(url)
    if parts is not None:
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return HIDDEN if "@" in url else re.split("[?#]", url, maxsplit=1)[0]


def host_of(url: str) -> str | None:
    """The name or the address of the host that a URL names."""
    parts = _parts(url)
    return None if parts is None else parts.hostname


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL that names a host; None for what is none."""
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        named = parts.scheme and parts.hostname
        _ = parts.port  # a number, or this raises
    except ValueError:
        return None
    return parts if named else None
