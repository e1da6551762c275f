"""A session on the page: its conversation, what it waits for, and what can be said to it and done with it.

The one rule: a form that is sent twice does once. Each carries a key, which is made with the page.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from starlette.responses import Response

from dataspace.errors import KeeveError
from dataspace.observe.cursor import number_in
from keeve.errors import SessionDamaged
from keeve.faces import ENDS
from keeve.looking import states_turns
from keeve.server.api import in_path
from keeve.server.finding import before_turn
from keeve.server.page.agents import ask, show_agent
from keeve.server.page.conversation import Entry, turns_shown
from keeve.server.page.cutting import TurnsKept
from keeve.server.page.past import told_first
from keeve.server.page.visits import Visit
from keeve.server.page.waiting import TO_DO

TURNS: Final = 40
"""Turns on one page."""
FEW_TURNS: Final = 5
"""Turns that are read first: where much was said in them, others are not read."""
EVENTS: Final = 20_000
"""Events that are read for one page: turns that are not over have all that comes after them looked at."""
ENDED: Final = frozenset(ENDS)


async def show_session(visit: Visit) -> Response:
    """The newest turns, or those before one."""
    try:
        shown = await visit.given("show_session")
    except SessionDamaged as damage:
        return await _show_damaged(visit, damage)
    status = shown["status"]
    if not states_turns(status):
        return await show_agent(visit, shown)
    last = status["accepted"]
    before = visit.number("before")
    if 1 < before <= last:
        last = before - 1
    newest = last == status["accepted"]
    for number in (FEW_TURNS, TURNS):
        first = max(1, last - number + 1)
        kept, cursor, unreadable = await turn_events(visit, first, None if newest else last)
        if first == 1 or kept.first > first:
            break
    first, events = kept.first, kept.events
    if harm := [each for each in unreadable if not each["away"]]:  # nobody else has come to it yet
        there = harm[0]
        return await _show_damaged(visit, SessionDamaged(visit.id, there["seq"], there["position"], there["what"]))
    model = system = ""
    with suppress(KeeveError):  # what was said in its first records may be in an archive that is not there
        model, system = visit.serving.host.look(visit.id, told_first)
    return visit.shows(
        "session.html",
        session=shown,
        model=model,
        system=system,
        damage=None,
        away=len(unreadable),
        upto=shown if newest or not events else events[-1],
        signs=visit.signs,
        turns=[turn for turn in turns_shown(events) if turn.number <= last],
        earlier=first if first > 1 else None,
        newest=newest,
        running=status.get("running"),
        cursor=cursor,
        to_do=TO_DO,
    )


async def _show_damaged(visit: Visit, damage: SessionDamaged) -> Response:
    """What can still be read, and what is to be done."""
    [row, *_] = (await visit.given("list_sessions", {"prefix": visit.id, "limit": 1}))["sessions"]
    kept, _, unreadable = await turn_events(visit, 1)
    lost = [Entry("note", each["seq"], "", f"cannot be read: {each['what']}") for each in unreadable]
    return visit.shows(
        "session.html",
        model="",
        system="",
        session={**row, "forks": [], "effects": [], "approvals": [], "truncated": []},
        damage=damage,
        away=0,
        upto=row,
        signs=visit.signs,
        lost=lost,
        turns=turns_shown(kept.events)[-TURNS:],
        earlier=None,
        newest=False,
        running=None,
        cursor="",
        to_do=TO_DO,
    )


async def turn_events(visit: Visit, first: int, last: int | None = None) -> tuple[TurnsKept, str, list[dict[str, Any]]]:
    """What a session and its ancestors stated of their turns, the cursor behind it, and what is damaged: from turn
    `first` on, or a later one where there is no more room, to the head; or no further than it takes for all turns up to
    `last` to be over."""
    serving = visit.serving
    row = serving.auth.row(serving.principal(visit.request), visit.id, "read")
    after = str(before_turn(serving.host, row, first)) if first > 1 else "start"
    asked = {"session": visit.id, "lineage": True, "until": "head", "limit": 400, "marks": True}
    over = read = 0
    kept = TurnsKept(first, last)
    unreadable: list[dict[str, Any]] = []
    more = True
    while more and read < EVENTS and (last is None or over <= last - first):
        page = await visit.given("query_dataspace", {**asked, "pattern": "(_ _ . _)", "after": after})
        read += len(page["events"])
        for event in page["events"]:
            kept.add(event)
        unreadable += page["unreadable"]
        over += sum(
            1 for each in page["events"] if each["label"] in ENDED and first <= each["fields"][0] <= (last or 0)
        )
        after, more = page["cursor"], page["more"]
    return kept, after, unreadable


# What is done with it.


def address(visit: Visit) -> str:
    """Where a session is shown."""
    return f"/sessions/{in_path(visit.id)}"


async def say(visit: Visit) -> Response:
    """Say something: as a turn of its own, or to the one that runs. It is accepted, durably, when this is answered.

    Of a type that states no turns nobody could tell whether it was accepted: its answer is waited for.
    """
    if visit.form.get("how") == "ask":
        return await ask(visit)
    operation = "steer_turn" if visit.form.get("how") == "steer" else "queue_turn"
    await visit.given(operation, body={"input": visit.form.get("input", "")})
    return visit.goes(f"{address(visit)}#end")


async def interrupt(visit: Visit) -> Response:
    """End the turn that was seen running, and no other."""
    await visit.given("interrupt_turn", body={"turn": number_of(visit, "turn")})
    return visit.goes(f"{address(visit)}#end")


async def say_word(visit: Visit) -> Response:
    """A person's word on a call."""
    said = {"approve": visit.form.get("word") == "approve", "reason": visit.form.get("reason", "")}
    await visit.given("say_word", body=said)
    return visit.goes(f"{address(visit)}#end")


async def fork(visit: Visit) -> Response:
    """A session that goes on from the end of a turn, from a seq, or from now."""
    body: dict[str, Any] = {"into": visit.form.get("into", "").strip() or None}
    for name in ("turn", "at"):
        if visit.form.get(name):
            body[name] = number_of(visit, name)
    child = await visit.given("fork_session", body=body)
    return visit.goes(f"/sessions/{in_path(child['id'])}")


def number_of(visit: Visit, name: str) -> Any:
    """The number in a field of the form; what is none stays a text, which the operation refuses by the field's name."""
    text = visit.form.get(name, "")
    number = number_in(text)
    return text if number is None else number
