"""Waiting in a conversation: for an answer, and for what only others can give, as a person's approval.

The one rule: it only looks. Whoever is told gives what is waited for, or leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from dataspace.errors import KeeveError
from dataspace.remedies import command
from keeve.cli.own import module_for
from keeve.cli.stores import Acts
from keeve.cli.waiting import Told

LOOK: Final = 0.5
"""Seconds between two looks at what a session waits for."""


class WaitsOutside(KeeveError):
    """A turn waits for what nothing here gives, and nobody is there to see to it."""

    def __init__(self, what: str, turn: int | None = None) -> None:
        named = "the turn" if turn is None else f"turn {turn}"
        super().__init__(f"{named} is not over, and stays as it is: {what}")


async def missing(store: Acts, id: str) -> str:
    """What a session waits for that nothing here gives, in words; empty while anything of it goes on."""
    waits = await store.look("waits", id=id)
    effects = [effect for effect in waits["effects"] if not effect["due"]]
    absent = None if store.alone else await _absent(store, effects)
    if any(_goes_on(effect, absent) for effect in effects):
        return ""
    said = []
    calls = waits["approvals"]
    module = module_for((await store.look("row", id=id))["type"]) if calls and store.alone else None
    for call in calls:
        typed = command("approve", id, call["id"], actors=module)
        said.append(f"a person has to approve of {call['name']}: {typed} (or keeve refuse, with a reason)")
    for effect in effects:
        call, device = f"{effect['device']}.{effect['method']}", effect["device"]
        settles = command("resolve", effect["id"])
        if effect["state"] == "unknown":
            said.append(f"{call} is of unknown outcome: {settles} settles it")
            continue
        has = "set KEEVE_MODEL" if device == "model" else "open the store with the program that has it"
        if not store.alone:
            has = "start the server with it"
        said.append(f"{call} waits for the device {device}, which is not here: {has}, or settle it with {settles}")
    return "; ".join(said)


async def _absent(store: Acts, effects: Sequence[Told]) -> set[str]:
    """The devices that work waits for and a server has not, as far as it tells."""
    if all(effect["state"] != "wanted" for effect in effects):
        return set()
    with suppress(KeeveError):  # it is for who may see all
        return set((await store.look("lacking"))["devices"])
    return set()


def _goes_on(effect: Told, absent: set[str] | None) -> bool:
    """Whether somebody is at it. `absent`: the devices that a server has not; None: it is at a host of this process."""
    if effect["state"] == "wanted":
        return absent is not None and effect["device"] not in absent
    return bool(effect["state"] != "unknown")
