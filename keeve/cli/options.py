"""What commands take: the options of each kind of them, and what they come to.

    FolderOptions   every command's: of one that can only have a folder
    Options         of those that know servers
    OwnerOptions    of those that run sessions

The one rule: what an option stands for is imported when a command asks for it; none waits for what it does not need.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
import trio
from cyclopts import Parameter

from keeve.cli.again import DEFAULT
from keeve.cli.output import Output
from keeve.variables import ACTORS, CONFIG, SERVER, STORE

if TYPE_CHECKING:
    from keeve.cli.own import Own
    from keeve.cli.stores import Looks
    from keeve.cli.where import Where

Flag = Parameter(negative="")


@Parameter(name="*")
@attrs.frozen
class FolderOptions:
    """What every command takes, also one that can only have a folder.

    Parameters
    ----------
    folder
        The folder of the store; else KEEVE_STORE, else ./data. Of an encrypted one, KEEVE_KEY_FILE names the file of
        the key.
    json
        Give JSON on the standard output.
    debug
        Show the traceback of an error, and what the host logs.
    """

    folder: Annotated[Path | None, Parameter(name="--store")] = None
    json: Annotated[bool, Flag] = False
    debug: Annotated[bool, Flag] = False

    @property
    def output(self) -> Output:
        """Where to say things."""
        return Output(as_json=self.json)

    @property
    def named_folder(self) -> Path | None:
        """The folder, if somebody names one."""
        named = os.environ.get(STORE)
        return self.folder or (Path(named) if named else None)


FOLDER_OPTIONS = FolderOptions()


@Parameter(name="*")
@attrs.frozen
class Options(FolderOptions):
    """What the commands take that know servers.

    Parameters
    ----------
    server
        The server that has the store, instead of a folder: http(s)://host:port or unix:/path; else KEEVE_SERVER.
    token_file
        The file of the token for it; else KEEVE_TOKEN has it. No token narrows what is done with a folder.
    """

    server: str | None = None
    token_file: Path | None = None

    @property
    def where(self) -> Where:
        """Where the store is: a flag counts before a variable, and a server before a folder. Raises `TwoStores`."""
        from keeve.cli.where import TwoStores, Where

        if self.folder is not None and self.server is not None:
            raise TwoStores
        server = self.server or (None if self.folder is not None else os.environ.get(SERVER))
        return Where(self.named_folder or DEFAULT, server or None, self.token_file)

    def looked_at(self, look: Callable[[Looks], Awaitable[int | None]]) -> int:
        """Have something looked at in the store; gives the exit code."""

        async def run() -> int:
            async with self.where.looking() as store:
                return await look(store) or 0

        return trio.run(run)


OPTIONS = Options()


@Parameter(name="*")
@attrs.frozen
class OwnerOptions(Options):
    """What the commands take that run sessions. Where a server has the store, its own types, tools and models count.

    Parameters
    ----------
    actors
        Your actor types, as module or module:Class; may be given several times.
    tools
        The tools that sessions may call, as module:NAME of a Tools.
    config
        The TOML file of settings with which keeve serve has the store: its models, tools, types, and its folder.
    """

    actors: Annotated[list[str] | None, Parameter(env_var=ACTORS, negative="")] = None
    tools: str | None = None
    config: Annotated[Path | None, Parameter(env_var=CONFIG)] = None

    @property
    def own(self) -> Own:
        """What is brought for a host."""
        from keeve.cli.own import Own

        return Own(self.actors, self.tools, self.config)

    @property
    def where(self) -> Where:
        """Where the store is: where nobody names a folder or a server, the file of settings may."""
        where = super().where
        if self.config is None or where.server is not None or self.named_folder is not None:
            return where
        return attrs.evolve(where, folder=self.own.loaded().settings.store)


OWNER_OPTIONS = OwnerOptions()
