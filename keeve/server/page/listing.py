"""The sessions: those that who asks can reach, the newest first, found by their ids and by what was said in them first.

The one rule: of a session on the list nothing is loaded. Its row and one fact are read; or its first few records, where
it keeps messages and states nothing of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import trio
from starlette.responses import Response

from actors.talking import Model
from actors.toolbox import Toolbox
from dataspace.errors import KeeveError
from keeve.faces import face
from keeve.looking import CONVERSATION
from keeve.server.api import in_path
from keeve.server.beginning import kinds_of
from keeve.server.errors import Refusal
from keeve.server.page.past import first_said
from keeve.server.page.said import in_line
from keeve.server.page.visits import Visit
from keeve.server.page.wording import told
from keeve.server.serving import Serving
from vat.objects.types import Field, Shape, type_of

SCANNED: Final = 5_000
"""Sessions that are looked at for one page of the list."""
SHOWN: Final = 50
FIRST: Final = 4
"""Records of an agent of one's own in which its first words are looked for."""

WORDS: Final[Mapping[Shape, str]] = {
    Shape.LIST: "a list",
    Shape.MAP: "an object",
    Shape.SET: "a list of its members",
    Shape.DEVICE: "the name of a device",
}
"""What a field is given, where that says something."""


async def show_sessions(visit: Visit) -> Response:
    """A page of the list."""
    return await _listed(visit)


async def _listed(visit: Visit, wrong: Refusal | None = None) -> Response:
    """A page of the list; `wrong` with the session that was to be made by the form."""
    wanted, after, skip = visit.asked("q").strip(), visit.asked("after"), visit.number("skip")
    rows: list[dict[str, Any]] = []
    following: str | None = after
    while following is not None and len(rows) < SCANNED:
        page = await visit.given("list_sessions", {"after": following, "limit": 1000})
        rows += page["sessions"]
        following = page["next"]
    if wanted:
        rows = [row for row in rows if await _matches(visit, row, wanted.casefold())]
    rows.sort(key=lambda row: row["updated"], reverse=True)
    shown = rows[skip : skip + SHOWN]
    for row in shown:
        await trio.lowlevel.checkpoint()
        row["words"] = first_words(visit, row)
    return visit.shows(
        "sessions.html",
        200 if wrong is None else wrong.status,
        q=wanted,
        after=after,
        rows=shown,
        count=len(rows),
        skip=skip,
        step=SHOWN,
        following=following,
        scanned=SCANNED,
        models=models_of(visit.serving),
        types=own_types(visit.serving),
        conversation=CONVERSATION,
        wrong=wrong,
        form=visit.form,
    )


async def _matches(visit: Visit, row: dict[str, Any], wanted: str) -> bool:
    await trio.lowlevel.checkpoint()
    return wanted in row["id"].casefold() or wanted in first_words(visit, row).casefold()


def first_words(visit: Visit, row: Mapping[str, Any]) -> str:
    """What was said first in a session, on one line; "" where nothing was, and where it cannot be read (any more)."""
    host = visit.serving.host
    try:
        event = next(host.query("(turn . _)", session=host.row(row["id"]).uid, lineage=True), None)
        if event is not None:
            return in_line(face(event.value.keywords.get("input")))
        return in_line(host.look(row["id"], first_said, min(FIRST, row["seq"])))
    except KeeveError:
        return ""


async def make_session(visit: Visit) -> Response:
    """A new one, by a form above the list; what is wrong with it is told there, and what was filled in stays."""
    form = visit.form
    try:
        fields = {name: form[name].strip() for name in ("system", "model") if form.get(name, "").strip()}
        fields |= fields_in(form.get("fields", ""))
        body = {"id": form.get("id", "").strip() or None, "fields": fields}
        made = await visit.given("create_session", body={**body, "type": form.get("type", CONVERSATION)})
    except (Refusal, KeeveError) as error:
        if not visit.may("manage"):
            raise
        return await _listed(visit, told(error))
    return visit.goes(f"/sessions/{in_path(made['id'])}")


def fields_in(text: str) -> dict[str, Any]:
    """The fields that are written as JSON. Raises a `Refusal`.

    >>> fields_in('{"max_steps": 3}'), fields_in(" ")
    ({'max_steps': 3}, {})
    """
    remedy = 'write an object of JSON, as {"model": "model", "limit": 3}'
    if not text.strip():
        return {}
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"the fields are no JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise Refusal(422, "not_json", what, remedy, "fields") from None
    except (ValueError, RecursionError):
        raise Refusal(422, "not_json", "the fields are no JSON that can be read", remedy, "fields") from None
    if not isinstance(fields, dict):
        raise Refusal(422, "not_json", "the fields are JSON, and no object", remedy, "fields")
    return fields


def models_of(serving: Serving) -> list[tuple[str, str]]:
    """The names of models, each with the one before it that stands for the same; "" where none does."""
    first: dict[str, str] = {}
    return [
        (name, "" if (same := first.setdefault(device, name)) == name else same)
        for name, device in serving.named.items()
    ]


def own_types(serving: Serving) -> list[dict[str, Any]]:
    """The types of the server's own that sessions can have, each with the fields that it can begin with, in words."""
    own = {name: type_of(kind) for name, kind in kinds_of(serving).items() if name != CONVERSATION}
    return [
        {"name": name, "fields": [_field(field) for field in described.fields.values() if field.public]}
        for name, described in sorted(own.items())
    ]


def _field(field: Field) -> dict[str, Any]:
    kind = field.kind if isinstance(field.kind, type) else None
    if kind is not None and issubclass(kind, Model):
        what = "the name of a model"
    elif kind is not None and issubclass(kind, Toolbox):
        what = "tools: the server's, unless it is given others"
    else:
        what = WORDS.get(field.shape, "")
    return {"name": field.name, "what": what, "required": field.required}
