"""The store's files: what was deleted goes from them, content that no session needs goes to an archive, and comes back.

Each does as `Host.reclaim`, `Host.archive` and `Host.bring_back` do: in steps, beside everything else that is asked.

The one rule: only the owner's own token may, since a folder that is named here is one of the machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs

from keeve.archive_places import NotFromTheRoot, from_root
from keeve.server.api.table import Asked, Document
from keeve.server.errors import Refusal


async def reclaim_space(asked: Asked) -> Document:
    """Up to now, as far as no fork needs it."""
    return await _once(asked, "reclaim", None, asked.host.reclaim)


async def archive_content(asked: Asked) -> Document:
    """Of segments that are full and old."""
    body = asked.body
    how: dict[str, Any] = {"before": body.before, "keep": body.keep, "idle": body.idle, "records": body.records}
    return await _once(asked, "archive", body, lambda: asked.host.archive(_folder(body.into, "into"), **how))


async def bring_back_content(asked: Asked) -> Document:
    """All that was archived."""
    folder = asked.body.folder

    async def bring_back() -> Any:
        return await asked.host.bring_back(None if folder is None else _folder(folder, "folder"))

    return await _once(asked, "bring_back", asked.body, bring_back)


async def _once(asked: Asked, what: str, body: Any, do: Callable[[], Awaitable[Any]]) -> Document:
    principal = asked.serving.principal(asked.request)
    principal.must_own("have the store's files changed")
    return attrs.asdict(await asked.serving.answers.once(principal.name, asked.key, (what, body), do))


def _folder(path: str, param: str) -> Path:
    try:
        return from_root(path)
    except NotFromTheRoot as error:
        raise Refusal(422, "bad_body", error.what, error.remedy, param) from error
