"""What `keeve doctor` makes of the store: its files, its owner, its log, what is made of that, and what waits.

The one rule: each check goes on where the one before has failed, as far as there is something to look at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from dataspace.catalog.peeking import is_catalog, peek
from dataspace.catalog.remains import done, tombstones
from dataspace.catalog.schema import CATALOG
from dataspace.encryption.errors import BadHostKey, HostKeyNeeded, KeyFileError, WrongHostKey
from dataspace.errors import KeeveError
from dataspace.log.layout import Layout, State
from dataspace.log.opening import durable_part, owed
from dataspace.log.ownership import owner_of
from dataspace.log.store import NotAStore
from dataspace.log.verdicts import Evidence, Outcome, Verdict
from dataspace.remedies import command
from keeve.api import now
from keeve.cli.harm import damage_said, unread_said
from keeve.cli.lost import lost_lately
from keeve.cli.machine import access_of, command_of
from keeve.cli.own import module_for
from keeve.cli.reading import FilesRead, reading
from keeve.cli.signs import BAD, NOTE, OK, UNSEEN, WARN, Sign
from keeve.cli.text import counted, local_time, shortened, size
from keeve.cli.where import devices_lacking
from keeve.host_keys import FILE_VARIABLE
from keeve.looking import UnreadSession, Waits, all_waits, due, since
from keeve.served import SOCKET, is_served
from vat.heap.pending import OpenEffect
from vat.host.allowing import returned

Module: TypeAlias = Callable[[str | None], str | None]
"""What a command has to name for sessions of a type (`module_for`)."""


def store(folder: Path) -> Iterator[Sign]:
    """The store itself."""
    layout = Layout(folder)
    try:
        if layout.state() is State.NEW:
            makes = command("chat", store=folder)
            yield Sign("store", NOTE, f"there is none at {layout.folder} yet", f"{makes} makes it")
            return
        layout.log_id()
        owner = owner_of(layout.lock)
        yield from permissions(layout)
        yield from ownership(layout, owner)
        yield from content(folder, layout, owner)
    except NotAStore as error:
        yield Sign("store", BAD, str(error), "name another folder with --store")
    except HostKeyNeeded as error:
        yield Sign(UNSEEN, WARN, f"nobody looked at what is in the store: {error}", f"name the file in {FILE_VARIABLE}")
    except (WrongHostKey, BadHostKey) as error:
        yield Sign("keys", BAD, str(error), "name the file of the host's key in KEEVE_KEY_FILE")
    except KeyFileError as error:
        yield Sign("keys", BAD, str(error), "look for the newest copy of the key file; nothing else opens this store")
    except KeeveError as error:
        yield Sign("store", BAD, str(error), "keeve verify shows all that is touched, if it is not a newer version's")
    except OSError as error:
        yield Sign("store", BAD, f"{error.filename}: {error.strerror}", "see who may read it: ls -ld, id")


def content(folder: Path, layout: Layout, owner: int | None) -> Iterator[Sign]:
    """The log, and what is made from it."""
    verdict = durable_part(layout, Evidence(), None)
    yield from log(layout, verdict, owner)
    yield from cuts(layout)
    if verdict.outcome.writable:
        with reading(folder) as read:
            if read.is_encrypted():
                yield Sign("keys", OK, "encrypted, and this key opens it")
            yield from damages(read, verdict)
            yield from catalog(folder, read, owner)
            yield from archived(read)
            yield from deleted(read)
            yield from work(read, owner, folder)
            yield from clock(read)


def permissions(layout: Layout) -> Iterator[Sign]:
    """Who may read and write it."""
    access = access_of(layout)
    if not access.readable or not access.writable:
        what = "written to" if access.readable else "read"
        remedy = access.remedy(layout.folder)
        yield Sign("permissions", BAD if not access.readable else WARN, f"not all of it can be {what}", remedy)
    elif access.foreign:
        remedy = f"chown -R {os.geteuid()} {layout.folder}, if it is to be yours"
        yield Sign("permissions", WARN, f"{access.foreign[0]} belongs to another user", remedy)
    elif access.open_to_others:
        path = access.open_to_others[0]
        yield Sign("permissions", WARN, f"other users may look into {path}", f"chmod 700 {path}")
    else:
        yield Sign("permissions", OK, "yours alone")


def ownership(layout: Layout, owner: int | None) -> Iterator[Sign]:
    """Whether a process has it."""
    if owner is None:
        yield Sign("owner", OK, "nobody")
    elif not owner:
        yield Sign("owner", NOTE, "a process that cannot be seen from here", "look on the host, or in other containers")
    else:
        command = shortened(command_of(owner), 80)
        yield Sign("owner", NOTE, f"process {owner}{f': {command}' if command else ''}")


def log(layout: Layout, verdict: Verdict, owner: int | None) -> Iterator[Sign]:
    """What recovery makes of the log."""
    if not verdict.outcome.writable:
        yield Sign(
            "log", BAD, str(verdict.error()), "keeve verify shows all that is touched, keeve salvage saves the rest"
        )
    elif verdict.outcome is Outcome.TORN and owner is None:
        yield Sign("log", NOTE, verdict.what, "nothing: the next opening cuts it; nothing acknowledged is lost")
    else:
        segments = counted(len(layout.segments()), "segment")
        yield Sign("log", OK, f"{counted(verdict.end.position, 'record')}, {segments}")
    for _, damage in verdict.lost:
        remedy = "nothing: sessions are restored without it; keeve verify names it"
        yield Sign("snapshots", WARN, f"at position {damage.position}: {damage.what}", remedy)


def cuts(layout: Layout) -> Iterator[Sign]:
    """What recovery has cut off, so far."""
    saved = sorted(layout.cut.glob("*.bin")) if layout.cut.is_dir() else []
    if saved:
        newest = max(saved, key=lambda path: path.stat().st_mtime)
        when = local_time(int(newest.stat().st_mtime * 1_000_000))
        total = size(sum(path.stat().st_size for path in saved))
        seen = f"{counted(len(saved), 'torn tail')} cut off ({total}), last {when}; nothing acknowledged was in it"
        yield Sign("crashes", NOTE, seen, f"the files in {layout.cut} may be removed")
    if owed(layout):
        yield Sign("crashes", NOTE, "an opening was interrupted", "nothing: the next opening goes on with it")


def damages(read: FilesRead, verdict: Verdict) -> Iterator[Sign]:
    """Sessions whose content is not what was written."""
    for uid, damage in verdict.damaged.items():
        seen, remedy, matters = damage_said(read, uid, damage)
        yield Sign("session", BAD if matters else NOTE, seen, remedy)


def catalog(folder: Path, read: FilesRead, owner: int | None) -> Iterator[Sign]:
    """Whether the catalog is there and up to date; it is derived, so nothing here is bad."""
    path = folder / CATALOG
    head = read.store.head.position
    remedy = "nothing: the next start makes it again from the log"
    if not path.exists():
        yield Sign("catalog", NOTE, "there is none", remedy)
        return
    seen = peek(path)
    if seen is None:
        # A catalog that a host is writing into cannot always be looked at.
        if owner is None:
            unwritten = "it names no place in the log, as one whose host has died"
            yield Sign("catalog", NOTE, unwritten if is_catalog(path) else "it cannot be read", remedy)
        else:
            yield Sign("catalog", OK, "its owner is writing it just now")
        return
    position, same = seen.mark.position, seen.log_id == read.store.log_id
    seen.close()
    if not same or position > head:
        yield Sign("catalog", WARN, "it is of another log" if not same else "it is ahead of the log", remedy)
    elif position < head and owner is None:
        behind = f"it is {counted(head - position, 'record')} behind"
        yield Sign("catalog", NOTE, behind, "nothing: the next start reads the rest from the log")
    else:
        yield Sign("catalog", OK, "up to date" if position == head else "written behind the log by its owner")


def deleted(read: FilesRead) -> Iterator[Sign]:
    """What was deleted, or erased, and lies in the files yet."""
    withheld = len(read.store.withheld)
    if withheld:
        seen = f"{counted(withheld, 'piece')} of content that nobody reads any more may lie in the files yet"
        remedy = "keeve gc takes them out; it needs as much space as the largest file of the log"
        yield Sign("erased", WARN, seen, remedy)
    back = sum(len(each.parts or ()) for each in returned(read.store, read.catalog, deleted=False))
    if back:
        seen = f"{counted(back, 'piece')} of erased content lie in the files again: an older file was put back"
        yield Sign("erased", WARN, seen, "keeve verify names them, keeve gc takes them out; nobody is given them")
    left = sum(1 for _ in tombstones(read.catalog, done(read.store, read.catalog).deleted))
    if left:
        seen = f"what {counted(left, 'deleted session')} said is in the files yet"
        yield Sign("deleted", NOTE, seen, "keeve gc takes it out, as far as no fork needs it")


def archived(read: FilesRead) -> Iterator[Sign]:
    """What was archived, and whether it is where it should be."""
    places, went = list(map(str, read.store.archives.places)), _went_to(read)
    pieces, away = read.store.archived() if places or went else (0, 0)
    where = " or ".join(places)
    if away:
        seen = f"{away} of {counted(pieces, 'piece')} of content that were archived are not in {where}"
        if not places:  # as in a backup, which does not know where archives are
            seen = f"{away} of {counted(pieces, 'piece')} of content were archived into {' and '.join(went)}, where"
            seen += " this store does not look"
        remedy = "bring that folder back, or name the one where they are now: KEEVE_ARCHIVES, or keeve archive --back"
        yield Sign("archive", WARN, f"{seen}: who needs them is refused, all else goes on", f"{remedy} --from FOLDER")
    elif pieces:
        yield Sign("archive", OK, f"{counted(pieces, 'piece')} of content, all in {where}")


def _went_to(read: FilesRead) -> list[str]:
    """The folders to which the log says that content went, as far as it can be read: of each segment the newest."""
    went: dict[int, str] = {}
    with suppress(KeeveError):
        for event in read.space.query("(archiving #:into ?into #:segment ?segment . _)"):
            went[event.captures["segment"]] = event.captures["into"]
    return list(dict.fromkeys(went.values()))


def work(read: FilesRead, owner: int | None, folder: Path) -> Iterator[Sign]:
    """What waits, and what nobody knows the outcome of."""
    waiting = len(read.catalog.with_pending()) if owner is None else 0
    if waiting:
        yield Sign("pending", NOTE, f"work of {counted(waiting, 'session')}", "the next host takes it up")
    found: list[Waits] = []
    for each in all_waits(read):
        if isinstance(each, UnreadSession):
            seen, remedy, away = unread_said(each)
            yield Sign("effects", WARN if away else BAD, seen, remedy)
        elif each is not None:
            found.append(each)
    effects = [effect for one in found for effect in one.effects]
    absent = devices_lacking(folder) if owner is not None else {each.device for each in effects if not due(each)}
    if absent:
        seen = f"work waits for a host with {', '.join(sorted(absent))}{'' if owner is None else ', unlike its server'}"
        yield Sign("devices", NOTE, seen, "open the store with the program that has them: what is theirs waits for it")
    state_of = read.state_of()
    served = owner is not None and is_served(folder / SOCKET)  # its own types count, and not those of a command
    own = (lambda type: None) if served else module_for
    yield from unknown([effect for effect in effects if state_of(effect) == "unknown"], read, own)
    yield from waits(found, effects, owner, read, own)
    yield from (Sign("fibers", WARN, seen, "keeve show has why; call it anew") for seen in lost_lately(read))


def waits(
    found: Sequence[Waits], effects: Sequence[OpenEffect], owner: int | None, read: FilesRead, own: Module
) -> Iterator[Sign]:
    """What waits for a person, for a time, and which methods do."""
    approvals = [call for each in found for call in each.approvals]
    for call in approvals[:10]:
        seen = f"{call.name} of session {call.session} waits for a person since {local_time(since(call))}"
        typed = command("approve", call.session, call.id, actors=own(read.session(call.session).type))
        yield Sign("approvals", NOTE, seen, f"{typed}, or keeve refuse")
    if len(approvals) > 10:
        yield Sign("approvals", NOTE, f"and {len(approvals) - 10} more", "keeve effects lists them")
    timers = sorted(due(effect) for effect in effects if due(effect))
    if timers:
        seen = f"{counted(len(timers), 'timer')}, the first is due at {local_time(timers[0])}"
        yield Sign("timers", NOTE, seen, "one that is due comes when a host has the store" if owner is None else "")
    fibers = sorted((fiber for each in found for fiber in each.fibers), key=lambda fiber: fiber.since)
    if fibers:
        first = fibers[0]
        seen = f"{counted(len(fibers), 'method')} waiting, {first.method} of session {first.session} the longest"
        yield Sign(
            "fibers", NOTE, f"{seen}, since {local_time(first.since)}", "keeve effects lists what each waits for"
        )


def unknown(effects: Sequence[OpenEffect], read: FilesRead, own: Module) -> Iterator[Sign]:
    """Effects that have started, and that nobody knows the outcome of."""
    for effect in effects[:10]:
        seen = f"{effect.device}.{effect.method} of session {effect.session} has started, and nobody knows its outcome"
        module = own(read.type_of(effect.uid))
        option = f" --actors {module}" if module else ""
        remedy = f"find out, then: {command('resolve', effect.id)} --value '...'{option}"
        yield Sign("effects", WARN, seen, remedy)
    if len(effects) > 10:
        yield Sign("effects", WARN, f"and {len(effects) - 10} more", "keeve effects lists them")


def clock(read: FilesRead) -> Iterator[Sign]:
    """Whether the newest record is of a time to come."""
    newest = max((row.updated for row in read.sessions()), default=0)
    if newest > now() + 3_600_000_000:
        remedy = "set the clock; order never depends on it, but the times that are shown do"
        yield Sign("clock", WARN, f"a record is of {local_time(newest)}, which is still to come", remedy)
