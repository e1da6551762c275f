"""`keeve serve`: the server, and `keeve config`: what it would be told, and from where.

The one rule: nothing of the server is imported before one of these is asked for; without the extra `keeve[server]` they
say how it is had.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import attrs
import trio
from cyclopts import Parameter

from dataspace.errors import KeeveError
from keeve.cli.app import FOLDER_OPTIONS, FolderOptions
from keeve.cli.own import named_tools, named_types
from keeve.served import TOKEN

NEEDED = ("starlette", "hypercorn", "jinja2", "structlog", "prometheus_client")


class NoServer(KeeveError):
    """The packages that the server needs are not installed."""

    usage: ClassVar[bool] = True

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"the server needs {missing}, which is not installed: install it with pip install 'keeve[server]'"
        )


@Parameter(name="*")
@attrs.frozen
class Flags:
    """The settings of a server, as far as they are given on the command line.

    Parameters
    ----------
    host
        The address that is listened at; 127.0.0.1 unless it is given.
    port
        The port there; 0 takes one that is free.
    tls_cert
        The file of a certificate chain (PEM): TLS is spoken, and only that.
    tls_key
        The file of its key.
    hosts
        A name under which it is reached, beside localhost and addresses; may be given several times.
    origins
        Another origin whose pages may ask; may be given several times.
    actors
        Your actor types, as module or module:Class; may be given several times.
    tools
        The tools that sessions may call, as module:NAME of a Tools.
    signer
        The file of an Ed25519 key that signs checkpoints and receipts.
    unknown
        What becomes of calls of unknown outcome: break (the model is told), or hold, for a person to settle.
    body_bytes
        Bytes that the body of a request may have.
    body_seconds
        Seconds that a body may take to come.
    idle_seconds
        Seconds that a connection may be idle, or take to say what it wants.
    connections
        Connections at once; further ones wait.
    streams
        Requests of a principal under way at once.
    requests
        Requests of a principal in a minute.
    sessions
        Sessions that a principal may have, unless it is admin.
    grace
        Seconds that requests and turns have to end when the server stops.
    log
        How the log is written: text or json.
    log_level
        The least that it has: debug, info, warning or error.
    """

    host: str | None = None
    port: int | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    hosts: Annotated[list[str] | None, Parameter(negative="")] = None
    origins: Annotated[list[str] | None, Parameter(negative="")] = None
    actors: Annotated[list[str] | None, Parameter(env_var="KEEVE_ACTORS", negative="")] = None
    tools: str | None = None
    signer: Path | None = None
    unknown: str | None = None
    body_bytes: int | None = None
    body_seconds: float | None = None
    idle_seconds: float | None = None
    connections: int | None = None
    streams: int | None = None
    requests: int | None = None
    sessions: int | None = None
    grace: float | None = None
    log: str | None = None
    log_level: str | None = None


FLAGS = Flags()
Config = Annotated[Path | None, Parameter(env_var="KEEVE_SERVER_CONFIG")]


def serve(
    path: Path | None = None, /, *, config: Config = None, flags: Flags = FLAGS, common: FolderOptions = FOLDER_OPTIONS
) -> int:
    """Serve a store over HTTP until Ctrl-C or SIGTERM. Prints the address; at the first start, a link with the token.

    The token is in the file `token` in the folder of the store. Every setting is a variable too (KEEVE_SERVER_PORT), or
    stands in a TOML file; flags count first. KEEVE_MODEL names the model, as for `keeve chat`.

    ```
    keeve serve ./data
    keeve serve ./data --port 8420 --config server.toml
    ```

    Parameters
    ----------
    path
        The folder of the store; else --store says it.
    config
        A TOML file of settings.
    """
    _needed()
    from keeve.server import link, serve, settings_from

    settings = settings_from(_given(flags, path, common), os.environ, config).settings

    def started(address: str, token: str | None) -> None:
        common_output = common.output
        if common_output.as_json:
            common_output.document({"address": address, "token_file": str(settings.store / TOKEN)})
            return
        if token is None:
            common_output.say(address)
            common_output.note(f"serving {settings.store}; the token is in {settings.store / TOKEN}. Ctrl-C ends")
        else:
            common_output.say(link(address, token))
            common_output.note(
                f"serving {settings.store}; this link has the token, which is shown once and kept in "
                f"{settings.store / TOKEN}. Ctrl-C ends"
            )

    own, offered = named_types(settings.actors), None if settings.tools is None else named_tools(settings.tools)
    ended = trio.run(partial(serve, settings, os.environ, started, actors=own, tools=offered))
    return 130 if ended == signal.SIGINT else 0


def config(
    path: Path | None = None, /, *, config: Config = None, flags: Flags = FLAGS, common: FolderOptions = FOLDER_OPTIONS
) -> int:
    """Show what a server would be told: every setting, and where its value comes from. No secret is shown.

    ```
    keeve config
    keeve config ./data --config server.toml --json
    ```

    Parameters
    ----------
    path
        The folder of the store; else --store says it.
    config
        A TOML file of settings.
    """
    _needed()
    from keeve.server import settings_from, shown

    rows = shown(settings_from(_given(flags, path, common), os.environ, config))
    output = common.output
    if output.as_json:
        output.document(
            {"settings": [{"name": name, "value": value, "source": source} for name, value, source in rows]}
        )
    else:
        output.table(("SETTING", "FROM", "VALUE"), [(name, source, _text(value)) for name, value, source in rows])
    return 0


def _given(flags: Flags, path: Path | None, common: FolderOptions) -> dict[str, Any]:
    """What the command line says. The default folder is said by nobody, so that another source may say one."""
    store = path or common.named_folder
    return {"store": store, **attrs.asdict(flags, recurse=False)}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _needed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise NoServer(", ".join(missing))
