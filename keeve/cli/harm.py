"""Damage in words: what of a session is damaged, which of its forks have that in their past, and what to do.

The one rule: it is told of everybody whom it concerns, and of nobody else.
"""

from __future__ import annotations

from dataspace.log.archives import Archived
from dataspace.log.marks import Damage
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import STORE_UID
from dataspace.remedies import command
from keeve.cli.reading import Reading
from keeve.looking import UnreadSession


def damage_said(store: Reading, uid: bytes, damage: Damage) -> tuple[str, str, bool]:
    """What is damaged, what to do about it, and whether it concerns anybody: what nobody living needs does not."""
    name = "(the store)" if uid == STORE_UID else store.name(uid) or uid.hex()
    row = store.catalog.by_uid(uid)
    deleted = row is not None and bool(row.deleted)
    seen = str(SessionDamaged(name, damage.seq, damage.position, damage.what))
    if deleted:
        seen = f"session {name}, which is deleted, is damaged at seq {damage.seq} (position {damage.position})"
    forks = [each.id for each in store.catalog.leaning(uid, damage.seq)]
    if forks:
        seen += f"; that is in the past of {', '.join(forks)} as well, and cannot be read there either"
    elif deleted:
        return seen, "keeve gc takes it out", False
    before = damage.seq - 1
    remedy = f"{command('fork', forks[0] if deleted else name, at=before)} goes on from before it"
    return seen, remedy if before else "keeve salvage, or a backup; keeve delete, if it is to go", True


def unread_said(each: UnreadSession) -> tuple[str, str, bool]:
    """Why it cannot be told what a session waits for, what to do about it, and whether it is only away."""
    if isinstance(each.error, Archived):
        seen = f"those of session {each.session} are in an archive that is not here; nothing is wrong with them"
        return seen, "bring the archive back, as is said of it: the session goes on when it is there", True
    seen = f"those of session {each.session} cannot be read: {each.error}"
    return seen, "keeve verify shows all that is touched", False
