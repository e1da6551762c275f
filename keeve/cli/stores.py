"""A store as the commands see it: to be looked at (`Looks`), or also asked for something (`Acts`); and the ways to it.

    Files     the files of a store, read by this process
    Owned     a host of this process, which owns the store while the command runs
    Served    a server that has the store, over a Unix socket or the network

A server may be of an earlier version, and not have been started anew since an update: what that does not know is asked
for in another way, and what it does not tell is left out.

The one rule: a command does not know which of them it has.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

import trio
from attrs import asdict

from dataspace.observe.cursor import Cursor
from dataspace.observe.events import CaughtUp, Event, Unreadable
from dataspace.patterns import Pattern
from keeve.looking import Reading, look, reading_of, resolve, say_word
from vat.errors import NoSuchMethod
from vat.host.host import Host
from vat.host.outside import place
from vat.host.pieces import Piece

Item: TypeAlias = "Event | Unreadable"

LOOK_AGAIN: Final = 0.1
"""Seconds between two looks at what a store's owner has published."""


class Looks(Protocol):
    """A store to be looked at."""

    async def look(self, what: str, **how: Any) -> dict[str, Any]:
        """One of `keeve.looking.LOOKS`, in JSON."""

    def events(
        self, pattern: Pattern, *, after: Any, until: Any, session: str | None, lineage: bool, follow: bool
    ) -> AsyncGenerator[Item, None]:
        """The events after `after` up to `until` (a place; None: what is there now), or with `follow` for ever."""


class Acts(Looks, Protocol):
    """A store that is asked for something.

    passing: what is asked for is taken up by the next host, and not now. alone: it has no devices but those that the
    command brings, and ends with it. answers: who answers what is said, for people.
    """

    passing: bool
    alone: bool
    answers: str

    async def get(self, id: str) -> Any: ...
    async def name(self, ref: Any) -> str: ...
    async def spawn(self, type: str, id: str | None, fields: Mapping[str, Any]) -> Any: ...
    async def delete(self, id: str, force: bool) -> None: ...
    async def erase(self, id: str, seq: int | None, turn: int | None, force: bool) -> int: ...
    async def reclaim(self) -> dict[str, Any]: ...
    async def archive(self, into: str, how: Mapping[str, Any]) -> dict[str, Any]: ...
    async def bring_back(self, folder: str | None) -> dict[str, Any]: ...
    async def resolve(self, session: str, id: str, outcome: Mapping[str, Any]) -> None: ...
    async def say(self, session: str, call: str, refused: str | None) -> None: ...
    async def let_go(self, session: str, effect: Mapping[str, Any]) -> None: ...
    def observe(self, pattern: Pattern | str, **how: Any) -> AsyncIterator[Event]: ...
    def pieces(self, session: str) -> AsyncIterator[Piece]: ...


class Files:
    """The files of a store."""

    def __init__(self, store: Reading, wait: Callable[[float], Awaitable[object]] = trio.sleep) -> None:
        self._store = store
        self._wait = wait

    async def look(self, what: str, **how: Any) -> dict[str, Any]:
        """See `Looks`."""
        return await look(self._store, what, how)

    async def events(
        self, pattern: Pattern, *, after: Any, until: Any, session: str | None, lineage: bool, follow: bool
    ) -> AsyncGenerator[Item, None]:
        """See `Looks`. What comes while these are told is found the next time."""
        store, space = self._store.store, self._store.space
        cursor = space.places.at(after)
        while True:
            upto = await _end(self, until)
            async for item in space.observe(
                pattern, after=cursor, until=upto, marks=True, session=session, lineage=lineage
            ):
                if not isinstance(item, CaughtUp):
                    yield item
            if not follow:
                return
            cursor = max(cursor, upto, key=lambda place: place.position)
            while store.refresh().position <= upto.position:
                await self._wait(LOOK_AGAIN)
            space.catch_up()


class Owned:
    """A host of this process. `passing`: it takes nothing up. `begins` says what a session of a type begins with."""

    def __init__(
        self,
        host: Host,
        *,
        passing: bool,
        begins: Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
        answers: str = "",
    ) -> None:
        self._host = host
        self._begins = begins
        self.passing = passing
        self.alone = not passing
        self.answers = answers

    async def look(self, what: str, **how: Any) -> dict[str, Any]:
        """See `Looks`."""
        return await look(reading_of(self._host, exact=True), what, how)

    async def events(
        self, pattern: Pattern, *, after: Any, until: Any, session: str | None, lineage: bool, follow: bool
    ) -> AsyncGenerator[Item, None]:
        """See `Looks`."""
        end = None if follow else await _end(self, until)
        how: Any = {"after": after, "until": end, "marks": True, "session": session, "lineage": lineage}
        async for item in self._host.observe(pattern, **how):
            if not isinstance(item, CaughtUp):
                yield item

    async def get(self, id: str) -> Any:
        """The ref to a session."""
        return await self._host.get(id)

    async def name(self, ref: Any) -> str:
        """The id of the session that a ref leads to, which is not loaded for it."""
        return self._host.row(place(ref)[0]).id

    async def spawn(self, type: str, id: str | None, fields: Mapping[str, Any]) -> Any:
        """The ref to a new one."""
        return await self._host.directory.spawn(type, id, dict(await self._begins(type, fields)))

    async def delete(self, id: str, force: bool) -> None:
        """Delete a session."""
        await self._host.delete(id, force=force)

    async def erase(self, id: str, seq: int | None, turn: int | None, force: bool) -> int:
        """Take content out of a session; gives how many pieces went."""
        return await self._host.erase(id, seq=seq, turn=turn, force=force)

    async def reclaim(self) -> dict[str, Any]:
        """Have what was deleted go from the files; gives how much went."""
        return asdict(await self._host.reclaim())

    async def archive(self, into: str, how: Mapping[str, Any]) -> dict[str, Any]:
        """Have content go to a folder; gives what went."""
        return asdict(await self._host.archive(into, **how))

    async def bring_back(self, folder: str | None) -> dict[str, Any]:
        """Have all that was archived come back; gives how much did."""
        return asdict(await self._host.bring_back(folder))

    async def resolve(self, session: str, id: str, outcome: Mapping[str, Any]) -> None:
        """Settle an effect, with a `value` or an `error` in words, or by having it called `again`."""
        await resolve(self._host, session, id, outcome)

    async def say(self, session: str, call: str, refused: str | None) -> None:
        """A person's word on a call."""
        await say_word(self._host, session, call, refused)

    async def let_go(self, session: str, effect: Mapping[str, Any]) -> None:
        """Settle an effect as what it is: nobody knows its outcome."""
        await resolve(self._host, session, effect["id"], {"unknown": True})

    def observe(self, pattern: Pattern | str, **how: Any) -> AsyncIterator[Event]:
        """What `Host.observe` gives."""
        events: AsyncIterator[Event] = self._host.observe(pattern, **how)
        return events

    def pieces(self, session: str) -> AsyncIterator[Piece]:
        """What running effects of a session tell from now on."""
        return self._host.watch(session)


class Served:
    """A server that has the store: `client` is one of `keeve.client`; `answers` names the server."""

    passing = False
    alone = False

    def __init__(self, client: Any, answers: str = "") -> None:
        self._client = client
        self.answers = answers

    async def look(self, what: str, **how: Any) -> dict[str, Any]:
        """See `Looks`."""
        told: dict[str, Any] = json.loads(json.dumps(await self._client.desk("look", what, how)))
        return told  # it can be changed, as what is made here

    async def events(
        self, pattern: Pattern, *, after: Any, until: Any, session: str | None, lineage: bool, follow: bool
    ) -> AsyncGenerator[Item, None]:
        """See `Looks`."""
        end = None if follow else await _end(self, until)
        how: Any = {"after": after, "until": end, "marks": True, "session": session, "lineage": lineage}
        with self._client.observe(pattern, **how) as items:
            async for item in items:
                if not isinstance(item, CaughtUp):
                    yield item

    async def get(self, id: str) -> Any:
        """The ref to a session."""
        return await self._client.get(id)

    async def name(self, ref: Any) -> str:
        """The id of the session that a ref leads to, which is not loaded for it."""
        try:
            return str(await self._client.desk("name", ref))
        except NoSuchMethod:  # a server of an earlier version: it loads the session
            return str((await ref.describe())["id"])

    async def spawn(self, type: str, id: str | None, fields: Mapping[str, Any]) -> Any:
        """The ref to a new one."""
        return await self._client.spawn(type, id, **fields)

    async def delete(self, id: str, force: bool) -> None:
        """Delete a session."""
        await self._client.delete(id, force=force)

    async def erase(self, id: str, seq: int | None, turn: int | None, force: bool) -> int:
        """Take content out of a session; gives how many pieces went."""
        pieces: int = await self._client.desk("erase", id, seq, turn, force)
        return pieces

    async def reclaim(self) -> dict[str, Any]:
        """Have what was deleted go from the files; gives how much went."""
        return dict(await self._client.desk("reclaim"))

    async def archive(self, into: str, how: Mapping[str, Any]) -> dict[str, Any]:
        """Have content go to a folder of the server's machine; gives what went."""
        return dict(await self._client.desk("archive", into, **how))

    async def bring_back(self, folder: str | None) -> dict[str, Any]:
        """Have all that was archived come back; gives how much did."""
        return dict(await self._client.desk("bring_back", folder))

    async def resolve(self, session: str, id: str, outcome: Mapping[str, Any]) -> None:
        """Settle an effect, with a `value` or an `error` in words, or by having it called `again`."""
        await self._client.desk("resolve", session, id, dict(outcome))

    async def say(self, session: str, call: str, refused: str | None) -> None:
        """A person's word on a call."""
        await self._client.desk("say", session, call, refused)

    async def let_go(self, session: str, effect: Mapping[str, Any]) -> None:
        """Settle an effect as what it is: nobody knows its outcome."""
        await self._client.desk("resolve", session, effect["id"], {"unknown": True})

    def observe(self, pattern: Pattern | str, **how: Any) -> AsyncIterator[Event]:
        """What `client.observe` gives."""
        events: AsyncIterator[Event] = self._client.observe(pattern, **how)
        return events

    def pieces(self, session: str) -> AsyncIterator[Piece]:
        """What running effects of a session tell from now on."""
        pieces: AsyncIterator[Piece] = self._client.watch(session)
        return pieces


async def _end(store: Looks, until: Any) -> Cursor:
    said = await store.look("end", until=str(until) if isinstance(until, Cursor) else until)
    return Cursor.parse(said["cursor"])
