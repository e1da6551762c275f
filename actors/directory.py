"""The directory: sessions are spawned, found, listed and deleted by messages to it, from an actor of any vat.

    self.directory.spawn("keeve.session", "s2", {"system": "Be brief."}).then(self.made)

What is sent to it is an effect of the device `directory`, which is this. It keeps no list of its own: it asks the host,
and so the catalog.

The one rule: everything may be asked twice. A session's uid follows from the effect that asked for it, so a retry after
a crash finds what the first attempt made.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Protocol

from dataspace.errors import KeeveError
from dataspace.values import Value
from vat.devices.devices import Effect, effect
from vat.errors import Deleted
from vat.heap.messages import Asker
from vat.heap.refs import Ref


class Sessions(Protocol):
    """What the directory asks of its host."""

    async def spawn_named(
        self, type_name: str, id: str | None, fields: Mapping[str, Value], *, uid: bytes, asker: Asker
    ) -> Ref: ...
    async def find(self, id: str) -> Ref: ...
    def listed(self, prefix: str, after: str, limit: int) -> list[dict[str, Any]]: ...
    async def delete(self, id: str, *, force: bool = False, asker: Asker | None = None) -> None: ...


class NoHost(KeeveError):
    """A directory that nobody has given a host."""

    usage = True

    def __str__(self) -> str:
        return "this directory has no host: set directory.host before anything is asked of it"


class Directory:
    """The device `directory` of a host, which sets `host` when it has made both."""

    def __init__(self, host: Sessions | None = None) -> None:
        self.host = host

    @effect(on_crash="retry")
    async def spawn(
        self, effect: Effect, type_name: str, id: str | None = None, fields: Mapping[str, Value] | None = None
    ) -> Ref:
        """A new session of a registered type, with these fields; the ref to it. `id` is chosen if it is None.

        Breaks with `UnknownActorType`, `IdInUse`, `Deleted`, `BadSessionId`, `TypeError` or `NotAValue`.
        """
        uid = sha256(b"keeve spawn 1\n" + effect.id.encode()).digest()[:16]
        return await self._host.spawn_named(type_name, id, fields or {}, uid=uid, asker=_asker(effect))

    @effect(on_crash="retry")
    async def get(self, effect: Effect, id: str) -> Ref:
        """The ref to a session. Breaks with `NoSuchSession` or `Deleted`."""
        return await self._host.find(id)

    @effect(on_crash="retry")
    async def list(self, effect: Effect, prefix: str = "", after: str = "", limit: int = 100) -> list[dict[str, Any]]:
        """At most `limit` sessions whose ids begin with `prefix`, in the order of their ids, those after `after`.

        Each is a dict: id, type, seq, pending, ref.
        """
        return self._host.listed(prefix, after, limit)

    @effect(on_crash="retry")
    async def delete(self, effect: Effect, id: str, force: bool = False) -> None:
        """Delete a session, or find it deleted. Breaks with `NoSuchSession`, or `Busy` unless it is forced."""
        try:
            await self._host.delete(id, force=force, asker=_asker(effect))
        except Deleted:
            return

    @property
    def _host(self) -> Sessions:
        if self.host is None:
            raise NoHost
        return self.host


def _asker(effect: Effect) -> Asker:
    return Asker("vat", f"vat:{effect.session}")
