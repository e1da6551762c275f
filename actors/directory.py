"""The directory: sessions are spawned, found, listed and deleted by messages to it, from an actor of any vat.

    self.directory.spawn("keeve.session", "s2", {"system": "Be brief."}).then(self.made)

What is sent to it is an effect of the device `directory`, which is this. It keeps no list of its own: it asks the host,
and so the catalog.

The one rule: everything may be asked twice. A session's uid follows from the effect that asked for it, so a retry after
a crash finds what the first attempt made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Protocol

import attrs

from dataspace.errors import KeeveError
from dataspace.values import Value
from vat.devices.devices import Effect, effect
from vat.errors import Deleted, no_such_method
from vat.heap.messages import Asker
from vat.heap.refs import Ref


class Sessions(Protocol):
    """What the directory asks of its host (`vat.host.sessions`)."""

    async def spawn_named(
        self, type_name: str, id: str | None, fields: Mapping[str, Value], asker: Asker, *, uid: bytes | None = None
    ) -> Ref: ...
    def find(self, id: str) -> Ref: ...
    def listed(self, prefix: str, after: str, limit: int) -> list[dict[str, Any]]: ...
    async def delete(self, id: str, asker: Asker, *, force: bool = False) -> None: ...


class NoHost(KeeveError, quotes=False):
    """A directory that nobody has given the sessions of a host."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__("this directory has no host: set directory.sessions before anything is asked of it")


@attrs.frozen
class _Asked:
    """The directory as somebody asks it. With a `uid` a session is spawned under it, however often that is asked."""

    sessions: Sessions
    asker: Asker
    uid: bytes | None = None

    async def spawn(self, type_name: str, id: str | None = None, fields: Mapping[str, Value] | None = None) -> Ref:
        return await self.sessions.spawn_named(type_name, id, fields or {}, self.asker, uid=self.uid)

    async def get(self, id: str) -> Ref:
        return self.sessions.find(id)

    async def list(self, prefix: str = "", after: str = "", limit: int = 100) -> list[dict[str, Any]]:
        return self.sessions.listed(prefix, after, limit)

    async def delete(self, id: str, force: bool = False) -> None:
        await self.sessions.delete(id, self.asker, force=force)


_METHODS = ("spawn", "get", "list", "delete")


class Directory:
    """The device `directory` of a host, and what refs to it outside of all vats are answered by.

    Whoever makes a host sets `sessions`, when there are some.
    """

    def __init__(self, sessions: Sessions | None = None) -> None:
        self.sessions = sessions

    @effect(on_crash="retry")
    async def spawn(
        self, effect: Effect, type_name: str, id: str | None = None, fields: Mapping[str, Value] | None = None
    ) -> Ref:
        """A new session of a registered type, with these fields; the ref to it. `id` is chosen if it is None.

        Breaks with `UnknownActorType`, `IdInUse`, `Deleted`, `BadSessionId`, `TypeError` or `NotAValue`.
        """
        return await self._asked(effect).spawn(type_name, id, fields)

    @effect(on_crash="retry")
    async def get(self, effect: Effect, id: str) -> Ref:
        """The ref to a session. Breaks with `NoSuchSession` or `Deleted`."""
        return await self._asked(effect).get(id)

    @effect(on_crash="retry")
    async def list(self, effect: Effect, prefix: str = "", after: str = "", limit: int = 100) -> list[dict[str, Any]]:
        """At most `limit` sessions whose ids begin with `prefix`, in the order of their ids, those after `after`.

        Each is a dict: id, type, seq, pending, ref.
        """
        return await self._asked(effect).list(prefix, after, limit)

    @effect(on_crash="retry")
    async def delete(self, effect: Effect, id: str, force: bool = False) -> None:
        """Delete a session, or find it deleted. Breaks with `NoSuchSession`, or `Busy` unless it is forced."""
        try:
            await self._asked(effect).delete(id, force)
        except Deleted:
            return

    async def answer(self, method: str, args: Sequence[Value], keywords: Mapping[str, Value], asker: Asker) -> Any:
        """The same four, asked by code outside of all vats. A request id makes a repeated `spawn` safe."""
        if method not in _METHODS:
            raise no_such_method("the directory", method, _METHODS)
        return await getattr(_Asked(self._host, asker), method)(*args, **keywords)

    def _asked(self, effect: Effect) -> _Asked:
        uid = sha256(b"keeve spawn 1\n" + effect.id.encode()).digest()[:16]
        return _Asked(self._host, Asker("vat", f"vat:{effect.session}"), uid)

    @property
    def _host(self) -> Sessions:
        if self.sessions is None:
            raise NoHost
        return self.sessions
