"""Where a store is: in a folder, or with a server; and how a command gets to it.

A folder whose store a server has is no obstacle: what would need to own the store is asked of that server, over the
Unix socket that it has in that folder.

The one rule: a token goes to the server that it was given for. That of a folder goes to its own socket, and to a
server on this machine if nothing else is named.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import attrs
import trio

from dataspace.errors import KeeveError
from dataspace.log.layout import Layout
from dataspace.log.ownership import owner_of
from dataspace.urls import host_of, shown
from keeve.cli.output import Output
from keeve.cli.reading import reading
from keeve.cli.stores import Acts, Files, Looks, Served
from keeve.private_files import read_private
from keeve.served import SOCKET, TOKEN, is_served

if TYPE_CHECKING:
    from keeve.cli.own import Own

VARIABLE: Final = "KEEVE_TOKEN"

PATIENCE: Final = 10.0
"""Seconds that a command waits for a server to come back that has gone away."""

_HERE: Final = frozenset(("localhost", "127.0.0.1", "::1"))


class OnlyFiles(KeeveError, ValueError):
    """A command that works on the files of a store was given a server."""

    usage: ClassVar[bool] = True

    def __init__(self, command: str, server: str, instead: str = "") -> None:
        super().__init__(
            f"keeve {command} works on the files of a store, and not on a server ({_shown(server)}): "
            "name the folder with --store, on the machine that has it" + (f"; {instead}" if instead else "")
        )


class TwoStores(KeeveError, ValueError):
    """Both a folder and a server were named."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(
            "a command has one store: give either --store (a folder) or --server (a URL); where the token of that "
            "server is in the folder of its store, KEEVE_STORE names that"
        )


class NoServerToken(KeeveError, ValueError):
    """There is no token for a server."""

    usage: ClassVar[bool] = True

    def __init__(self, server: str, why: str) -> None:
        super().__init__(
            f"there is no token for {_shown(server)} ({why}): put it into {VARIABLE}, its file into --token-file, or, "
            "for a server on this machine, the folder of its store into KEEVE_STORE"
        )


class NoClient(KeeveError):
    """The packages that a client needs are not installed."""

    usage: ClassVar[bool] = True

    def __init__(self, missing: str | None) -> None:
        super().__init__(
            f"to talk to a server {missing} is needed, which is not installed: install it with "
            "pip install 'keeve[client]'"
        )


@attrs.frozen
class Where:
    """Where a store is: at a server (`server`, a URL), or else in a `folder`."""

    folder: Path
    server: str | None = None
    token_file: Path | None = None
    environ: Mapping[str, str] = attrs.field(factory=lambda: os.environ, repr=False)

    def files(self, command: str, instead: str = "") -> Path:
        """The folder, for a command that works on files; `instead` says what there is for a server.

        Raises `OnlyFiles`.
        """
        if self.server is not None:
            raise OnlyFiles(command, self.server, instead)
        return self.folder

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Looks]:
        """The store, to be looked at: its files, also while somebody owns it. Raises what opening it does."""
        if self.server is not None:
            async with served(self.server, self._token(self.server)) as store:
                yield store
        else:
            with reading(self.folder) as read:
                yield Files(read)

    @asynccontextmanager
    async def acting(
        self, own: Own, *, talking: bool = False, makes: bool = False, patience: float = PATIENCE
    ) -> AsyncIterator[Acts]:
        """The store, to be asked for something: of its server, or else of a host that owns it for as long as this.

        own: what is brought for such a host. talking: it has the models and tools of that, and takes up what is asked;
        else that is left to the next host. makes: a store is made if there is none. patience:
        seconds that are waited for a server to come back that has gone away.

        Raises `StoreOwned`, and what opening it does.
        """
        has = self.server is not None or self._has_server()
        if has and (words := own.passed_over()):
            Output().note(
                f"a server has the store, and its own types and tools count: {', '.join(words)} is passed over"
            )
        if self.server is not None:
            async with served(self.server, self._token(self.server), patience) as store:
                yield store
        elif has:
            token = None if self.token_file is None else _token_in(self.token_file, self.token_file.name)
            async with served(str(self.folder), token, patience) as store:
                yield store
        else:
            from keeve.cli.owning import owned  # who looks only needs nothing of what a host is made of

            async with owned(self.folder, own, talking=talking, makes=makes) as store:
                yield store

    def _has_server(self) -> bool:
        """Whether a server has the store in the folder, as far as its files say."""
        return (self.folder / SOCKET).is_socket() and owner_of(Layout(self.folder).lock) is not None

    def _token(self, server: str) -> str | None:
        if self.token_file is not None:
            return _token_in(self.token_file, server)
        if given := self.environ.get(VARIABLE, "").strip():
            return given
        if "://" not in server or server.startswith("unix:"):
            return None  # that which lies beside its socket
        if host_of(server) not in _HERE:
            raise NoServerToken(server, "none was given")
        return _token_in(self.folder / TOKEN, server)


@asynccontextmanager
async def served(server: str, token: str | None, patience: float = PATIENCE) -> AsyncIterator[Served]:
    """A server's store. Raises `Unreachable`, `TokenRefused`, `WrongVersion`, `BadURL`, `NoClient`."""
    try:
        from keeve.client import connect
    except ModuleNotFoundError as error:
        raise NoClient(error.name) from error
    async with connect(server, token=token, patience=patience) as client:
        named = f"the server {'at' if '://' in server or server.startswith('unix:') else 'of'} {server}"
        yield Served(client, named)


def devices_lacking(folder: Path) -> set[str]:
    """The devices that work waits for, and that the server of the store there has not; none if no server says so."""

    async def ask() -> set[str]:
        with trio.move_on_after(PATIENCE):
            async with served(str(folder), None) as store:
                return set((await store.look("lacking"))["devices"])
        return set()

    if is_served(folder / SOCKET):
        with suppress(KeeveError):
            return trio.run(ask)
    return set()


def _shown(server: str) -> str:
    return shown(server) if "://" in server and not server.startswith("unix:") else server


def _token_in(path: Path, server: str) -> str:
    found = read_private(path, "name another one", lambda what: NoServerToken(server, f"{path}: {what}"))
    return found.decode("latin-1").strip()
