"""The desk: what a client calls before it has a ref. It finds sessions, makes, lists and deletes them, tells facts, has
the store looked at, and what waits settled.

The one rule: whatever is named here by an id goes past the guard, so that somebody else's session is not there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from attrs import asdict

from dataspace.catalog.recent import SessionRow
from dataspace.observe.cursor import BadCursor
from dataspace.observe.holding import Place
from dataspace.observe.places import place_of
from dataspace.patterns import parse
from dataspace.remedies import Remedy
from dataspace.values import Value
from keeve.archive_places import from_root
from keeve.looking import look, part_of, reading_of, resolve, rows_of, say_word
from keeve.wire.guarding import Guard
from keeve.wire.sturdy import SturdyRefs
from keeve.wire.telling import held_said, row_said
from keeve.wire.verbs import AT_THE_DESK, EVERY_REF
from vat.errors import Refused, no_such_method
from vat.host.host import Host
from vat.host.outside import HostRef, place, reaching
from vat.host.repetitions import made_for, sent
from vat.host.within import dataspace_of

PAGE: Final = 1000
"""Rows of a list, at most."""


ONCE: Final = frozenset(("resolve", "say", "spawn"))
"""The calls that are known by their request id: made again, they are answered as the first time."""

NAME_SESSION: Final = Remedy("name-session", "name one, session=…")


class Desk:
    """The desk of a connection."""

    def __init__(self, host: Host, guard: Guard, refs: SturdyRefs) -> None:
        self._host = host
        self._guard = guard
        self._refs = refs

    async def call(self, method: str, args: list[Any], keywords: Mapping[str, Any], request: str | None) -> Any:
        """Answer a call. Raises `NoSuchMethod`, `TypeError` for other arguments, and what the host refuses."""
        known: dict[str, Callable[..., Awaitable[Any]]] = {
            "archive": self._archive,
            "bring_back": self._bring_back,
            "delete": self._delete,
            "erase": self._erase,
            "facts": self._facts,
            "get": self._get,
            "live": self._live,
            "look": self._look,
            "name": self._name,
            "reclaim": self._reclaim,
            "resolve": self._resolve,
            "say": self._say,
            "sessions": self._sessions,
            "spawn": self._spawn,
        }
        if method not in known:
            raise no_such_method("the desk", method, known)
        if method in ONCE:
            return await known[method](*args, asked=request, **keywords)
        return await known[method](*args, **keywords)

    def _must(self, what: str, session: str | None = None) -> None:
        self._guard.must(AT_THE_DESK[what], what, session)

    def _row(self, id: Any, what: str) -> SessionRow:
        return self._guard.row(id, AT_THE_DESK[what], what)

    async def _get(self, id: str) -> HostRef[Any]:
        self._row(id, "get")
        return await self._host.get(id)

    async def _live(self, sturdy: str) -> HostRef[Any]:
        return reaching(self._host.directory, *self._refs.opened(self._guard.name, sturdy))

    async def _name(self, ref: Any) -> str:
        if not isinstance(ref, HostRef):
            raise TypeError("name(ref): give a ref that came over this connection")
        row = self._host.row(place(ref)[0])
        self._guard.must(EVERY_REF["describe"], "describe", row.id)
        return row.id

    async def _spawn(
        self, type: str, id: str | None = None, fields: Mapping[str, Value] | None = None, *, asked: str | None = None
    ) -> Any:
        if not isinstance(type, str) or not isinstance(fields, Mapping | None):
            raise TypeError("spawn(type, id=None, fields=None): type is a registered name, fields a dict")
        self._must("spawn", id if isinstance(id, str) else "")
        request = sent(asked, "spawn", type, id, fields or {})
        ref, there = made_for(self._host, request), made_for(self._host, asked)
        if ref is None and there is not None and self._guard.may_be_same(type, id, fields or {}, there):
            ref = there
        begins = {} if ref is not None else await self._guard.begins(type, fields or {}, there)
        async with self._guard.room(made=there is not None):
            return ref or await self._host.directory.spawn(type, id, begins, request=request)

    async def _delete(self, id: str, force: bool = False) -> None:
        self._row(id, "delete")
        await self._host.delete(id, force=force is True)

    async def _erase(self, id: str, seq: int | None = None, turn: int | None = None, force: bool = False) -> int:
        self._row(id, "erase")
        return await self._host.erase(id, seq=seq, turn=turn, force=force is True)

    async def _reclaim(self) -> dict[str, int]:
        self._guard.must_own("reclaim")
        return asdict(await self._host.reclaim())

    async def _archive(
        self, into: str, before: int | None = None, keep: int = 0, idle: bool = False, records: bool = False
    ) -> dict[str, Any]:
        self._guard.must_own("archive")
        if not (type(keep) is int and keep >= 0 and (before is None or (type(before) is int and before > 0))):
            raise TypeError("before is a position, or None; keep a number of segments")
        where = from_root(into)
        return asdict(
            await self._host.archive(where, before=before, keep=keep, idle=idle is True, records=records is True)
        )

    async def _bring_back(self, folder: str | None = None) -> dict[str, Any]:
        self._guard.must_own("bring_back")
        return asdict(await self._host.bring_back(None if folder is None else from_root(folder)))

    async def _look(self, what: str, how: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if not isinstance(what, str) or not isinstance(how, Mapping | None):
            raise TypeError("look(what, how={}): what is the name of a look, how what it takes, by name")
        given = dict(how or {})
        if "id" in given:
            self._row(given["id"], "look")
        elif what == "facts":
            must_see(self._guard, "look", given.get("session"))
        else:
            self._must("look")
        guard = self._guard
        return await look(reading_of(self._host, guard.reaches, guard.sees, guard.listed()), what, given)

    async def _resolve(self, session: str, id: str, outcome: Mapping[str, Value], *, asked: str | None = None) -> None:
        row = self._row(session, "resolve")
        await resolve(self._host, row.id, str(id), outcome, asked)

    async def _say(self, session: str, call: str, refused: str | None = None, *, asked: str | None = None) -> None:
        self._row(session, "refuse" if isinstance(refused, str) else "approve")
        await say_word(self._host, session, call, refused, asked)

    async def _sessions(
        self, prefix: str = "", after: str = "", limit: int = 100, deleted: bool = False
    ) -> list[list[Any]]:
        self._must("sessions")
        if type(limit) is not int:
            raise TypeError(f"limit is a number of rows, not a {type(limit).__name__}")
        wanted, guard = max(0, min(limit, PAGE)), self._guard
        found: list[list[Any]] = []
        more: str | None = after
        while more is not None and len(found) < wanted:
            left = wanted - len(found)
            rows, more = await rows_of(guard.listed(), guard.reaches, prefix, more, left, deleted is True)
            found += map(row_said, rows)
        return found

    async def _facts(
        self, pattern: str, at: Any = None, session: str | None = None, lineage: bool = False, after: str = "0"
    ) -> list[Any]:
        must_see(self._guard, "facts", session)
        space, behind = dataspace_of(self._host), Place.parse(after)
        holding = space.holding(
            pattern_in(pattern), at=place_in(at), after=behind, session=session, lineage=lineage is True
        )
        found, further = await part_of(holding, held_said, sees=lambda held: self._guard.sees(held.session, held.uid))
        return [found, holding.at, further and str(further)]


def must_see(guard: Guard, method: str, session: object) -> None:
    """Raise unless the dataspace may be asked so: of a session that is named, or of all, of which who asks is told what
    they see (`Guard.sees`); but what effects tell, of all by who may see all."""
    if session is None:
        if not guard.unlimited:
            guard.must(AT_THE_DESK[method], method)
            if method == "watch":
                raise Refused(f"{method} of all sessions is for who may see all: {NAME_SESSION()}")
        return
    if not isinstance(session, str):
        raise TypeError(f"session is an id, not a {type(session).__name__}")
    guard.row(session, AT_THE_DESK[method], method)


def pattern_in(pattern: object) -> Any:
    """A pattern that came as text. Raises `BadPattern`."""
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is a text here, not a {type(pattern).__name__}")
    return parse(pattern)


def place_in(said: Any) -> Any:
    """A place in the log as it came: a number, `"start"`, `"head"`, the text of a cursor, or none."""
    if said is None or type(said) is int:
        return said
    if not isinstance(said, str):
        raise BadCursor(said)
    return place_of(said)
