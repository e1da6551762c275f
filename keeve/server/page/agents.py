"""A session of another type than conversations: what is stored of it, and what can be said to it.

An agent of one's own has a method `turn`, keeps what was said in its fields, if it does, and states what it likes. So
here are its messages, its other fields and its facts; and what it answers is what its `turn` gives.

The one rule: a session whose code is not here is shown as well. What is stored needs no code to be read.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import trio
from starlette.responses import Response

from dataspace.errors import KeeveError
from keeve.server.beginning import kinds_of
from keeve.server.errors import Refusal
from keeve.server.finding import before_last
from keeve.server.page.cutting import FEW, Newest, cut
from keeve.server.page.past import past_of
from keeve.server.page.said import as_text
from keeve.server.page.visits import Visit
from keeve.server.page.waiting import TO_DO
from keeve.server.page.wording import told
from vat.objects.types import type_of

FACTS: Final = 200
"""Facts on one page, the newest."""
RECORDS: Final = 2_000
"""The newest records of a session, in which they are looked for."""
PATIENCE: Final = 20.0
"""Seconds for which a form waits for an answer."""


@attrs.frozen
class Exchange:
    """What was said by a form, and what came of it: an answer, or why there is none; or neither yet."""

    input: str
    key: str
    answered: bool = False
    answer: str = ""
    wrong: Refusal | None = None


async def show_agent(visit: Visit, shown: dict[str, Any], exchange: Exchange | None = None) -> Response:
    """Its newest messages, or those before one; and what it has stated of late, the newest last."""
    serving = visit.serving
    kind = kinds_of(serving).get(shown["type"])
    past = serving.host.look(visit.id, past_of(visit.reading, visit.number("before")))
    newest, cursor = await _stated(visit)
    return visit.shows(
        "agent.html",
        session=shown,
        served=kind is not None,
        talks=kind is not None and "turn" in type_of(kind).methods,
        past=past,
        events=newest.events,
        full=newest.full,
        cursor=cursor,
        exchange=exchange,
        to_do=TO_DO,
    )


async def _stated(visit: Visit) -> tuple[Newest, str]:
    """The newest facts of its own, and the cursor behind them."""
    host = visit.serving.host
    for records in (FEW, RECORDS):
        newest = Newest(FACTS)
        after, more = str(before_last(host, host.row(visit.id), records)), True
        while more:
            asked = {"session": visit.id, "pattern": "(_ . _)", "after": after, "until": "head", "limit": 1000}
            page = await visit.given("query_dataspace", asked)
            for event in page["events"]:
                newest.add(event)
            after, more = page["cursor"], page["more"]
        if newest.full:
            break
    return newest, after


async def ask(visit: Visit) -> Response:
    """Say something by a form, and wait a while for what comes of it. Who asks again with the form is told it later."""
    said = Exchange(visit.form.get("input", ""), visit.form.get("key", ""))
    try:
        with trio.move_on_after(PATIENCE):
            given = await visit.given("take_turn", body={"input": said.input})
            said = attrs.evolve(said, answered=True, answer=cut(as_text(given["output"])))
    except (Refusal, KeeveError) as error:
        said = attrs.evolve(said, wrong=told(error))
    return await show_agent(visit, await visit.given("show_session"), said)
