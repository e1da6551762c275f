"""Waiting in a conversation: for an answer, and for what only others can give, as a person's approval.

The one rule: it only looks. Whoever is told gives what is waited for, or leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from shlex import quote
from typing import Any, Final

from dataspace.errors import KeeveError
from keeve import blocking
from keeve.cli.prompt import Asked, Bell
from keeve.faces import ENDS
from vat.errors import Failed

LOOK: Final = 0.5
"""Seconds between two looks at what a session waits for."""


class WaitsOutside(KeeveError):
    """A turn waits for what nothing here gives, and nobody is there to see to it."""

    def __init__(self, what: str, turn: int | None = None) -> None:
        named = "the turn" if turn is None else f"turn {turn}"
        super().__init__(f"{named} is not over, and stays as it is: {what}")


def answer(take: Callable[..., Any], line: str, request: str | None = None) -> Any:
    """What a turn comes to. Raises a `KeeveError`, whatever a device has raised."""
    try:
        return take(line, request=request)
    except KeeveError:
        raise
    except Exception as error:
        raise Failed(type(error).__name__, str(error)) from error


def answered(ask: Callable[[], Any], bell: Bell, waits: Callable[[], str]) -> Any:
    """What comes of something that is waited for, where nobody is there. Raises `WaitsOutside`."""
    asked, before = Asked(ask, bell.ring), ""
    while not asked.future.done():
        bell.wait(keys=False, seconds=LOOK)
        now = waits()
        if now and now == before and not asked.future.done():  # twice, since it may just be about to go on
            raise WaitsOutside(now)
        before = now
    return asked.future.result()


def waits_outside(host: blocking.Host, session: str, after: int) -> str:
    """What a session waits for that nothing here gives, in words; empty while anything of it goes on.

    `after`: from where in the log it is looked for.
    """
    effects = [effect for effect in host.effects(session) if effect.device != "timer"]
    if any(effect.state == "running" for effect in effects):
        return ""
    said = []
    for id, name in _approvals(host, session, after).items():
        command = f"keeve approve {quote(session)} {quote(id)}"
        said.append(f"a person has to approve of {name}: leave, then {command} (or keeve refuse, with a reason)")
    for effect in effects:
        if effect.state == "wanted":
            has = "set KEEVE_MODEL" if effect.device == "model" else "open the store with the program that has it"
            call = f"{effect.device}.{effect.method} waits for the device {effect.device}, which is not here"
            said.append(f"{call}: {has}, or settle it with keeve resolve {effect.id}")
    return "; ".join(said)


def _approvals(host: blocking.Host, session: str, after: int) -> dict[str, str]:
    """The calls that wait for a person: their names by id."""
    waiting: dict[str, tuple[int, str]] = {}
    for event in host.observe("(_ ?n _ . _)", after=after, session=session, lineage=True):
        fact, turn = event.value, event.captures["n"]
        if fact.label == "approval-wanted":
            waiting[str(fact.fields[2])] = turn, str(fact.keywords.get("name", ""))
        elif fact.label in ("approval-given", "approval-refused"):
            waiting.pop(str(fact.fields[2]), None)
        elif fact.label in ENDS:
            waiting = {id: wanted for id, wanted in waiting.items() if wanted[0] != turn}
    return {id: name for id, (_, name) in waiting.items()}
