"""The store's files: what was deleted goes from them, content that no session needs goes to an archive, and comes back.

Each does as `Host.reclaim`, `Host.archive` and `Host.bring_back` do: in steps, beside everything else that is asked.

The one rule: only the owner's own token may, since a folder that is named here is one of the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from keeve.archive_places import NotFromTheRoot, from_root
from keeve.server.api.table import Asked, Document
from keeve.server.errors import Refusal


async def reclaim_space(asked: Asked) -> Document:
    """Up to now, as far as no fork needs it."""
    _must_own(asked)
    return attrs.asdict(await asked.host.reclaim())


async def archive_content(asked: Asked) -> Document:
    """Of segments that are full and old."""
    _must_own(asked)
    body = asked.body
    how: dict[str, Any] = {"before": body.before, "keep": body.keep, "idle": body.idle, "records": body.records}
    return attrs.asdict(await asked.host.archive(_folder(body.into, "into"), **how))


async def bring_back_content(asked: Asked) -> Document:
    """All that was archived."""
    _must_own(asked)
    folder = asked.body.folder
    return attrs.asdict(await asked.host.bring_back(None if folder is None else _folder(folder, "folder")))


def _must_own(asked: Asked) -> None:
    asked.serving.principal(asked.request).must_own("have the store's files changed")


def _folder(path: str, param: str) -> Path:
    try:
        return from_root(path)
    except NotFromTheRoot as error:
        raise Refusal(422, "bad_body", error.what, error.remedy, param) from error
