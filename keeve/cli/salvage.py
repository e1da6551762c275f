"""`keeve salvage`: what is sound in a damaged store, written into a new one.

The one rule: the old store is read, and nothing else.
"""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path

import attrs

from keeve.api import now
from keeve.cli.output import Output
from keeve.cli.text import counted, size
from keeve.guard import guard
from keeve.host_keys import host_key_from
from vat.host.aftermath import LostSession, Salvaged
from vat.host.salvaging import salvage as write_anew


def salvage(old: Path, new: Path, output: Output) -> int:
    """Write a new store, and tell what could not be saved. Gives 1 when something was lost."""
    guard(old)
    guard(new)

    def progress(done: int, total: int) -> None:
        output.passing(f"{size(done)} of {size(total)}")

    found = write_anew(old, new, now=now, salts=os.urandom, key=host_key_from(os.environ), progress=progress)
    output.passing("")
    if output.as_json:
        output.document({"format": 1, "whole": found.whole, "store": str(new), **attrs.asdict(found)})
    else:
        _tell(found, new, output)
    return 0 if found.whole else 1


def _tell(found: Salvaged, new: Path, output: Output) -> None:
    for place in found.places:
        output.say(place, "dim")
    for each in found.lost:
        output.say(_lost(each), "red")
    for hole in found.holes:
        record = f"session {hole.session}, seq {hole.seq} (position {hole.position})"
        output.say(f"{record}: cell {hole.number} {hole.why}: it reads as erased; the session goes on behind it", "red")
    if found.holes_in_all > len(found.holes):
        output.say(f"{found.holes_in_all - len(found.holes)} more of that kind", "red")
    if found.missing:
        what = "of sessions that nobody can name: the newest of some may be among them"
        output.say(f"{counted(found.missing, 'record')} {what}", "red")
    if found.revived:
        what = "a session that was deleted may be there again, if that is among them: no catalog has come so far"
        output.say(f"{what}; look through {new}, and delete it again", "red")
    if found.unerased:
        what = "of the store itself cannot be read: what they may have erased may be there again; erase it again"
        output.say(f"{counted(found.unerased, 'record')} {what}", "red")
    for where, cells in groupby(found.taken, lambda each: (each.session, each.seq, each.position)):
        numbers = ", ".join(str(each.number) for each in cells)
        session, seq, position = where
        what = f"cell {numbers} reads as erased, and no record says that it is"
        output.say(f"session {session}, seq {seq} (position {position}): {what}", "red")
    if found.taken:
        rest = found.taken_in_all - len(found.taken)
        more = f"; {rest} more of that kind" if rest else ""
        output.say(f"what said so is lost, or somebody took it out: look for it in a backup{more}", "red")
    if found.older_keys:
        output.say(f"{found.older_keys}; then salvage again: what is lost here may be kept", "red")
    for session in found.buried:
        output.say(f"session {session}: deleted, and stays so; the record that said it is lost, and made anew", "dim")
    if found.away:
        what = "of archived content are in no archive that is in its place: there they read as erased"
        output.say(f"{counted(found.away, 'piece')} {what}", "red")
    for session in found.pageless:
        output.say(f"session {session}: snapshots not kept; it is restored without them", "dim")
    output.say(
        f"{'all' if found.whole else 'what is sound'} is in {new}: {counted(found.records, 'record')} of "
        f"{counted(found.living, 'session')}{_others(found)}{_marked(found.marked)}"
    )


def _lost(each: LostSession) -> str:
    if not each.kept:
        return f"session {each.session}: lost ({each.why})"
    rest = f" to {each.last}" if each.last > each.kept + 1 else ""
    return f"session {each.session}: kept up to seq {each.kept}; lost: seq {each.kept + 1}{rest} ({each.why})"


def _others(found: Salvaged) -> str:
    """The sessions that nobody can talk to in the new store."""
    deleted = (
        f", and of {found.deleted} that {'was' if found.deleted == 1 else 'were'} deleted before"
        if found.deleted
        else ""
    )
    return f"{deleted}; {counted(found.gone, 'session')} lost" if found.gone else deleted


def _marked(count: int) -> str:
    if not count:
        return ""
    return f"; {counted(count, 'session')} may have lost " + (
        "its end, and says so" if count == 1 else "their end, and say so"
    )
