"""Calling: from a call through a ref outside of all vats to its answer, when that is durable.

The one rule: what goes in is frozen here, at the line that sent it, and what comes out is bound to refs again.
"""

from __future__ import annotations

from typing import Any, Protocol

from dataspace.errors import KeeveError
from dataspace.values import Value, freeze
from vat.crank.vat import request_digest
from vat.errors import BadCall
from vat.failures import exception_of
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.heap.messages import UNIVERSAL, Asker, Call
from vat.heap.refs import DIRECTORY
from vat.host.asking import Waiter
from vat.host.engine import Engine
from vat.host.looked_over import LookedOver
from vat.host.outside import bound, unbound
from vat.host.proving import Answered, Receipted
from vat.host.universal import given
from vat.objects.types import ActorType


class Answers(Protocol):
    """A directory, as it is asked from outside of all vats."""

    async def answer(self, method: str, args: list[Value], keywords: dict[str, Value], asker: Asker) -> Value: ...


class Calling:
    """What the refs of a host call through: one for all who ask, so that refs to one actor are equal."""

    def __init__(self, engine: Engine, directory: Answers) -> None:
        self._engine = engine
        self._directory = directory
        self._over = LookedOver(engine.store, engine.dataspace.catalog)

    async def call(
        self,
        uid: bytes,
        actor: int,
        method: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        asker: Asker,
        *,
        receipt: bool = False,
    ) -> Any:
        """Call a method, or read a field, and wait for the answer; with its `receipt`, if that is wanted."""
        if type(receipt) is not bool or (receipt and uid == DIRECTORY):
            raise BadCall(f"{method}(): give True or False for receipt; what the directory answers has none")
        if method in UNIVERSAL and uid != DIRECTORY:
            self._engine.universal.asked(method, keywords)
            if method == "fork" and asker.via == "cli":  # of a server or a program nobody waits for such a reading
                at = keywords.get("at", args[0] if args else None)
                await self._over.look(uid, at if type(at) is int else None)
        answered = Answered(self._engine, uid) if receipt else None
        value = await self._call(uid, actor, method, args, keywords, asker, answered)
        return value if answered is None else Receipted(value, answered.receipt())

    async def _call(
        self,
        uid: bytes,
        actor: int,
        method: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        asker: Asker,
        waiter: Waiter | None,
    ) -> Any:
        kept = [freeze(unbound(arg), None, f"{method}(): argument {n + 1}") for n, arg in enumerate(args)]
        named = {name: freeze(unbound(arg), None, f"{method}(): {name}") for name, arg in keywords.items()}
        after = asker.requesting(None)
        if uid == DIRECTORY:
            return bound(freeze(await self._directory.answer(method, kept, named, asker)), self, after)
        plain = None if asker.request is None else request_digest(method, kept, named)
        call = Call(actor, method, kept, named, asker, asker.sent or plain, plain)
        try:
            outcome = await self._engine.ask(uid, call, waiter)
        except KeeveError as error:
            if not hasattr(error, "__notes__"):
                error.add_note(f"in session {self._session(uid)!r}")
            raise
        if not outcome.succeeded:
            raise exception_of(outcome.payload, f"in session {self._session(uid)!r}")
        value = bound(outcome.payload, self, after)
        return given(method, value) if method in UNIVERSAL else value

    def name(self, uid: bytes, actor: int) -> str:
        """An actor in words, for people; once the host is closed, the uid of its session has to do."""
        return "the directory" if uid == DIRECTORY else f"actor {actor} of session {self._session(uid)!r}"

    def _session(self, uid: bytes) -> str:
        return self._engine.dataspace.catalog.name(uid) if self._engine.running else uid.hex()

    def described(self, uid: bytes, actor: int) -> ActorType | None:
        """The type of an actor, for those who present it; None for the directory."""
        if uid == DIRECTORY:
            return None
        resident = self._engine.residents.get(uid)
        if resident is not None and resident.vat is not None:
            return self._engine.types[_type(resident.vat.heap, actor)]
        row = self._engine.loader.row(uid)
        if actor == ROOT_ACTOR:
            return self._engine.types[row.type]
        return self._engine.types[self._engine.loader.read(uid, row.seq, lambda found: _type(found.heap, actor))]


def _type(heap: Heap, actor: int) -> str:
    return heap.state(heap.behind(actor)).type
