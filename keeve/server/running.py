"""`serve`: a server from its start to its end.

    the store is opened, its token is there; connections are accepted
    SIGTERM, or Ctrl-C: none is accepted any more, /readyz says so, streams are told; what is under way has the grace
    it is over: who waits yet is told so
    the host ends: what still runs is left to the next start, which goes on with it

The one rule: nothing is lost by an end of any kind. To end in order is a courtesy.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import trio

from actors.tools import Tools
from dataspace.in_logs import in_log
from keeve.api import now, open_host
from keeve.archive_places import archives_from
from keeve.host_keys import host_key_from
from keeve.principals import OWNER
from keeve.served import TOKEN
from keeve.server import openai, wire
from keeve.server.app import application
from keeve.server.auth import Auth, Principal, Tokens
from keeve.server.counting import count_turns
from keeve.server.listening import HttpListener
from keeve.server.logs import Secrets, listens, make_log
from keeve.server.owner import token_in
from keeve.server.preparing import prepared
from keeve.server.serving import Serving
from keeve.server.tokens import Chains
from keeve.server.tracing import Tracing, tracer
from keeve.settings import VERBS, PrincipalFile, ServerSettings, named
from keeve.wire.revocations import Revocations
from vat.objects.types import type_of

FAREWELL: Final = 2.0
"""Seconds for last words."""

Started = Callable[[str, str | None], None]
"""Is told the address when connections are accepted, and the token if it was made now."""


async def serve(
    settings: ServerSettings,
    environ: Mapping[str, str],
    started: Started,
    *,
    actors: Sequence[type] = (),
    tools: Tools | None = None,
) -> int:
    """Serve a store until SIGTERM or Ctrl-C; gives the number of the signal that ended it.

    actors: the actor types that may run, besides `Session`. tools: what sessions may call. Raises what `open_host`
    does, `BadServerSetting`, `BadTokenFile`, and `NotListening` where the address cannot be had.
    """
    secrets = Secrets()
    log = make_log(secrets, form=settings.log, level=settings.log_level)
    listens(log, settings.log_level)
    log.info("starting", pid=os.getpid(), store=str(settings.store))
    found = await prepared(settings, environ)
    if found.stands_in is not None:
        log.info("the first model of the file is what sessions ask", model=found.stands_in, as_device="model")
    secrets.by(found.vault.redact)
    tracing = Tracing(tracer())
    devices = tracing.of(found.devices, found.models)
    ended = [signal.SIGTERM]
    async with (
        open_host(
            settings.store,
            actors=actors,
            devices=devices if tools is None else {**devices, "tools": tools},
            vault=found.vault,
            signer=settings.signer,
            unknown="hold" if settings.unknown == "hold" else "break",
            key=host_key_from(environ),
            archives=archives_from(environ),
            by=OWNER,
            via="server",
        ) as host,
        trio.open_nursery() as nursery,
        AsyncExitStack() as untold,
    ):
        tokens, made = tokens_of(settings, secrets, found.principals)
        if made is not None:  # until somebody is told that token: the next start makes one then, and tells it
            untold.callback((settings.store / TOKEN).unlink, missing_ok=True)
        secret, _ = token_in(settings.store / TOKEN)
        auth = Auth(host, now, [tokens, Chains(secret, Revocations(settings.store))])
        serving = Serving(
            *(host, settings, auth, now, nursery, log),
            tracing=tracing,
            models=tuple(devices) or ("model",),
            named=named(environ, devices),
            tools=tools,
            vault=found.vault,
            types={type_of(each).name: each for each in actors},
            secret=secret,
        )
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            await openai.start(serving)
            port = await nursery.start(_reached, serving)
            address = address_of(settings, port)
            log.info("serving", pid=os.getpid(), address=address, store=str(settings.store))
            started(address, made)
            untold.pop_all()
            await _until_told(signals, serving, ended)
    log.info("ended")
    return int(ended[0])


async def _reached(serving: Serving, *, task_status: trio.TaskStatus[int]) -> None:
    """Accept connections, in all ways, until the server stops and those that there are have ended; then all of it ends.

    Says the port, once there is one.
    """
    listening = HttpListener(application(serving), serving.settings)
    count_turns(serving)
    serving.nursery.start_soon(serving.standing.watch)
    serving.metrics.shows("keeve_connections", "Connections that are open.", lambda: listening.count)
    async with trio.open_nursery() as ways:
        port = await ways.start(listening.run, serving.stopping)
        try:
            await ways.start(wire.serve_socket, serving)
        except wire.BadSocket as error:
            serving.log.warning("no Unix socket", why=in_log(error))
        serving.nursery.start_soon(_grace, serving, ways.cancel_scope)
        task_status.started(port)
    serving.nursery.cancel_scope.cancel()


async def _grace(serving: Serving, ways: trio.CancelScope) -> None:
    """When the grace is over, whoever waits is told; and has a moment to hear it."""
    await serving.stopping.wait()
    await trio.sleep(serving.settings.grace)
    serving.end()
    await trio.sleep(FAREWELL)
    ways.cancel()


async def _until_told(signals: Any, serving: Serving, ended: list[signal.Signals]) -> None:
    """The first signal begins the end, and is noted; the second one does not wait for the grace."""
    async for number in signals:
        if serving.stopping.is_set():
            serving.nursery.cancel_scope.cancel()
        else:
            ended[0] = signal.Signals(number)
            serving.log.info("stopping", signal=ended[0].name, grace=serving.settings.grace)
            serving.stopping.set()


def tokens_of(
    settings: ServerSettings, secrets: Secrets, others: Sequence[tuple[PrincipalFile, str]]
) -> tuple[Tokens, str | None]:
    """The tokens of the owner and of all principals; and the owner's, if it was made now."""
    tokens = Tokens()
    token, made = token_in(settings.store / TOKEN, make=True)
    tokens.add(token, Principal(OWNER, frozenset(VERBS)))
    secrets.add(token)
    for each, other in others:
        tokens.add(other, Principal(each.name, frozenset(each.verbs)))
        secrets.add(other)
    return tokens, token if made else None


def address_of(settings: ServerSettings, port: int) -> str:
    """Where a browser on this machine finds the server."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    return f"{'http' if settings.tls_cert is None else 'https'}://{name}:{port}/"


def link(address: str, token: str) -> str:
    """The address with the token: what is behind the # is sent to nobody, and so stands in no log."""
    return f"{address}#token={token}"
