"""`Serving`: what every part of the server is handed.

The one rule: nothing is global. Two servers in one process, as tests have them, know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from secrets import token_urlsafe
from typing import Any

import attrs
import trio
from starlette.requests import HTTPConnection

from keeve.server.auth import Auth, Principal
from keeve.server.heard import Heard
from keeve.server.logs import Log
from keeve.server.metrics import Metrics
from keeve.server.quota import Quota
from keeve.server.rate_limits import RateLimits
from keeve.server.repeating import Answers
from keeve.server.standing import Standing
from keeve.server.tracing import Tracing
from keeve.settings import ServerSettings, named
from vat.devices.vault import Vault
from vat.host.host import Host
from vat.host.outside import HostRef


@attrs.frozen(eq=False)
class Serving:
    """What all parts share.

    host: the host of the store. auth: who may. clock: µs since 1970. nursery: for what goes on beside requests; it is
    cancelled at the end. stopping: set when the server begins to stop: nothing new is begun then, and who only looks is
    told. ending: set when the grace is over (`end`). waiting: requests of which nothing was answered yet.
    log: structured, and without secrets. metrics: what is counted. tracing: spans.
    models: the names of the host's devices that are models; the first is what sessions have unless they say otherwise.
    named: the device behind each name under which a model may be asked for (`keeve.settings.named`).
    tools: the host's device `tools`, a `Tools`, if it has one. vault: the host's.
    types: the actor types of its own, by name, besides `Session`.
    quota: how many sessions who may have: whoever makes one does it in `quota.room(principal)`.
    rates: how often, and how much at once. standing: whether those who are being answered are taken yet.
    heard: what models have said of the answers that they are giving.
    answers: what was answered to requests with a key that belong to no session.
    secret: what chained tokens and sturdy refs are made with: the owner's token; where there is none, a new one.
    """

    host: Host
    settings: ServerSettings
    auth: Auth
    clock: Callable[[], int]
    nursery: trio.Nursery
    log: Log
    metrics: Metrics = attrs.field(factory=Metrics)
    tracing: Tracing = attrs.field(factory=Tracing)
    stopping: trio.Event = attrs.field(factory=trio.Event)
    ending: trio.Event = attrs.field(factory=trio.Event)
    waiting: set[trio.CancelScope] = attrs.field(factory=set)
    models: tuple[str, ...] = ("model",)
    tools: Any = None
    vault: Vault = attrs.field(factory=Vault, repr=False)
    types: Mapping[str, type] = attrs.field(factory=dict)
    secret: str = attrs.field(factory=lambda: token_urlsafe(32), repr=False)
    standing: Standing = attrs.field(default=attrs.Factory(lambda self: Standing(self.auth.principal), takes_self=True))
    named: Mapping[str, str] = attrs.field(default=attrs.Factory(lambda self: named({}, self.models), takes_self=True))
    heard: Heard = attrs.field(
        default=attrs.Factory(lambda self: Heard(self.host, self.types.values()), takes_self=True)
    )
    rates: RateLimits = attrs.field(
        default=attrs.Factory(lambda self: RateLimits(self.settings.requests, self.settings.streams), takes_self=True)
    )
    answers: Answers = attrs.field(factory=Answers)
    quota: Quota = attrs.field(
        default=attrs.Factory(lambda self: Quota(self.host, self.settings.sessions), takes_self=True)
    )

    def end(self) -> None:
        """The grace is over: whoever waits is told so. What they wait for goes on, or is left to the next start."""
        self.ending.set()
        for each in self.waiting:
            each.cancel()

    def principal(self, request: HTTPConnection) -> Principal:
        """Who makes a request. Raises a `Refusal` (401) where a part lets in who has no token."""
        found: Principal | None = getattr(request.state, "principal", None)
        return self.auth.asking(request) if found is None else found

    def asked(self, request: HTTPConnection, via: str = "http") -> Host:
        """The host, asked by who makes this request."""
        return self.host.asking(self.principal(request).name, via)

    async def session(self, request: HTTPConnection, id: str, verb: str, via: str = "http") -> HostRef[Any]:
        """A ref to a session, for who makes this request and does that with it: see `Auth.row` for what is raised."""
        return await self.auth.session(self.principal(request), id, verb, via)
