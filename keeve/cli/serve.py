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
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias, get_origin, get_type_hints

import attrs
import trio
from cyclopts import Parameter

from dataspace.errors import KeeveError
from keeve.cli.options import FOLDER_OPTIONS, FolderOptions
from keeve.cli.own import tools_of, types_of
from keeve.served import TOKEN
from keeve.settings import HOW, ServerSettings, model_shown, settings_from, shown
from keeve.variables import ACTORS, CONFIG

NEEDED = ("starlette", "hypercorn", "jinja2", "structlog", "prometheus_client")


class NoServer(KeeveError):
    """The packages that the server needs are not installed."""

    usage: ClassVar[bool] = True

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"the server needs {missing}, which is not installed: install it with pip install 'keeve[server]'"
        )


def _flag(name: str, kind: Any) -> Any:
    """The flag of a setting: whatever is not given stands elsewhere, or is the default."""
    said = HOW[name][1]
    what = f"{said[0].upper()}{said[1:]}"
    if get_origin(kind) is tuple:
        how = Parameter(help=f"{what}; may be given several times.", negative="", env_var=_VARIABLES.get(name))
        return Annotated[list[str] | None, how]
    return Annotated[kind | None, Parameter(help=f"{what}.")]


_VARIABLES: Final = {"actors": ACTORS}
"""The variables that count as a flag, since all commands know them."""

if TYPE_CHECKING:
    Flags: TypeAlias = Any
else:
    Flags = attrs.make_class(
        "Flags",
        {
            name: attrs.field(default=None, type=_flag(name, kind))
            for name, kind in get_type_hints(ServerSettings).items()
            if name in HOW and name != "store"  # which stands behind the command
        },
        frozen=True,
        slots=False,
    )
    Flags.__doc__ = "The settings of a server, as far as they are given on the command line."
    Flags = Parameter(name="*")(Flags)

FLAGS = Flags()
Config = Annotated[Path | None, Parameter(env_var=CONFIG)]


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
        A TOML file of settings; principals, models and credentials of tools are named there alone.
    """
    _needed()
    from keeve.server import link, serve

    loaded = settings_from(_given(flags, path, common), os.environ, config)
    settings = loaded.settings

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

    own, offered = types_of(loaded), tools_of(loaded)
    ended = trio.run(partial(serve, settings, os.environ, started, actors=own, tools=offered))
    return 130 if ended == signal.SIGINT else 0


def config(
    path: Path | None = None, /, *, config: Config = None, flags: Flags = FLAGS, common: FolderOptions = FOLDER_OPTIONS
) -> int:
    """Show what a server would be told: every setting, and where its value comes from. No secret is shown.

    `model` is what answers sessions that name no model: that of the environment (KEEVE_MODEL), the file's, or an echo.

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
    loaded = settings_from(_given(flags, path, common), os.environ, config)
    rows = [*shown(loaded), ("model", *model_shown(loaded, os.environ))]
    output = common.output
    if output.as_json:
        output.document(
            {"settings": [{"name": name, "value": value, "source": source} for name, value, source in rows]}
        )
    else:
        output.table(("SETTING", "FROM", "VALUE"), [line for row in rows for line in _lines(*row)])
    return 0


def _given(flags: Flags, path: Path | None, common: FolderOptions) -> dict[str, Any]:
    """What the command line says. The default folder is said by nobody, so that another source may say one."""
    return {"store": path or common.folder, **attrs.asdict(flags, recurse=False)}


def _lines(name: str, value: Any, source: str) -> list[tuple[str, str, str]]:
    """A line for each setting, and for each model and principal."""
    if isinstance(value, Mapping) and value:
        return [(f"{name}.{key}", source, _text(each)) for key, each in value.items()]
    return [(name, source, _text(value))]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_text(each)}" for name, each in value.items() if each is not None)
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _needed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise NoServer(", ".join(missing))
